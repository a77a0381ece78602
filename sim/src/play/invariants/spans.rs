//! The calls of tools from their start to their end, by the kept events. Pure.

use std::collections::BTreeMap;

use nexus3::event::What;

use crate::play::kept::{Kept, KeptEvent};

/// One call.
#[derive(Debug)]
pub struct Span<'k> {
    pub tool_id: &'k str,
    pub name: &'k str,
    /// Its arguments, as far as the event shows them.
    pub params: &'k str,
    pub started: &'k KeptEvent,
    /// The event after which nobody waited for it any more.
    pub ended: Option<&'k KeptEvent>,
}

impl Span<'_> {
    /// Whether a server that was started again has ended it, some time after the one before it.
    pub fn is_cut(&self) -> bool {
        self.ended.is_some_and(|event| event.name == "turn_interrupted")
            || self.ended.is_some_and(|event| event.text("error").contains("outcome_unknown"))
    }
}

/// All calls, in the order in which they started.
pub fn spans(kept: &Kept) -> Vec<Span<'_>> {
    let mut spans: Vec<Span<'_>> = Vec::new();
    let mut open: BTreeMap<(&str, &str, &str), usize> = BTreeMap::new();
    for event in &kept.events {
        let Some(what) = event.event.as_ref().map(|event| &event.what) else { continue };
        let (agent, request) = (event.agent.as_str(), event.text("request_id"));
        match what {
            What::ToolStarted { tool_id, name, params } => {
                open.insert((agent, request, tool_id), spans.len());
                spans.push(Span { tool_id, name, params, started: event, ended: None });
            }
            What::ToolCompleted { tool_id, .. } => {
                if let Some(place) = open.remove(&(agent, request, tool_id.as_str())) {
                    spans[place].ended = Some(event);
                }
            }
            what if what.is_terminal() => {
                let is_of_turn = |key: &(&str, &str, &str)| (key.0, key.1) == (agent, request);
                for (_, place) in open.extract_if(.., |key, _| is_of_turn(key)) {
                    spans[place].ended = Some(event);
                }
            }
            _ => {}
        }
    }
    spans
}
