//! What went wrong in an exchange, told apart and in our own words.
//! Pure. A provider's words are shortened, put on one line and freed of secrets before they are shown.

use std::time::Duration;

use http::StatusCode;

use super::answer::AnswerError;
use super::chunk::ErrorObject;
use crate::limits::{ANSWER_BYTES_MAX, TOOL_CALLS_PER_MESSAGE_MAX};
use crate::provider::key::{KeySource, Redactor};
use crate::provider::{Fault, ProviderError};
use crate::sse::TooLong;
use crate::world::{HttpError, HttpFault};

/// How much of a provider's own explanation is passed on.
const QUOTE_CHARS_MAX: usize = 300;

/// Whether asking again may help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Again {
    MayHelp,
    WillNot,
}

/// Makes the errors of one provider.
#[derive(Debug)]
pub(super) struct Failures {
    pub(super) provider: String,
    pub(super) key_source: Option<KeySource>,
    pub(super) redactor: Redactor,
}

impl Failures {
    /// The exchange broke, before the answer or within it.
    pub(super) fn transport(&self, error: &HttpError) -> ProviderError {
        let provider = &self.provider;
        tracing::debug!(provider, fault = %error.fault, detail = error.detail, "exchange broke");
        let (fault, again, what) = match error.fault {
            HttpFault::Connect => (Fault::Connect, Again::MayHelp, "cannot be reached"),
            HttpFault::Reset => {
                (Fault::Reset, Again::MayHelp, "closed the connection before it answered")
            }
            HttpFault::Broken => {
                (Fault::Reset, Again::MayHelp, "broke the connection in the middle of its answer")
            }
            HttpFault::Request => (
                Fault::Connect,
                Again::WillNot,
                "cannot be asked: the request cannot be sent as it is",
            ),
        };
        self.failure(fault, again, what)
    }

    pub(super) fn late(&self, waited: Duration) -> ProviderError {
        let seconds = waited.as_secs_f64();
        let what = format!("did not answer within {seconds} s");
        self.failure(Fault::Timeout, Again::MayHelp, &what)
    }

    pub(super) fn stalled(&self, waited: Duration) -> ProviderError {
        let seconds = waited.as_secs_f64();
        let what = format!("sent nothing for {seconds} s in the middle of its answer");
        self.failure(Fault::Stall, Again::MayHelp, &what)
    }

    /// A status other than success. `explanation` is what the body says, where it could be read.
    pub(super) fn status(
        &self,
        status: StatusCode,
        explanation: Option<&ErrorObject>,
    ) -> ProviderError {
        let quote = self.quote(explanation);
        let error = match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                let key = match &self.key_source {
                    Some(source) => format!("check the key in {source}"),
                    None => "no key is configured for it".to_owned(),
                };
                let what = format!("refused access (HTTP {}; {key}){quote}", status.as_u16());
                self.failure(Fault::Auth, Again::WillNot, &what)
            }
            _ => {
                let what = format!("answered HTTP {}{quote}", status.as_u16());
                self.failure(Fault::Status, again_after(status.as_u16()), &what)
            }
        };
        ProviderError { status: Some(status.as_u16()), ..error }
    }

    /// A success whose body is JSON or a page instead of a stream.
    pub(super) fn no_stream(&self, explanation: Option<ErrorObject>) -> ProviderError {
        match explanation {
            Some(object) => self.error_object(&object, Again::WillNot),
            None => self.failure(
                Fault::BadJson,
                Again::WillNot,
                "answered with something that is no event stream",
            ),
        }
    }

    pub(super) fn too_long(&self, error: TooLong, forwarded: Forwarded) -> ProviderError {
        let what = format!("sent a record of more than {} bytes in its answer", error.bytes_max);
        self.failure(Fault::BadJson, forwarded.again(), &what)
    }

    /// The answer arrived and is wrong. `forwarded` says whether a reader has seen some of it.
    pub(super) fn answer(&self, error: &AnswerError, forwarded: Forwarded) -> ProviderError {
        let after_content = forwarded.again();
        match error {
            AnswerError::ErrorObject(object) => self.error_object(object, after_content),
            AnswerError::BadJson => {
                let what = "sent malformed JSON in its answer";
                self.failure(Fault::BadJson, after_content, what)
            }
            AnswerError::NamelessCall => {
                let what = "sent a tool call without a name";
                self.failure(Fault::BadJson, after_content, what)
            }
            AnswerError::NoFinishReason => {
                let what = "ended its answer without a finish reason";
                self.failure(Fault::Eof, Again::MayHelp, what)
            }
            AnswerError::ContentFilter => {
                let what = "stopped the answer by its content filter";
                self.failure(Fault::ErrorInStream, Again::WillNot, what)
            }
            AnswerError::TooLarge => {
                let what = format!("sent an answer of more than {ANSWER_BYTES_MAX} bytes");
                self.failure(Fault::ErrorInStream, Again::WillNot, &what)
            }
            AnswerError::TooManyCalls => {
                let what =
                    format!("asked for more than {TOOL_CALLS_PER_MESSAGE_MAX} tools at once");
                self.failure(Fault::ErrorInStream, Again::WillNot, &what)
            }
        }
    }

    fn error_object(&self, object: &ErrorObject, after_content: Again) -> ProviderError {
        let again = match (after_content, object.status) {
            (Again::WillNot, Some(status)) => again_after(status),
            (Again::WillNot, None) if object.kind.as_deref() == Some("invalid_request_error") => {
                Again::WillNot
            }
            // An error without a status is the provider's own trouble more often than ours.
            (Again::WillNot, None) | (Again::MayHelp, _) => Again::MayHelp,
        };
        let what = format!("reported an error in its answer{}", self.quote(Some(object)));
        ProviderError { status: object.status, ..self.failure(Fault::ErrorInStream, again, &what) }
    }

    fn quote(&self, explanation: Option<&ErrorObject>) -> String {
        match explanation.and_then(|object| object.message.as_deref()) {
            Some(message) => format!(": {}", self.redactor.safe(message, QUOTE_CHARS_MAX)),
            None => String::new(),
        }
    }

    fn failure(&self, fault: Fault, again: Again, what: &str) -> ProviderError {
        ProviderError {
            fault,
            status: None,
            attempts: 1,
            retryable: again == Again::MayHelp,
            message: format!("provider `{}` {what}", self.provider),
        }
    }
}

/// What of a broken answer has left this module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Forwarded {
    Nothing,
    Content,
}

impl Forwarded {
    /// A stream that broke after content is never repeated by us, but its turn may be.
    fn again(self) -> Again {
        match self {
            Self::Content => Again::MayHelp,
            Self::Nothing => Again::WillNot,
        }
    }
}

fn again_after(status: u16) -> Again {
    match status {
        429 | 500 | 502 | 503 | 504 | 529 => Again::MayHelp,
        _ => Again::WillNot,
    }
}
