//! The messages that a model is shown, in order. They are shown anew with every request and change only at
//! their end, so those before it are kept in blocks that all requests share, with what a wire makes of
//! them. Pure.

use std::sync::{Arc, OnceLock};

use crate::limits::BLOCK_WRITTEN_BYTES_MAX;
use crate::message::Message;

/// So few that those which are in no block yet are quickly shared one by one.
const BLOCK: usize = 16;

/// Cloning shares all of them.
#[derive(Clone, Debug, Default)]
pub struct Messages {
    blocks: Vec<Arc<Block>>,
    rest: Vec<Arc<Message>>,
}

/// Messages that stay as they are.
#[derive(Debug)]
pub struct Block {
    messages: Vec<Arc<Message>>,
    /// Of their texts.
    bytes: usize,
    written: OnceLock<Option<Box<[u8]>>>,
}

/// Messages that are looked at together.
#[derive(Clone, Copy, Debug)]
pub enum Part<'a> {
    Block(&'a Block),
    One(&'a Message),
}

impl Messages {
    pub fn push(&mut self, message: Arc<Message>) {
        self.rest.push(message);
        if self.rest.len() >= BLOCK {
            self.blocks.push(Arc::new(Block::new(std::mem::take(&mut self.rest))));
        }
    }

    /// Forgets the messages from this one on.
    pub fn truncate(&mut self, len: usize) {
        let whole = (len / BLOCK).min(self.blocks.len());
        let cut = self.blocks.drain(whole..).flat_map(|block| block.messages.clone());
        let rest = cut.chain(std::mem::take(&mut self.rest));
        self.rest = rest.take(len - whole * BLOCK).collect();
    }

    pub fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        let blocks = self.blocks.iter().map(|block| Part::Block(block));
        blocks.chain(self.rest.iter().map(|message| Part::One(message)))
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Message> {
        let blocks = self.blocks.iter().flat_map(|block| &block.messages);
        blocks.chain(&self.rest).map(Arc::as_ref)
    }

    pub fn last(&self) -> Option<&Message> {
        self.iter().next_back()
    }

    pub fn len(&self) -> usize {
        self.blocks.len() * BLOCK + self.rest.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How long their texts are together.
    pub fn bytes(&self) -> usize {
        let blocks = self.blocks.iter().map(|block| block.bytes);
        blocks.sum::<usize>() + bytes(&self.rest)
    }
}

impl FromIterator<Arc<Message>> for Messages {
    fn from_iter<I: IntoIterator<Item = Arc<Message>>>(messages: I) -> Self {
        let mut all = Self::default();
        messages.into_iter().for_each(|message| all.push(message));
        all
    }
}

impl PartialEq for Messages {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Block {
    fn new(messages: Vec<Arc<Message>>) -> Self {
        Self { bytes: bytes(&messages), messages, written: OnceLock::new() }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Message> {
        self.messages.iter().map(Arc::as_ref)
    }

    /// What chat completions make of these messages, written by whoever is the first to ask. None where
    /// it depends on what stands before, and where it is so long that keeping it is not worth it.
    pub fn written(&self, write: impl FnOnce(&Self) -> Option<Vec<u8>>) -> Option<&[u8]> {
        if self.bytes > BLOCK_WRITTEN_BYTES_MAX {
            return None;
        }
        self.written.get_or_init(|| write(self).map(Vec::into_boxed_slice)).as_deref()
    }
}

fn bytes(messages: &[Arc<Message>]) -> usize {
    messages.iter().map(|message| message.content().len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(number: usize) -> Arc<Message> {
        Arc::new(Message::User { content: number.to_string().into(), meta: None })
    }

    fn shown(messages: &Messages) -> Vec<String> {
        let parts = messages.parts().flat_map(|part| match part {
            Part::Block(block) => block.iter().collect(),
            Part::One(message) => vec![message],
        });
        let parts: Vec<String> = parts.map(|message| message.content().to_owned()).collect();
        let all: Vec<String> =
            messages.iter().map(|message| message.content().to_owned()).collect();
        assert_eq!(parts, all);
        assert_eq!(messages.len(), all.len());
        assert_eq!(messages.is_empty(), all.is_empty());
        assert_eq!(messages.bytes(), all.concat().len());
        assert_eq!(messages.last().map(Message::content), all.last().map(String::as_str));
        all
    }

    #[test]
    fn messages_stay_in_their_order_however_many_are_cut_off() {
        let numbers = |range: std::ops::Range<usize>| -> Vec<String> {
            range.map(|number| number.to_string()).collect()
        };
        for count in 0..3 * BLOCK + 2 {
            let all: Messages = (0..count).map(message).collect();
            assert_eq!(shown(&all), numbers(0..count));
            for kept in 0..=count {
                let mut cut = all.clone();
                cut.truncate(kept);
                assert_eq!(shown(&cut), numbers(0..kept));
                (kept..count).for_each(|number| cut.push(message(number)));
                assert_eq!(cut, all);
            }
        }
    }

    #[test]
    fn a_block_is_written_once_for_all_who_share_it() {
        let all: Messages = (0..BLOCK).map(message).collect();
        let shared = all.clone();
        let block = |messages: &Messages| Arc::clone(&messages.blocks[0]);
        assert_eq!(block(&all).written(|_| Some(vec![1])), Some(&[1][..]));
        assert_eq!(block(&shared).written(|_| panic!("it is written")), Some(&[1][..]));
        let long = "x".repeat(BLOCK_WRITTEN_BYTES_MAX / BLOCK + 1);
        let long = Arc::new(Message::User { content: long.into(), meta: None });
        let long: Messages = std::iter::repeat_n(long, BLOCK).collect();
        assert_eq!(block(&long).written(|_| panic!("it is too long")), None);
    }
}
