//! What a model made up and a wire would not take back: names of tools, ids, arguments.
//! Sent back as it is, one such thing would have every later request of the conversation refused.
//! Pure.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

/// The longest name of a tool that every wire takes.
const CHARS_MAX: usize = 64;
/// The longest id of a call, with room for a number: OpenAI has refused more than 40.
const ID_CHARS_MAX: usize = 34;

/// A name of letters, digits, `_` and `-`.
pub(super) fn plain(name: &str) -> Cow<'_, str> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !name.is_empty() && name.len() <= CHARS_MAX && name.chars().all(allowed) {
        return Cow::Borrowed(name);
    }
    let mended: String =
        name.chars().take(CHARS_MAX).map(|c| if allowed(c) { c } else { '_' }).collect();
    Cow::Owned(if mended.is_empty() { "_".to_owned() } else { mended })
}

/// Arguments as the object that they must be: what a model got wrong is shown to it inside one.
pub(super) fn object(arguments: &Value) -> Cow<'_, Value> {
    match arguments {
        Value::Object(_) => Cow::Borrowed(arguments),
        other => Cow::Owned(json!({ "invalid_arguments": other })),
    }
}

/// An id of our own for a call that has none, or that of another of the `calls` before it.
pub(super) fn free_id(calls: usize, taken: impl Fn(&str) -> bool) -> String {
    (calls + 1..=2 * calls + 1)
        .map(|number| format!("call_{number}"))
        .find(|id| !taken(id))
        .expect("of one more number than there are calls, one is free")
}

/// The ids of calls as every wire takes them: short, plain, and each once in a conversation.
#[derive(Default)]
pub(super) struct Ids {
    taken: BTreeSet<String>,
    /// How often each was asked for.
    times: BTreeMap<String, u32>,
    /// Of the last message with calls: the id it had, and the one it is given.
    given: Vec<(String, String)>,
}

impl Ids {
    /// The calls of one message follow.
    pub(super) fn begin(&mut self) {
        self.given.clear();
    }

    pub(super) fn of_call(&mut self, id: &str) -> String {
        let plain = short(id);
        let times = self.times.entry(plain.clone()).or_default();
        *times += 1;
        let mut free = if *times == 1 { plain.clone() } else { format!("{plain}_{times}") };
        // What another call was given may be what this one is called.
        while !self.taken.insert(free.clone()) {
            *times += 1;
            free = format!("{plain}_{times}");
        }
        self.given.push((id.to_owned(), free.clone()));
        free
    }

    /// The id of the call that a result belongs to.
    pub(super) fn of_result(&self, id: &str) -> String {
        let given = self.given.iter().find(|(had, _)| had == id);
        given.map_or_else(|| short(id), |(_, given)| given.clone())
    }
}

/// A plain id whose end tells it from others, as the ends of made-up ones do.
fn short(id: &str) -> String {
    let plain = plain(id);
    let cut = plain.len().saturating_sub(ID_CHARS_MAX);
    plain[cut..].to_owned()
}
