//! JSON, written straight into one buffer: members in the order in which they are given.
//! Pure. Whole conversations go to a model with every request, and most of what is in them needs no
//! escape: it is looked through in blocks and copied in runs, several times as fast as byte by byte.

use std::io::Write as _;

use serde::Serialize;

/// What is looked through at once. Compilers make a few instructions of it.
const BLOCK: usize = 32;

/// An object on its way.
#[derive(Debug)]
pub(crate) struct Object<'o> {
    out: &'o mut Vec<u8>,
    begun: bool,
}

/// A list on its way.
#[derive(Debug)]
pub(crate) struct List<'o> {
    out: &'o mut Vec<u8>,
    begun: bool,
}

impl Object<'_> {
    /// One object as JSON, in a buffer that begins with room for so many bytes.
    pub(crate) fn build(room: usize, write: impl FnOnce(&mut Object<'_>)) -> Vec<u8> {
        let mut out = Vec::with_capacity(room);
        Self::append(&mut out, write);
        out
    }

    /// One object as JSON, after what is there.
    pub(crate) fn append(out: &mut Vec<u8>, write: impl FnOnce(&mut Object<'_>)) {
        out.push(b'{');
        write(&mut Object { out, begun: false });
        out.push(b'}');
    }

    pub(crate) fn text(&mut self, name: &'static str, value: &str) {
        self.name(name);
        string(self.out, value);
    }

    pub(crate) fn value(&mut self, name: &'static str, value: &impl Serialize) {
        self.name(name);
        serde_json::to_writer(&mut *self.out, value).expect("it has only string keys");
    }

    pub(crate) fn object(&mut self, name: &'static str, write: impl FnOnce(&mut Object<'_>)) {
        self.name(name);
        Object::append(self.out, write);
    }

    pub(crate) fn list(&mut self, name: &'static str, write: impl FnOnce(&mut List<'_>)) {
        self.name(name);
        self.out.push(b'[');
        write(&mut List { out: self.out, begun: false });
        self.out.push(b']');
    }

    /// A text of ours, in which nothing needs an escape.
    pub(crate) fn word(&mut self, name: &'static str, value: &'static str) {
        self.name(name);
        self.out.push(b'"');
        self.out.extend_from_slice(value.as_bytes());
        self.out.push(b'"');
    }

    /// Names are ours and plain.
    fn name(&mut self, name: &'static str) {
        self.out.extend_from_slice(if self.begun { b",\"" } else { b"\"" });
        self.begun = true;
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
    }
}

impl List<'_> {
    /// The entries of a list, without its brackets.
    pub(crate) fn entries(room: usize, write: impl FnOnce(&mut List<'_>)) -> Vec<u8> {
        let mut out = Vec::with_capacity(room);
        write(&mut List { out: &mut out, begun: false });
        out
    }

    /// Entries that were written before, at least one.
    pub(crate) fn extend(&mut self, entries: &[u8]) {
        self.separate();
        self.out.extend_from_slice(entries);
    }

    pub(crate) fn object(&mut self, write: impl FnOnce(&mut Object<'_>)) {
        self.separate();
        Object::append(self.out, write);
    }

    fn separate(&mut self) {
        if self.begun {
            self.out.push(b',');
        }
        self.begun = true;
    }
}

fn string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    loop {
        let (plain, after) = rest.split_at(plain_bytes(rest));
        out.extend_from_slice(plain);
        let Some((special, after)) = after.split_first() else { break };
        escape(out, *special);
        rest = after;
    }
    out.push(b'"');
}

/// How many bytes there are before the first that needs an escape.
fn plain_bytes(bytes: &[u8]) -> usize {
    let has_special = |block: &[u8]| block.iter().fold(false, |any, byte| any | is_special(*byte));
    let plain_blocks = bytes.chunks_exact(BLOCK).take_while(|block| !has_special(block)).count();
    let mut seen = plain_blocks * BLOCK;
    // Most texts are shorter than a block.
    while let Some(word) = bytes[seen..].first_chunk() {
        match specials(u64::from_le_bytes(*word)) {
            0 => seen += word.len(),
            found => return seen + found.trailing_zeros() as usize / 8,
        }
    }
    seen + bytes[seen..].iter().take_while(|byte| !is_special(**byte)).count()
}

/// The highest bit of the first byte of a word that needs an escape; nothing is said of those after it.
fn specials(word: u64) -> u64 {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGHEST: u64 = ONES << 7;
    let is_less = |word: u64, than: u8| word.wrapping_sub(ONES * u64::from(than)) & !word;
    let is = |byte: u8| is_less(word ^ (ONES * u64::from(byte)), 1);
    (is_less(word, 0x20) | is(b'"') | is(b'\\')) & HIGHEST
}

fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

fn escape(out: &mut Vec<u8>, special: u8) {
    match special {
        b'"' => out.extend_from_slice(b"\\\""),
        b'\\' => out.extend_from_slice(b"\\\\"),
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\r' => out.extend_from_slice(b"\\r"),
        b'\t' => out.extend_from_slice(b"\\t"),
        0x08 => out.extend_from_slice(b"\\b"),
        0x0c => out.extend_from_slice(b"\\f"),
        other => write!(out, "\\u{other:04x}").expect("a vector takes everything"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn written(text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        string(&mut out, text);
        out
    }

    #[test]
    fn members_and_entries_are_separated() {
        let body = Object::build(0, |body| {
            body.text("a", "x");
            body.word("w", "y");
            body.object("b", |_| {});
            body.list("c", |list| {
                list.object(|entry| entry.value("d", &1));
                list.object(|entry| entry.value("e", &json!([true, null])));
            });
            body.list("f", |_| {});
        });
        let expected = r#"{"a":"x","w":"y","b":{},"c":[{"d":1},{"e":[true,null]}],"f":[]}"#;
        assert_eq!(String::from_utf8(body).unwrap(), expected);
    }

    #[test]
    fn every_character_below_128_is_escaped_as_by_serde_wherever_it_stands() {
        for special in 0..128_u8 {
            for before in 0..2 * BLOCK {
                let text = format!("{}{}ü end", "x".repeat(before), char::from(special));
                assert_eq!(written(&text), serde_json::to_vec(&text).unwrap());
            }
        }
    }

    proptest! {
        #[test]
        fn texts_are_written_as_by_serde(text in "(?s).{0,200}") {
            prop_assert_eq!(written(&text), serde_json::to_vec(&text).unwrap());
        }
    }
}
