//! JSON, written straight into one buffer: members in the order in which they are given.
//! Pure. Whole conversations go to a model with every request, and most of what is in them needs no
//! escape: it is looked through in blocks and copied in runs, several times as fast as byte by byte.

use std::io::Write as _;

use serde::Serialize;

use super::ModelRequest;
use crate::message::Message;

/// What is looked through at once. Compilers make a few instructions of it.
const BLOCK: usize = 32;

/// One object as JSON, in a buffer that begins with room for so many bytes.
pub(super) fn object(room: usize, write: impl FnOnce(&mut Object<'_>)) -> Vec<u8> {
    let mut out = Vec::with_capacity(room);
    braced(&mut out, write);
    out
}

/// About how long the body of a request will be.
pub(super) fn room(request: &ModelRequest) -> usize {
    // Keys, quotes and some escapes.
    const AROUND: usize = 96;
    let message = |message: &Message| match message {
        Message::User { content, .. } => content.len(),
        Message::Assistant { content, .. } | Message::Tool { content, .. } => content.len(),
    };
    let messages = request.messages.iter().map(|each| AROUND + message(each));
    let tools = request.tools.iter().map(|tool| {
        AROUND + tool.name.len() + tool.description.len() + tool.parameters.text().len()
    });
    let all = messages.chain(tools).sum::<usize>() + request.system.len() + 2 * AROUND;
    all + all / 32
}

/// An object on its way.
#[derive(Debug)]
pub(super) struct Object<'o> {
    out: &'o mut Vec<u8>,
    begun: bool,
}

/// A list on its way.
#[derive(Debug)]
pub(super) struct List<'o> {
    out: &'o mut Vec<u8>,
    begun: bool,
}

impl Object<'_> {
    pub(super) fn text(&mut self, name: &'static str, value: &str) {
        self.name(name);
        string(self.out, value);
    }

    pub(super) fn value(&mut self, name: &'static str, value: &impl Serialize) {
        self.name(name);
        serde_json::to_writer(&mut *self.out, value).expect("it has only string keys");
    }

    pub(super) fn object(&mut self, name: &'static str, write: impl FnOnce(&mut Object<'_>)) {
        self.name(name);
        braced(self.out, write);
    }

    pub(super) fn list(&mut self, name: &'static str, write: impl FnOnce(&mut List<'_>)) {
        self.name(name);
        self.out.push(b'[');
        write(&mut List { out: self.out, begun: false });
        self.out.push(b']');
    }

    /// Names are ours and plain.
    fn name(&mut self, name: &'static str) {
        separate(self.out, &mut self.begun);
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
    }
}

impl List<'_> {
    pub(super) fn object(&mut self, write: impl FnOnce(&mut Object<'_>)) {
        separate(self.out, &mut self.begun);
        braced(self.out, write);
    }
}

fn braced(out: &mut Vec<u8>, write: impl FnOnce(&mut Object<'_>)) {
    out.push(b'{');
    write(&mut Object { out, begun: false });
    out.push(b'}');
}

fn separate(out: &mut Vec<u8>, begun: &mut bool) {
    if *begun {
        out.push(b',');
    }
    *begun = true;
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
    let seen = plain_blocks * BLOCK;
    seen + bytes[seen..].iter().take_while(|byte| !is_special(**byte)).count()
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
        let body = object(0, |body| {
            body.text("a", "x");
            body.object("b", |_| {});
            body.list("c", |list| {
                list.object(|entry| entry.value("d", &1));
                list.object(|entry| entry.value("e", &json!([true, null])));
            });
            body.list("f", |_| {});
        });
        let expected = r#"{"a":"x","b":{},"c":[{"d":1},{"e":[true,null]}],"f":[]}"#;
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
