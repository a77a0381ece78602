//! Of the invariant `bounds`: a family never has more than it was given. At no time are more agents there
//! than the limits of any above them allow, no more turns begin, and none is charged that did not begin.

use std::collections::BTreeMap;

use nexus3::event::Seq;
use serde_json::Value;

use super::among::{Among, HostClock};
use super::families::{Families, Member, Origin};
use super::handoffs::Timing;
use super::{Check, End, Invariant, Seen};
use crate::play::director::Made;
use crate::play::kept::Kept;
use crate::scenario::Scenario;

#[derive(Debug)]
pub struct Shares {
    clock: HostClock,
    timing: Timing,
}

impl Shares {
    pub fn new(scenario: &Scenario) -> Self {
        Self { clock: HostClock::of(scenario), timing: Timing::of(scenario) }
    }
}

impl Check for Shares {
    fn invariant(&self) -> Invariant {
        Invariant::Bounds
    }

    fn at_rest(&mut self, kept: &Kept, seen: &Seen<'_>, _: &End<'_>) -> Vec<String> {
        if !kept.forgotten.is_empty() {
            return Vec::new();
        }
        let families = Families::of(kept);
        let mut found = Vec::new();
        // Only times tell which of the calls that created an id created whom.
        if self.clock == HostClock::Steady {
            let by_agents = Among::of(kept).calls(self.clock);
            let mut calls: Vec<&Made> = seen.calls.iter().chain(&by_agents).collect();
            calls.sort_by_key(|made| made.at);
            for (place, limits) in given(&families, &calls) {
                found.extend(exceeded(&families, place, limits));
            }
        }
        // What a failing disk did not take of a turn was charged all the same.
        if self.timing == Timing::Known {
            found.extend(overcharged(kept, &families));
        }
        found
    }
}

/// The limits that agents were created with, by their places. Where a call got no answer they are not
/// known, of this id at all.
fn given<'a>(families: &Families, calls: &[&'a Made]) -> Vec<(usize, &'a Value)> {
    let mut asked: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for made in calls.iter().filter(|made| made.call.method == "create_agent") {
        let Some(Ok(result)) = &made.answer else { continue };
        let limits = made.call.params.as_ref().and_then(|params| params.get("limits"));
        let id = result["agent_id"].as_str().unwrap_or_default();
        asked.entry(id).or_default().push(limits.unwrap_or(&Value::Null));
    }
    let mut given = Vec::new();
    for (id, limits) in asked {
        let is_it = |member: &Member| member.id == id && member.origin == Origin::Created;
        let members = families.members.iter().enumerate();
        let places: Vec<usize> =
            members.filter(|(_, member)| is_it(member)).map(|(place, _)| place).collect();
        if places.len() == limits.len() {
            given.extend(places.into_iter().zip(limits));
        }
    }
    given
}

/// How those below an agent, and itself, have had more than its limits allow.
fn exceeded(families: &Families, place: usize, limits: &Value) -> Vec<String> {
    let id = &families.members[place].id;
    let members = families.members.iter().enumerate();
    let family: Vec<&Member> = members
        .filter(|(other, _)| families.is_within(*other, place))
        .map(|(_, member)| member)
        .collect();
    let mut found = Vec::new();
    let turns: u64 = family.iter().map(|member| member.turns).sum();
    if limits["max_turns"].as_u64().is_some_and(|most| turns > most) {
        let most = &limits["max_turns"];
        found.push(format!("{id} and those below it began {turns} turns, and may have {most}"));
    }
    if let Some(most) = limits["max_agents"].as_u64() {
        let counts = family.iter().map(|member| there_at(&family, member.since));
        if let Some(count) = counts.max().filter(|count| *count > most) {
            found.push(format!("{count} agents are there with {id}, which may have {most}"));
        }
    }
    found
}

/// How many were there after an event. Temporary ones go with their server, and nobody says so.
fn there_at(family: &[&Member], seq: Seq) -> u64 {
    let is_there = |member: &&&Member| {
        member.since <= seq
            && member.until.is_none_or(|until| until > seq)
            && !member.id.starts_with('.')
    };
    family.iter().filter(is_there).count() as u64
}

fn overcharged(kept: &Kept, families: &Families) -> Vec<String> {
    let there = families.members.iter().filter(|member| member.until.is_none());
    let there: BTreeMap<&str, &Member> = there.map(|member| (member.id.as_str(), member)).collect();
    let charged = kept.agents.iter().filter(|agent| agent.exists()).filter_map(|agent| {
        let charged = kept.turns_charged.get(&agent.number)?;
        let member = there.get(agent.id.as_str())?;
        // Of one that was there before the run nobody knows what it had.
        let is_known = member.origin == Origin::Created;
        (is_known && *charged > member.turns).then(|| {
            format!("{} began {} turns, and {charged} are charged to it", agent.id, member.turns)
        })
    });
    charged.collect()
}

#[cfg(test)]
mod tests {
    use nexus3::event::What;
    use nexus3::id::AgentId;
    use serde_json::json;

    use super::super::seen_tests::{kept_at, made, started};
    use super::*;
    use crate::play::kept::KeptAgent;

    fn created<'a>(agent: &'a str, parent: Option<&str>) -> (u64, &'a str, &'a str, What) {
        let parent_agent_id = parent.map(|parent| AgentId::parse(parent).unwrap());
        (0, agent, "", What::AgentCreated { parent_agent_id })
    }

    fn family() -> Kept {
        kept_at(vec![
            created("boss", None),
            created("one", Some("boss")),
            (0, "one", "r1", started()),
            (0, "one", "", What::AgentDestroyed { parent_agent_id: None }),
            created("two", Some("boss")),
            (0, "two", "r2", started()),
        ])
    }

    #[test]
    fn a_family_has_no_more_than_it_was_given() {
        let found = |limits: Value| {
            let params = json!({"agent_id": "boss", "limits": limits});
            let call =
                made("create_agent", None, &params, 1, Some(Ok(json!({"agent_id": "boss"}))));
            let families = Families::of(&family());
            let given = given(&families, &[&call]);
            given
                .iter()
                .flat_map(|(at, limits)| exceeded(&families, *at, limits))
                .collect::<Vec<_>>()
        };
        assert_eq!(found(json!({"max_turns": 2, "max_agents": 2})), [""; 0]);
        let turns = ["boss and those below it began 2 turns, and may have 1"];
        assert_eq!(found(json!({"max_turns": 1})), turns);
        let agents = ["2 agents are there with boss, which may have 1"];
        assert_eq!(found(json!({"max_agents": 1})), agents);
    }

    #[test]
    fn only_turns_that_began_are_charged() {
        let charged = |turns| {
            let (id, status) = ("two".to_owned(), "active".to_owned());
            let agent = KeptAgent { number: 3, id, status, ..KeptAgent::default() };
            let turns_charged = BTreeMap::from([(3, turns)]);
            let kept = Kept { agents: vec![agent], turns_charged, ..family() };
            overcharged(&kept, &Families::of(&kept))
        };
        assert_eq!(charged(1), [""; 0]);
        assert_eq!(charged(2), ["two began 1 turns, and 2 are charged to it"]);
    }
}
