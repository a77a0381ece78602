//! Of the invariant `ceiling`: no agent asked another for something that is not its to ask. Decided by
//! the presets on record and by who was created below whom; nothing of the server's policy is asked.

use std::collections::BTreeMap;

use nexus3::event::{Seq, What};

use super::among::{Among, Handoff};
use super::{Check, End, Invariant, Seen};
use crate::play::kept::{Kept, KeptGrant};

/// The method that changes what an agent may ask.
const CHANGES: &str = "set_permissions";

#[derive(Debug)]
pub struct Targets;

impl Check for Targets {
    fn invariant(&self) -> Invariant {
        Invariant::Ceiling
    }

    fn at_rest(&mut self, kept: &Kept, seen: &Seen<'_>, _: &End<'_>) -> Vec<String> {
        let grants = KeptGrant::read(seen.disk).unwrap_or_default();
        let preset = |grant: &KeptGrant| Some(grant.recipe["preset"].as_str()?.to_owned());
        let presets = grants.iter().filter_map(|grant| Some((grant.id.clone(), preset(grant)?)));
        // What was changed may have been more before.
        let changed = seen.calls.iter().any(|made| made.call.method == CHANGES);
        let presets = if changed { BTreeMap::new() } else { presets.collect() };
        misdirected(kept, &presets)
    }
}

fn misdirected(kept: &Kept, presets: &BTreeMap<String, String>) -> Vec<String> {
    let among = Among::of(kept);
    let mut found = Vec::new();
    for handoff in &among.handoffs {
        let from = &handoff.from;
        if let Some((to, _)) = handoff.sent().filter(|_| handoff.was_done()) {
            let is_parent = parent(kept, from, handoff.started).as_deref() == Some(to);
            let may = match presets.get(from).map(String::as_str) {
                Some("worker") => false,
                Some("sandboxed") => is_parent,
                Some(_) | None => to != from,
            };
            if !may {
                found.push(format!("{from} sent to {to}"));
            }
        }
        let below = |id: &&str| is_below(kept, id, from, handoff);
        let strangers = handoff.destroyed().into_iter().filter(|id| !below(id));
        found.extend(strangers.map(|id| format!("{from} destroyed {id}, which was not below it")));
    }
    found
}

fn is_below(kept: &Kept, id: &str, ancestor: &str, handoff: &Handoff) -> bool {
    let parent = |id: &String| parent(kept, id, handoff.started);
    let mut above = std::iter::successors(parent(&id.to_owned()), parent);
    above.any(|above| above == ancestor)
}

/// Below whom the agent was at that event that has the id: its parent may get another id, too.
fn parent(kept: &Kept, id: &str, at: Seq) -> Option<String> {
    let before = kept.events.iter().take_while(|event| event.seq < at);
    let told = before.filter(|event| event.agent == id).filter_map(|event| {
        match event.event.as_ref().map(|event| &event.what) {
            Some(
                What::AgentCreated { parent_agent_id } | What::AgentUpdated { parent_agent_id, .. },
            ) => Some(parent_agent_id),
            _ => None,
        }
    });
    told.last()?.as_ref().map(ToString::to_string)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use nexus3::event::Event;
    use nexus3::id::{AgentId, RequestId};
    use nexus3::message::ToolCall;
    use serde_json::{Value, json};

    use super::*;
    use crate::play::kept::KeptEvent;

    fn id(text: &str) -> AgentId {
        AgentId::parse(text).unwrap()
    }

    fn kept(by: &str, tool: &str, arguments: Value, output: &Value) -> Kept {
        let created = |agent: &'static str, parent: Option<&str>| {
            (agent, What::AgentCreated { parent_agent_id: parent.map(id) })
        };
        let call = ToolCall { id: "c1".to_owned(), name: tool.to_owned(), arguments };
        let events = [
            created("boss", None),
            created("child", Some("boss")),
            created("stranger", None),
            (by, What::tool_started(&call)),
            (by, What::tool_succeeded(&call, &output.to_string())),
        ];
        let events = events.into_iter().zip(1..).map(|((agent, what), seq)| {
            let event = Event::new(&id(agent), Timestamp::UNIX_EPOCH, what);
            let event = event.of(&RequestId::parse("r1").unwrap());
            let event = Event { seq: Some(seq), ..event };
            let json = serde_json::to_value(&event).unwrap();
            let (agent, name) = (agent.to_owned(), event.what.name().to_owned());
            KeptEvent { seq, agent, name, json, event: Some(event) }
        });
        Kept { events: events.collect(), ..Kept::default() }
    }

    #[test]
    fn nobody_sends_where_it_may_not() {
        let sent = |by: &str, to: &str, preset: &str| {
            let arguments = json!({"agent_id": to, "content": "x"});
            let kept = kept(by, "nexus_send", arguments, &json!({"request_id": "x"}));
            misdirected(&kept, &BTreeMap::from([(by.to_owned(), preset.to_owned())]))
        };
        assert_eq!(sent("boss", "stranger", "trusted"), [""; 0]);
        assert_eq!(sent("child", "boss", "sandboxed"), [""; 0]);
        assert_eq!(sent("child", "stranger", "sandboxed"), ["child sent to stranger"]);
        assert_eq!(sent("child", "boss", "worker"), ["child sent to boss"]);
    }

    #[test]
    fn nobody_destroys_who_is_not_below_it() {
        let destroyed = |whom: &str| {
            let (arguments, output) = (json!({"agent_id": whom}), json!({"destroyed": [whom]}));
            misdirected(&kept("boss", "nexus_destroy", arguments, &output), &BTreeMap::new())
        };
        assert_eq!(destroyed("child"), [""; 0]);
        assert_eq!(destroyed("stranger"), ["boss destroyed stranger, which was not below it"]);
    }
}
