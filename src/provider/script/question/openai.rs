//! A chat completions request. Pure.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Delivery, Shown, digest, text};

#[derive(Deserialize)]
struct WireRequest<'a> {
    model: String,
    #[serde(borrow)]
    messages: &'a RawValue,
    #[serde(default)]
    stream: Option<bool>,
}

#[derive(Deserialize)]
struct WireMessage<'a> {
    /// A text, null, or a list of parts; only the last message's is looked at.
    #[serde(default, borrow)]
    content: Option<&'a RawValue>,
    #[serde(default)]
    tool_calls: Option<Vec<serde::de::IgnoredAny>>,
}

pub(super) fn read(body: &[u8]) -> serde_json::Result<Shown> {
    let request: WireRequest<'_> = serde_json::from_slice(body)?;
    let messages: Vec<WireMessage<'_>> = serde_json::from_str(request.messages.get())?;
    let last = messages.last().and_then(|last| last.content);
    Ok(Shown {
        model: request.model,
        messages: messages.len(),
        calls: messages.iter().flat_map(|message| &message.tool_calls).map(Vec::len).sum(),
        last_message: last.map(text).unwrap_or_default(),
        digest: digest(request.messages.get().bytes()),
        delivery: Delivery::of(request.stream),
    })
}
