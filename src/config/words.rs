//! Pieces of what is told about a file that people wrote: short, on one line, and cheap whatever the
//! file holds. They never decide that something is wrong.

use super::tree::Value;

const SHOWN_CHARS_MAX: usize = 60;
const LISTED_MAX: usize = 20;
const COMPARED_MAX: usize = 100;

pub(super) fn unsupported(name: &str) -> (String, String) {
    (
        format!("`{name}` is part of the contract but not supported by this version yet"),
        "remove it".to_owned(),
    )
}

/// A hint: the known word that was probably meant, or all of them.
pub fn nearest(word: &str, known: &[&str], all: &str) -> String {
    if let Some(known) = meant(word, known) {
        return format!("did you mean `{}`?", shown_key(known));
    }
    let listed: Vec<_> = known.iter().take(LISTED_MAX).map(|w| shown_key(w)).collect();
    let more = if known.len() > LISTED_MAX { ", …" } else { "" };
    format!("{all}: {}{more}", listed.join(", "))
}

/// The known word that was probably meant.
pub fn meant<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    // A comparison costs the product of both lengths, and a hostile file has many long names.
    let short = |word: &&str| word.len() <= SHOWN_CHARS_MAX;
    if !short(&word) {
        return None;
    }
    let known = known.iter().copied().filter(short).take(COMPARED_MAX);
    let distance = |known: &&str| strsim::damerau_levenshtein(word, known);
    // A third of the letters may be wrong.
    let close = |known: &&str| distance(known) <= known.len() / 3;
    known.min_by_key(distance).filter(close)
}

pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Text(text) => format!("a string {}", quoted(text)),
        Value::Number(number) => shorten(number),
        Value::Flag(flag) => flag.to_string(),
        Value::Object(_) => "an object".to_owned(),
        Value::List(_) => "a list".to_owned(),
        Value::Null => "null".to_owned(),
    }
}

/// A key as it may stand in a message.
pub fn shown_key(key: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    if !key.is_empty() && key.chars().all(plain) { shorten(key) } else { quoted(key) }
}

/// Text of the file as it may stand in a message: on one line, and short.
pub fn quoted(text: &str) -> String {
    format!("{:?}", shorten(text))
}

/// The beginning of a text, and whether there is more.
pub fn shorten(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
