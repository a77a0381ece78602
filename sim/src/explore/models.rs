//! What is drawn for models: answers that fail before the one of the file comes, and late ones. Pure.

use nexus3::provider::script::Fault;
use toml::{Table, Value};

use super::draw::Draw;
use super::profile::ModelDraw;
use crate::scenario::Document;

pub fn disturb(document: &mut Document, wanted: &ModelDraw, draw: &mut Draw) {
    if !draw.happens(wanted.chance) {
        return;
    }
    let mut entries = Vec::new();
    for mut entry in document.list("model") {
        if draw.happens(wanted.fault) && !entry.contains_key("fault") {
            entries.extend(failing(&entry, draw.pick(&wanted.faults)));
        }
        if let Some(late_by) = wanted.late_by
            && draw.happens(wanted.late)
            && !entry.contains_key("delay")
        {
            entry.insert("delay".to_owned(), draw.time(late_by).to_string().into());
        }
        entries.push(entry);
    }
    document.set_list("model", entries);
}

/// The same answer, once, with a fault.
fn failing(entry: &Table, fault: Option<&Fault>) -> Option<Table> {
    let fault = Table::try_from(fault?).ok()?;
    // What is as it always is need not be written.
    let fault = fault.into_iter().filter(|(_, value)| *value != Value::Boolean(false));
    let mut entry = entry.clone();
    entry.remove("times");
    entry.insert("fault".to_owned(), Value::Table(fault.collect()));
    Some(entry)
}
