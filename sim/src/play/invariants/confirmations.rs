//! The invariants where somebody is asked: each question has one decision (`once`), one winner
//! (`answers`), is not left open (`bounds`), stays decided (`durable`), and no call that needs one starts
//! before it is allowed (`once`).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::sound::events_of;
use super::{Check, End, Invariant, Seen};
use crate::play::director::Made;
use crate::play::kept::{Kept, KeptAgent, KeptEvent};

/// Each question has one decision, and calls wait for it.
#[derive(Debug)]
pub struct DecidedOnce;

impl Check for DecidedOnce {
    fn invariant(&self) -> Invariant {
        Invariant::Once
    }

    fn at_rest(&mut self, kept: &Kept, _: &Seen<'_>, _: &End<'_>) -> Vec<String> {
        let whole = |agent: &&KeptAgent| agent.exists() && !kept.forgotten.contains_key(&agent.id);
        let agents = kept.agents.iter().filter(whole);
        agents.flat_map(|agent| misdecided(events_of(kept, agent))).collect()
    }
}

/// Nothing waits for a decision after its turn.
#[derive(Debug)]
pub struct NothingPending;

impl Check for NothingPending {
    fn invariant(&self) -> Invariant {
        Invariant::Bounds
    }

    fn at_rest(&mut self, kept: &Kept, _: &Seen<'_>, _: &End<'_>) -> Vec<String> {
        let pending = kept.confirmations.iter().filter(|asked| asked.status == "pending");
        let left = pending.filter(|asked| {
            let mut requests = kept.requests.iter();
            let request = requests.find(|it| it.agent == asked.agent && it.id == asked.request);
            request.is_none_or(crate::play::kept::KeptRequest::has_ended)
        });
        left.map(|asked| format!("confirmation {} is pending for ever", asked.id)).collect()
    }
}

/// Of all who answer one, one wins.
#[derive(Debug)]
pub struct OneWinner;

impl Check for OneWinner {
    fn invariant(&self) -> Invariant {
        Invariant::Answers
    }

    fn after_step(&mut self, seen: &Seen<'_>) -> Vec<String> {
        let mut winners: BTreeMap<&str, u64> = BTreeMap::new();
        for (id, result) in answers(seen) {
            if result["accepted"] == true {
                *winners.entry(id).or_default() += 1;
            }
        }
        let several = winners.into_iter().filter(|(_, count)| *count > 1);
        several.map(|(id, count)| format!("confirmation {id}: {count} answers won")).collect()
    }
}

/// What clients were told is what is kept.
#[derive(Debug)]
pub struct StaysDecided;

impl Check for StaysDecided {
    fn invariant(&self) -> Invariant {
        Invariant::Durable
    }

    fn at_rest(&mut self, kept: &Kept, seen: &Seen<'_>, _: &End<'_>) -> Vec<String> {
        let decided: BTreeMap<&str, &KeptEvent> = kept
            .events
            .iter()
            .filter(|event| event.name == "confirmation_resolved")
            .map(|event| (event.text("confirm_id"), event))
            .collect();
        let told = answers(seen).filter_map(|(id, result)| {
            let kept = decided.get(id)?;
            let same = ["decision", "resolved_by"]
                .iter()
                .all(|member| result[*member] == kept.json[*member]);
            (!same).then(|| format!("confirmation {id}: a client was told {result}, and it is not"))
        });
        let lost = answers(seen).filter(|(id, result)| {
            result["accepted"] == true && !decided.contains_key(id) && kept.forgotten.is_empty()
        });
        let lost = lost.map(|(id, _)| format!("confirmation {id}: its decision is lost"));
        told.chain(lost).collect()
    }
}

/// The answers that were answered, by the confirmation they are about.
fn answers<'a>(seen: &'a Seen<'_>) -> impl Iterator<Item = (&'a str, &'a Value)> {
    let of_confirm = seen.calls.iter().filter(|made| made.call.method == "confirm");
    of_confirm.filter_map(|Made { call, answer, .. }| {
        let id = call.params.as_ref()?.get("confirm_id")?.as_str()?;
        Some((id, answer.as_ref()?.as_ref().ok()?))
    })
}

/// A call, by its turn, its tool and its arguments.
type CallKey = (String, String, String);

