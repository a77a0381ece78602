//! Of the invariant `answers`: what somebody decides at a terminal is told to the agent that asked. Seen on
//! the way from the terminal, against the events of the questions.

use std::collections::BTreeMap;

use super::{Check, End, Invariant, Observation, Seen};
use crate::play::kept::{Kept, KeptEvent};

#[derive(Debug, Default)]
pub struct Decided {
    /// Whom each question was answered to, by its id.
    answered: BTreeMap<String, Vec<String>>,
}

impl Check for Decided {
    fn invariant(&self) -> Invariant {
        Invariant::Answers
    }

    fn on(&mut self, observation: &Observation, _: &Seen<'_>) -> Vec<String> {
        if let Observation::Decided { agent, confirm_id } = observation {
            self.answered.entry(confirm_id.clone()).or_default().push(agent.clone());
        }
        Vec::new()
    }

    fn at_rest(&mut self, kept: &Kept, _: &Seen<'_>, _: &End<'_>) -> Vec<String> {
        let asked = kept.events.iter().filter(|event| event.name == "confirmation_requested");
        asked.flat_map(|asked| self.misled(asked)).collect()
    }
}

impl Decided {
    fn misled(&self, asked: &KeptEvent) -> Vec<String> {
        let id = asked.text("confirm_id");
        // It may have been given another name meanwhile.
        let names = [asked.agent.as_str(), asked.text("agent_id")];
        let told = self.answered.get(id).into_iter().flatten();
        let others = told.filter(|agent| !names.contains(&agent.as_str()));
        others
            .map(|other| format!("confirmation {id} of {} was answered to {other}", names[1]))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::seen_tests::Run;
    use super::*;

    #[test]
    fn an_answer_goes_to_whoever_asked() {
        let json = json!({"agent_id": "child", "confirm_id": "c1"});
        let name = "confirmation_requested".to_owned();
        let asked = KeptEvent { agent: "child".to_owned(), name, json, ..KeptEvent::default() };
        let told = |agent: &str| {
            let (agent, confirm_id) = (agent.to_owned(), "c1".to_owned());
            let mut decided = Decided::default();
            decided.on(&Observation::Decided { agent, confirm_id }, &Run::default().seen());
            decided.misled(&asked)
        };
        assert_eq!(told("child"), [""; 0]);
        assert_eq!(told("lead"), ["confirmation c1 of child was answered to lead"]);
    }
}
