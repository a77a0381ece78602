//! What was said before somebody came: the last messages of a conversation.

use serde_json::Value;

use super::{Attached, Core, Feed};
use crate::limits::terminal::MESSAGE_LINES_ON_ATTACH;
use crate::message::Message;
use crate::terminal::line::{Line, Tone};
use crate::terminal::markdown::Markdown;

impl Core {
    pub(super) fn show_earlier(&mut self, attached: &Attached) {
        if self.printed {
            self.print(vec![Line::new()]);
        }
        let agent = &attached.agent;
        self.note(Tone::Heading, &format!("── {agent} ──"));
        let earlier = attached.total.saturating_sub(attached.messages.len());
        if earlier > 0 && !attached.messages.is_empty() {
            let count = if earlier == 1 { "message" } else { "messages" };
            self.note(Tone::Dim, &format!("… {earlier} earlier {count}: /messages"));
        }
        let mut lines: Vec<Line> = Vec::new();
        for numbered in &attached.messages {
            let mut said = lines_of(&numbered.message, self.feed, self.width());
            if said.len() > MESSAGE_LINES_ON_ATTACH {
                let more = said.len() - MESSAGE_LINES_ON_ATTACH;
                said.truncate(MESSAGE_LINES_ON_ATTACH);
                said.push(Line::of(Tone::Dim, &format!("  … {more} more lines")));
            }
            lines.extend(said);
        }
        self.print(lines);
        if attached.missed > 0 {
            let told = format!("… up to {} that came meanwhile are not here", attached.missed);
            self.note(Tone::Dim, &format!("{told}: /messages"));
        }
    }
}

/// A message that somebody sent: who, where that was not the person here, and all of its lines.
pub fn message(from: Option<&str>, content: &str) -> Vec<Line> {
    let mark = from.map_or_else(|| "› ".to_owned(), |from| format!("{from} › "));
    let mut lines = vec![Line::new()];
    for (index, text) in content.trim_end().lines().enumerate() {
        let start = if index == 0 { mark.as_str() } else { "  " };
        let tone = if from.is_some() { Tone::Loud } else { Tone::Own };
        lines.push(Line::of(tone, start).with(tone, text).hanging(2));
    }
    lines
}

fn lines_of(message: &Message, feed: Feed, width: usize) -> Vec<Line> {
    match message {
        Message::User { content, meta } => {
            let other = meta.as_ref().map(|meta| {
                let agent = meta.source_agent_id.as_ref();
                agent.map_or_else(|| meta.source.clone(), ToString::to_string)
            });
            self::message(other.as_deref().filter(|from| *from != super::super::CLIENT), content)
        }
        Message::Assistant { content, tool_calls, .. } => {
            let mut markdown = Markdown::new(width);
            let mut lines = markdown.push(content);
            lines.extend(markdown.finish());
            let calls = if feed == Feed::Off { &[] } else { tool_calls.as_slice() };
            lines.extend(calls.iter().map(|call| {
                let arguments = match &call.arguments {
                    Value::String(raw) => raw.clone(),
                    arguments => arguments.to_string(),
                };
                Line::of(Tone::Dim, &format!("  → {} {arguments}", call.name)).cut(200).hanging(4)
            }));
            lines
        }
        Message::Tool { .. } if feed == Feed::Off => Vec::new(),
        Message::Tool { content, .. } => {
            let first = content.trim_start().lines().next().unwrap_or_default();
            vec![Line::of(Tone::Dim, &format!("  ← {first}")).cut(200).hanging(4)]
        }
    }
}
