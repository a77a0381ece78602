//! A recording in the simulation, and both sides in words that can be compared.

use std::path::Path;
use std::sync::Mutex;

use nexus3::message::Message;
use nexus3::provider::script::View;
use nexus3_sim::play::{self, Played};
use nexus3_sim::scenario::{Scenario, ServeFlag};
use serde_json::{Value, json};

/// Held while a simulation runs: there is one at a time in a process.
static ALONE: Mutex<()> = Mutex::new(());

/// Plays a recording, which must be a scenario.
pub fn replay(text: &str) -> Played {
    let scenario = Scenario::parse("recording.toml", text);
    let scenario = scenario.unwrap_or_else(|problems| panic!("{problems:#?}\n{text}"));
    played(&scenario)
}

/// Plays a scenario.
pub fn played(scenario: &Scenario) -> Played {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    // It makes a runtime of its own.
    std::thread::scope(|scope| scope.spawn(|| play::play(scenario, scenario.seed)).join().unwrap())
}

/// What is another in every run: times and ids.
const DIFFERS: [&str; 8] =
    ["at", "request_id", "confirm_id", "tool_id", "tool_call_id", "id", "resolved_at", "after_ms"];

/// A message or an event as it is in every run; the project of the live server is that of the scenario.
pub fn steady(value: &Value, place: &Path) -> Value {
    match value {
        Value::String(text) => {
            let text = text.replace(place.to_str().unwrap(), "/project");
            View::masked(&text.replace(super::live::KEY, "[redacted]")).into()
        }
        Value::Array(items) => items.iter().map(|item| steady(item, place)).collect(),
        Value::Object(members) => {
            let kept = members.iter().filter(|(key, _)| !DIFFERS.contains(&key.as_str()));
            Value::Object(kept.map(|(key, item)| (key.clone(), steady(item, place))).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// Plays a scenario whose starts record, and replays the last recording, which must be the same.
pub fn same_again(name: &str, text: &str) -> String {
    parting(name, text, Events::InOrder).unwrap_or_else(|told| panic!("{told}"))
}

/// How the events of two runs are compared.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Events {
    InOrder,
    /// And without how many others waited before a request.
    InAnyOrder,
}

impl Events {
    fn told(self, events: &[Value]) -> Vec<Value> {
        let mut events = steady_all(events);
        if self == Self::InAnyOrder {
            for event in &mut events {
                event.as_object_mut().map(|members| members.remove("position"));
            }
            events.sort_by_cached_key(ToString::to_string);
        }
        events
    }
}

/// Plays a scenario whose starts record, and replays every recording: the last one, or where the two
/// part. What the servers told lies end to end in what the replays do, but for what a start tells of
/// turns that the server before it left open.
pub fn parting(name: &str, text: &str, events: Events) -> Result<String, String> {
    let (live, recordings) = recorded(name, text);
    let mut told = events.told(&live.told).into_iter().peekable();
    let mut last = None;
    for recording in recordings {
        let again = replay(&recording);
        if !again.failures.is_empty() {
            let Played { failures, transcript, .. } = again;
            return Err(format!("{name}: {failures:#?}\n{recording}\n{transcript}"));
        }
        while told.next_if(is_left_open).is_some() {}
        for after in events.told(&again.told) {
            let before = told.next().unwrap_or_default();
            if before != after {
                return Err(format!("{name}: it told\n{after}\nafter\n{before}\n{recording}"));
            }
        }
        last = Some((again, recording));
    }
    let (again, recording) = last.ok_or_else(|| format!("{name} has no recording"))?;
    if let Some(event) = told.next() {
        return Err(format!("{name}: it did not tell {event}\n{recording}"));
    }
    for (agent, said) in &again.conversations {
        let before = live.conversations.get(agent).map(|said| conversation(said));
        let after = conversation(said);
        if before.as_ref() != Some(&after) {
            return Err(format!("{name}: {agent} said {after:#?}\nafter {before:#?}\n{recording}"));
        }
    }
    Ok(recording)
}

/// What a start tells of what the server before it left open.
fn is_left_open(event: &Value) -> bool {
    event["type"] == "turn_interrupted"
}

/// Events without what is another in every run; their numbers count those of earlier servers, too.
fn steady_all(events: &[Value]) -> Vec<Value> {
    let unnumbered = events.iter().map(|event| {
        let mut event = steady(event, Path::new("/project"));
        event.as_object_mut().map(|members| members.remove("seq"));
        event
    });
    unnumbered.collect()
}

fn conversation(said: &[Message]) -> Vec<Value> {
    said.iter().map(|message| steady(&json!(message), Path::new("/project"))).collect()
}

/// A scenario that is played with a recorder, and what its servers recorded.
pub fn recorded(name: &str, text: &str) -> (Played, Vec<String>) {
    let mut scenario =
        Scenario::parse(name, text).unwrap_or_else(|problems| panic!("{name}: {problems:#?}"));
    scenario.serve.push(ServeFlag::Record);
    let live = played(&scenario);
    assert_eq!(live.failures, [""; 0], "{name}\n{}", live.transcript);
    let recordings = live.recordings.clone();
    (live, recordings)
}
