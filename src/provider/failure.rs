//! What went wrong in an exchange, told apart and in our own words, and what may mend it.
//! Pure. A provider's words are shortened, put on one line and freed of secrets before they are shown.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;

use super::error_object::ErrorObject;
use super::key::{KeySource, Redactor};
use super::wire::AnswerError;
use super::{Fault, ProviderError};
use crate::limits::{ANSWER_BYTES_MAX, TOOL_CALLS_PER_MESSAGE_MAX};
use crate::reach::redirect::NoRedirect;
use crate::sse::TooLong;
use crate::world::{HttpError, HttpFault};

/// How much of a provider's own explanation is passed on.
const QUOTE_CHARS_MAX: usize = 300;

/// An attempt that did not end well.
#[derive(Debug)]
pub(super) struct Broke {
    pub(super) error: ProviderError,
    pub(super) cure: Cure,
    /// What the provider itself said of it, as far as it is passed on.
    pub(super) said: Option<String>,
}

/// What may mend a failure before anybody is told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cure {
    None,
    /// The same again at once, on a connection of its own.
    Fresh,
    /// The same again after a wait, which the server may have asked for.
    Wait {
        asked_for: Option<Duration>,
    },
}

impl Cure {
    /// The pause that the server wants.
    pub(super) fn asked_for(self) -> Option<Duration> {
        match self {
            Self::Wait { asked_for } => asked_for,
            Self::None | Self::Fresh => None,
        }
    }
}

/// Whether asking again may help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Again {
    MayHelp,
    WillNot,
}

/// What of a broken answer has left this module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Forwarded {
    Nothing,
    Content,
}

/// Makes the errors of one provider.
#[derive(Debug)]
pub(super) struct Failures {
    pub(super) provider: String,
    pub(super) key_source: Option<KeySource>,
    /// All secrets, not just this provider's: what is quoted may hold the key of another.
    pub(super) redactor: Arc<Redactor>,
}

impl Failures {
    /// The exchange broke, before the answer or within it.
    pub(super) fn transport(&self, error: &HttpError, forwarded: Forwarded) -> Broke {
        let provider = &self.provider;
        tracing::debug!(provider, fault = %error.fault, detail = error.detail, "exchange broke");
        let (fault, what) = match error.fault {
            HttpFault::Connect => (Fault::Connect, "cannot be reached"),
            HttpFault::Reset => (Fault::Reset, "closed the connection before it answered"),
            HttpFault::Stale => {
                let what = "closed a kept connection before it answered";
                let error = self.failure(Fault::Reset, Again::MayHelp, what);
                return Broke { error, cure: Cure::Fresh, said: None };
            }
            HttpFault::Broken => (Fault::Reset, "broke the connection in the middle of its answer"),
            HttpFault::Request => {
                let what = "cannot be asked: the request cannot be sent as it is";
                return self.failure(Fault::Connect, Again::WillNot, what).without_cure();
            }
            HttpFault::Forbidden => {
                let what = "cannot be asked: its address may not be reached (see \
                            `network.allow_private`)";
                return self.failure(Fault::Connect, Again::WillNot, what).without_cure();
            }
        };
        self.failure(fault, Again::MayHelp, what).unless(forwarded)
    }

    pub(super) fn late(&self, waited: Duration) -> Broke {
        let what = format!("did not answer within {} s", waited.as_secs_f64());
        self.failure(Fault::Timeout, Again::MayHelp, &what).unless(Forwarded::Nothing)
    }

    pub(super) fn stalled(&self, waited: Duration, forwarded: Forwarded) -> Broke {
        let seconds = waited.as_secs_f64();
        let what = format!("sent nothing for {seconds} s in the middle of its answer");
        self.failure(Fault::Stall, Again::MayHelp, &what).unless(forwarded)
    }

