//! The built-in model: no network, no key, no understanding. It shows that a conversation works:
//! it says what it is, repeats what it was told, and calls a tool when asked to.
//! Deterministic: the same request gets the same events, and it never waits.

use futures_util::stream;
use serde_json::Value;

use super::{FinishReason, ModelEvent, ModelRequest, ModelStream, Provider};
use crate::message::{Message, Usage};
use crate::messages::Messages;

/// How much of a message or a result is repeated.
const QUOTE_CHARS_MAX: usize = 400;
/// Small enough that even a short answer arrives in several chunks.
const CHUNK_WORDS: usize = 4;
/// The user's message `call TOOL {json}` makes the model call that tool.
const CALL: &str = "call";

pub(super) struct Demo;

impl Provider for Demo {
    fn stream(&self, request: ModelRequest) -> ModelStream {
        let events = answer(&request);
        Box::pin(stream::iter(events.into_iter().map(Ok)))
    }
}

fn answer(request: &ModelRequest) -> Vec<ModelEvent> {
    let answer = match request.messages.last() {
        Some(Message::User { content, meta: _ }) => match parse_call(content) {
            Some(wish) => call(request, &wish),
            None => Answer::Text(introduction(content)),
        },
        Some(Message::Tool { .. }) => Answer::Text(report(&request.messages)),
        Some(Message::Assistant { .. }) | None => Answer::Text("I was told nothing.".to_owned()),
    };
    let (mut events, output_words, reason) = match answer {
        Answer::Text(text) => {
            let chunks = chunks(&text).map(ModelEvent::Text).collect();
            (chunks, words(&text), FinishReason::Stop)
        }
        Answer::Call { name, arguments } => {
            let output_words = words(&name) + words(&arguments);
            let events = call_events(request, name, arguments);
            (events, output_words, FinishReason::ToolCalls)
        }
    };
    events.push(ModelEvent::Usage(Usage {
        input_tokens: input_words(request),
        output_tokens: output_words,
    }));
    events.push(ModelEvent::Finished(reason));
    events
}

enum Answer {
    Text(String),
    Call { name: String, arguments: String },
}

/// A wish for a tool call as it was typed.
struct Wish<'a> {
    tool: &'a str,
    arguments: &'a str,
}

fn parse_call(content: &str) -> Option<Wish<'_>> {
    let rest = content.trim().strip_prefix(CALL)?;
    if !rest.starts_with(char::is_whitespace) {
        return None;
    }
    let rest = rest.trim_start();
    let (tool, arguments) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    Some(Wish { tool, arguments: arguments.trim() })
}

fn call(request: &ModelRequest, wish: &Wish<'_>) -> Answer {
    let tool = wish.tool;
    if !request.tools.iter().any(|known| known.name == tool) {
        let tool = quote(tool);
        let names: Vec<&str> = request.tools.iter().map(|known| known.name.as_ref()).collect();
        return Answer::Text(if names.is_empty() {
            format!("There is no tool `{tool}`: this agent has no tools.")
        } else {
            let names = names.join(", ");
            format!("There is no tool `{tool}`. There are: {names}.")
        });
    }
    let arguments = match wish.arguments {
        "" => "{}",
        typed => typed,
    };
    match serde_json::from_str::<Value>(arguments) {
        Ok(Value::Object(_)) => {
            Answer::Call { name: tool.to_owned(), arguments: arguments.to_owned() }
        }
        Ok(_) | Err(_) => Answer::Text(format!(
            "The arguments of `{tool}` must be one JSON object, as in `{CALL} {tool} {{}}`."
        )),
    }
}

fn call_events(request: &ModelRequest, name: String, arguments: String) -> Vec<ModelEvent> {
    let calls_before: usize = request.messages.iter().map(calls_in).sum();
    vec![
        ModelEvent::ToolCallStarted { index: 0, id: format!("call_{}", calls_before + 1), name },
        ModelEvent::ToolCallDelta { index: 0, arguments },
    ]
}

fn calls_in(message: &Message) -> usize {
    match message {
        Message::Assistant { tool_calls, .. } => tool_calls.len(),
        Message::User { .. } | Message::Tool { .. } => 0,
    }
}

fn introduction(content: &str) -> String {
    format!(
        "I am the demo model built into NEXUS3: no network, no key, no understanding. \
         You said: \"{}\" Ask me to `{CALL} TOOL {{json}}` and I will call that tool.",
        quote(content)
    )
}

/// Says what the tools of the last message answered.
fn report(messages: &Messages) -> String {
    let asking = messages.iter().rfind(|message| calls_in(message) > 0);
    let answers = messages.iter().rev().take_while(|message| calls_in(message) == 0);
    let answers: Vec<&Message> = answers.collect();
    let results = answers.into_iter().rev().filter_map(|message| match message {
        Message::Tool { content, tool_call_id, meta } => {
            let name =
                asking.map_or(tool_call_id.as_str(), |asking| tool_name(asking, tool_call_id));
            let failed = meta.as_ref().is_some_and(|meta| meta.error);
            let verb = if failed { "failed" } else { "answered" };
            Some(format!("The tool `{name}` {verb}: \"{}\"", quote(content)))
        }
        Message::User { .. } | Message::Assistant { .. } => None,
    });
    results.collect::<Vec<_>>().join("\n")
}

fn tool_name<'a>(message: &'a Message, id: &'a str) -> &'a str {
    match message {
        Message::Assistant { tool_calls, .. } => {
            tool_calls.iter().find(|call| call.id == id).map_or(id, |call| &call.name)
        }
        Message::User { .. } | Message::Tool { .. } => id,
    }
}

fn quote(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(QUOTE_CHARS_MAX) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_owned(),
    }
}

/// The text in pieces of a few words each; together they are the text.
fn chunks(text: &str) -> impl Iterator<Item = String> {
    let words: Vec<&str> = text.split_inclusive(' ').collect();
    let chunks: Vec<String> = words.chunks(CHUNK_WORDS).map(<[&str]>::concat).collect();
    chunks.into_iter()
}

/// Usage is counted in words: enough to see the numbers move, and the same everywhere.
fn words(text: &str) -> u64 {
    text.split_whitespace().count() as u64
}

fn input_words(request: &ModelRequest) -> u64 {
    let messages = request.messages.iter().map(|message| words(message.content()));
    words(&request.system) + messages.sum::<u64>()
}

#[cfg(test)]
#[path = "demo_tests.rs"]
mod tests;
