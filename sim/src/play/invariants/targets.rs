//! Of the invariant `ceiling`: no agent asked another for something that is not its to ask. Decided by
//! the presets that agents were created with and given since, and by who was created below whom; nothing
//! of the server's policy is asked.

use std::collections::BTreeMap;
use std::time::Duration;

use nexus3::event::{Seq, What};
use serde_json::Value;

use super::among::{Among, Handoff, HostClock, at};
use super::{Check, End, Invariant, Seen};
use crate::play::director::Made;
use crate::play::kept::{Kept, KeptEvent};
use crate::scenario::Scenario;

const DEFAULT_PRESET: &str = "sandboxed";
/// How long after its record a change may take until its agent has it.
const CHANGE_MAX: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub struct Targets {
    /// Of the scenario's configuration.
    permissions: Value,
    clock: HostClock,
}

/// Whom an agent may send to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    Nobody,
    Parent,
    Anyone,
}

impl Targets {
    pub fn new(scenario: &Scenario) -> Self {
        let permissions = scenario.config_json("")["permissions"].take();
        Self { permissions, clock: HostClock::of(scenario) }
    }

    /// The preset that each agent was created with, by its id and the event of its creation. Where a call
    /// got no answer it is not known, of this id at all.
    fn given(&self, kept: &Kept, calls: &[&Made]) -> BTreeMap<(String, Seq), String> {
        let mut asked: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for made in calls.iter().filter(|made| made.call.method == "create_agent") {
            let Some(Ok(result)) = &made.answer else { continue };
            let named = made.call.params.as_ref().and_then(|params| params.get("preset")?.as_str());
            let default = || self.permissions["default_preset"].as_str().unwrap_or(DEFAULT_PRESET);
            let preset = named.unwrap_or_else(default).to_owned();
            asked.entry(result["agent_id"].as_str().unwrap_or_default()).or_default().push(preset);
        }
        let mut given = BTreeMap::new();
        for (id, presets) in asked {
            let created: Vec<Seq> = creations(kept, id).map(|(seq, _)| seq).collect();
            if created.len() == presets.len() {
                let of_id = created.into_iter().map(|seq| (id.to_owned(), seq));
                given.extend(of_id.zip(presets));
            }
        }
        given
    }

    fn misdirected(&self, kept: &Kept, given: &BTreeMap<(String, Seq), String>) -> Vec<String> {
        let among = Among::of(kept);
        let mut found = Vec::new();
        for handoff in &among.handoffs {
            let from = &handoff.from;
            if let Some((to, _)) = handoff.sent().filter(|_| handoff.was_done()) {
                let may = match self.reach(kept, given, handoff) {
                    Reach::Nobody => false,
                    Reach::Parent => parent(kept, from, handoff.started).as_deref() == Some(to),
                    Reach::Anyone => to != from,
                };
                if !may {
                    found.push(format!("{from} sent to {to}"));
                }
            }
            let below = |id: &&str| is_below(kept, id, from, handoff);
            let strangers = handoff.destroyed().into_iter().filter(|id| !below(id));
            let told = |id| format!("{from} destroyed {id}, which was not below it");
            found.extend(strangers.map(told));
        }
        found
    }

    /// The farthest that the agent could reach when it began, or shortly before.
    fn reach(
        &self,
        kept: &Kept,
        given: &BTreeMap<(String, Seq), String>,
        handoff: &Handoff,
    ) -> Reach {
        let before = creations(kept, &handoff.from).take_while(|(seq, _)| *seq < handoff.started);
        let Some((created, _)) = before.last() else { return Reach::Anyone };
        let Some(preset) = given.get(&(handoff.from.clone(), created)) else {
            return Reach::Anyone;
        };
        let began = kept.events.iter().find(|event| event.seq == handoff.started);
        let began = began.map(at).unwrap_or_default();
        let (mut preset, mut level) = (preset.as_str(), "");
        let mut reach = self.reach_of(preset, level);
        let life = kept.events.iter().filter(|event| event.agent == handoff.from);
        for event in life.filter(|event| (created..handoff.started).contains(&event.seq)) {
            let changed = &event.json["changed"];
            preset = changed["preset"].as_str().unwrap_or(preset);
            level = changed["permission_level"].as_str().unwrap_or(level);
            let now = self.reach_of(preset, level);
            reach = if at(event) + CHANGE_MAX < began { now } else { reach.max(now) };
        }
        reach
    }

