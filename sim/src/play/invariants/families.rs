//! The agents of a run as families, by the kept events: who was made below whom, when each came and went,
//! and how many turns it began. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use nexus3::event::{Seq, What};
use serde_json::Value;

use super::among::at;
use super::told::{Told, result};
use crate::play::director::Made;
use crate::play::kept::Kept;

/// One agent, from when it came to when it went. Another one may have its id before or after.
#[derive(Debug)]
pub struct Member {
    /// What it was called last.
    pub id: String,
    pub since: Seq,
    /// When that was, by the server's clock.
    came: Duration,
    pub until: Option<Seq>,
    /// Its place among the members.
    pub parent: Option<usize>,
    pub origin: Origin,
    /// Turns that began.
    pub turns: u64,
}

/// How an agent came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    Created,
    /// It came from a session.
    Loaded,
}

#[derive(Debug, Default)]
pub struct Families {
    pub members: Vec<Member>,
}

impl Families {
    pub fn of(kept: &Kept) -> Self {
        let mut families = Self::default();
        // Who has an id at the moment.
        let mut called: BTreeMap<String, usize> = BTreeMap::new();
        for kept_event in &kept.events {
            let Some(event) = &kept_event.event else { continue };
            let Some(id) = event.agent_id.as_ref().map(ToString::to_string) else { continue };
            let (seq, place) = (kept_event.seq, called.get(&id).copied());
            match &event.what {
                What::AgentCreated { parent_agent_id } => {
                    let parent = parent_agent_id.as_ref().and_then(|it| called.get(it.as_str()));
                    let parent = parent.copied();
                    called.insert(id.clone(), families.members.len());
                    families.come(id, (seq, at(kept_event)), parent, Origin::Created);
                }
                // One that is there has only been dormant.
                What::AgentRestored { parent_agent_id } if place.is_none() => {
                    let parent = parent_agent_id.as_ref().and_then(|it| called.get(it.as_str()));
                    let parent = parent.copied();
                    called.insert(id.clone(), families.members.len());
                    families.come(id, (seq, at(kept_event)), parent, Origin::Loaded);
                }
                What::AgentUpdated { previous_agent_id: Some(previous), .. } => {
                    if let Some(place) = called.remove(previous.as_str()) {
                        families.members[place].id.clone_from(&id);
                        called.insert(id, place);
                    }
                }
                What::AgentDestroyed { .. } => {
                    if let Some(place) = called.remove(&id) {
                        families.members[place].until = Some(seq);
                    }
                }
                What::TurnStarted { .. } => {
                    if let Some(place) = place {
                        families.members[place].turns += 1;
                    }
                }
                _ => {}
            }
        }
        families
    }

    fn come(
        &mut self,
        id: String,
        (since, came): (Seq, Duration),
        parent: Option<usize>,
        origin: Origin,
    ) {
        let until = None;
        self.members.push(Member { id, since, came, until, parent, origin, turns: 0 });
    }

    /// Whether one is another, or was made below it.
    pub fn is_within(&self, place: usize, ancestor: usize) -> bool {
        let above = |place: &usize| self.members[*place].parent;
        std::iter::successors(Some(place), above).any(|place| place == ancestor)
    }

    /// Who is still there although whoever it was made below has gone with all below it, as a caller was
    /// told.
    pub fn left_behind(&self, told: &Told<'_>) -> Vec<String> {
        let there = self.members.iter().filter(|member| member.until.is_none());
        let orphans = there.filter_map(|member| {
            let parent = &self.members[member.parent?];
            // Temporary agents go with their server, and nobody says so.
            let is_clear = parent.until.is_some() && !member.id.starts_with('.');
            (is_clear && goes_with_all(told, &parent.id, member.came)).then_some((member, parent))
        });
        let told = |(member, parent): (&Member, &Member)| {
            format!("{} is there, and {} went with all below it", member.id, parent.id)
        };
        orphans.map(told).collect()
    }
}

/// Whether an agent was destroyed with those below it that had come by then, and not by something that
/// may have left them.
fn goes_with_all(told: &Told<'_>, id: &str, came: Duration) -> bool {
    let names = |made: &&Made, key: &str| {
        made.call.params.as_ref().and_then(|params| params.get(key)?.as_str()) == Some(id)
    };
    let keeps = |made: &Made| {
        let params = made.call.params.as_ref();
        params.and_then(|params| params.get("cascade")) == Some(&Value::Bool(false))
    };
    let of = |method: &'static str| told.calls.iter().filter(move |it| it.call.method == method);
    let alone = of("destroy_agent").any(|made| keeps(made) && names(&made, "agent_id"))
        || of("delete_session").any(|made| names(&made, "session_name"))
        || told.raw_says("destroy_agent");
    let destroyed = |made: &Made| {
        let destroyed = result(made).and_then(|result| result.get("destroyed")?.as_array());
        destroyed.is_some_and(|ids| ids.iter().any(|destroyed| destroyed == id))
    };
    // Whoever is just being made sees itself that it is to go.
    !alone && of("destroy_agent").any(|made| !keeps(made) && destroyed(made) && made.at > came)
}

#[cfg(test)]
mod tests {
    use nexus3::id::AgentId;
    use serde_json::{Map, json};

    use super::super::seen_tests::{kept_at, made, started};
    use super::*;

    fn id(text: &str) -> AgentId {
        AgentId::parse(text).unwrap()
    }

    fn created<'a>(agent: &'a str, parent: Option<&str>) -> (u64, &'a str, &'a str, What) {
        (0, agent, "", What::AgentCreated { parent_agent_id: parent.map(id) })
    }

    fn destroyed(agent: &str) -> (u64, &str, &str, What) {
        (0, agent, "", What::AgentDestroyed { parent_agent_id: None })
    }

    #[test]
    fn nobody_stays_where_a_parent_went_with_all_below_it() {
        let family = || vec![created("boss", None), created("child", Some("boss"))];
        let left = |events: Vec<_>, params: Value| {
            let answer = Ok(json!({"destroyed": ["boss"]}));
            let calls = [made("destroy_agent", None, &params, 1, Some(answer))];
            let told = Told { calls: &calls, raw: &[], server_start: 1 };
            Families::of(&kept_at(events)).left_behind(&told)
        };
        let alone = [family(), vec![destroyed("boss")]].concat();
        let found = ["child is there, and boss went with all below it"];
        assert_eq!(left(alone.clone(), json!({"agent_id": "boss"})), found);
        assert_eq!(left(alone, json!({"agent_id": "boss", "cascade": false})), [""; 0]);
        let both = [family(), vec![destroyed("boss"), destroyed("child")]].concat();
        assert_eq!(left(both.clone(), json!({"agent_id": "boss"})), [""; 0]);
        let again = [both, vec![created("child", None)]].concat();
        assert_eq!(left(again, json!({"agent_id": "boss"})), [""; 0], "it is another child");
    }

    #[test]
    fn an_agent_is_the_same_by_another_name() {
        let (parent_agent_id, previous_agent_id) = (None, Some(id(".1")));
        let renamed =
            What::AgentUpdated { parent_agent_id, changed: Map::new(), previous_agent_id };
        let kept = kept_at(vec![
            created(".1", None),
            (0, "scout", "", renamed),
            created("child", Some("scout")),
            created(".1", None),
            (0, "child", "r1", started()),
        ]);
        let families = Families::of(&kept);
        assert_eq!(families.members[0].id, "scout");
        assert_eq!(families.members[1].turns, 1);
        assert!(families.is_within(1, 0) && !families.is_within(2, 0));
    }
}
