//! What the grammar of scenarios has and this version cannot play yet. Whoever builds one of these
//! deletes its row.

use super::place::Place;

/// A key, how its value begins where only some values are meant, and what is missing.
const LATER: &[(&str, &str, &str)] = &[("mcp", "", "MCP servers")];

pub(super) fn refuse(file: &Place<'_>) {
    for (key, begins, what) in LATER {
        for place in found(file, key) {
            if place.text().unwrap_or_default().starts_with(begins) {
                place.refuse_key(&format!("not yet: {what}"), "remove it; a later version has it");
            }
        }
    }
}

/// Everything that stands under a key of the file, or under a key of its lists.
fn found<'a>(file: &Place<'a>, key: &str) -> Vec<Place<'a>> {
    match key.split_once('.') {
        Some((list, key)) => file.items_of(list).iter().filter_map(|item| item.get(key)).collect(),
        None => file.get(key).into_iter().collect(),
    }
}
