//! What recorders are told, in the order in which it happened. Types only.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use secrecy::SecretString;
use serde_json::{Map, Value};

use crate::code::ErrorObject;
use crate::id::{AgentId, ConfirmId, RequestId};
use crate::message::Usage;
use crate::policy::Rights;
use crate::policy::budget::KeptBudget;
use crate::provider::FinishReason;
use crate::provider::script::View;
use crate::session::SessionFile;
use crate::store::RequestRecord;
use crate::tool::Kept;
use crate::tool::mcp::{End, Origin};
use crate::world::{Exit, Stat};

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
    /// What the last server left open is closed; the newest event is this one.
    Begins(u64),
    /// An agent was there before: as what, and how many bytes that takes, unless it is too long.
    Earlier(AgentId, Option<(Box<Earlier>, usize)>),
    CallBegan(Number, Call),
    CallEnded(Number, CallEnd),
    Refused(RefusedRequest),
    LeftOut(LeftOut),
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
    /// Somebody listed a directory.
    Listed(Listing),
    /// With the MCP server of this name.
    Mcp(String, Conversation),
    /// The server was asked to stop, by a signal.
    Stops,
}

/// An agent of an earlier server, as it would come back.
#[derive(Clone, Debug, PartialEq)]
pub struct Earlier {
    pub session: SessionFile,
    /// Those that its preset disables and somebody enabled.
    pub enabled_tools: Vec<String>,
    /// What its parent could last do.
    pub ceiling: Option<Rights>,
    /// What stands for its messages before the one of this index when a model is asked.
    pub summary: Option<(u64, Arc<str>)>,
    pub budget: Option<KeptBudget>,
    /// Whether its session file follows it.
    pub is_saved: bool,
    /// Whether its stream was the last that a terminal opened.
    pub is_last: bool,
    /// What it was asked and has ended, oldest first.
    pub requests: Vec<(RequestId, RequestRecord)>,
}

impl Earlier {
    /// How much room it takes, roughly; `None` where it is no session that could be written down.
    pub(super) fn bytes(&self) -> Option<usize> {
        let summary = self.summary.as_ref().map_or(0, |(_, text)| text.len());
        let asked = self.requests.iter().map(|(id, request)| {
            let outcome = request.outcome.as_ref().map_or(0, String::len);
            id.as_str().len() + request.content.len() + outcome
        });
        // A session that is saved is there twice.
        let times = 1 + usize::from(self.is_saved);
        Some(self.session.bytes().ok()?.len() * times + summary + asked.sum::<usize>())
    }
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

/// What was refused for a reason that a replay cannot have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeftOut {
    /// A request, with this status.
    Request(u16),
    /// An entry of a batch that is no request.
    Entry,
    /// A call whose params are a list.
    List,
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

/// The `kind` of an error that a disk is to blame for.
const OF_THE_DISK: &str = "storage";

impl CallEnd {
    /// Whether what was asked for could not be written down.
    pub(super) fn is_of_the_disk(&self) -> bool {
        match self {
            Self::Error(error) => {
                let kind = error.data.as_ref().and_then(|data| data.get("kind"));
                kind.is_some_and(|kind| *kind == OF_THE_DISK)
            }
            Self::Result(_) | Self::Refused { .. } | Self::Left => false,
        }
    }
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
    /// The same, at once, since nobody was there who could have been asked.
    DecidedForNobody {
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

/// Whether the head of an answer has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Head {
    Missing,
    Came,
}

#[derive(Debug)]
pub(super) enum AnswerEnd {
    Whole,
    Broke {
        fault: crate::provider::Fault,
        status: Option<u16>,
        /// What the provider said of it.
        said: Option<String>,
        retry_after: Option<Duration>,
        head: Head,
    },
    /// Nobody wanted the rest.
    Dropped,
}

/// What is said with an MCP server.
#[derive(Debug)]
pub(super) enum Conversation {
    /// An attempt at a connection begins.
    Begins {
        transport: &'static str,
        origin: Origin,
        /// What it was given that nobody shows.
        secrets: Vec<SecretString>,
    },
    Asks(Value),
    Hears(Value),
    /// The message of this id could not be sent.
    Failed {
        id: Value,
        end: End,
    },
    Ended(End),
}

/// How a program ended, and what it said.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) stdout: Kept,
    pub(super) stderr: Kept,
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
    /// There is no such program.
    NotThere,
    /// There is one, and it cannot be started.
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

impl Sighting {
    pub(super) fn of(path: PathBuf, found: Found, stat: &Stat) -> Self {
        let Stat { len, mode, modified, kind: _ } = *stat;
        Self { path, found, len, mode, modified }
    }

    /// There is nothing any more.
    pub(super) fn nothing(path: PathBuf) -> Self {
        let (len, mode, modified) = (0, 0, Timestamp::UNIX_EPOCH);
        Self { path, found: Found::Nothing, len, mode, modified }
    }

    /// How much memory it takes, roughly.
    pub(super) fn bytes(&self) -> usize {
        let content = match &self.found {
            Found::Content(content) => content.len(),
            Found::Dir
            | Found::Link(_)
            | Found::File
            | Found::Large
            | Found::Nothing
            | Found::Ours
            | Found::OurDir
            | Found::OurRemoval => 0,
        };
        content + self.path.as_os_str().len() + SIGHTING_BYTES
    }
}

/// What is in a directory.
#[derive(Debug)]
pub(super) struct Listing {
    pub(super) directory: PathBuf,
    /// The directory itself, and what is in it.
    pub(super) seen: Vec<Sighting>,
    /// What is there, too, and is nothing that a scenario has.
    pub(super) unseen: Vec<PathBuf>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    Dir,
    Link(PathBuf),
    /// A file that was not read.
    File,
    /// One that was, and is too large to be kept.
    Large,
    Content(Vec<u8>),
    Nothing,
    /// The server itself has left it so.
    Ours,
    /// It has made this directory.
    OurDir,
    /// It has removed what was there.
    OurRemoval,
}

impl Note {
    /// How much memory it takes, roughly.
    pub(super) fn bytes(&self) -> usize {
        let content = match &self.what {
            What::CallBegan(_, call) => call.params.values().map(weight).sum(),
            What::Earlier(_, earlier) => earlier.as_ref().map_or(0, |(_, bytes)| *bytes),
            What::Refused(request) => request.head.len() + request.body.len(),
            What::CallEnded(_, CallEnd::Result(result)) => weight(result),
            What::Said(_, piece) => return piece.text().len() + PIECE_BYTES,
            What::Asked(_, _, view) => view.as_ref().map_or(0, View::bytes),
            What::ProgramEnded(_, ran) => ran.stdout.len() + ran.stderr.len(),
            What::File(sighting) => sighting.bytes(),
            What::Listed(listing) => listing.seen.iter().map(Sighting::bytes).sum(),
            What::Mcp(_, Conversation::Asks(message) | Conversation::Hears(message)) => {
                weight(message)
            }
            What::Begins(_)
            | What::CallEnded(..)
            | What::LeftOut(_)
            | What::Answered(..)
            | What::Unasked(_)
            | What::StreamOpened(..)
            | What::StreamClosed(_)
            | What::Event(_)
            | What::ProgramStarted(..)
            | What::Mcp(..)
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

/// Of a look at a path, without the path.
const SIGHTING_BYTES: usize = 100;
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
