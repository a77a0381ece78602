//! What is drawn for clients: when they do what the file says, what they do twice, when they leave,
//! and when the server is stopped under them. Pure.

use nexus3::provider::script::Time;
use toml::Table;

use super::draw::Draw;
use super::ground::Ground;
use super::profile::ClientDraw;
use crate::scenario::Document;

/// Steps have clients of this name unless they say otherwise.
const CLIENT: &str = "client";
/// What a step that waits for more than the one before it has.
const OCCASIONS: [&str; 3] = ["at", "after", "on"];

pub fn disturb(document: &mut Document, wanted: &ClientDraw, ground: &Ground, draw: &mut Draw) {
    let mut steps = Vec::new();
    for step in document.list("step") {
        let client = step.get("client").and_then(toml::Value::as_str).unwrap_or(CLIENT).to_owned();
        if let Some(pause) = wanted.pause_for
            && draw.happens(wanted.pause)
            && OCCASIONS.iter().all(|key| !step.contains_key(*key))
        {
            let pause = draw.time(pause).to_string();
            steps.push(table(&[("client", &client), ("sleep", &pause)]));
        }
        let again = draw.happens(wanted.again).then(|| again(&step)).flatten();
        steps.push(shifted(step, wanted, draw));
        steps.extend(again);
    }
    // What has a time of its own waits for nothing; behind the others it keeps none of them waiting.
    if let Some(client) = draw.pick(&ground.clients)
        && draw.happens(wanted.disconnect)
    {
        let at = draw.moment(ground.steps_time).to_string();
        let mut leaves = table(&[("at", &at), ("client", client)]);
        leaves.insert("disconnect".to_owned(), true.into());
        steps.push(leaves);
    }
    if draw.happens(wanted.restart) {
        let at = draw.moment(ground.steps_time).to_string();
        let client = ground.clients.first().map_or(CLIENT, String::as_str);
        steps.push(table(&[("at", &at), ("client", client), ("stop", "SIGTERM")]));
        let mut start = table(&[("client", client)]);
        start.insert("start".to_owned(), true.into());
        steps.push(start);
    }
    document.set_list("step", steps);
}

/// The same call once more, beside what follows.
fn again(step: &Table) -> Option<Table> {
    step.get("call")?;
    let mut again = step.clone();
    for key in ["name", "save", "expect", "expect_http"] {
        again.remove(key);
    }
    again.insert("background".to_owned(), true.into());
    Some(again)
}

/// A step with a time of its own comes earlier or later.
fn shifted(mut step: Table, wanted: &ClientDraw, draw: &mut Draw) -> Table {
    let at = step.get("at").and_then(toml::Value::as_str);
    let at = at.and_then(|at| at.parse::<Time>().ok());
    if let (Some(at), Some(by)) = (at, wanted.shift_by)
        && draw.happens(wanted.shift)
    {
        let by = draw.time(by).0;
        let earlier = draw.happens(0.5);
        let at = if earlier { at.0.saturating_sub(by) } else { at.0 + by };
        step.insert("at".to_owned(), Time(at).to_string().into());
    }
    step
}

fn table(entries: &[(&str, &str)]) -> Table {
    entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).into())).collect()
}
