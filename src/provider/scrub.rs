//! Finding secrets in whole bodies and taking them out, wherever they are split.
//! Pure. It would rather hide a word too many than show a secret.

use std::collections::BTreeMap;
use std::ops::Range;

use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};

use super::key::{REDACTED, Redactor, SIGN_BYTES};

/// How tokens of our own begin, and how many digits make one.
const TOKEN_PREFIX: &str = "nxk_";
const TOKEN_DIGITS_MIN: usize = 8;

impl Redactor {
    pub(super) fn scrub_text(&self, text: &str) -> String {
        let mut scrubbed = String::with_capacity(text.len());
        let mut shown_to = 0;
        for found in self.found(text) {
            scrubbed.push_str(&text[shown_to..found.start]);
            scrubbed.push_str(REDACTED);
            shown_to = found.end;
        }
        scrubbed.push_str(&text[shown_to..]);
        scrubbed
    }

    /// All texts of a document, names included.
    pub(super) fn scrub_value(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.scrub_text(&text)),
            Value::Array(items) => {
                Value::Array(items.into_iter().map(|item| self.scrub_value(item)).collect())
            }
            Value::Object(fields) => {
                let safe = |(name, value): (String, Value)| {
                    (self.scrub_text(&name), self.scrub_value(value))
                };
                Value::Object(fields.into_iter().map(safe).collect::<Map<_, _>>())
            }
            plain @ (Value::Null | Value::Bool(_) | Value::Number(_)) => plain,
        }
    }

    /// The records of one stream. Texts at the same place of successive records are one text to
    /// whoever reads the stream, so secrets are looked for across them.
    pub(super) fn scrub_records(&self, records: &mut [Value]) {
        let mut texts: BTreeMap<String, Vec<&mut String>> = BTreeMap::new();
        for record in records.iter_mut() {
            texts_of(record, String::new(), &mut texts);
        }
        for (_, mut pieces) in texts {
            let whole: String = pieces.iter().map(|piece| piece.as_str()).collect();
            let found = self.found(&whole);
            if !found.is_empty() {
                cover(&mut pieces, &found);
            }
        }
        for record in records {
            *record = self.scrub_value(std::mem::take(record));
        }
    }

    /// Where secrets lie, in order and apart from each other.
    pub(super) fn found(&self, text: &str) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        for secret in self.secrets() {
            let secret = secret.expose_secret();
            let escaped = Value::from(secret).to_string();
            let escaped = &escaped[1..escaped.len() - 1];
            for form in [secret, escaped] {
                let places = text.match_indices(form);
                found.extend(places.map(|(at, form)| at..at + form.len()));
            }
            found.extend(begun_at_the_end(text, secret));
        }
        for key in self.keys() {
            found.extend(masked(text, key));
        }
        found.extend(tokens(text));
        found.sort_by_key(|range| range.start);
        let mut apart: Vec<Range<usize>> = Vec::new();
        for range in found {
            match apart.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                Some(_) | None => apart.push(range),
            }
        }
        apart
    }
}

/// A text that was cut off may end in the middle of a secret.
fn begun_at_the_end(text: &str, secret: &str) -> Option<Range<usize>> {
    let begun = (SIGN_BYTES..secret.len()).rev().filter_map(|bytes| secret.get(..bytes));
    let begun = begun.into_iter().find(|begun| text.ends_with(begun))?;
    Some(text.len() - begun.len()..text.len())
}

/// Words that begin as a key does: providers quote keys with their middle masked.
fn masked<'a>(text: &'a str, key: &SecretString) -> impl Iterator<Item = Range<usize>> + use<'a> {
    let sign = key.expose_secret().get(..SIGN_BYTES).unwrap_or(key.expose_secret()).to_owned();
    let is_end = |c: char| c.is_whitespace() || c.is_control() || "\"'`\\,;<>(){}[]".contains(c);
    let mut places = Vec::new();
    for (at, _) in text.match_indices(&sign) {
        let word = text[at..].find(is_end).unwrap_or(text.len() - at);
        places.push(at..at + word.max(sign.len()));
    }
    places.into_iter()
}

/// Tokens of this server or another one.
fn tokens(text: &str) -> impl Iterator<Item = Range<usize>> {
    text.match_indices(TOKEN_PREFIX).filter_map(|(at, prefix)| {
        let from = at + prefix.len();
        let digits = text[from..].bytes().take_while(u8::is_ascii_hexdigit).count();
        (digits >= TOKEN_DIGITS_MIN).then_some(at..from + digits)
    })
}

/// Collects the texts of a record by their place in it. Choices and calls are told apart by their
/// own index, since their order in a record says nothing.
fn texts_of<'v>(
    value: &'v mut Value,
    place: String,
    texts: &mut BTreeMap<String, Vec<&'v mut String>>,
) {
    match value {
        Value::String(text) => texts.entry(place).or_default().push(text),
        Value::Array(items) => {
            for (position, item) in items.iter_mut().enumerate() {
                let index = item.get("index").and_then(Value::as_u64);
                let index = index.map_or_else(|| format!("#{position}"), |index| index.to_string());
                texts_of(item, format!("{place}/{index}"), texts);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                texts_of(field, format!("{place}/{name}"), texts);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Replaces the found ranges of the pieces' joined text; what spans several pieces is named in the
/// first of them.
fn cover(pieces: &mut [&mut String], found: &[Range<usize>]) {
    let mut piece_start = 0;
    for piece in pieces {
        let piece_end = piece_start + piece.len();
        let mut covered = String::with_capacity(piece.len());
        let mut shown_to = piece_start;
        for range in found.iter().filter(|r| r.start < piece_end && r.end > piece_start) {
            let from = range.start.max(piece_start);
            covered.push_str(&piece[shown_to - piece_start..from - piece_start]);
            if range.start >= piece_start {
                covered.push_str(REDACTED);
            }
            shown_to = range.end.min(piece_end);
        }
        covered.push_str(&piece[shown_to - piece_start..]);
        **piece = covered;
        piece_start = piece_end;
    }
}

#[cfg(test)]
#[path = "scrub_tests.rs"]
mod tests;
