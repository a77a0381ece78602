//! What can be observed of a run from outside while it goes on, in the order in which it happened.
//! Whoever observes adds; the invariants take. It changes nothing in the run.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::HeaderMap;
use nexus3::event::{Event, Seq};
use nexus3::rpc::wire::ErrorObject;
use nexus3::world::Program;
use serde_json::Value;

use crate::disk::OperationKind;
use crate::scenario::Pace;

/// One thing that was observed.
#[derive(Clone, Debug)]
pub enum Observation {
    /// The server began to ask a model for an agent, as it left the server.
    AskBegan(Question),
    /// The answer has ended, or nobody waits for it any more.
    AskEnded {
        agent: String,
        said: Said,
    },
    /// A model request as it arrived.
    Asked(Request),
    /// A client's call was answered.
    Answered(Answer),
    StreamOpened(Opened),
    /// A reader got an event.
    Event {
        stream: StreamId,
        event: Box<Event>,
    },
    StreamEnded {
        stream: StreamId,
        end: StreamEnd,
    },
    /// The server used something on its disk, by its path without links.
    Touched {
        kind: OperationKind,
        path: PathBuf,
        /// The blocking job that did it; `None` where it was none.
        job: Option<u64>,
    },
    /// The server started a program.
    Started(Box<Program>),
    /// A tool of an MCP server was asked for, by its name there.
    McpCalled {
        tool: String,
    },
    /// Somebody at a terminal answered a confirmation.
    Decided {
        /// Whose it was, as the terminal says.
        agent: String,
        confirm_id: String,
    },
}

/// What a server got of an answer before that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// Text that it can have handed on.
    Words,
    Nothing,
}

/// Which stream of whom.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamId {
    pub who: String,
    pub number: u64,
}

/// A stream as it begins.
#[derive(Clone, Debug)]
pub struct Opened {
    pub stream: StreamId,
    /// Which start of the server was asked for it.
    pub server_start: u64,
    /// None: the global stream.
    pub agent: Option<String>,
    pub after: Option<Seq>,
    pub pace: Pace,
}

/// How a stream ended, as its reader knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEnd {
    ByServer,
    /// Nothing came for longer than a server is silent.
    Silent,
    Broken,
    /// The reader left.
    Closed,
}

/// What a server asks a model. It may arrive when the server that asked is long gone.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// Which start of the server asks.
    pub server_start: u64,
    pub agent: String,
    pub body: Bytes,
}

/// A request to a model, whole.
#[derive(Clone, Debug, Default)]
pub struct Request {
    pub agent: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// The answer to a call.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Which start of the server was asked.
    pub server_start: u64,
    pub method: String,
    /// The agent in the path of the call.
    pub agent: Option<String>,
    pub result: Result<Value, ErrorObject>,
}

/// Shared by everybody who observes. It is emptied with every tick, which bounds it by what the hosts
/// can do in one.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// Held to add one or to take all; nothing is awaited under it.
    waiting: Arc<Mutex<Vec<Observation>>>,
}

impl Observed {
    pub fn add(&self, observation: Observation) {
        self.waiting().push(observation);
    }

    /// What was observed since the last time.
    pub fn take(&self) -> Vec<Observation> {
        std::mem::take(&mut self.waiting())
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Observation>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
