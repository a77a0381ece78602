//! What recorders are told, in the order in which it happened. Types only.

use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::code::ErrorObject;
use crate::id::{AgentId, ConfirmId, RequestId};
use crate::message::Usage;
use crate::provider::FinishReason;
use crate::provider::script::View;
use crate::world::Exit;

/// Something that happened, since the recording began.
#[derive(Debug)]
pub(super) struct Note {
    pub(super) at: Duration,
    pub(super) what: What,
}

/// Names one call, stream, question to a model or program of a recording.
pub(super) type Number = u64;

#[derive(Debug)]
pub(super) enum What {
    /// What the last server left open is closed.
    Begins,
    /// An agent was there before: its session, unless that is too long.
    Earlier(AgentId, Option<Vec<u8>>),
    CallBegan(Number, Call),
    CallEnded(Number, CallEnd),
    Refused(RefusedRequest),
    StreamOpened(Number, Stream),
    StreamClosed(Number),
    Event(Event),
    Asked(Number, AgentId, Option<View>),
    /// Something of an answer has come.
    Said(Number, Piece),
    Answered(Number, Answer),
    /// Nobody was asked after all, and the same comes again.
    Unasked(Number),
    ProgramStarted(Number, Vec<String>, Timestamp),
    ProgramEnded(Number, Ran),
    File(Sighting),
    /// The server was asked to stop, by a signal.
    Stops,
}

/// A call of a client.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) by: Client,
    /// As the path names it.
    pub(super) agent: Option<String>,
    pub(super) method: String,
    pub(super) params: Map<String, Value>,
}

/// A request that did not become a call.
#[derive(Debug)]
pub struct RefusedRequest {
    pub client: String,
    /// The lines that decided, without the token.
    pub head: String,
    pub shown: Shown,
    /// What was read.
    pub body: String,
    pub status: u16,
}

/// What a request showed for a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    Nothing,
    Token,
    AnotherToken,
    /// Something of another kind.
    NoToken,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Client {
    pub(super) name: String,
    /// In whose name it calls.
    pub(super) acting_as: Option<AgentId>,
}

#[derive(Debug)]
pub(super) enum CallEnd {
    Result(Value),
    Error(ErrorObject),
    /// Before it was looked at.
    Refused {
        http: u16,
        code: i64,
    },
    /// Nobody waited for the answer.
    Left,
}

#[derive(Debug)]
pub(super) struct Stream {
    pub(super) by: Client,
    pub(super) agent: Option<String>,
    pub(super) after: Option<u64>,
}

/// A durable event, as far as it matters for the order of steps.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) name: &'static str,
    pub(super) agent: Option<AgentId>,
    pub(super) meaning: Meaning,
}

#[derive(Debug)]
pub(super) enum Meaning {
    None,
    /// It is back from disk.
    Restored,
    /// A request was accepted.
    Queued {
        request_id: RequestId,
    },
    TurnStarted,
    TurnEnded,
    Asks {
        confirm_id: ConfirmId,
        tool: String,
    },
    /// Of a confirmation.
    Decided {
        confirm_id: ConfirmId,
    },
}

/// A part of an answer, as it came.
#[derive(Debug)]
pub(super) enum Piece {
    Thinks(String),
    Says(String),
    /// A call of a tool, by the index that the provider gives it.
    Calls {
        index: usize,
        tool: String,
    },
    Arguments {
        index: usize,
        text: String,
    },
}

/// How one attempt at an answer ended.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) usage: Option<Usage>,
    pub(super) finish: Option<FinishReason>,
    pub(super) end: AnswerEnd,
    /// Until the first event.
    pub(super) delay: Duration,
    /// Between the first and the last event.
    pub(super) took: Duration,
}

#[derive(Debug)]
pub(super) enum AnswerEnd {
    Whole,
    Broke {
        fault: crate::provider::Fault,
        status: Option<u16>,
        retry_after: Option<Duration>,
    },
    /// Nobody wanted the rest.
    Dropped,
}

/// How a program ended, and what it said.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
    pub(super) took: Duration,
    pub(super) at: Timestamp,
    pub(super) end: RanEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RanEnd {
    /// By itself.
    Exit(Exit),
    /// It was ended from outside.
    Ended,
    NotStarted,
}

/// What somebody found on the disk, or did to it.
#[derive(Debug)]
pub(super) struct Sighting {
    pub(super) path: PathBuf,
    pub(super) found: Found,
    pub(super) len: u64,
    pub(super) mode: u32,
    pub(super) modified: Timestamp,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    Dir,
    Link(PathBuf),
    /// A file that was not read.
    File,
    Content(Vec<u8>),
    Nothing,
    /// The server itself has left it so.
    Ours,
}

impl Note {
    /// How much memory it takes, roughly.
    pub(super) fn bytes(&self) -> usize {
        let content = match &self.what {
            What::CallBegan(_, call) => call.params.values().map(weight).sum(),
            What::Earlier(_, session) => session.as_ref().map_or(0, Vec::len),
            What::Refused(request) => request.head.len() + request.body.len(),
            What::CallEnded(_, CallEnd::Result(result)) => weight(result),
            What::Said(_, piece) => return piece.text().len() + PIECE_BYTES,
            What::Asked(_, _, view) => view.as_ref().map_or(0, View::bytes),
            What::ProgramEnded(_, ran) => ran.stdout.len() + ran.stderr.len(),
            What::File(Sighting { found: Found::Content(content), .. }) => content.len(),
            What::Begins
            | What::CallEnded(..)
            | What::Answered(..)
            | What::Unasked(_)
            | What::StreamOpened(..)
            | What::StreamClosed(_)
            | What::Event(_)
            | What::ProgramStarted(..)
            | What::File(_)
            | What::Stops => 0,
        };
        content + NOTE_BYTES
    }
}

impl Piece {
    fn text(&self) -> &str {
        match self {
            Self::Thinks(text) | Self::Says(text) | Self::Arguments { text, .. } => text,
            Self::Calls { tool, .. } => tool,
        }
    }
}

/// Of a note without its texts.
const NOTE_BYTES: usize = 200;
/// Of a piece of an answer, as the story keeps it.
const PIECE_BYTES: usize = 24;

fn weight(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| name.len() + weight(value)).sum()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
    }
}
