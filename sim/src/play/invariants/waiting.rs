//! Of the invariant `bounds`: no agent waits for what can never come. Whoever has sent something to an
//! agent that is gone is told, and no agent waits for itself through others.

use nexus3::event::Seq;

use super::among::{Among, Handoff, Over, at};
use super::handoffs::{LATE, Timing};
use super::{Check, End, Invariant, Seen};
use crate::play::kept::{Kept, KeptEvent};
use crate::scenario::Scenario;

#[derive(Debug)]
pub struct Waiting {
    timing: Timing,
}

impl Waiting {
    pub fn new(scenario: &Scenario) -> Self {
        Self { timing: Timing::of(scenario) }
    }
}

impl Check for Waiting {
    fn invariant(&self) -> Invariant {
        Invariant::Bounds
    }

    fn at_rest(&mut self, kept: &Kept, _: &Seen<'_>, _: &End<'_>) -> Vec<String> {
        match self.timing {
            Timing::Known => {
                let among = Among::of(kept);
                let mut found = for_the_gone(kept, &among);
                found.extend(in_circles(&among));
                found
            }
            Timing::Unknown => Vec::new(),
        }
    }
}

/// The end of a wait that a running server has ended.
fn over(handoff: &Handoff) -> Option<&Over> {
    handoff.ended.as_ref().filter(|over| !over.is_cut)
}

fn for_the_gone(kept: &Kept, among: &Among) -> Vec<String> {
    let mut found = Vec::new();
    for gone in kept.events.iter().filter(|event| event.name == "agent_destroyed") {
        let id = gone.text("agent_id");
        for handoff in among.handoffs.iter().filter(|it| it.started < gone.seq) {
            let Some((to, over)) = handoff.sent().map(|(to, _)| to).zip(over(handoff)) else {
                continue;
            };
            let is_late = over.at.saturating_sub(at(gone)) > LATE;
            // A saved one comes back for whoever sends it something.
            if to == id && is_late && !is_there_again(kept, id, gone.seq, over.seq) {
                found.push(format!("{} waits for {id}, which is gone", handoff.from));
            }
        }
    }
    found
}

fn is_there_again(kept: &Kept, id: &str, after: Seq, before: Seq) -> bool {
    let comes = |event: &&KeptEvent| {
        let name = event.name.as_str();
        name == "agent_created" || name == "agent_restored" || name == "agent_updated"
    };
    let mut between = kept.events.iter().filter(|event| (after..before).contains(&event.seq));
    between.any(|event| comes(&event) && event.text("agent_id") == id)
}

/// Each wait that closes a circle and is not refused at once.
fn in_circles(among: &Among) -> Vec<String> {
    let last = among.handoffs.iter().filter(|it| is_open(it, it));
    let circles = last.filter_map(|last| {
        let mut chain = vec![last.sent()?.0];
        // Each agent at most once: whoever is on the way already leads nowhere else.
        let mut next = 0;
        while let Some(agent) = chain.get(next).copied() {
            if agent == last.from {
                return Some(format!("{agent} waits for itself, through {}", last.sent()?.0));
            }
            let of_agent = among.handoffs.iter().filter(|it| it.from == agent && is_open(it, last));
            for to in of_agent.filter_map(Handoff::sent).map(|(to, _)| to) {
                if !chain.contains(&to) {
                    chain.push(to);
                }
            }
            next += 1;
        }
        None
    });
    circles.collect()
}

/// Whether it was there when `last` began, and goes on for longer than it takes to refuse that one.
fn is_open(handoff: &Handoff, last: &Handoff) -> bool {
    handoff.started <= last.started
        && over(handoff).is_some_and(|over| over.at.saturating_sub(last.at) > LATE)
}

#[cfg(test)]
mod tests {
    use nexus3::event::What;
    use nexus3::message::ToolCall;
    use serde_json::json;

    use super::super::seen_tests::{cancelled, kept_at};
    use super::*;

    fn sends(to: &str) -> ToolCall {
        let arguments = json!({"agent_id": to, "content": "go"});
        ToolCall { id: format!("to-{to}"), name: "nexus_send".to_owned(), arguments }
    }

    fn starts<'a>(second: u64, from: &'a str, to: &str) -> (u64, &'a str, &'a str, What) {
        (second, from, "r1", What::tool_started(&sends(to)))
    }

    fn ends<'a>(second: u64, from: &'a str, to: &str) -> (u64, &'a str, &'a str, What) {
        (second, from, "r1", What::tool_succeeded(&sends(to), "{}"))
    }

    #[test]
    fn whoever_waits_for_an_agent_that_is_gone_is_told() {
        let gone = || (5, "child", "", What::AgentDestroyed { parent_agent_id: None });
        let run = |second| {
            let kept =
                kept_at(vec![starts(1, "boss", "child"), gone(), ends(second, "boss", "child")]);
            for_the_gone(&kept, &Among::of(&kept))
        };
        assert_eq!(run(6), [""; 0]);
        assert_eq!(run(60), ["boss waits for child, which is gone"]);
        let again = (6, "child", "", What::AgentRestored { parent_agent_id: None });
        let kept =
            kept_at(vec![starts(1, "boss", "child"), gone(), again, ends(60, "boss", "child")]);
        assert_eq!(for_the_gone(&kept, &Among::of(&kept)), [""; 0], "it came back");
    }

    #[test]
    fn nobody_waits_for_itself() {
        let run = |refused| {
            let kept = kept_at(vec![
                starts(1, "a", "b"),
                starts(2, "b", "c"),
                starts(3, "c", "a"),
                ends(refused, "c", "a"),
                ends(90, "b", "c"),
                (91, "a", "r1", cancelled()),
            ]);
            in_circles(&Among::of(&kept))
        };
        assert_eq!(run(3), [""; 0]);
        assert_eq!(run(80), ["c waits for itself, through a"]);
    }
}
