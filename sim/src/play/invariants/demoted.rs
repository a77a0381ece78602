//! Of the invariant `ceiling`: an agent that is given a lower level keeps no program that it began with
//! the one before, also none that waited for its place. Seen by the events of its calls.

use super::among::at;
use super::handoffs::{LATE, Timing};
use super::spans::{Span, spans};
use super::{Check, End, Invariant, Seen};
use crate::play::kept::{Kept, KeptEvent};
use crate::scenario::Scenario;

const PROGRAMS: [&str; 4] = ["exec", "run_python", "shell_UNSAFE", "git"];

#[derive(Debug)]
pub struct Demoted {
    timing: Timing,
}

impl Demoted {
    pub fn new(scenario: &Scenario) -> Self {
        Self { timing: Timing::of(scenario) }
    }
}

impl Check for Demoted {
    fn invariant(&self) -> Invariant {
        Invariant::Ceiling
    }

    fn at_rest(&mut self, kept: &Kept, _: &Seen<'_>, _: &End<'_>) -> Vec<String> {
        match self.timing {
            Timing::Known => going_on(kept),
            Timing::Unknown => Vec::new(),
        }
    }
}

fn going_on(kept: &Kept) -> Vec<String> {
    let mut programs = spans(kept);
    programs.retain(|span| PROGRAMS.contains(&span.name) && !span.is_cut());
    let demotions = kept.events.iter().filter(|event| gives_less(event));
    let found = demotions.flat_map(|demoted| {
        let late = programs.iter().filter(|span| goes_on_after(span, demoted));
        late.map(|span| format!("{}: its {} goes on after its demotion", demoted.agent, span.name))
    });
    found.collect()
}

/// Whoever has a program and gets one of these levels had a higher one.
fn gives_less(event: &KeptEvent) -> bool {
    let level = &event.json["changed"]["permission_level"];
    event.name == "agent_updated" && (level == "sandboxed" || level == "trusted")
}

fn goes_on_after(span: &Span<'_>, demoted: &KeptEvent) -> bool {
    span.started.agent == demoted.agent
        && span.started.seq < demoted.seq
        && span.ended.is_some_and(|ended| at(ended).saturating_sub(at(demoted)) > LATE)
}

#[cfg(test)]
mod tests {
    use nexus3::event::What;
    use nexus3::message::ToolCall;
    use serde_json::json;

    use super::super::seen_tests::kept_at;
    use super::*;

    #[test]
    fn a_program_ends_with_the_right_to_it() {
        let call = |name: &str| {
            let (id, arguments) = ("c1".to_owned(), json!({}));
            ToolCall { id, name: name.to_owned(), arguments }
        };
        let given = |level: &str| {
            let changed = json!({"permission_level": level}).as_object().unwrap().clone();
            What::AgentUpdated { parent_agent_id: None, changed, previous_agent_id: None }
        };
        let run = |name: &str, level: &str, second| {
            going_on(&kept_at(vec![
                (0, "scout", "r1", What::tool_started(&call(name))),
                (5, "scout", "", given(level)),
                (second, "scout", "r1", What::tool_succeeded(&call(name), "done")),
            ]))
        };
        let late = ["scout: its exec goes on after its demotion"];
        assert_eq!(run("exec", "sandboxed", 20), late);
        assert_eq!(run("exec", "sandboxed", 8), [""; 0]);
        assert_eq!(run("exec", "trusted", 20), late);
        assert_eq!(run("exec", "yolo", 20), [""; 0]);
        assert_eq!(run("sleep", "sandboxed", 20), [""; 0]);
    }
}
