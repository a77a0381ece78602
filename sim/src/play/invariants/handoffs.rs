//! Of the invariant `bounds`: no agent works on for one that no longer waits. A turn that an agent started
//! at another and waited for ends with its own, if not before.

use std::time::Duration;

use nexus3::event::{Seq, What};

use super::among::{self, Among, Handoff};
use super::journal::{Turn, lives};
use super::{Check, End, Invariant, Seen};
use crate::play::kept::Kept;
use crate::scenario::{Fault, FaultKind, Scenario};

/// How long it may take until a turn is cancelled that nobody waits for: as long as an agent that is
/// destroyed waits for its own, and a little.
pub const LATE: Duration = Duration::from_secs(6);

#[derive(Debug)]
pub struct Handoffs {
    timing: Timing,
}

/// Whether the times of events say when something happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    Known,
    /// The clock jumps, or the disk takes what happened when it likes.
    Unknown,
}

impl Handoffs {
    pub fn new(scenario: &Scenario) -> Self {
        Self { timing: Timing::of(scenario) }
    }
}

impl Timing {
    pub fn of(scenario: &Scenario) -> Self {
        let disturbs = |fault: &Fault| match fault.kind {
            FaultKind::DiskFull
            | FaultKind::IoError
            | FaultKind::ReadOnly
            | FaultKind::FsyncError
            | FaultKind::FsyncLies
            | FaultKind::TornWrite
            | FaultKind::ClockJump { .. } => true,
            FaultKind::Crash
            | FaultKind::PowerLoss
            | FaultKind::Partition
            | FaultKind::Hold
            | FaultKind::Delay { .. }
            | FaultKind::Files(_) => false,
        };
        if scenario.faults.iter().any(disturbs) { Self::Unknown } else { Self::Known }
    }
}

impl Check for Handoffs {
    fn invariant(&self) -> Invariant {
        Invariant::Bounds
    }

    fn at_rest(&mut self, kept: &Kept, _: &Seen<'_>, _: &End<'_>) -> Vec<String> {
        match self.timing {
            Timing::Known => overdue(kept),
            Timing::Unknown => Vec::new(),
        }
    }
}

fn overdue(kept: &Kept) -> Vec<String> {
    let among = Among::of(kept);
    let mut found = Vec::new();
    for life in lives(kept) {
        for turn in &life.turns {
            let Some(over) = waited_until(&among, &life.agent, turn) else { continue };
            // What a crash has ended is told of at the next start.
            let Some((seq, what)) = turn.ends.first() else { continue };
            if matches!(what, What::TurnInterrupted(_)) {
                continue;
            }
            if at(kept, *seq).saturating_sub(over) > LATE {
                let (agent, request) = (&life.agent, &turn.request);
                found.push(format!("{request} of {agent}: it goes on, and nobody waits for it"));
            }
        }
    }
    found
}

/// When the agent that started a turn had stopped to wait for it.
fn waited_until(among: &Among, agent: &str, turn: &Turn) -> Option<Duration> {
    let (from, content) = turn.from.as_ref()?;
    let queued = turn.queued?;
    let is_it = |handoff: &&Handoff| {
        handoff.from == *from
            && handoff.started < queued
            && handoff.sent() == Some((agent, content.as_str()))
    };
    // The same may be sent often, by one turn after another or at once by one.
    let last = among.handoffs.iter().rfind(is_it)?;
    let beside = among.handoffs.iter().filter(is_it).filter(|it| it.request == last.request);
    let over = beside.map(|handoff| handoff.ended.as_ref().map(|over| over.at));
    over.collect::<Option<Vec<Duration>>>()?.into_iter().max()
}

fn at(kept: &Kept, seq: Seq) -> Duration {
    let place = kept.events.binary_search_by_key(&seq, |event| event.seq);
    place.map_or(Duration::ZERO, |place| among::at(&kept.events[place]))
}

#[cfg(test)]
mod tests {
    use nexus3::id::AgentId;
    use nexus3::message::ToolCall;
    use serde_json::json;

    use super::super::seen_tests::{cancelled, ended, kept_at, queued};
    use super::*;

    #[test]
    fn a_turn_ends_with_the_turn_that_waits_for_it() {
        let arguments = json!({"agent_id": "w1", "content": "go"});
        let call = ToolCall { id: "c1".to_owned(), name: "nexus_send".to_owned(), arguments };
        let started = What::TurnStarted {
            content: "go".into(),
            source: "boss".to_owned(),
            source_agent_id: Some(AgentId::parse("boss").unwrap()),
        };
        let run = |end: u64| {
            overdue(&kept_at(vec![
                (0, "boss", "r1", What::tool_started(&call)),
                (1, "w1", "x", queued()),
                (1, "w1", "x", started.clone()),
                (9, "boss", "r1", cancelled()),
                (end, "w1", "x", ended("done")),
            ]))
        };
        assert_eq!(run(10), Vec::<String>::new());
        assert_eq!(run(20), ["x of w1: it goes on, and nobody waits for it"]);
    }
}
