//! Messages and events as people read them, in Markdown.
//! Pure. Every entry begins with `## ` and a time, and no line of a message can look like that.

use std::fmt::Write;

use serde_json::Value;

use super::queue::LogFile;
use crate::event::{Ended, Event, Seq, What};
use crate::id::AgentId;
use crate::limits::{LOG_PREVIEW_BYTES_MAX, LOG_TEXT_BYTES_MAX, NAME_CHARS_SHOWN_MAX};
use crate::message::{Message, ToolCall};

/// A message of a conversation.
pub(super) fn message(at: &str, message: &Message) -> String {
    match message {
        Message::User { content, meta } => {
            let from = match meta {
                Some(meta) => match &meta.source_agent_id {
                    Some(agent) => format!(" (from {} `{agent}`)", one_line(&meta.source)),
                    None => format!(" (from {})", one_line(&meta.source)),
                },
                None => String::new(),
            };
            entry(at, &format!("user{from}"), &spoken(content))
        }
        Message::Assistant { content, tool_calls, meta } => {
            let partial = match meta {
                Some(meta) => format!(" (breaks off: {})", one_line(&meta.partial)),
                None => String::new(),
            };
            let calls = tool_calls.iter().map(call);
            let said = (!content.is_empty()).then(|| spoken(content));
            let body = said.into_iter().chain(calls).collect::<Vec<_>>().join("\n\n");
            entry(at, &format!("assistant{partial}"), &body)
        }
        Message::Tool { content, tool_call_id, meta } => {
            let failed = if meta.as_ref().is_some_and(|meta| meta.error) { " (error)" } else { "" };
            let heading = format!("result of {}{failed}", quoted(tool_call_id));
            entry(at, &heading, &fenced(&cut(content, LOG_PREVIEW_BYTES_MAX), ""))
        }
    }
}

/// What an event adds to a transcript; `None` where the messages say it all.
pub(super) fn note(event: &Event) -> Option<String> {
    let (heading, body) = match &event.what {
        What::AgentCreated { parent_agent_id } => {
            (format!("agent created{}", child_of(parent_agent_id.as_ref())), String::new())
        }
        What::AgentRestored { parent_agent_id } => {
            (format!("agent restored{}", child_of(parent_agent_id.as_ref())), String::new())
        }
        What::AgentUpdated { parent_agent_id: _, changed, previous_agent_id: _ } => {
            let changed: Vec<_> =
                changed.iter().map(|(field, new)| format!("{field} is now {new}")).collect();
            (format!("agent changed: {}", changed.join(", ")), String::new())
        }
        What::AgentDestroyed { parent_agent_id: _ } => {
            ("agent destroyed".to_owned(), String::new())
        }
        What::TurnCancelled(ended) => ended_early(event, "cancelled", ended),
        What::TurnFailed(ended) => ended_early(event, "failed", ended),
        What::TurnInterrupted(ended) => ended_early(event, "interrupted", ended),
        What::TurnCompleted { halted: true, .. } => {
            (format!("{} halted at its limit of tool iterations", turn(event)), String::new())
        }
        What::ProviderRetry { attempt, after_ms, reason } => {
            let heading =
                format!("model asked again after {after_ms} ms (attempt {attempt} failed)");
            (heading, reason.clone())
        }
        What::Compacted { tokens_before, tokens_after } => {
            let tokens = format!("{tokens_before} tokens became {tokens_after}");
            (format!("older messages summed up: {tokens}"), String::new())
        }
        What::ConfirmationRequested { confirm_id, tool, target, options, .. } => {
            let target = target.as_ref().map(|target| format!(" on {}", quoted(target)));
            let options: Vec<_> = options.iter().map(|option| option.name()).collect();
            let what = format!("{}{}", quoted(&tool.name), target.unwrap_or_default());
            (format!("confirmation {confirm_id} asked for: {what}"), options.join(", "))
        }
        What::ConfirmationResolved { confirm_id, decision, reason, resolved_by, .. } => {
            let why = reason.as_ref().map(|reason| format!(" ({})", one_line(reason)));
            let (why, by) = (why.unwrap_or_default(), one_line(resolved_by));
            (format!("confirmation {confirm_id}: {}{why} by {by}", decision.name()), String::new())
        }
        What::TurnCompleted { halted: false, .. }
        | What::TurnQueued { .. }
        | What::TurnStarted { .. }
        | What::BatchStarted(_)
        | What::BatchHalted(_)
        | What::BatchCompleted(_)
        | What::ToolStarted { .. }
        | What::ToolCompleted { .. }
        | What::ContentChunk { .. }
        | What::ThinkingStarted {}
        | What::ThinkingEnded { .. }
        | What::ToolDetected { .. }
        | What::ToolProgress { .. }
        | What::TurnSnapshot { .. }
        | What::StreamGap { .. }
        | What::ServerStopping {} => return None,
    };
    Some(entry(&event.at, &heading, &body))
}

