//! A scenario, from its first step to its last check: the server of `nexus3`, unchanged, on a
//! simulated machine, with scripted models and clients around it. One seed decides everything.

mod checker; // asks the server how it is when all is over
mod client; // plays the calls of one client
mod confirming; // answers confirmations
mod crash; // the end at a durable point
mod director; // which step when
mod earlier; // agents that were there before
mod ended; // what a run came to
mod epilogue; // the end state
mod event_line; // an event in the transcript
mod exchanges; // watches the server's way to its models
mod expect; // what a step expects
mod expected; // what the file expects at the end
mod faults; // what goes wrong when
mod files; // what is on the disk
mod invariants; // what holds in every run
mod kept; // what the database has at the end
pub mod live; // the steps against a real server
mod log; // what was logged
mod made; // what clients did
mod marks; // what a run has reached
mod models; // watches the model host
pub mod observed; // what can be seen from outside
mod observer; // hears the events that are waited for
mod parting; // where a replay parts from its recording
mod programs; // scripted programs
mod run; // a run while it goes on
mod scripted; // watches a script inside the server
mod server; // the server's host
pub mod snapshot; // transcripts that are kept
mod stage; // where steps are played
pub mod story; // a run as values
mod streams; // the event streams of a client
mod strikes; // what goes wrong by chance
mod theatre; // all hosts
pub mod transcript; // what happened

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

pub use files::differs as file_differs;
pub use log::Tracer;

use nexus3::message::Message;
use serde_json::Value;

use run::Run;
use story::{Keep, Story};

use crate::scenario::{Judge, Scenario};
use crate::verdict::Kind;

/// The host that looks after the invariants.
const CHECKER: &str = "(checker)";
/// The host that hears events for those who wait for them.
const OBSERVER: &str = "(observer)";

/// How a run went.
#[derive(Clone, Debug)]
pub struct Played {
    pub transcript: String,
    /// What did not hold; empty for a good run.
    pub failures: Vec<String>,
    /// What the failures are about.
    pub kinds: BTreeSet<Kind>,
    /// Virtual time from start to end.
    pub virtual_time: Duration,
    /// Virtual time until the steps had ended.
    pub steps_time: Duration,
    /// How often each kind of durable event was told, as far as the database still has them.
    pub events: BTreeMap<String, u64>,
    /// The same events in their order, each with its agent.
    pub journal: Vec<String>,
    /// The same events as clients get them.
    pub told: Vec<Value>,
    /// Every agent's conversation.
    pub conversations: BTreeMap<String, Vec<Message>>,
    /// How often each mark was reached.
    pub marks: BTreeMap<String, u64>,
    /// Stands for what the run came to: which agents there are, what was said, how turns ended.
    pub end_state: u64,
    /// How often a model was asked.
    pub turns: u64,
    /// Stands for the order in which things happened.
    pub order: u64,
    /// How many durable points there were, those of the calm at the end included.
    pub points: u64,
    /// What happened as values, of a run that was recorded.
    pub story: Option<Story>,
    /// What the server wrote down of its starts with `--record`.
    pub recordings: Vec<String>,
}

/// What a run is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aim {
    /// To see that everything is as the file says.
    Whole,
    /// To see what holds whatever happens, with a crash at a durable point if one is given. What was
    /// expected of steps cannot all hold then: they are played, and only the invariants are judged.
    Invariants { crash_at: Option<u64> },
}

impl Aim {
    /// What a file wants of a run that nobody disturbs.
    fn of(scenario: &Scenario) -> Self {
        match scenario.judge {
            Judge::Everything => Self::Whole,
            Judge::Invariants => Self::Invariants { crash_at: None },
        }
    }
}

/// Plays a scenario with a seed. One at a time in a process.
pub fn play(scenario: &Scenario, seed: u64) -> Played {
    play_traced(scenario, seed, None)
}

/// Plays a scenario while somebody looks at all that is traced.
pub fn play_traced(scenario: &Scenario, seed: u64, tracer: Option<Tracer>) -> Played {
    run(scenario, seed, tracer, Aim::of(scenario), Keep::Lines)
}

/// Plays a scenario and keeps what happened as values as well.
pub fn play_recorded(scenario: &Scenario, seed: u64, tracer: Option<Tracer>) -> Played {
    run(scenario, seed, tracer, Aim::of(scenario), Keep::Story)
}

/// Plays a scenario to its end, with a crash of the server at a durable point if one is given.
/// Failures are what the invariants say, and a server that does not come to rest.
pub fn play_crashing(
    scenario: &Scenario,
    seed: u64,
    crash_at: Option<u64>,
    tracer: Option<Tracer>,
) -> Played {
    run(scenario, seed, tracer, Aim::Invariants { crash_at }, Keep::Lines)
}

/// What somebody who has seen a failure looks for in a run of something smaller. Most of such a run
/// says nothing more: it ends once the same is seen, and where it is not seen in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sought {
    pub kind: Kind,
    /// How much virtual time there is for it: for the calm alone where it is the calm that does not
    /// come, and otherwise for everything.
    pub within: Duration,
}

/// Plays a scenario as its file says, no further than it takes to see what is sought.
pub fn play_seeking(scenario: &Scenario, seed: u64, sought: Sought) -> Played {
    Run::new(scenario, seed, Vec::new(), Aim::of(scenario), Keep::Lines).seeking(sought).finish()
}

fn run(scenario: &Scenario, seed: u64, tracer: Option<Tracer>, aim: Aim, keep: Keep) -> Played {
    Run::new(scenario, seed, tracer.into_iter().collect(), aim, keep).finish()
}
