//! What is drawn for hosts, links and the disk: `[[fault]]` tables. Pure.

use toml::{Table, Value};

use super::draw::Draw;
use super::ground::Ground;
use super::profile::{Begin, FaultDraw, Place};
use crate::scenario::{Document, MODEL, SERVER};

/// Adds the faults of a profile to those the file has.
pub fn add(document: &mut Document, wanted: &[FaultDraw], ground: &Ground, draw: &mut Draw) {
    let mut faults = document.list("fault");
    // What cannot be here is not drawn for, so that nothing else is drawn otherwise for it.
    let is_here = |wanted: &&FaultDraw| {
        ground.mcp.is_some() || wanted.place.iter().any(|place| place.is_everywhere())
    };
    for wanted in wanted.iter().filter(is_here) {
        if draw.happens(wanted.chance) {
            for _ in 0..draw.within(wanted.times) {
                faults.extend(fault(wanted, ground, draw));
            }
        }
    }
    document.set_list("fault", faults);
}

/// None where there is nothing it could happen to.
fn fault(wanted: &FaultDraw, ground: &Ground, draw: &mut Draw) -> Option<Table> {
    let mut fault = Table::new();
    begin(&mut fault, wanted, ground, draw)?;
    fault.insert("kind".to_owned(), wanted.kind.clone().into());
    place(&mut fault, *draw.pick(&wanted.place)?, ground, draw)?;
    if let Some(by) = wanted.by {
        let by = draw.time(by).to_string();
        // A clock may as well jump back.
        let back = wanted.kind == "clock_jump" && draw.happens(0.5);
        fault.insert("by".to_owned(), if back { format!("-{by}") } else { by }.into());
    }
    if let Some(lasts) = wanted.lasts {
        fault.insert("for".to_owned(), draw.time(lasts).to_string().into());
    }
    Some(fault)
}

fn begin(fault: &mut Table, wanted: &FaultDraw, ground: &Ground, draw: &mut Draw) -> Option<()> {
    let mut set = |key: &str, value: Value| {
        fault.insert(key.to_owned(), value);
    };
    match draw.pick(&wanted.begins)? {
        Begin::Start => set("at", "0s".into()),
        Begin::Time => set("at", draw.moment(ground.steps_time).to_string().into()),
        Begin::Event => {
            let events: Vec<(&String, &u64)> = ground.events.iter().collect();
            let (name, count) = draw.pick(&events)?;
            let nth = 1 + draw.below(**count);
            set("on", format!("event:{name}").into());
            set("nth", i64::try_from(nth).ok()?.into());
        }
        Begin::Point => {
            (ground.points > 0).then_some(())?;
            set("on", format!("point:{}", 1 + draw.below(ground.points)).into());
        }
        Begin::Rate => set("rate", draw.fraction_within(wanted.rate?).into()),
    }
    Some(())
}

fn place(fault: &mut Table, place: Place, ground: &Ground, draw: &mut Draw) -> Option<()> {
    let mut client = || draw.pick(&ground.clients).cloned();
    let between = |one: &str, other: &str| Value::from(vec![one.to_owned(), other.to_owned()]);
    let (key, value) = match place {
        Place::Server => ("host", SERVER.into()),
        Place::Model => ("host", MODEL.into()),
        Place::Client => ("host", client()?.into()),
        Place::ClientServer => ("between", between(&client()?, SERVER)),
        Place::ServerModel => ("between", between(SERVER, MODEL)),
        Place::Mcp => ("host", ground.mcp?.into()),
        Place::ServerMcp => ("between", between(SERVER, ground.mcp?)),
    };
    fault.insert(key.to_owned(), value);
    Some(())
}
