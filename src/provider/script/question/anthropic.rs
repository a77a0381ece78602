//! A messages request. Pure.
//!
//! This wire wants a user's words and the results of tools that follow each other in one message, so
//! each block of a user counts as the message that it is in a conversation: the other wire counts the
//! same. What a model said is one message, however many blocks it has.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Delivery, Shown, hash, text};

#[derive(Deserialize)]
struct WireRequest<'a> {
    model: String,
    #[serde(default, borrow)]
    system: Option<&'a RawValue>,
    #[serde(borrow)]
    messages: &'a RawValue,
    #[serde(default)]
    stream: Option<bool>,
}

#[derive(Deserialize)]
struct WireMessage<'a> {
    role: Role,
    #[serde(borrow)]
    content: &'a RawValue,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Role {
    User,
    Assistant,
}

/// A block of any kind: `text` has a text, `tool_result` may have a content, the others neither.
#[derive(Deserialize)]
struct Block<'a> {
    r#type: String,
    #[serde(default)]
    text: Option<String>,
    #[serde(default, borrow)]
    content: Option<&'a RawValue>,
}

pub(super) fn read(body: &str) -> serde_json::Result<Shown> {
    let request: WireRequest<'_> = serde_json::from_str(body)?;
    let messages: Vec<WireMessage<'_>> = serde_json::from_str(request.messages.get())?;
    let mut shown = Shown {
        model: request.model,
        messages: request.system.map_or(0, |system| usize::from(!text(system).is_empty())),
        calls: 0,
        last_message: String::new(),
        delivery: Delivery::of(request.stream),
    };
    for message in messages {
        shown.add(&message)?;
    }
    Ok(shown)
}

/// Of a request that was read.
pub(super) fn digest(body: &str) -> u64 {
    let written: WireRequest<'_> = serde_json::from_str(body).expect("it was read before");
    let system = written.system.map_or("", RawValue::get);
    hash(system.bytes().chain(written.messages.get().bytes()))
}

impl Shown {
    fn add(&mut self, message: &WireMessage<'_>) -> serde_json::Result<()> {
        if message.content.get().starts_with('"') {
            self.messages += 1;
            self.last_message = text(message.content);
            return Ok(());
        }
        let blocks: Vec<Block<'_>> = serde_json::from_str(message.content.get())?;
        match message.role {
            Role::User => {
                self.messages += blocks.len();
                self.last_message = blocks.last().map(Block::words).unwrap_or_default();
            }
            Role::Assistant => {
                self.messages += 1;
                self.calls += blocks.iter().filter(|block| block.r#type == "tool_use").count();
                self.last_message = blocks.iter().map(Block::words).collect();
            }
        }
        Ok(())
    }
}

impl Block<'_> {
    fn words(&self) -> String {
        match (&self.text, self.content) {
            (Some(text), _) => text.clone(),
            (None, Some(content)) => text(content),
            (None, None) => String::new(),
        }
    }
}