    /// A status other than success. `explanation` is what the body says, where it could be read;
    /// `asked_for` is how long the server wants to be left alone.
    pub(super) fn status(
        &self,
        status: StatusCode,
        explanation: Option<&ErrorObject>,
        asked_for: Option<Duration>,
    ) -> Broke {
        let quote = self.quote(explanation);
        let code = status.as_u16();
        let error = match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                let key = match &self.key_source {
                    Some(source) => format!("check the key in {source}"),
                    None => "no key is configured for it".to_owned(),
                };
                let what = format!("refused access (HTTP {code}; {key}){quote}");
                self.failure(Fault::Auth, Again::WillNot, &what)
            }
            _ => {
                let what = format!("answered HTTP {code}{quote}");
                self.failure(Fault::Status, again_after(code), &what)
            }
        };
        let cure = match again_after(code) {
            Again::MayHelp => Cure::Wait { asked_for },
            Again::WillNot => Cure::None,
        };
        let error = ProviderError { status: Some(code), ..error };
        Broke { error, cure, said: self.said(explanation) }
    }

    /// The provider sends us elsewhere, where we do not go.
    pub(super) fn redirect(&self, status: StatusCode, why: NoRedirect) -> Broke {
        let what = format!("sent the request elsewhere {why}: check its `base_url`");
        let error = self.failure(Fault::Status, Again::WillNot, &what);
        ProviderError { status: Some(status.as_u16()), ..error }.without_cure()
    }

    /// A success whose body is JSON or a page instead of a stream.
    pub(super) fn no_stream(&self, explanation: Option<&ErrorObject>) -> Broke {
        if let Some(object) = explanation {
            return self.error_object(object, Forwarded::Nothing);
        }
        let what = "answered with something that is no event stream";
        self.failure(Fault::BadJson, Again::WillNot, what).without_cure()
    }

    pub(super) fn too_long(&self, error: TooLong, forwarded: Forwarded) -> Broke {
        let what = format!("sent a record of more than {} bytes in its answer", error.bytes_max);
        self.failure(Fault::BadJson, forwarded.again(), &what).without_cure()
    }

    /// The answer arrived and is wrong. `forwarded` says whether a reader has seen some of it.
    pub(super) fn answer(&self, error: &AnswerError, forwarded: Forwarded) -> Broke {
        let after_content = forwarded.again();
        let error = match error {
            AnswerError::ErrorObject(object) => return self.error_object(object, forwarded),
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
        };
        error.without_cure()
    }

    /// An error that took the place of an answer. One that stands for a status that passes is
    /// treated like that status, as long as nobody has seen anything of the answer.
    fn error_object(&self, object: &ErrorObject, forwarded: Forwarded) -> Broke {
        let passing = object.status.map(again_after) == Some(Again::MayHelp);
        let again = match (forwarded, object.status) {
            (Forwarded::Nothing, Some(status)) => again_after(status),
            (Forwarded::Nothing, None)
                if object.kind.as_deref() == Some("invalid_request_error") =>
            {
                Again::WillNot
            }
            // An error without a status is the provider's own trouble more often than ours.
            (Forwarded::Nothing, None) | (Forwarded::Content, _) => Again::MayHelp,
        };
        let what = format!("reported an error in its answer{}", self.quote(Some(object)));
        let error = ProviderError {
            status: object.status,
            ..self.failure(Fault::ErrorInStream, again, &what)
        };
        let broke = if passing { error.unless(forwarded) } else { error.without_cure() };
        Broke { said: self.said(Some(object)), ..broke }
    }

    fn quote(&self, explanation: Option<&ErrorObject>) -> String {
        self.said(explanation).map_or_else(String::new, |said| format!(": {said}"))
    }

    fn said(&self, explanation: Option<&ErrorObject>) -> Option<String> {
        let message = explanation?.message.as_deref()?;
        Some(self.redactor.safe(message, QUOTE_CHARS_MAX))
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

impl ProviderError {
    fn without_cure(self) -> Broke {
        Broke { error: self, cure: Cure::None, said: None }
    }

    /// Mended by time, unless some of the answer was passed on: that is never silently repeated.
    fn unless(self, forwarded: Forwarded) -> Broke {
        let cure = match forwarded {
            Forwarded::Nothing => Cure::Wait { asked_for: None },
            Forwarded::Content => Cure::None,
        };
        Broke { error: self, cure, said: None }
    }
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
