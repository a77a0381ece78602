//! The messages of one agent, each with its token count once somebody asked for it.
//! Pure: counting itself is `tokens`; what may be appended when is `turn`.

use std::sync::{Arc, OnceLock};

use crate::limits::MESSAGES_LOADED_MAX;
use crate::message::{Message, ToolCall};

#[derive(Debug, Default)]
pub struct Conversation {
    /// How many messages came before those in memory.
    earlier: usize,
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
    /// The newest messages of a conversation that has `total`.
    pub fn restored(total: usize, newest: Vec<Arc<Message>>) -> Self {
        let earlier = total.checked_sub(newest.len()).expect("no more messages than there are");
        Self { earlier, entries: newest.into_iter().map(Entry::new).collect(), counted: (0, 0) }
    }

    pub fn append(&mut self, message: Arc<Message>) {
        self.entries.push(Entry::new(message));
    }

    /// How many messages there are, those that are no longer in memory included.
    pub fn len(&self) -> usize {
        self.earlier + self.entries.len()
    }

    /// Forgets the messages from the one of this index on, as if they had never been.
    pub fn truncate(&mut self, len: usize) {
        let kept = len.checked_sub(self.earlier).expect("only what is in memory can be taken back");
        self.entries.truncate(kept);
        if self.counted.0 > kept {
            self.counted = (0, 0);
        }
    }

    /// Lets go of the oldest messages, which stay in the database, where too many are in memory. What
    /// is left begins with a user's message.
    pub fn shorten(&mut self) {
        if self.entries.len() <= MESSAGES_LOADED_MAX {
            return;
        }
        let beyond = self.entries.len() - MESSAGES_LOADED_MAX;
        let is_user = |entry: &Arc<Entry>| matches!(*entry.message, Message::User { .. });
        let cut = self.entries[beyond..].iter().position(is_user).map(|place| beyond + place);
        let Some(cut) = cut else { return };
        self.entries.drain(..cut);
        self.earlier += cut;
        self.counted = (0, 0);
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

    /// Asserts the invariant of a conversation for what one turn added from `first` on, so that
    /// the check does not grow with the history.
    pub fn assert_paired_since(&self, first: usize) {
        let added = self.entries[first - self.earlier..].iter().map(|entry| entry.message.as_ref());
        if let Err(broken) = check_pairs(added) {
            panic!("a conversation between turns is paired: {broken}");
        }
    }
}

impl Entry {
    fn new(message: Arc<Message>) -> Arc<Self> {
        Arc::new(Self { message, tokens: OnceLock::new() })
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

#[cfg(test)]
mod tests {
    use super::*;

    fn conversation(messages: usize) -> Conversation {
        let mut conversation = Conversation::default();
        for number in 0..messages {
            let content = number.to_string();
            let message = if number % 2 == 0 {
                Message::User { content: content.into(), meta: None }
            } else {
                Message::Assistant { content, tool_calls: Vec::new(), meta: None }
            };
            conversation.append(Arc::new(message));
        }
        conversation
    }

    #[test]
    fn what_is_let_go_of_is_still_counted_and_the_rest_begins_with_a_user() {
        let mut long = conversation(MESSAGES_LOADED_MAX + 3);
        long.shorten();
        assert_eq!(long.len(), MESSAGES_LOADED_MAX + 3);
        let kept = long.messages();
        assert_eq!(kept.len(), MESSAGES_LOADED_MAX - 1);
        assert!(matches!(&*kept[0], Message::User { content, .. } if **content == *"4"));
        long.truncate(MESSAGES_LOADED_MAX + 1);
        assert_eq!(long.messages().len(), MESSAGES_LOADED_MAX - 3);
    }

    #[test]
    fn a_short_conversation_stays_whole() {
        let mut short = conversation(MESSAGES_LOADED_MAX);
        short.shorten();
        assert_eq!(short.messages().len(), MESSAGES_LOADED_MAX);
    }
}