    fn reach_of(&self, preset: &str, level: &str) -> Reach {
        let mut base = preset;
        while let Some(layer) = self.permissions["presets"].get(base) {
            base = layer["extends"].as_str().unwrap_or(DEFAULT_PRESET);
        }
        match (base, level) {
            ("worker", _) => Reach::Nobody,
            ("sandboxed", _) | (_, "sandboxed") => Reach::Parent,
            (_, _) => Reach::Anyone,
        }
    }
}

impl Check for Targets {
    fn invariant(&self) -> Invariant {
        Invariant::Ceiling
    }

    fn at_rest(&mut self, kept: &Kept, seen: &Seen<'_>, _: &End<'_>) -> Vec<String> {
        // Only times tell which of the calls that created an id created whom.
        if self.clock == HostClock::Jumps {
            return Vec::new();
        }
        let by_agents = Among::of(kept).calls(self.clock);
        let mut calls: Vec<&Made> = seen.calls.iter().chain(&by_agents).collect();
        calls.sort_by_key(|made| made.at);
        self.misdirected(kept, &self.given(kept, &calls))
    }
}

/// The agents that had this id, by the events of their creation, and below whom each was created.
fn creations<'a>(kept: &'a Kept, id: &str) -> impl Iterator<Item = (Seq, Option<String>)> + 'a {
    let id = id.to_owned();
    let of_id = kept.events.iter().filter(move |event| event.agent == id);
    of_id.filter_map(|event: &KeptEvent| match event.event.as_ref().map(|event| &event.what) {
        Some(What::AgentCreated { parent_agent_id }) => {
            Some((event.seq, parent_agent_id.as_ref().map(ToString::to_string)))
        }
        _ => None,
    })
}

fn is_below(kept: &Kept, id: &str, ancestor: &str, handoff: &Handoff) -> bool {
    let parent = |id: &String| parent(kept, id, handoff.started);
    let mut above = std::iter::successors(parent(&id.to_owned()), parent);
    above.any(|above| above == ancestor)
}

