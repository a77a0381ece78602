//! How many tokens a text has, counted off the request's path and once per message.
//! The tables load at the first count, inside the blocking seam; nothing else waits for them.

use std::sync::{Arc, OnceLock};

use tiktoken_rs::CoreBPE;
use tiktoken_rs::tokenizer::{Tokenizer, get_tokenizer};

use super::Facts;
use super::conversation::MessageTokens;
use crate::limits::TOKEN_PIECE_BYTES_MAX;
use crate::message::Message;
use crate::provider::Model;
use crate::world::Blocking;

/// What is to be counted: a snapshot of an agent's next request.
#[derive(Debug)]
pub struct Countable {
    pub facts: Arc<Facts>,
    pub model: Model,
    pub prompt: Arc<OnceLock<PromptTokens>>,
    pub messages: MessageTokens,
}

/// The tokens of what comes before every conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PromptTokens {
    system: u64,
    tools: u64,
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

/// Counts what has not been counted before; where there is no such thing, nobody waits.
pub async fn count(blocking: &dyn Blocking, what: Countable) -> Tokens {
    if what.prompt.get().is_some() && what.messages.uncounted.is_empty() {
        return what.count();
    }
    blocking.call(move || what.count()).await
}

impl Countable {
    /// Whether it fits even if every byte were a token.
    pub fn surely_fits(&self) -> bool {
        let Self { facts, model, messages, .. } = self;
        let tools = facts.tools.iter().map(|tool| {
            tool.name.len() + tool.description.len() + tool.parameters.to_string().len()
        });
        let uncounted = messages.uncounted.iter().map(|entry| bytes(&entry.message));
        let bytes = facts.system_prompt.len() + tools.sum::<usize>() + uncounted.sum::<usize>();
        messages.counted.saturating_add(bytes as u64) <= available(model)
    }

    fn count(&self) -> Tokens {
        let table = || table(&self.model.id);
        let prompt = self.prompt.get_or_init(|| PromptTokens::of(table(), &self.facts));
        let uncounted = self.messages.uncounted.iter();
        let uncounted =
            uncounted.map(|entry| *entry.tokens.get_or_init(|| message(table(), &entry.message)));
        let model = &self.model;
        Tokens {
            system: prompt.system,
            tools: prompt.tools,
            messages: self.messages.counted + uncounted.sum::<u64>(),
            budget: model.context_window,
            available: available(model),
        }
    }
}

impl PromptTokens {
    fn of(table: &CoreBPE, facts: &Facts) -> Self {
        let tools = facts.tools.iter().map(|tool| {
            text(table, tool.name)
                + text(table, tool.description)
                + text(table, &tool.parameters.to_string())
        });
        Self { system: text(table, &facts.system_prompt), tools: tools.sum() }
    }
}

fn available(model: &Model) -> u64 {
    model.context_window.saturating_sub(model.output_tokens_max)
}

/// No less than the tokens of a message: a token has at least one byte.
fn bytes(message: &Message) -> usize {
    match message {
        Message::User { content, .. } => content.len(),
        Message::Tool { content, .. } => content.len(),
        Message::Assistant { content, tool_calls, .. } => {
            let calls =
                tool_calls.iter().map(|call| call.name.len() + call.arguments.to_string().len());
            content.len() + calls.sum::<usize>()
        }
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
