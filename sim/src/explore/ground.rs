//! A scenario to explore around: its file, and what happens in it when nothing is drawn. Where a fault
//! can begin is known from that run.

use std::collections::BTreeMap;
use std::time::Duration;

use nexus3::config::Problem;

use crate::play;
use crate::scenario::{Document, DocumentError, Scenario, mcp_host};

#[derive(Debug, thiserror::Error)]
pub enum GroundError {
    #[error("{}", told(.0))]
    Scenario(Vec<Problem>),
    #[error(transparent)]
    Document(#[from] DocumentError),
}

#[derive(Clone, Debug)]
pub struct Ground {
    /// What draws are made for: the file's name without its folder.
    pub name: String,
    pub document: Document,
    /// The hosts that play steps.
    pub clients: Vec<String>,
    /// The host of MCP servers.
    pub mcp: Option<&'static str>,
    /// Virtual time until the steps have ended.
    pub steps_time: Duration,
    /// How many durable points there are.
    pub points: u64,
    /// How many durable events there are of each kind.
    pub events: BTreeMap<String, u64>,
    /// The durable events in their order.
    pub journal: Vec<String>,
}

impl Ground {
    /// Plays a scenario undisturbed. One at a time in a process.
    pub fn survey(name: &str, text: &str) -> Result<Self, GroundError> {
        let scenario = Scenario::parse(name, text).map_err(GroundError::Scenario)?;
        let document = Document::parse(text)?;
        let played = play::play_crashing(&scenario, scenario.seed, None, None);
        Ok(Self {
            name: name.to_owned(),
            document,
            clients: scenario.clients().into_iter().map(str::to_owned).collect(),
            mcp: mcp_host(&scenario.mcp),
            steps_time: played.steps_time,
            points: played.points,
            events: played.events,
            journal: played.journal,
        })
    }

    /// The first event that is not as it is undisturbed, with its number.
    pub fn parts_at(&self, journal: &[String]) -> Option<String> {
        let same = self.journal.iter().zip(journal).take_while(|(one, other)| one == other).count();
        match (self.journal.get(same), journal.get(same)) {
            (None, None) => None,
            (_, Some(event)) => Some(format!("event {}, {event}", same + 1)),
            (Some(event), None) => Some(format!("event {}, without {event}", same + 1)),
        }
    }
}

fn told(problems: &[Problem]) -> String {
    let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
    told.join("\n")
}