/// Below whom the agent was created that had the id at that event, by the name that one had by then.
fn parent(kept: &Kept, id: &str, at: Seq) -> Option<String> {
    let (created, parent) = creations(kept, id).take_while(|(seq, _)| *seq < at).last()?;
    let life = kept.events.iter().filter(|event| event.agent == id);
    let since = life.filter(|event| (created..at).contains(&event.seq));
    let mut renamed = since.filter_map(|event| event.json["changed"]["parent_agent_id"].as_str());
    renamed.next_back().map(str::to_owned).or(parent)
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};
    use nexus3::event::Event;
    use nexus3::id::{AgentId, RequestId};
    use nexus3::message::ToolCall;
    use serde_json::json;

    use super::*;

    fn id(text: &str) -> AgentId {
        AgentId::parse(text).unwrap()
    }

    fn created(agent: &'static str, parent: Option<&str>) -> (&'static str, What) {
        (agent, What::AgentCreated { parent_agent_id: parent.map(id) })
    }

    /// Each event ten seconds after the one before.
    fn kept<'a>(events: impl IntoIterator<Item = (&'a str, What)>) -> Kept {
        let events = events.into_iter().zip(1..).map(|((agent, what), seq)| {
            let at = Timestamp::constant(crate::machine::EPOCH, 0);
            let at = at + SignedDuration::from_secs(10 * i64::try_from(seq).unwrap());
            let event = Event::new(&id(agent), at, what).of(&RequestId::parse("r1").unwrap());
            let event = Event { seq: Some(seq), ..event };
            let json = serde_json::to_value(&event).unwrap();
            let (agent, name) = (agent.to_owned(), event.what.name().to_owned());
            KeptEvent { seq, agent, name, json, event: Some(event) }
        });
        Kept { events: events.collect(), ..Kept::default() }
    }

    fn family() -> Vec<(&'static str, What)> {
        vec![created("boss", None), created("child", Some("boss")), created("stranger", None)]
    }

    fn did<'a>(by: &'a str, tool: &str, arguments: Value, output: &Value) -> [(&'a str, What); 2] {
        let call = ToolCall { id: "c1".to_owned(), name: tool.to_owned(), arguments };
        [(by, What::tool_started(&call)), (by, What::tool_succeeded(&call, &output.to_string()))]
    }

    fn sent<'a>(by: &'a str, to: &str) -> [(&'a str, What); 2] {
        let arguments = json!({"agent_id": to, "content": "x"});
        did(by, "nexus_send", arguments, &json!({"request_id": "x"}))
    }

    fn judged(kept: &Kept, given: &[(&str, Seq, &str)]) -> Vec<String> {
        let presets = json!({"quiet": {"extends": "hushed"}, "hushed": {"extends": "worker"}});
        let targets =
            Targets { permissions: json!({"presets": presets}), clock: HostClock::Steady };
        let given =
            given.iter().map(|(id, seq, preset)| (((*id).to_owned(), *seq), (*preset).to_owned()));
        targets.misdirected(kept, &given.collect())
    }

    #[test]
    fn nobody_sends_where_it_may_not() {
        let run = |by: &'static str, to: &str, place: Seq, preset: &str| {
            let events = family().into_iter().chain(sent(by, to));
            judged(&kept(events), &[(by, place, preset)])
        };
        assert_eq!(run("boss", "stranger", 1, "trusted"), [""; 0]);
        assert_eq!(run("child", "boss", 2, "sandboxed"), [""; 0]);
        assert_eq!(run("child", "stranger", 2, "sandboxed"), ["child sent to stranger"]);
        assert_eq!(run("child", "boss", 2, "worker"), ["child sent to boss"]);
        assert_eq!(
            run("child", "boss", 2, "quiet"),
            ["child sent to boss"],
            "a worker by another name"
        );
    }

    #[test]
    fn what_was_taken_from_an_agent_counts_from_then_on() {
        let demoted = || {
            let changed = json!({"preset": "sandboxed", "permission_level": "sandboxed"});
            let changed = changed.as_object().unwrap().clone();
            ("boss", What::AgentUpdated { parent_agent_id: None, changed, previous_agent_id: None })
        };
        let before = family().into_iter().chain(sent("boss", "stranger")).chain([demoted()]);
        assert_eq!(judged(&kept(before), &[("boss", 1, "trusted")]), [""; 0]);
        let after = family().into_iter().chain([demoted()]).chain(sent("boss", "stranger"));
        assert_eq!(judged(&kept(after), &[("boss", 1, "trusted")]), ["boss sent to stranger"]);
    }

    #[test]
    fn an_id_that_is_given_again_is_another_agent() {
        let again = [created("child", None)];
        let events = || family().into_iter().chain(again.clone()).chain(sent("child", "stranger"));
        let first = ("child", 2, "sandboxed");
        assert_eq!(judged(&kept(events()), &[first, ("child", 4, "trusted")]), [""; 0]);
        let worker = judged(&kept(events()), &[first, ("child", 4, "worker")]);
        assert_eq!(worker, ["child sent to stranger"]);
    }

    #[test]
    fn nobody_destroys_who_is_not_below_it() {
        let destroyed = |whom: &str| {
            let (arguments, output) = (json!({"agent_id": whom}), json!({"destroyed": [whom]}));
            let events = did("boss", "nexus_destroy", arguments, &output);
            judged(&kept(family().into_iter().chain(events)), &[])
        };
        assert_eq!(destroyed("child"), [""; 0]);
        assert_eq!(destroyed("stranger"), ["boss destroyed stranger, which was not below it"]);
    }
}
