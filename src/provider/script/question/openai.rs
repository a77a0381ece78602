//! A chat completions request. Pure.

use std::fmt;
use std::sync::LazyLock;

use memchr::memmem::Finder;
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

/// Of a request that our own wire wrote, which asks for a stream. What stands between the texts of a
/// conversation is found as it is written there: inside of a text every quote has a backslash before it,
/// so none of it can stand in one.
pub(super) fn read_ours(body: &str) -> Option<Shown> {
    let (head, messages) = body.split_once(r#","messages":["#)?;
    let (messages, _) =
        messages.split_once(r#"],"tools":["#).or_else(|| messages.split_once(r#"],"stream":"#))?;
    let model = serde_json::from_str(head.strip_prefix(r#"{"model":"#)?).ok()?;
    let last =
        MESSAGE.find_iter(messages.as_bytes()).fold((0, 0), |(count, _), at| (count + 1, at));
    let (count, at) = last;
    let last: WireMessage<'_> = serde_json::from_str(&messages[at..]).ok()?;
    let calls = CALL.find_iter(messages.as_bytes()).count();
    Some(Shown::of(model, &Messages { count, calls, last: last.content }, Delivery::Stream))
}

/// How each message of ours begins, and each call in one.
static MESSAGE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(r#"{"role":"#));
static CALL: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(r#","function":{"#));

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
