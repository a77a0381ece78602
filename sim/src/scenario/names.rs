//! How the parts of a scenario refer to each other: steps to steps, faults to hosts, strings to
//! what earlier steps saved. And the little languages inside strings: patterns and pointers.

use std::collections::BTreeSet;

use nexus3::config::words::{nearest, quoted};
use nexus3::event::What;
use nexus3::provider::script::After;
use regex::Regex;

use super::place::Place;
use super::substitution::{BUILT_IN, Piece, pieces};
use super::{MCP, MODEL, REGEX_PREFIX, SERVER, Step, When};

/// Checks the names of steps that were read, each with its place.
pub(super) fn check_steps(steps: &[(Place<'_>, Step)]) {
    let all: BTreeSet<_> = steps.iter().filter_map(|(_, step)| step.name.as_deref()).collect();
    let mut earlier = BTreeSet::new();
    let mut saved = BTreeSet::from(BUILT_IN.map(str::to_owned));
    for (place, step) in steps {
        if [SERVER, MODEL, MCP].contains(&step.client.as_str()) {
            let message = format!("{} is a host of its own", quoted(&step.client));
            place.refuse_at("client", &message, "choose another name");
        }
        if let When::After(name) = &step.when {
            check_after(place, name, &all, &earlier);
        }
        if let Some(name) = step.name.as_deref()
            && !earlier.insert(name)
        {
            let message = format!("another step is called {}", quoted(name));
            place.refuse_at("name", &message, "choose another name");
        }
        for (key, member) in place.members() {
            if !["name", "client", "after", "on", "save"].contains(&key) {
                check_uses(&member, &saved);
            }
            if ["expect", "expect_error", "expect_body"].contains(&key) {
                check_patterns(&member);
            }
        }
        saved.extend(saves(place));
    }
}

fn check_after(place: &Place<'_>, name: &str, all: &BTreeSet<&str>, earlier: &BTreeSet<&str>) {
    if earlier.contains(name) {
        return;
    }
    if all.contains(name) {
        let message = format!("the step {} does not come before this one", quoted(name));
        place.refuse_at("after", &message, "move one of the two");
        return;
    }
    let known: Vec<_> = earlier.iter().copied().collect();
    let hint = if known.is_empty() {
        "give an earlier step this `name`".to_owned()
    } else {
        nearest(name, &known, "earlier steps are")
    };
    place.refuse_at("after", &format!("there is no step {}", quoted(name)), &hint);
}

/// Checks what an answer of a model waits for.
pub(super) fn check_answer(place: &Place<'_>, after: &After, steps: &[(Place<'_>, Step)]) {
    let After { step, event, agent, nth } = after;
    let names: Vec<_> = steps.iter().filter_map(|(_, step)| step.name.as_deref()).collect();
    match step.as_deref() {
        Some(name) if !names.contains(&name) => {
            let message = format!("there is no step {}", quoted(name));
            let hint = if names.is_empty() {
                "give a step this `name`".to_owned()
            } else {
                nearest(name, &names, "there are")
            };
            place.refuse_at("step", &message, &hint);
        }
        None if event.is_none() => place.refuse("it names nothing", "name a `step` or an `event`"),
        Some(_) | None => {}
    }
    if let Some(event) = event {
        check_event(place, "event", event);
        return;
    }
    for (key, is_given) in [("agent", agent.is_some()), ("nth", nth.is_some())] {
        if is_given {
            place.refuse_at(key, "belongs to `event`", "add `event`, or remove it");
        }
    }
}

/// Checks `save` and returns the names it defines.
fn saves(place: &Place<'_>) -> Vec<String> {
    let mut names = Vec::new();
    for (name, pointer) in place.get("save").map(|save| save.members()).unwrap_or_default() {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(plain) {
            pointer.refuse_key("this is no name", "use letters, digits and `_`");
        } else if BUILT_IN.contains(&name) {
            pointer.refuse_key("this name has a meaning of its own", "choose another name");
        }
        if !is_pointer(pointer.text().unwrap_or_default()) {
            let message = format!("expected a JSON pointer, found {}", pointer.shown());
            pointer.refuse(&message, "write it like \"/agents/0/agent_id\"");
        }
        names.push(name.to_owned());
    }
    names
}

/// Empty, or segments that each start with `/`, where `~` stands before 0 or 1 only.
fn is_pointer(text: &str) -> bool {
    let mut after_tilde = text.split('~').skip(1);
    (text.is_empty() || text.starts_with('/'))
        && after_tilde.all(|rest| rest.starts_with(['0', '1']))
}

fn check_uses(place: &Place<'_>, saved: &BTreeSet<String>) {
    for piece in place.text().map(pieces).unwrap_or_default() {
        match piece {
            Piece::Plain(_) => (),
            Piece::Name(name) if saved.contains(name) => (),
            Piece::Name(name) => {
                let known: Vec<_> = saved.iter().map(String::as_str).collect();
                let hint = nearest(name, &known, "write $${ for a plain ${; names are");
                let message = format!("no earlier step saves {}", quoted(name));
                place.refuse(&message, &hint);
            }
            Piece::Open(_) => place.refuse("this `${` is not closed", "write $${ for a plain ${"),
        }
    }
    place.items().iter().for_each(|item| check_uses(item, saved));
    place.members().iter().for_each(|(_, member)| check_uses(member, saved));
}

/// Checks the hosts of one fault against those of the steps.
pub(super) fn check_hosts(place: &Place<'_>, others: &BTreeSet<&str>) {
    let mut hosts = vec![SERVER, MODEL];
    hosts.extend(others);
    for host in place.get("host").into_iter().chain(place.items_of("between")) {
        let name = host.text().unwrap_or_default();
        if !hosts.contains(&name) {
            let message = format!("there is no host {}", quoted(name));
            host.refuse(&message, &nearest(name, &hosts, "there are"));
        }
    }
}

/// Checks that the server tells events of this type, which stands under this key.
pub(super) fn check_event(place: &Place<'_>, key: &str, event: &str) {
    let schema = schemars::schema_for!(What);
    let types = schema.as_value()["oneOf"].as_array().into_iter().flatten();
    let types = types.filter_map(|variant| variant["properties"]["type"]["const"].as_str());
    let types: Vec<&str> = types.collect();
    if !types.contains(&event) {
        let message = format!("there is no event {}", quoted(event));
        place.refuse_at(key, &message, &nearest(event, &types, "there are"));
    }
}

/// Checks every string below that is marked as a regular expression.
pub(super) fn check_patterns(place: &Place<'_>) {
    if let Some(pattern) = place.text().and_then(|text| text.strip_prefix(REGEX_PREFIX)) {
        // What a name will stand for is not known yet, but always a plain text.
        let filled = pieces(pattern).into_iter().map(|piece| match piece {
            Piece::Plain(text) | Piece::Open(text) => text,
            Piece::Name(_) => "0",
        });
        check_pattern(place, &filled.collect::<String>());
    }
    place.items().iter().for_each(check_patterns);
    place.members().iter().for_each(|(_, member)| check_patterns(member));
}

pub(super) fn check_pattern(place: &Place<'_>, pattern: &str) {
    if let Err(error) = Regex::new(pattern) {
        let message = format!("{} is no regular expression", quoted(pattern));
        place.refuse(&message, &reason(&error));
    }
}

/// The one line that says what is wrong; the others draw the pattern again.
fn reason(error: &regex::Error) -> String {
    let text = error.to_string();
    let line = text.lines().last().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}
