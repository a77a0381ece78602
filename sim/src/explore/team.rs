//! A workload that is made up from a seed: a tree of agents that create, ask, cancel and destroy each
//! other and use files, and clients that do the same, confirm, change permissions, save and leave.
//! Pure: it makes a scenario file like any other, which expects nothing of its steps.

use std::time::Duration;

use nexus3::provider::script::Time;
use serde_json::{Value, json};
use toml::Table;

use super::draw::Draw;
use crate::scenario::Document;

/// What the generated scenario is called.
pub const NAME: &str = "team";

const CLIENTS: [&str; 3] = ["alice", "bob", "carol"];
const PRESETS: [&str; 3] = ["worker", "sandboxed", "trusted"];
const BOSSES: [u64; 2] = [1, 3];
const HANDS_PER_BOSS: [u64; 2] = [0, 3];
/// How many answers of models are made up; what comes after them is always the same.
const ANSWERS: [u64; 2] = [5, 25];
const ACTIONS: [u64; 2] = [8, 40];
/// What models take before they answer.
const DELAYS: [&str; 5] = ["0ms", "20ms", "100ms", "400ms", "2s"];
/// What clients let pass between two actions.
const GAPS: [&str; 6] = ["0ms", "0ms", "10ms", "50ms", "300ms", "1500ms"];
/// By then the team is there.
const BEGIN: Duration = Duration::from_secs(3);

/// The whole scenario of a seed.
pub fn team(seed: u64) -> Document {
    let mut draw = Draw::new(seed, NAME);
    let family = Family::drawn(&mut draw);
    let document = json!({
        "schema": 1,
        "about": "A team that was made up does what nobody planned.",
        "seed": seed,
        "limit": "30m",
        "judge": "invariants",
        "serve": ["--allow-yolo"],
        "config": {
            "default_model": "hand",
            "turn_timeout": 60,
            "confirmation_timeout": 20,
            "providers": { "sim": { "type": "vllm", "models": {
                "boss": { "id": "boss" }, "hand": { "id": "hand" },
            } } },
        },
        "files": { "/srv/here": "a file", "/project/notes.txt": "three apples" },
        "model": models(&family, &mut draw),
        "step": steps(&family, &mut draw),
    });
    let table = Table::try_from(document).expect("what is made up has no null and no large number");
    Document::from(table)
}

/// Who is there at the beginning.
struct Family {
    bosses: Vec<String>,
    /// With the boss each belongs to.
    hands: Vec<(String, String)>,
}

impl Family {
    fn drawn(draw: &mut Draw) -> Self {
        let bosses: Vec<String> = (1..=draw.within(BOSSES)).map(|n| format!("b{n}")).collect();
        let mut hands = Vec::new();
        for (boss, n) in bosses.iter().zip(1..) {
            let of_boss = (1..=draw.within(HANDS_PER_BOSS)).map(|m| format!("w{n}{m}"));
            hands.extend(of_boss.map(|hand| (hand, boss.clone())));
        }
        Self { bosses, hands }
    }

    fn anybody(&self, draw: &mut Draw) -> String {
        let hands = self.hands.iter().map(|(hand, _)| hand);
        let all: Vec<&String> = self.bosses.iter().chain(hands).collect();
        match draw.below(10) {
            0 => "top".to_owned(),
            // One that may have been created meanwhile.
            1 => format!("n{}", draw.within([1, 3])),
            _ => draw.pick(&all).map_or_else(|| "top".to_owned(), ToString::to_string),
        }
    }
}

fn models(family: &Family, draw: &mut Draw) -> Vec<Value> {
    let mut entries = Vec::new();
    for number in 0..draw.within(ANSWERS) {
        let (model, when) = if draw.happens(0.6) { ("boss", "Go") } else { ("hand", "Work") };
        let delay = draw.pick(&DELAYS).copied().unwrap_or_default();
        let mut entry = json!({ "model": model, "when": when, "delay": delay });
        match draw.below(8) {
            0 => entry["says"] = format!("Worked {number}.").into(),
            1 => {
                entry["says"] = json!(["Half ", "an ", "answer"]);
                entry["fault"] = json!({ "reset_after": 1 });
            }
            2 => {
                entry["says"] = json!(["One, ", "two, ", "three."]);
                entry["pause"] = "700ms".into();
            }
            _ => entry["asks"] = asks(family, number, draw).into(),
        }
        entries.push(entry);
    }
    for model in ["boss", "hand"] {
        entries
            .push(json!({ "model": model, "times": "always", "delay": "30ms", "says": "Done." }));
    }
    entries
}

/// Tool calls of one answer, together or one after another.
fn asks(family: &Family, number: u64, draw: &mut Draw) -> Vec<Value> {
    let (together, count) = (draw.happens(0.5), draw.within([1, 3]));
    let ask = |index| {
        let (tool, mut args) = ask(family, number * 10 + index, draw);
        if together {
            args["_parallel"] = true.into();
        }
        json!({ "tool": tool, "args": args })
    };
    (0..count).map(ask).collect()
}

