//! How many tokens a text has, by the table of the model that reads it.
//! Counting holds its thread and may have to load a table first: it belongs into the blocking seam.
//! Each message is counted once per table, and its count is kept with it.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use tiktoken_rs::CoreBPE;
use tiktoken_rs::tokenizer::{Tokenizer, get_tokenizer};

use crate::limits::{CALL_TOKENS, MESSAGE_TOKENS, TOKEN_PIECE_BYTES_MAX};
use crate::message::{Message, ToolCall, ToolDefinition};
use crate::provider::Model;
use crate::world::World;

/// A table of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    O200k,
    Cl100k,
}

/// Which tables this server has asked for. They are large, so each is loaded with the first turn
/// that may need it: the turn does not wait, and a server without turns stays small.
#[derive(Debug, Default)]
pub struct Tables([AtomicBool; 2]);

/// The tokens of one text, by table, as far as somebody has counted them.
#[derive(Debug, Default)]
pub struct Count([OnceLock<u64>; 2]);

/// The tokens of an agent's next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tokens {
    pub system: u64,
    pub tools: u64,
    pub messages: u64,
    pub budget: u64,
    pub available: u64,
}

impl Tokens {
    pub fn total(&self) -> u64 {
        self.system + self.tools + self.messages
    }

    pub fn remaining(&self) -> u64 {
        self.available.saturating_sub(self.total())
    }
}

/// What a request may have: the window less what is kept free for the answer.
pub fn available(model: &Model) -> u64 {
    model.context_window.saturating_sub(model.output_tokens_max)
}

impl Encoding {
    /// The table of a model, as its provider knows it; the newer one where it is not known.
    pub fn of(model_id: &str) -> Self {
        // Some providers put the maker's name before the model's.
        let name = model_id.rsplit('/').next().unwrap_or(model_id);
        match get_tokenizer(name) {
            Some(Tokenizer::Cl100kBase) => Self::Cl100k,
            _ => Self::O200k,
        }
    }

    /// Counts in pieces: the library's pattern overflows on very long runs of one kind of character.
    pub fn text(self, mut rest: &str) -> u64 {
        let mut count = 0;
        while !rest.is_empty() {
            let (piece, tail) = rest.split_at(rest.floor_char_boundary(TOKEN_PIECE_BYTES_MAX));
            count += self.table().encode_ordinary(piece).len() as u64;
            rest = tail;
        }
        count
    }

    pub fn message(self, message: &Message) -> u64 {
        around(message) + texts(message).map(|text| self.text(&text)).sum::<u64>()
    }

    pub fn tool(self, tool: &ToolDefinition) -> u64 {
        self.text(&tool.name) + self.text(&tool.description) + self.text(tool.parameters.text())
    }

    fn table(self) -> &'static CoreBPE {
        match self {
            Self::O200k => tiktoken_rs::o200k_base_singleton(),
            Self::Cl100k => tiktoken_rs::cl100k_base_singleton(),
        }
    }

    fn place(self) -> usize {
        match self {
            Self::O200k => 0,
            Self::Cl100k => 1,
        }
    }
}

impl Tables {
    /// Loads the table of a model, unless that was done before, while nobody waits for it.
    pub fn load_in_background(&self, world: &World, model: &Model) {
        let encoding = Encoding::of(&model.id);
        if !self.0[encoding.place()].swap(true, Ordering::Relaxed) {
            let blocking = Arc::clone(&world.blocking);
            let load = Box::new(move || {
                encoding.table();
            });
            tokio::spawn(async move { blocking.run(load).await });
        }
    }
}

impl Count {
    pub fn get(&self, encoding: Encoding) -> Option<u64> {
        self.0[encoding.place()].get().copied()
    }

    pub fn get_or_count(&self, encoding: Encoding, count: impl FnOnce() -> u64) -> u64 {
        *self.0[encoding.place()].get_or_init(count)
    }
}

/// No less than the tokens of a message: a token has at least one byte.
pub fn bytes(message: &Message) -> u64 {
    around(message) + texts(message).map(|text| text.len() as u64).sum::<u64>()
}

/// What the wire adds to the texts of a message.
pub fn around(message: &Message) -> u64 {
    match message {
        Message::User { .. } | Message::Tool { .. } => MESSAGE_TOKENS,
        Message::Assistant { tool_calls, .. } => {
            MESSAGE_TOKENS + CALL_TOKENS * tool_calls.len() as u64
        }
    }
}

/// The texts of a message that a model reads.
fn texts(message: &Message) -> impl Iterator<Item = Cow<'_, str>> {
    let (content, calls): (&str, &[ToolCall]) = match message {
        Message::User { content, .. } => (content, &[]),
        Message::Tool { content, .. } => (content, &[]),
        Message::Assistant { content, tool_calls, .. } => (content, tool_calls),
    };
    let calls = calls.iter().flat_map(|call| {
        [Cow::Borrowed(call.name.as_str()), Cow::Owned(call.arguments.to_string())]
    });
    std::iter::once(Cow::Borrowed(content)).chain(calls)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn long_runs_of_one_character_are_counted_in_pieces() {
        let table = Encoding::of("unknown-model");
        assert_eq!(table, Encoding::O200k);
        assert!(table.text(&" ".repeat(1_000_000)) > 0);
        assert!(table.text(&"é".repeat(200_000)) > 0);
        assert_eq!(table.text(""), 0);
        assert_eq!(table.text("hello world"), 2);
    }

    #[test]
    fn older_models_have_their_own_table_and_their_own_counts() {
        assert_eq!(Encoding::of("gpt-4"), Encoding::Cl100k);
        assert_eq!(Encoding::of("openai/gpt-4"), Encoding::Cl100k);
        assert_eq!(Encoding::of("gpt-4o"), Encoding::O200k);
        let text = "Übermäßig größenwahnsinnige Straßenbahnschaffner";
        let count = Count::default();
        let [new, old] = [Encoding::O200k, Encoding::Cl100k]
            .map(|table| count.get_or_count(table, || table.text(text)));
        assert!(new < old, "{new} {old}");
        assert_eq!(count.get(Encoding::Cl100k), Some(old));
    }

    #[test]
    fn a_message_has_no_more_tokens_than_bytes() {
        let call = ToolCall { id: "1".into(), name: "echo".into(), arguments: json!({"m": "x"}) };
        let message =
            Message::Assistant { content: "well".into(), tool_calls: vec![call], meta: None };
        let tokens = Encoding::O200k.message(&message);
        assert!(tokens > MESSAGE_TOKENS + CALL_TOKENS);
        assert!(tokens <= bytes(&message));
        assert_eq!(bytes(&message), 12 + 4 + 4 + 9);
    }
}
