//! What recorders are told, in the order in which it happened. Types only.

use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::code::ErrorObject;
use crate::id::{AgentId, ConfirmId};
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
    CallBegan(Number, Call),
    CallEnded(Number, CallEnd),
    StreamOpened(Number, Stream),
    StreamClosed(Number),
    Event(Event),
    Asked(Number, AgentId, Option<View>),
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
    TurnStarted,
    TurnEnded,
    Asks { confirm_id: ConfirmId, tool: String },
}

/// One attempt at an answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) thinks: Vec<String>,
    pub(super) says: Vec<String>,
    /// Names and arguments, as text.
    pub(super) calls: Vec<(String, String)>,
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
            What::CallEnded(_, CallEnd::Result(result)) => weight(result),
            What::Answered(_, answer) => {
                let texts = answer.thinks.iter().chain(&answer.says);
                let calls = answer.calls.iter().map(|(_, arguments)| arguments);
                texts.chain(calls).map(String::len).sum()
            }
            What::Asked(_, _, view) => view.as_ref().map_or(0, View::bytes),
            What::ProgramEnded(_, ran) => ran.stdout.len() + ran.stderr.len(),
            What::File(Sighting { found: Found::Content(content), .. }) => content.len(),
            What::CallEnded(..)
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

/// Of a note without its texts.
const NOTE_BYTES: usize = 200;

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