fn ask(family: &Family, number: u64, draw: &mut Draw) -> (&'static str, Value) {
    let agent = family.anybody(draw);
    let new = format!("n{}", draw.within([1, 3]));
    match draw.below(14) {
        0..=3 => ("nexus_send", json!({ "agent_id": agent, "content": format!("Go on {number}") })),
        4 => ("nexus_send", json!({ "agent_id": agent, "content": format!("Work {number}") })),
        5 => ("nexus_cancel", json!({ "agent_id": agent })),
        6 => ("nexus_status", json!({ "agent_id": agent })),
        7 => (
            "nexus_create",
            json!({ "agent_id": new, "initial_message": format!("Work {number}") }),
        ),
        8 => (
            "nexus_create",
            json!({ "agent_id": ".", "initial_message": format!("Work {number}"),
                                      "wait_for_initial_response": true }),
        ),
        9 => ("nexus_destroy", json!({ "agent_id": new })),
        10 => ("sleep", json!({ "seconds": draw.within([1, 4]) })),
        11 => ("read_file", json!({ "path": "notes.txt" })),
        12 => {
            ("write_file", json!({ "path": format!("{agent}.txt"), "content": number.to_string() }))
        }
        _ => ("append_file", json!({ "path": "/srv/shared.txt", "content": number.to_string() })),
    }
}

fn steps(family: &Family, draw: &mut Draw) -> Vec<Value> {
    let carol =
        |params: Value| json!({ "client": "carol", "call": "create_agent", "params": params });
    let mut steps = vec![
        carol(json!({ "agent_id": "top", "preset": "yolo", "model": "boss" })),
        json!({ "client": "carol", "watch": {} }),
    ];
    for boss in &family.bosses {
        let boss = json!({ "agent_id": boss, "preset": "trusted", "model": "boss",
                           "parent_agent_id": "top" });
        steps.push(carol(boss));
    }
    for (hand, boss) in &family.hands {
        let preset = draw.pick(&PRESETS).copied().unwrap_or_default();
        let hand = json!({ "agent_id": hand, "preset": preset, "parent_agent_id": boss });
        steps.push(carol(hand));
    }
    let mut at = BEGIN;
    for number in 0..draw.within(ACTIONS) {
        let gap = draw.pick(&GAPS).and_then(|gap| gap.parse::<Time>().ok());
        at += gap.map_or(Duration::ZERO, |gap| gap.0);
        let mut step = action(family, number, draw);
        step["at"] = Time(at).to_string().into();
        step["client"] = draw.pick(&CLIENTS).copied().unwrap_or_default().into();
        if step.get("call").is_some() || step.get("confirm").is_some() {
            step["background"] = true.into();
        }
        steps.push(step);
    }
    steps
}

/// What a client does, without saying which and when.
fn action(family: &Family, number: u64, draw: &mut Draw) -> Value {
    let agent = family.anybody(draw);
    let session = format!("s{}", draw.within([1, 2]));
    let of = |call: &str, params: Value| json!({ "call": call, "agent": agent, "params": params });
    match draw.below(30) {
        0..=9 => {
            let what = if draw.happens(0.7) { "Go" } else { "Work" };
            // Some ids come twice, for the same content or for another.
            let id = number - number.min(draw.below(3) / 2);
            let params = json!({ "content": format!("{what} {id}"), "request_id": format!("r{id}"),
                                 "wait": draw.happens(0.8) });
            of("send", params)
        }
        10..=12 => of("cancel", json!({})),
        13 => json!({ "call": "destroy_agent",
                      "params": { "agent_id": agent, "cascade": draw.happens(0.7) } }),
        14 => json!({ "call": "list_agents" }),
        15 => of("get_messages", json!({})),
        16 => of("get_request", json!({ "request_id": format!("r{}", draw.below(number + 1)) })),
        17 | 18 => of(
            "set_permissions",
            json!({ "preset": draw.pick(&PRESETS).copied().unwrap_or_default() }),
        ),
        19 => of("set_model", json!({ "model": if draw.happens(0.5) { "boss" } else { "hand" } })),
        20 => {
            json!({ "call": "save_session", "params": { "agent_id": agent, "session_name": session } })
        }
        21 => json!({ "call": "load_session", "params": { "session_name": session } }),
        22 => json!({ "call": "list_sessions" }),
        23 => of("compact", json!({ "force": true })),
        24 | 25 => {
            let decision = if draw.happens(0.7) { "allow_once" } else { "deny" };
            json!({ "confirm": { "tool": "append_file", "decision": decision, "delay": "500ms" } })
        }
        26 => json!({ "disconnect": true }),
        27 => json!({ "watch": { "agent": agent } }),
        28 => json!({ "watch": { "after": "${seq}" } }),
        _ => json!({ "call": "create_agent", "params": {
            "agent_id": format!("n{}", draw.within([1, 3])), "parent_agent_id": agent } }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    #[test]
    fn every_seed_makes_a_team_of_its_own() {
        let mut texts = std::collections::BTreeSet::new();
        for seed in 0..300 {
            let text = team(seed).text();
            let scenario = Scenario::parse("team.toml", &text);
            let scenario = scenario.unwrap_or_else(|problems| panic!("{problems:?}\n{text}"));
            assert_eq!(scenario.seed, seed);
            assert_eq!(text, team(seed).text());
            texts.insert(text);
        }
        assert_eq!(texts.len(), 300);
    }
}
