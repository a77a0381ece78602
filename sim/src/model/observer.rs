//! What whoever watches a run learns of a request to a model. Types only.

use bytes::Bytes;
use http::HeaderMap;
use nexus3::provider::script::{After, Fault, Question, Wire};

/// How much of the last message is shown.
const SHOWN_CHARS_MAX: usize = 80;

/// Watches the model host. It is told before the first byte of an answer, and must not wait.
pub trait Observer: Send + Sync {
    fn asked(&self, asked: &Asked, received: &Received<'_>);

    /// Whether all has happened that an answer comes after. One that plays no steps lets all come.
    fn is_due(&self, _: &After) -> bool {
        true
    }

    /// An answer to this agent waits.
    fn waits(&self, _agent: &str, _: &After) {}
}

/// A request as it arrived, whole.
#[derive(Clone, Copy, Debug)]
pub struct Received<'a> {
    pub headers: &'a HeaderMap,
    pub body: &'a Bytes,
    /// None where it is no request to a model.
    pub wire: Option<Wire>,
}

/// One request to a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Counts the requests of a run from 1.
    pub number: u64,
    pub agent: String,
    /// The model by its alias, where it has one.
    pub model: String,
    /// None where the request could not be read.
    pub question: Option<Question>,
    pub answered: Answered,
}

/// What the model was shown, shortened and hashed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// How many messages, the system prompt included.
    pub messages: usize,
    /// The last message, on one line and shortened.
    pub last: String,
    /// A hash of all messages as they were sent.
    pub digest: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answered {
    /// The entry with this number, from 1, and the fault it came with.
    Entry { number: usize, fault: Option<Fault> },
    /// No entry matched.
    Unmatched,
    /// The request was none that a model answers.
    Unreadable,
}

impl Asked {
    /// What the model was shown. It reads the whole conversation, so it is for those who tell of it.
    pub fn shown(&self) -> Shown {
        self.question.as_ref().map(Shown::of).unwrap_or_default()
    }

    /// Whether the request fails the run: the script has no answer for it.
    pub fn is_failure(&self) -> bool {
        match self.answered {
            Answered::Entry { .. } => false,
            Answered::Unmatched | Answered::Unreadable => true,
        }
    }
}

impl Shown {
    fn of(question: &Question) -> Self {
        let words: Vec<&str> = question.last_message.split_whitespace().collect();
        let line = words.join(" ");
        let last = match line.char_indices().nth(SHOWN_CHARS_MAX) {
            Some((cut, _)) => format!("{}…", &line[..cut]),
            None => line,
        };
        Self { messages: question.messages, last, digest: question.digest() }
    }
}
