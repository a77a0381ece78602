//! A chat completions request. Pure.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{Delivery, Shown, hash, text};

#[derive(Deserialize)]
struct WireRequest<'a> {
    model: String,
    #[serde(borrow)]
    messages: Messages<'a>,
    #[serde(default)]
    stream: Option<bool>,
}

#[derive(Deserialize)]
struct WireMessage<'a> {
    /// A text, null, or a list of parts; only the last message's is looked at.
    #[serde(default, borrow)]
    content: Option<&'a RawValue>,
    #[serde(default)]
    tool_calls: Option<Vec<IgnoredAny>>,
}

/// A conversation, of which only the last message is kept.
#[derive(Default)]
struct Messages<'a> {
    count: usize,
    calls: usize,
    last: Option<&'a RawValue>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Messages<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Messages<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of messages")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut messages = Messages::default();
                while let Some(message) = list.next_element::<WireMessage<'de>>()? {
                    messages.count += 1;
                    messages.calls += message.tool_calls.map_or(0, |calls| calls.len());
                    messages.last = message.content;
                }
                Ok(messages)
            }
        }
        deserializer.deserialize_seq(Reader)
    }
}

pub(super) fn read(body: &[u8]) -> serde_json::Result<Shown> {
    let WireRequest { model, messages, stream } = serde_json::from_slice(body)?;
    Ok(Shown {
        model,
        messages: messages.count,
        calls: messages.calls,
        last_message: messages.last.map(text).unwrap_or_default(),
        delivery: Delivery::of(stream),
    })
}

/// Of a request that was read.
pub(super) fn digest(body: &[u8]) -> u64 {
    #[derive(Deserialize)]
    struct Written<'a> {
        #[serde(borrow)]
        messages: &'a RawValue,
    }
    let written: Written<'_> = serde_json::from_slice(body).expect("it was read before");
    hash(written.messages.get().bytes())
}
