//! A load: many agents that each have many turns, every one checked for its text, through as many
//! layers as the lane has. It measures no wall time; whoever wants a rate holds the clock.

mod calls; // the clients
mod lanes; // what lies between clients and models
mod reading; // what is told of all agents

use std::fmt::Write as _;
use std::io;
use std::time::Duration;

use nexus3::provider::script::{Chunks, Entry, Script, Time, Times};

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    pub agents: u32,
    /// Of each agent, one after the other.
    pub turns: u32,
    /// Of each answer.
    pub chunks: u32,
    /// What the model takes before it says anything.
    pub delay: Duration,
    /// What it takes between two chunks.
    pub pause: Duration,
}

/// What a call passes on its way to an agent, and the agent's question on its way to a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Three hosts on a simulated network with latencies: clients, server, models.
    Turmoil,
    /// The same HTTP over pipes in memory, all on one runtime.
    Pipes,
    /// No HTTP: JSON-RPC bodies in process, and the `script` provider.
    Direct,
}

/// What was done. The same load on the same lane with the same seed gives the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried {
    pub turns: u64,
    /// JSON-RPC calls, those that created the agents included.
    pub calls: u64,
    /// Of the answers.
    pub text_bytes: u64,
    /// Until the last turn had ended.
    pub virtual_time: Duration,
    /// Of which turn ended when, in that order, and under which request id.
    pub digest: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("the runtime cannot be built")]
    Runtime {
        #[source]
        source: io::Error,
    },
    #[error("the server or its models do not start: {problem}")]
    Start { problem: String },
    #[error("agent {agent} is not created: {problem}")]
    Create { agent: String, problem: String },
    #[error("turn {turn} of agent {agent} does not end well: {problem}")]
    Turn { agent: String, turn: u32, problem: String },
    #[error("what the server tells of its agents does not hold: {problem}")]
    Events { problem: String },
    #[error("a host of the simulation failed: {problem}")]
    Host { problem: String },
    #[error("the turns are not over after {}s of virtual time", limit.as_secs())]
    Limit { limit: Duration },
}

/// Carries a load to its last turn.
pub fn carry(load: &Load, lane: Lane, seed: u64) -> Result<Carried, LoadError> {
    match lane {
        Lane::Turmoil => lanes::turmoil(load, seed),
        Lane::Pipes => lanes::pipes(load, seed),
        Lane::Direct => lanes::direct(load, seed),
    }
}

/// More than any turn takes besides its model: connections, latencies, work.
const TURN_OVERHEAD_MAX: Duration = Duration::from_secs(10);

impl Load {
    /// Agents that talk all the time, a chunk every 20 ms.
    pub fn busy(agents: u32, turns: u32, chunks: u32) -> Self {
        Self { agents, turns, chunks, delay: Duration::ZERO, pause: Duration::from_millis(20) }
    }

    /// One agent that waits for its model for minutes.
    pub fn quiet(turns: u32) -> Self {
        let delay = Duration::from_secs(140);
        Self { agents: 1, turns, chunks: 1, delay, pause: Duration::ZERO }
    }

    /// What one turn takes of its model.
    fn model_time(&self) -> Duration {
        self.delay + self.pause * self.chunks
    }

    /// Virtual time within which all must be over.
    fn limit(&self) -> Duration {
        TURN_OVERHEAD_MAX + (self.model_time() + TURN_OVERHEAD_MAX) * self.turns
    }

    fn chunks_for(&self, agent: u32) -> Vec<String> {
        (0..self.chunks).map(|chunk| format!("a{agent}c{chunk} ")).collect()
    }

    /// What the models say: to every agent something else, so that a mix-up shows.
    fn entries(&self) -> impl Iterator<Item = Entry> {
        (0..self.agents).map(|agent| Entry {
            agent: Some(name(agent)),
            says: Some(Chunks::Many(self.chunks_for(agent))),
            delay: Some(Time(self.delay)),
            pause: Some(Time(self.pause)),
            times: Times::Always,
            ..Entry::default()
        })
    }

    fn script(&self) -> Script {
        Script::new(self.entries().collect()).expect("the entries have no patterns and no faults")
    }

    /// The same script as a file. JSON strings without escapes are TOML strings.
    fn script_text(&self) -> String {
        let (delay, pause) = (self.delay.as_millis(), self.pause.as_millis());
        let mut text = String::new();
        for agent in 0..self.agents {
            let (name, says) = (name(agent), self.chunks_for(agent));
            write!(
                text,
                "[[model]]\nagent = \"{name}\"\nsays = {says:?}\ndelay = \"{delay}ms\"\n\
                 pause = \"{pause}ms\"\ntimes = \"always\"\n"
            )
            .expect("a string takes what is written");
        }
        text
    }
}

fn name(agent: u32) -> String {
    format!("agent-{agent}")
}
