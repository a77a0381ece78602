//! A chat completions request. Pure.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
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

pub(super) fn read(body: &str) -> serde_json::Result<Shown> {
    let WireRequest { model, messages, stream } = serde_json::from_str(body)?;
    Ok(Shown::of(model, &messages, Delivery::of(stream)))
}

impl Shown {
    fn of(model: String, messages: &Messages<'_>, delivery: Delivery) -> Self {
        let last_message = messages.last.map(text).unwrap_or_default();
        Self { model, messages: messages.count, calls: messages.calls, last_message, delivery }
    }
}

/// Of a request that our own wire wrote: it asks for a stream, and nothing that stands behind its
/// messages is looked at.
pub(super) fn read_ours(body: &str) -> Option<Shown> {
    #[derive(Default)]
    struct Head<'a> {
        model: Option<String>,
        messages: Option<Messages<'a>>,
    }
    struct Reader<'r, 'a>(&'r mut Head<'a>);
    impl<'de> Visitor<'de> for Reader<'_, 'de> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a request")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
            while self.0.model.is_none() || self.0.messages.is_none() {
                match members.next_key::<&str>()? {
                    Some("model") => self.0.model = Some(members.next_value()?),
                    Some("messages") => self.0.messages = Some(members.next_value()?),
                    Some(_) => drop(members.next_value::<IgnoredAny>()?),
                    None => break,
                }
            }
            Ok(())
        }
    }
    let mut head = Head::default();
    // It ends before the body does, which the deserializer takes for an error.
    let _ = serde_json::Deserializer::from_str(body).deserialize_map(Reader(&mut head));
    Some(Shown::of(head.model?, &head.messages?, Delivery::Stream))
}

/// Of a request that was read.
pub(super) fn digest(body: &str) -> u64 {
    #[derive(Deserialize)]
    struct Written<'a> {
        #[serde(borrow)]
        messages: &'a RawValue,
    }
    let written: Written<'_> = serde_json::from_str(body).expect("it was read before");
    hash(written.messages.get().bytes())
}