/// A durable event with everything it says.
pub(super) fn verbose(seq: Seq, event: &Event) -> String {
    let what = serde_json::to_value(&event.what).expect("events have only string keys");
    let mut short = String::new();
    if let Some(request) = &event.request_id {
        let _ = writeln!(short, "- request: {}", quoted(request.as_str()));
    }
    let mut long = String::new();
    for (name, value) in what.as_object().into_iter().flatten().filter(|(name, _)| *name != "type")
    {
        match value {
            Value::Null => {}
            Value::Bool(_) | Value::Number(_) => {
                let _ = writeln!(short, "- {name}: {value}");
            }
            Value::String(text) if is_short(text) => {
                let _ = writeln!(short, "- {name}: {}", quoted(text));
            }
            Value::String(text) => {
                let _ =
                    write!(long, "\n{name}:\n\n{}\n", fenced(&cut(text, LOG_TEXT_BYTES_MAX), ""));
            }
            Value::Array(_) | Value::Object(_) => {
                let _ = write!(long, "\n{name}:\n\n{}\n", json(value));
            }
        }
    }
    entry(&event.at, &format!("{} (event {seq})", event.what.name()), &format!("{short}{long}"))
}

/// Tells in a file that some of its entries were not written.
pub(super) fn lacking(file: LogFile, at: &str, entries: u64) -> String {
    match file {
        LogFile::Context | LogFile::Verbose => {
            let heading = match entries {
                1 => "1 entry was not written here".to_owned(),
                _ => format!("{entries} entries were not written here"),
            };
            entry(at, &heading, "")
        }
        LogFile::Raw => {
            let line = serde_json::json!({ "at": at, "direction": "lost", "entries": entries });
            format!("{line}\n")
        }
    }
}

fn entry(at: &str, heading: &str, body: &str) -> String {
    match body.trim_end_matches('\n') {
        "" => format!("## {at} {heading}\n\n"),
        body => format!("## {at} {heading}\n\n{body}\n\n"),
    }
}

fn child_of(parent: Option<&AgentId>) -> String {
    parent.map_or_else(String::new, |parent| format!(" as a child of `{parent}`"))
}

/// The turn that an event is about. Of several that end at once it is the id that tells them apart.
fn turn(event: &Event) -> String {
    match &event.request_id {
        Some(request) => format!("turn {}", quoted(request.as_str())),
        None => "turn".to_owned(),
    }
}

fn ended_early(event: &Event, how: &str, ended: &Ended) -> (String, String) {
    let body = match &ended.error {
        Some(error) => spoken(&error.message),
        None => String::new(),
    };
    // Often the reason is only another word for the same.
    let why = match ended.reason.as_str() {
        reason if reason == how => String::new(),
        reason => format!(" ({})", one_line(reason)),
    };
    (format!("{} {how}{why}", turn(event)), body)
}

fn call(call: &ToolCall) -> String {
    let (name, id) = (quoted(&call.name), quoted(&call.id));
    let arguments = match &call.arguments {
        Value::String(raw) => fenced(&cut(raw, LOG_PREVIEW_BYTES_MAX), ""),
        object => json(object),
    };
    format!("calls {name} as {id}\n\n{arguments}")
}

fn json(value: &Value) -> String {
    let text = format!("{value:#}");
    fenced(&cut(&text, LOG_PREVIEW_BYTES_MAX), "json")
}

/// What somebody said, as they said it, but for lines that could be taken for entries of ours.
fn spoken(text: &str) -> String {
    let text = cut(text, LOG_TEXT_BYTES_MAX);
    let line = |line: &str| {
        if line.starts_with("## ") { format!("\\{line}") } else { line.to_owned() }
    };
    // A lone carriage return begins a line in many a reader.
    text.split(['\n', '\r']).map(line).collect::<Vec<_>>().join("\n")
}

/// A block that shows text as it is, with a fence longer than any in the text.
fn fenced(text: &str, language: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(3.max(longest + 1));
    // In a block a backslash would be shown: a space keeps the line from looking like an entry.
    let line = |line: &str| {
        if line.starts_with("## ") { format!(" {line}") } else { line.to_owned() }
    };
    let text = text.split(['\n', '\r']).map(line).collect::<Vec<_>>().join("\n");
    format!("{fence}{language}\n{}\n{fence}", text.trim_end_matches('\n'))
}

fn quoted(text: &str) -> String {
    format!("`{}`", one_line(text).replace('`', "'"))
}

fn is_short(text: &str) -> bool {
    text.chars().take(NAME_CHARS_SHOWN_MAX + 1).count() <= NAME_CHARS_SHOWN_MAX
        && !text.contains(|c: char| c.is_control() || c == '`')
}

/// A name on one line, however long and wild it is.
fn one_line(text: &str) -> String {
    let shown = text.chars().take(NAME_CHARS_SHOWN_MAX);
    shown.map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// At most `bytes_max` bytes of a text, cut between characters, and how much was left out.
fn cut(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(bytes_max);
    format!("{}\n… {} bytes more", &text[..end], text.len() - end)
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
