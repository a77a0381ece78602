//! Of the invariant `once`: what a model has begun to say is not asked for again. Once words of an answer
//! have come, the same question is not put to a model a second time in the same turn.

use std::collections::BTreeMap;

use bytes::Bytes;
use memchr::memmem;
use nexus3::agent::SUMMARY_TASK;

use super::{Check, Invariant, Observation, Seen};
use crate::play::kept::Kept;
use crate::play::observed::{Question, Said};

#[derive(Debug, Default)]
pub struct Repeats {
    /// The last question of each agent.
    last: BTreeMap<String, Last>,
}

#[derive(Debug)]
struct Last {
    server_start: u64,
    body: Bytes,
    said: Said,
}

impl Last {
    fn is_repeated_by(&self, now: &Self) -> bool {
        let is_same = self.server_start == now.server_start && self.body == now.body;
        is_same && self.said == Said::Words
    }
}

impl Check for Repeats {
    fn invariant(&self) -> Invariant {
        Invariant::Once
    }

    fn on(&mut self, observation: &Observation, seen: &Seen<'_>) -> Vec<String> {
        match observation {
            Observation::AskBegan(Question { server_start, agent, body }) => {
                // Nobody hears a summary before it is whole.
                if memmem::find(body, SUMMARY_TASK.as_bytes()).is_some() {
                    self.last.remove(agent);
                    return Vec::new();
                }
                let (server_start, body, said) = (*server_start, body.clone(), Said::Nothing);
                let now = Last { server_start, body, said };
                let is_again = self.last.get(agent).is_some_and(|last| last.is_repeated_by(&now));
                self.last.insert(agent.clone(), now);
                let told = || format!("{agent}: a model is asked again for what it began to say");
                // Another agent of the same name may ask the same.
                (is_again && is_retry(agent, seen)).then(told).into_iter().collect()
            }
            Observation::AskEnded { agent, said } => {
                if let Some(last) = self.last.get_mut(agent) {
                    last.said = *said;
                }
                Vec::new()
            }
            Observation::Asked(_)
            | Observation::Answered(_)
            | Observation::StreamOpened(_)
            | Observation::Event { .. }
            | Observation::StreamEnded { .. }
            | Observation::Touched { .. }
            | Observation::Started(_)
            | Observation::McpCalled { .. }
            | Observation::Decided { .. } => Vec::new(),
        }
    }
}

/// Whether the last that an agent did was to begin a question anew. Where that is not on record, nobody
/// knows.
fn is_retry(agent: &str, seen: &Seen<'_>) -> bool {
    let Some(Ok(kept)) = Kept::read(seen.disk) else { return false };
    let last = kept.events.iter().rfind(|event| event.text("agent_id") == agent);
    last.is_some_and(|last| last.name == "provider_retry")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_that_began_to_answer_is_not_asked_the_same() {
        let last = |server_start, body: &'static str, said| {
            let body = body.into();
            Last { server_start, body, said }
        };
        let again = |now: &Last, said| last(1, "one", said).is_repeated_by(now);
        assert!(again(&last(1, "one", Said::Nothing), Said::Words));
        assert!(!again(&last(1, "one", Said::Nothing), Said::Nothing), "nobody heard anything");
        assert!(!again(&last(1, "two", Said::Nothing), Said::Words), "it is another question");
        assert!(!again(&last(2, "one", Said::Nothing), Said::Words), "it is told elsewhere");
    }
}
