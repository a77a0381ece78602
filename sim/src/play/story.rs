//! What happened in a run as values, in the order in which it happened: what reports are made of.
//! It is kept only where somebody wants it, and changes nothing in the run. Data only.

use std::path::PathBuf;
use std::time::Duration;

use nexus3::event::Event;
use serde::Serialize;

/// Whether a run keeps its story.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    #[default]
    Lines,
    Story,
}

/// A run as values.
#[derive(Clone, Debug, Default)]
pub struct Story {
    /// In order.
    pub moments: Vec<Moment>,
    /// The durable events that the database has at the end, in order; their times are those of the
    /// server's clock.
    pub journal: Vec<Event>,
}

#[derive(Clone, Debug)]
pub struct Moment {
    pub at: Duration,
    /// A client, the server, the model host, or `fault`.
    pub who: String,
    pub what: Happening,
}

#[derive(Clone, Debug)]
pub enum Happening {
    /// Something without parts.
    Noted(String),
    /// An MCP server did something.
    Served(String),
    /// The server has started.
    Listens,
    /// A client began something that will be answered, with the number of its job.
    Called {
        job: u64,
        name: String,
        /// None: the server as a whole.
        agent: Option<String>,
        params: String,
    },
    /// How that ended.
    Answered {
        job: u64,
        how: How,
        text: String,
    },
    /// A client gave up whatever it was waiting for.
    Left {
        told: &'static str,
    },
    /// A reader got an event.
    Heard(Box<Event>),
    /// A request arrived at a model.
    Asked {
        agent: String,
        model: String,
        shown: String,
        answer: String,
        how: How,
        gives: Gives,
    },
    /// The server began to ask a model for an agent.
    AskBegan {
        agent: String,
    },
    /// The answer has ended, or nobody waits for it any more.
    AskEnded {
        agent: String,
    },
    /// Something goes wrong from now on.
    FaultBegan {
        name: String,
        reach: Reach,
    },
    FaultEnded {
        name: String,
    },
    /// The server's clock was set.
    ClockSet {
        by_ms: i64,
    },
    /// The server started a program.
    Started {
        words: Vec<String>,
        directory: PathBuf,
    },
}

/// What a model answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gives {
    pub thinks: String,
    pub says: String,
    /// Tools, with their arguments.
    pub asks: Vec<(String, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    Good,
    Bad,
}

/// How much a fault takes along.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// Who works goes on, with something wrong.
    Part,
    /// A whole host is gone.
    Host,
    /// One moment only.
    Moment,
}