/// Goes through an agent's events, in order.
fn misdecided<'a>(events: impl Iterator<Item = &'a KeptEvent>) -> Vec<String> {
    let mut found = Vec::new();
    // What was asked, with whether it is decided.
    let mut asked: BTreeMap<String, (CallKey, bool)> = BTreeMap::new();
    // How often each call that somebody was asked about may start.
    let mut may_start: BTreeMap<CallKey, u64> = BTreeMap::new();
    // Asked for with other permissions, and not decided then.
    let mut outdated: BTreeSet<String> = BTreeSet::new();
    let mut allowed_for_good = false;
    for event in events {
        let id = event.text("confirm_id").to_owned();
        match event.name.as_str() {
            "confirmation_requested" => {
                let tool = &event.json["tool"];
                let key = key(event, &tool["name"], &tool["params"].to_string());
                may_start.entry(key.clone()).or_default();
                if asked.insert(id.clone(), (key, false)).is_some() {
                    found.push(format!("confirmation {id} was asked for twice"));
                }
            }
            "confirmation_resolved" => match asked.get_mut(&id) {
                None => found.push(format!("confirmation {id} was decided and never asked for")),
                Some((_, true)) => found.push(format!("confirmation {id} was decided twice")),
                Some((key, decided)) => {
                    *decided = true;
                    let decision = event.text("decision");
                    allowed_for_good |= decision.starts_with("allow") && decision != "allow_once";
                    if decision.starts_with("allow") {
                        *may_start.entry(key.clone()).or_default() += 1;
                    } else if outdated.contains(&id) {
                        may_start.remove(key);
                    }
                }
            },
            "agent_updated" if changes_permissions(event) => {
                // Who need not be asked any more, or may not have the tool at all, starts without an
                // answer: a call that is not there says so as one that was started.
                let waiting = || asked.iter().filter(|(_, (_, decided))| !decided);
                outdated.extend(waiting().map(|(id, _)| id.clone()));
                let waits = |key: &CallKey| waiting().any(|(_, (of, _))| of == key);
                may_start.retain(|key, left| *left > 0 || waits(key));
            }
            "tool_started" if !allowed_for_good => {
                let key = key(event, &event.json["name"], event.text("params"));
                match may_start.get_mut(&key) {
                    None => {}
                    Some(0) => found.push(format!("{} started before it was allowed", key.1)),
                    Some(left) => *left -= 1,
                }
            }
            _ => {}
        }
    }
    let open = asked.into_iter().filter(|(_, (_, decided))| !decided);
    found.extend(open.map(|(id, _)| format!("confirmation {id} was never decided")));
    found
}

fn changes_permissions(event: &KeptEvent) -> bool {
    let changed = &event.json["changed"];
    ["permission_level", "preset", "disabled_tools"].iter().any(|name| !changed[*name].is_null())
}

/// Arguments are compared as far as the events of tools show them.
fn key(event: &KeptEvent, name: &Value, params: &str) -> CallKey {
    const SHOWN: usize = 190;
    let params = params.chars().take(SHOWN).collect();
    (event.text("request_id").to_owned(), name.as_str().unwrap_or_default().to_owned(), params)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(events: &[Value]) -> Vec<String> {
        let kept: Vec<KeptEvent> = events
            .iter()
            .map(|json| {
                let name = json["type"].as_str().unwrap().to_owned();
                KeptEvent { name, json: json.clone(), ..KeptEvent::default() }
            })
            .collect();
        misdecided(kept.iter())
    }

    fn asked(id: &str) -> Value {
        let tool = json!({"name": "exec", "params": {"program": "make"}});
        json!({"type": "confirmation_requested", "confirm_id": id, "request_id": "r1", "tool": tool})
    }

    fn decided(id: &str, decision: &str) -> Value {
        json!({"type": "confirmation_resolved", "confirm_id": id, "decision": decision})
    }

    fn started() -> Value {
        let params = r#"{"program":"make"}"#;
        json!({"type": "tool_started", "request_id": "r1", "name": "exec", "params": params})
    }

    #[test]
    fn a_question_is_decided_once() {
        let nothing: [&str; 0] = [];
        assert_eq!(told(&[asked("a"), decided("a", "deny")]), nothing);
        assert_eq!(told(&[asked("a")]), ["confirmation a was never decided"]);
        let twice = [asked("a"), decided("a", "deny"), decided("a", "allow_once")];
        assert_eq!(told(&twice), ["confirmation a was decided twice"]);
        assert_eq!(
            told(&[decided("a", "deny")]),
            ["confirmation a was decided and never asked for"]
        );
        let again = [asked("a"), asked("a"), decided("a", "deny")];
        assert_eq!(told(&again), ["confirmation a was asked for twice"]);
    }

    #[test]
    fn a_call_starts_only_once_it_was_allowed() {
        let nothing: [&str; 0] = [];
        let early = ["exec started before it was allowed"];
        assert_eq!(told(&[asked("a"), decided("a", "allow_once"), started()]), nothing);
        assert_eq!(told(&[asked("a"), started(), decided("a", "allow_once")]), early);
        assert_eq!(told(&[asked("a"), decided("a", "deny"), started()]), early);
        let twice = [asked("a"), decided("a", "allow_once"), started(), started()];
        assert_eq!(told(&twice), early, "once is once");
        let for_good = [asked("a"), decided("a", "allow_exec_cwd"), started(), started()];
        assert_eq!(told(&for_good), nothing);
        assert_eq!(told(&[started()]), nothing, "nobody had to be asked");
    }

    #[test]
    fn what_was_denied_says_nothing_of_other_permissions() {
        let changed = |changed: Value| json!({"type": "agent_updated", "changed": changed});
        let less = changed(json!({"disabled_tools": ["exec"]}));
        let nothing: [&str; 0] = [];
        let denied = [asked("a"), decided("a", "deny")];
        assert_eq!(told(&[&denied[..], &[less.clone(), started()]].concat()), nothing);
        let early = ["exec started before it was allowed"];
        let moved = changed(json!({"cwd": "/project/in"}));
        assert_eq!(told(&[&denied[..], &[moved, started()]].concat()), early);
        let pending = [asked("a"), less.clone(), started(), decided("a", "deny")];
        assert_eq!(told(&pending), early);
        let afterwards = [asked("a"), less, decided("a", "deny"), started()];
        assert_eq!(told(&afterwards), nothing);
    }
}
