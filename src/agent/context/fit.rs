//! Which messages a model is shown when not all of them fit: the oldest go first, in whole groups; the
//! first user message and the newest group stay, and are shortened where even they are too long.
//! Pure.

use std::ops::Range;
use std::sync::Arc;

use serde_json::{Value, json};

use super::super::conversation::Entry;
use super::super::tokens::{Encoding, around};
use super::shorten;
use crate::limits::SHORTENED_TOKENS_MIN;
use crate::message::{Message, ToolCall};

/// The messages that stay, with at most `room` tokens; `None` where nothing can be done.
pub(super) fn fit(
    entries: &[Arc<Entry>],
    room: u64,
    encoding: Encoding,
) -> Option<Vec<Arc<Message>>> {
    let tokens = |range: Range<usize>| -> u64 {
        entries[range].iter().map(|entry| entry.tokens(encoding)).sum()
    };
    if tokens(0..entries.len()) <= room {
        return Some(entries.iter().map(|entry| Arc::clone(&entry.message)).collect());
    }
    let groups = groups(entries);
    let newest = groups.last()?.clone();
    let is_user = |entry: &Arc<Entry>| matches!(*entry.message, Message::User { .. });
    let first = entries[..newest.start].iter().position(is_user);
    let first = first.map_or(0..0, |first| first..first + 1);
    let mut kept = newest.start;
    let mut used = tokens(first.clone()) + tokens(newest);
    if used <= room {
        for group in groups.iter().rev().skip(1) {
            used += tokens(group.clone());
            if used > room || group.start <= first.start {
                break;
            }
            kept = group.start;
        }
        let stay = entries[first].iter().chain(&entries[kept..]);
        return Some(stay.map(|entry| Arc::clone(&entry.message)).collect());
    }
    let stay: Vec<&Message> =
        entries[first].iter().chain(&entries[kept..]).map(|entry| &*entry.message).collect();
    shortened(&stay, room, encoding)
}

/// A group: one message, or an assistant's with all its results.
pub(super) fn groups(entries: &[Arc<Entry>]) -> Vec<Range<usize>> {
    let mut groups: Vec<Range<usize>> = Vec::new();
    for (place, entry) in entries.iter().enumerate() {
        match (&*entry.message, groups.last_mut()) {
            (Message::Tool { .. }, Some(group)) => group.end = place + 1,
            (Message::Tool { .. }, None)
            | (Message::User { .. } | Message::Assistant { .. }, _) => {
                groups.push(place..place + 1);
            }
        }
    }
    groups
}

/// The messages with their longest texts cut to the same length, the longest that lets all fit.
fn shortened(messages: &[&Message], room: u64, encoding: Encoding) -> Option<Vec<Arc<Message>>> {
    let mut fixed = 0;
    let mut lengths = Vec::new();
    for message in messages {
        fixed += around(message);
        match message {
            Message::User { content, .. } => lengths.push(encoding.text(content)),
            Message::Tool { content, .. } => lengths.push(encoding.text(content)),
            Message::Assistant { content, tool_calls, .. } => {
                lengths.push(encoding.text(content));
                fixed += tool_calls.iter().map(|call| encoding.text(&call.name)).sum::<u64>();
                let arguments = tool_calls.iter().map(|call| call.arguments.to_string());
                lengths.extend(arguments.map(|arguments| encoding.text(&arguments)));
            }
        }
    }
    let longest = longest(lengths, room.checked_sub(fixed)?)?;
    let cut = messages.iter().map(|message| Arc::new(cut(message, longest, encoding)));
    let cut: Vec<Arc<Message>> = cut.collect();
    let tokens: u64 = cut.iter().map(|message| encoding.message(message)).sum();
    assert!(tokens <= room, "{tokens} tokens fit into {room}");
    Some(cut)
}

/// How long a text may be for all of them to fit; `None` where that is too short to say anything.
fn longest(mut lengths: Vec<u64>, room: u64) -> Option<u64> {
    lengths.sort_unstable();
    let mut left = room;
    for (place, length) in lengths.iter().enumerate() {
        let share = left / (lengths.len() - place) as u64;
        if *length > share {
            return (share >= SHORTENED_TOKENS_MIN).then_some(share);
        }
        left -= length;
    }
    Some(u64::MAX)
}

fn cut(message: &Message, longest: u64, encoding: Encoding) -> Message {
    let text = |text: &str| shorten::to_tokens(text, longest, encoding, str::to_owned);
    match message {
        Message::User { content, meta } => {
            Message::User { content: text(content).into(), meta: meta.clone() }
        }
        Message::Tool { content, tool_call_id, meta } => Message::Tool {
            content: text(content),
            tool_call_id: tool_call_id.clone(),
            meta: meta.clone(),
        },
        Message::Assistant { content, tool_calls, meta } => Message::Assistant {
            content: text(content),
            tool_calls: tool_calls.iter().map(|call| cut_call(call, longest, encoding)).collect(),
            meta: meta.clone(),
        },
    }
}

/// Arguments stay an object, which is what every wire wants them to be.
fn cut_call(call: &ToolCall, longest: u64, encoding: Encoding) -> ToolCall {
    let whole = call.arguments.to_string();
    let object = |text: &str| -> Value { json!({ "shortened": text }) };
    let arguments = if encoding.text(&whole) <= longest {
        call.arguments.clone()
    } else {
        object(&shorten::to_tokens(&whole, longest, encoding, |text| object(text).to_string()))
    };
    ToolCall { id: call.id.clone(), name: call.name.clone(), arguments }
}
