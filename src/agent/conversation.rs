//! The messages of one agent, each with its token count once somebody asked for it.
//! Pure: counting itself is `tokens`; what may be appended when is `turn`.

use std::sync::{Arc, OnceLock};

use crate::message::{Message, ToolCall};

#[derive(Debug, Default)]
pub struct Conversation {
    entries: Vec<Arc<Entry>>,
    /// The first so many messages are counted, and have so many tokens together.
    counted: (usize, u64),
}

/// The tokens of a conversation, as far as they are known.
#[derive(Debug)]
pub struct MessageTokens {
    pub counted: u64,
    pub uncounted: Vec<Arc<Entry>>,
}

#[derive(Debug)]
pub struct Entry {
    pub message: Arc<Message>,
    /// Counted once, off the request's path, by whoever needs it first.
    pub tokens: OnceLock<u64>,
}

impl Conversation {
    pub fn append(&mut self, message: Message) {
        self.entries.push(Arc::new(Entry { message: Arc::new(message), tokens: OnceLock::new() }));
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn messages(&self) -> Vec<Arc<Message>> {
        self.entries.iter().map(|entry| Arc::clone(&entry.message)).collect()
    }

    /// What is known of the tokens, at a cost that does not grow with the history.
    pub fn tokens(&mut self) -> MessageTokens {
        let (count, tokens) = &mut self.counted;
        while let Some(more) = self.entries.get(*count).and_then(|entry| entry.tokens.get()) {
            *count += 1;
            *tokens += more;
        }
        MessageTokens { counted: *tokens, uncounted: self.entries[*count..].to_vec() }
    }

    /// At most `limit` messages from `offset` on.
    pub fn page(&self, offset: usize, limit: usize) -> Vec<Arc<Message>> {
        self.entries
            .iter()
            .skip(offset)
            .take(limit)
            .map(|entry| Arc::clone(&entry.message))
            .collect()
    }

    /// Asserts the invariant of a conversation for what one turn added from `first` on, so that
    /// the check does not grow with the history.
    pub fn assert_paired_since(&self, first: usize) {
        let added = self.entries[first..].iter().map(|entry| entry.message.as_ref());
        if let Err(broken) = check_pairs(added) {
            panic!("a conversation between turns is paired: {broken}");
        }
    }
}

/// Checks that every tool call has exactly one result, directly after its message and in order,
/// that no result is without a call, and that no assistant message is empty.
pub fn check_pairs<'a>(messages: impl Iterator<Item = &'a Message>) -> Result<(), String> {
    let mut open: std::collections::VecDeque<&ToolCall> = std::collections::VecDeque::new();
    for (index, message) in messages.enumerate() {
        match message {
            Message::Tool { tool_call_id, .. } => match open.pop_front() {
                Some(call) if call.id == *tool_call_id => {}
                Some(call) => {
                    return Err(format!("message {index} answers {tool_call_id}, not {}", call.id));
                }
                None => return Err(format!("message {index} answers no call")),
            },
            Message::User { .. } | Message::Assistant { .. } if !open.is_empty() => {
                return Err(format!("message {index} comes before the result of {}", open[0].id));
            }
            Message::User { .. } => {}
            Message::Assistant { content, tool_calls, .. } => {
                if content.is_empty() && tool_calls.is_empty() {
                    return Err(format!("message {index} is empty"));
                }
                open.extend(tool_calls);
            }
        }
    }
    open.front().map_or(Ok(()), |call| Err(format!("{} has no result", call.id)))
}
