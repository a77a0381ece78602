//! What a model made up and a wire would not take back: names of tools, ids, arguments.
//! Sent back as it is, one such thing would have every later request of the conversation refused.
//! Pure.

use std::borrow::Cow;

use serde_json::{Value, json};

/// The longest name of a tool that every wire takes.
const CHARS_MAX: usize = 64;

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
