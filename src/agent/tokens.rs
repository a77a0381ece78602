//! How many tokens a text has, counted off the request's path and once per message.
//! The tables load at the first count, inside the blocking seam; nothing else waits for them.

use std::sync::Arc;

use tiktoken_rs::CoreBPE;
use tiktoken_rs::tokenizer::{Tokenizer, get_tokenizer};

use super::conversation::Entry;
use crate::limits::TOKEN_PIECE_BYTES_MAX;
use crate::message::{Message, ToolDefinition};
use crate::world::Blocking;

/// What is to be counted: a snapshot of an agent's next request.
#[derive(Debug)]
pub struct Countable {
    pub model_id: Arc<str>,
    pub system: Arc<str>,
    pub tools: Arc<[ToolDefinition]>,
    pub entries: Vec<Arc<Entry>>,
    pub context_window: u64,
    pub reserve: u64,
}

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

pub async fn count(blocking: &dyn Blocking, what: Countable) -> Tokens {
    blocking.call(move || count_now(&what)).await
}

fn count_now(what: &Countable) -> Tokens {
    let table = table(&what.model_id);
    let tools = what.tools.iter().map(|tool| {
        text(table, tool.name)
            + text(table, tool.description)
            + text(table, &tool.parameters.to_string())
    });
    let messages = what
        .entries
        .iter()
        .map(|entry| *entry.tokens.get_or_init(|| message(table, &entry.message)));
    Tokens {
        system: text(table, &what.system),
        tools: tools.sum(),
        messages: messages.sum(),
        budget: what.context_window,
        available: what.context_window.saturating_sub(what.reserve),
    }
}

fn table(model_id: &str) -> &'static CoreBPE {
    match get_tokenizer(model_id) {
        Some(Tokenizer::Cl100kBase) => tiktoken_rs::cl100k_base_singleton(),
        _ => tiktoken_rs::o200k_base_singleton(),
    }
}

fn message(table: &CoreBPE, message: &Message) -> u64 {
    match message {
        Message::User { content, .. } => text(table, content),
        Message::Tool { content, .. } => text(table, content),
        Message::Assistant { content, tool_calls, .. } => {
            let calls = tool_calls
                .iter()
                .map(|call| text(table, &call.name) + text(table, &call.arguments.to_string()));
            text(table, content) + calls.sum::<u64>()
        }
    }
}

/// Counts in pieces: the library's pattern overflows on very long runs of one kind of character.
fn text(table: &CoreBPE, mut rest: &str) -> u64 {
    let mut count = 0;
    while !rest.is_empty() {
        let (piece, tail) = rest.split_at(rest.floor_char_boundary(TOKEN_PIECE_BYTES_MAX));
        count += table.encode_ordinary(piece).len() as u64;
        rest = tail;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_runs_of_one_character_are_counted_in_pieces() {
        let table = table("unknown-model");
        assert!(text(table, &" ".repeat(1_000_000)) > 0);
        assert!(text(table, &"é".repeat(200_000)) > 0);
        assert_eq!(text(table, ""), 0);
        assert_eq!(text(table, "hello world"), 2);
    }
}
