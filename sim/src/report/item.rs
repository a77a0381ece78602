//! What a lane shows: something that happened at a moment or took a while, with where its arrows go.
//! Types only.

use std::time::Duration;

use serde::Serialize;

use crate::play::story::Reach;

/// How much of a text is shown.
const TEXT_CHARS_MAX: usize = 4000;
const TITLE_CHARS_MAX: usize = 120;

/// What an item is about: what a reader can filter by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A client asks the server for something.
    Call,
    /// An agent works on a request.
    Turn,
    /// A model is asked.
    Model,
    Tool,
    Confirmation,
    /// An agent comes, changes or goes.
    Agent,
    /// A batch of tool calls.
    Batch,
    /// What is not kept: the text as it comes.
    Live,
    Note,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Item {
    /// In microseconds of virtual time, as all times here.
    pub at: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<u64>,
    /// Whether it had not ended when the run did.
    #[serde(skip_serializing_if = "is_not")]
    pub open: bool,
    pub lane: usize,
    pub kind: Kind,
    pub title: String,
    #[serde(skip_serializing_if = "is_not")]
    pub bad: bool,
    /// The lane that an arrow goes to where it begins, and comes back from where it ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<usize>,
    /// The lane that an arrow comes from where it begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<usize>,
    /// The lane that an arrow comes from where it ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<usize>,
    /// Names and texts, for who looks closer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<(&'static str, String)>,
}

/// Something that goes wrong, across all lanes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    pub at: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<u64>,
    pub name: String,
    pub reach: Reach,
}

impl Item {
    /// Something that takes no time, until an end is told.
    pub fn new(at: u64, lane: usize, kind: Kind, title: &str) -> Self {
        Self {
            at,
            end: None,
            open: false,
            lane,
            kind,
            title: line(title),
            bad: false,
            to: None,
            from: None,
            by: None,
            more: Vec::new(),
        }
    }

    /// Something that takes a while.
    pub fn begun(at: u64, lane: usize, kind: Kind, title: &str) -> Self {
        Self { open: true, ..Self::new(at, lane, kind, title) }
    }

    pub fn ended(&mut self, at: u64) {
        self.open = false;
        self.end = Some(at);
    }

    /// Adds a text, shortened; nothing where there is none.
    pub fn add(&mut self, name: &'static str, text: &str) {
        if !text.is_empty() {
            self.more.push((name, shortened(text, TEXT_CHARS_MAX)));
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_not(value: &bool) -> bool {
    !value
}

pub fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// A text on one line.
pub fn line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    shortened(&words.join(" "), TITLE_CHARS_MAX)
}

fn shortened(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        None => text.to_owned(),
        Some((end, _)) => {
            let more = text[end..].chars().count();
            format!("{}… {more} more characters", &text[..end])
        }
    }
}
