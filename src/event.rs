//! The one event type: what is kept, streamed and written into transcripts are views of it.
//! Durable events have a `seq` once they are committed; live ones are never kept. Pure.

use std::borrow::Cow;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::fmt::temporal::DateTimePrinter;
use jiff::tz::Offset;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::choice::Choice;
use crate::code::ErrorObject;
use crate::id::{AgentId, ConfirmId, RequestId};
use crate::json::Object;
use crate::limits::{
    CONFIRMATION_PARAMS_BYTES_MAX, CONFIRMATION_TEXT_CHARS_MAX, EVENT_OUTPUT_CHARS_MAX,
    EVENT_PARAMS_CHARS_MAX,
};
use crate::message::{ToolCall, Usage};

/// The place of a durable event in the server's one order: given at commit, strictly increasing over
/// all agents and over restarts.
pub type Seq = u64;

/// Why a confirmation was decided at once: nobody was there who could have been asked.
pub const NO_CONFIRMER: &str = "no_confirmer";

/// Where a text begins, so that it need not grow: most events are shorter.
const EVENT_BYTES_USUAL: usize = 512;
/// How most events begin that are told.
const CHUNK_OPENING: &str = r#"{"type":"content_chunk","#;
/// Times before the year 0 and after 9999, which are longer.
static ISO: DateTimePrinter = DateTimePrinter::new().precision(Some(3));

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    #[serde(flatten)]
    pub what: What,
    /// Null where it is about the whole server.
    pub agent_id: Option<AgentId>,
    /// ISO 8601, UTC.
    pub at: Arc<str>,
    /// The turn it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<RequestId>,
    /// Of durable events only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<Seq>,
}

/// What happened. Those from `ContentChunk` on are live.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum What {
    AgentCreated {
        parent_agent_id: Option<AgentId>,
    },
    AgentDestroyed {
        parent_agent_id: Option<AgentId>,
    },
    AgentRestored {
        parent_agent_id: Option<AgentId>,
    },
    AgentUpdated {
        parent_agent_id: Option<AgentId>,
        /// The fields of its entry that are new, with what they are now.
        changed: Map<String, Value>,
        /// What it was called until now, where it got another id: its earlier events say that one, and
        /// are found under the new one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        previous_agent_id: Option<AgentId>,
    },
    TurnQueued {
        /// Turns ahead of it.
        position: usize,
    },
    TurnStarted {
        content: Arc<str>,
        source: String,
        source_agent_id: Option<AgentId>,
    },
    BatchStarted(Batch),
    /// A call failed, and those after it were not run.
    BatchHalted(Batch),
    BatchCompleted(Batch),
    ToolStarted {
        tool_id: String,
        name: String,
        /// A preview.
        params: String,
    },
    ToolCompleted {
        tool_id: String,
        name: String,
        params: String,
        success: bool,
        error: Option<String>,
        /// A preview.
        output: String,
    },
    /// The model could not be asked, and is asked again.
    ProviderRetry {
        /// The attempt that failed, from 1.
        attempt: u32,
        /// The wait before the next one.
        after_ms: u64,
        reason: String,
    },
    /// A summary stands for older messages, so that the next request has fewer tokens.
    Compacted {
        tokens_before: u64,
        tokens_after: u64,
    },
    /// A call waits until somebody allows or denies it.
    ConfirmationRequested {
        confirm_id: ConfirmId,
        tool: AskedTool,
        /// What the call uses, without links; the program of one that starts something.
        target: Option<String>,
        /// Where it works.
        cwd: Option<String>,
        timeout_s: f64,
        options: Vec<Choice>,
    },
    ConfirmationResolved {
        confirm_id: ConfirmId,
        decision: Choice,
        /// Why the server decided it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// A client's name, or `server`.
        resolved_by: String,
        /// ISO 8601, UTC.
        resolved_at: Arc<str>,
    },
    TurnCompleted {
        content: Arc<str>,
        halted: bool,
        finish_reason: String,
        usage: Usage,
    },
    TurnCancelled(Ended),
    TurnFailed(Ended),
    TurnInterrupted(Ended),

    ContentChunk {
        text: String,
        /// Characters of this turn's text before it.
        offset: usize,
    },
    ThinkingStarted {},
    ThinkingEnded {
        duration_ms: u64,
    },
    ToolDetected {
        tool_id: String,
        name: String,
    },
    /// How far a running call is, by the words of the MCP server that runs it.
    ToolProgress {
        tool_id: String,
        name: String,
        progress: f64,
        /// What `progress` is at the end, where that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        total: Option<f64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// The running turn's text so far.
    TurnSnapshot {
        text: String,
        /// Its length in characters: where the next chunk goes on.
        offset: usize,
    },
    /// Durable events that were asked for and are no longer kept.
    StreamGap {
        from: Seq,
        to: Seq,
    },
    ServerStopping {},
}

/// The tool calls of one answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Batch {
    pub tools: Vec<BatchTool>,
    pub parallel: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BatchTool {
    pub tool_id: String,
    pub name: String,
}

/// A call that somebody is asked to confirm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AskedTool {
    pub name: String,
    /// The arguments; very long texts are cut, and say so.
    pub params: Value,
}

/// A turn that did not complete.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ended {
    pub reason: String,
    pub error: Option<ErrorObject>,
    /// The text so far.
    pub partial: String,
}

/// A durable event with its place in the order, written out once for everybody who reads it.
#[derive(Clone, Debug, PartialEq)]
pub struct Committed {
    pub seq: Seq,
    pub event: Event,
    /// One line of JSON.
    pub json: Arc<str>,
}

/// Who is told of events once they are committed, in their order, before anybody else is.
pub trait Audience: Send + Sync {
    /// Called with each commit's events. It must not wait.
    fn publish(&self, events: &[Committed]);
}

impl Event {
    pub fn new(agent: &AgentId, at: Timestamp, what: What) -> Self {
        Self { what, agent_id: Some(agent.clone()), at: iso(at), request_id: None, seq: None }
    }

    #[must_use]
    pub fn of(mut self, request: &RequestId) -> Self {
        self.request_id = Some(request.clone());
        self
    }

    /// One line of JSON.
    pub fn json(&self) -> String {
        // There is one for every piece of every answer.
        let text = if let What::ContentChunk { text, offset } = &self.what {
            Object::build(EVENT_BYTES_USUAL, |event| {
                event.word("type", self.what.name());
                event.text("text", text);
                event.value("offset", offset);
                self.put_envelope(event);
            })
        } else {
            let mut text = Vec::with_capacity(EVENT_BYTES_USUAL);
            serde_json::to_writer(&mut text, self).expect("events have only string keys");
            text
        };
        String::from_utf8(text).expect("JSON is text")
    }

    fn put_envelope(&self, event: &mut Object<'_>) {
        match &self.agent_id {
            Some(agent_id) => event.text("agent_id", agent_id.as_str()),
            None => event.value("agent_id", &()),
        }
        event.text("at", &self.at);
        if let Some(request_id) = &self.request_id {
            event.text("request_id", request_id.as_str());
        }
        if let Some(seq) = self.seq {
            event.value("seq", &seq);
        }
    }

    /// Reads what `json` wrote. It does what deserialising does, in a fifth of the time where it is a
    /// chunk: what an event is about decides on its members, so the others are gathered before they
    /// are read.
    pub fn read(json: &str) -> serde_json::Result<Self> {
        #[derive(Deserialize)]
        struct Chunk<'a> {
            text: String,
            offset: usize,
            agent_id: Option<AgentId>,
            #[serde(borrow)]
            at: Cow<'a, str>,
            request_id: Option<RequestId>,
            seq: Option<Seq>,
        }
        if !json.starts_with(CHUNK_OPENING) {
            return serde_json::from_str(json);
        }
        let Chunk { text, offset, agent_id, at, request_id, seq } = serde_json::from_str(json)?;
        let (what, at) = (What::ContentChunk { text, offset }, at.into());
        Ok(Self { what, agent_id, at, request_id, seq })
    }
}

impl What {
    /// Its name on the wire.
    pub fn name(&self) -> &'static str {
        match self {
            Self::AgentCreated { .. } => "agent_created",
            Self::AgentDestroyed { .. } => "agent_destroyed",
            Self::AgentRestored { .. } => "agent_restored",
            Self::AgentUpdated { .. } => "agent_updated",
            Self::TurnQueued { .. } => "turn_queued",
            Self::TurnStarted { .. } => "turn_started",
            Self::BatchStarted(_) => "batch_started",
            Self::BatchHalted(_) => "batch_halted",
            Self::BatchCompleted(_) => "batch_completed",
            Self::ToolStarted { .. } => "tool_started",
            Self::ToolCompleted { .. } => "tool_completed",
            Self::ProviderRetry { .. } => "provider_retry",
            Self::Compacted { .. } => "compacted",
            Self::ConfirmationRequested { .. } => "confirmation_requested",
            Self::ConfirmationResolved { .. } => "confirmation_resolved",
            Self::TurnCompleted { .. } => "turn_completed",
            Self::TurnCancelled(_) => "turn_cancelled",
            Self::TurnFailed(_) => "turn_failed",
            Self::TurnInterrupted(_) => "turn_interrupted",
            Self::ContentChunk { .. } => "content_chunk",
            Self::ThinkingStarted {} => "thinking_started",
            Self::ThinkingEnded { .. } => "thinking_ended",
            Self::ToolDetected { .. } => "tool_detected",
            Self::ToolProgress { .. } => "tool_progress",
            Self::TurnSnapshot { .. } => "turn_snapshot",
            Self::StreamGap { .. } => "stream_gap",
            Self::ServerStopping {} => "server_stopping",
        }
    }

    /// Whether it is kept, and carries a `seq`.
    pub fn is_durable(&self) -> bool {
        match self {
            Self::AgentCreated { .. }
            | Self::AgentDestroyed { .. }
            | Self::AgentRestored { .. }
            | Self::AgentUpdated { .. }
            | Self::TurnQueued { .. }
            | Self::TurnStarted { .. }
            | Self::BatchStarted(_)
            | Self::BatchHalted(_)
            | Self::BatchCompleted(_)
            | Self::ToolStarted { .. }
            | Self::ToolCompleted { .. }
            | Self::ProviderRetry { .. }
            | Self::Compacted { .. }
            | Self::ConfirmationRequested { .. }
            | Self::ConfirmationResolved { .. }
            | Self::TurnCompleted { .. }
            | Self::TurnCancelled(_)
            | Self::TurnFailed(_)
            | Self::TurnInterrupted(_) => true,
            Self::ContentChunk { .. }
            | Self::ThinkingStarted {}
            | Self::ThinkingEnded { .. }
            | Self::ToolDetected { .. }
            | Self::ToolProgress { .. }
            | Self::TurnSnapshot { .. }
            | Self::StreamGap { .. }
            | Self::ServerStopping {} => false,
        }
    }

    /// Whether it ends its turn.
    pub fn is_terminal(&self) -> bool {
        matches!(
            self,
            Self::TurnCompleted { .. }
                | Self::TurnCancelled(_)
                | Self::TurnFailed(_)
                | Self::TurnInterrupted(_)
        )
    }

    /// What the turn said, of an event that ends one.
    pub fn turn_text(&self) -> Option<&str> {
        match self {
            Self::TurnCompleted { content, .. } => Some(content),
            Self::TurnCancelled(ended) | Self::TurnFailed(ended) | Self::TurnInterrupted(ended) => {
                Some(&ended.partial)
            }
            _ => None,
        }
    }

    pub fn tool_started(call: &ToolCall) -> Self {
        Self::ToolStarted {
            tool_id: call.id.clone(),
            name: call.name.clone(),
            params: params_preview(call),
        }
    }

    pub fn tool_succeeded(call: &ToolCall, output: &str) -> Self {
        Self::ToolCompleted {
            tool_id: call.id.clone(),
            name: call.name.clone(),
            params: params_preview(call),
            success: true,
            error: None,
            output: shortened(output, EVENT_OUTPUT_CHARS_MAX),
        }
    }

    pub fn tool_failed(call: &ToolCall, error: &str) -> Self {
        Self::ToolCompleted {
            tool_id: call.id.clone(),
            name: call.name.clone(),
            params: params_preview(call),
            success: false,
            error: Some(shortened(error, EVENT_OUTPUT_CHARS_MAX)),
            output: String::new(),
        }
    }
}

impl AskedTool {
    /// Whoever confirms a call must see what it is: all of it, but for texts that nobody reads to the
    /// end.
    pub fn of(call: &ToolCall) -> Self {
        let mut params = call.arguments.clone();
        cut_texts(&mut params);
        let text = params.to_string();
        if text.len() > CONFIRMATION_PARAMS_BYTES_MAX {
            let end = text.floor_char_boundary(CONFIRMATION_PARAMS_BYTES_MAX);
            let more = text[end..].chars().count();
            params = Value::String(format!("{}… {more} more characters", &text[..end]));
        }
        Self { name: call.name.clone(), params }
    }
}

fn cut_texts(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Some((end, _)) = text.char_indices().nth(CONFIRMATION_TEXT_CHARS_MAX) {
                let more = text[end..].chars().count();
                *text = format!("{}… {more} more characters", &text[..end]);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(cut_texts),
        Value::Object(members) => members.values_mut().for_each(cut_texts),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

impl Batch {
    pub fn of<'a>(calls: impl Iterator<Item = &'a ToolCall>, parallel: bool) -> Self {
        let tool =
            |call: &ToolCall| BatchTool { tool_id: call.id.clone(), name: call.name.clone() };
        Self { tools: calls.map(tool).collect(), parallel }
    }
}

/// ISO 8601 in UTC, to the millisecond.
pub fn iso(time: Timestamp) -> Arc<str> {
    let civil = Offset::UTC.to_datetime(time);
    let Ok(year) = u16::try_from(civil.year()) else {
        let mut text = String::new();
        ISO.print_timestamp(&time, &mut text).expect("a text takes whatever is written");
        return text.into();
    };
    let mut text = *b"0000-00-00T00:00:00.000Z";
    put(&mut text[..4], year);
    let parts = [civil.month(), civil.day(), civil.hour(), civil.minute(), civil.second()];
    for (at, part) in (5..).step_by(3).zip(parts) {
        put(&mut text[at..at + 2], part.unsigned_abs().into());
    }
    put(&mut text[20..23], civil.millisecond().unsigned_abs());
    str::from_utf8(&text).expect("digits are text").into()
}

/// Puts a number into the place of the zeros that are there.
fn put(digits: &mut [u8], mut number: u16) {
    for digit in digits.iter_mut().rev() {
        *digit += u8::try_from(number % 10).expect("a digit is small");
        number /= 10;
    }
}

fn params_preview(call: &ToolCall) -> String {
    match &call.arguments {
        Value::String(raw) => shortened(raw, EVENT_PARAMS_CHARS_MAX),
        object => shortened(&object.to_string(), EVENT_PARAMS_CHARS_MAX),
    }
}

fn shortened(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        None => text.to_owned(),
        Some(_) => text.chars().take(chars_max - 1).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(what: What) -> Event {
        let agent = AgentId::parse("w1").unwrap();
        let request = RequestId::parse("r1").unwrap();
        Event::new(&agent, "2026-01-01T00:00:00.5Z".parse().unwrap(), what).of(&request)
    }

    #[test]
    fn an_event_is_one_line_with_its_type_and_envelope() {
        let chunk = event(What::ContentChunk { text: "a\nb".into(), offset: 3 });
        assert_eq!(
            chunk.json(),
            r#"{"type":"content_chunk","text":"a\nb","offset":3,"agent_id":"w1","at":"2026-01-01T00:00:00.500Z","request_id":"r1"}"#
        );
        let ended = Ended { reason: "cancelled".into(), error: None, partial: "so f".into() };
        let mut cancelled = event(What::TurnCancelled(ended));
        cancelled.seq = Some(7);
        assert_eq!(
            cancelled.json(),
            r#"{"type":"turn_cancelled","reason":"cancelled","error":null,"partial":"so f","agent_id":"w1","at":"2026-01-01T00:00:00.500Z","request_id":"r1","seq":7}"#
        );
        let read: Event = serde_json::from_str(&cancelled.json()).unwrap();
        assert_eq!(read, cancelled);
        let stopping = Event { agent_id: None, request_id: None, ..event(What::ServerStopping {}) };
        assert_eq!(
            stopping.json(),
            r#"{"type":"server_stopping","agent_id":null,"at":"2026-01-01T00:00:00.500Z"}"#
        );
    }

    #[test]
    fn a_chunk_is_written_and_read_as_any_event() {
        let chunk = event(What::ContentChunk { text: "\"ü\u{1}\n".into(), offset: 3 });
        let whole = Event { agent_id: None, request_id: None, seq: Some(7), ..chunk.clone() };
        for chunk in [chunk, whole] {
            let json = chunk.json();
            assert_eq!(json, serde_json::to_string(&chunk).unwrap());
            assert!(json.starts_with(CHUNK_OPENING));
            assert_eq!(Event::read(&json).unwrap(), chunk);
            assert!(Event::read(&json.replace("offset", "offsets")).is_err());
        }
        let queued = event(What::TurnQueued { position: 1 });
        assert_eq!(Event::read(&queued.json()).unwrap(), queued);
    }

    #[test]
    fn times_are_as_the_printer_writes_them() {
        let printed = |time: Timestamp| {
            let mut text = String::new();
            ISO.print_timestamp(&time, &mut text).unwrap();
            text
        };
        let days = (-720_000..=2_930_000_i64).step_by(997);
        let seconds = days.map(|day| day * 86_400 + day.rem_euclid(86_400));
        let times = seconds.filter_map(|second| Timestamp::new(second, 7_654_321).ok());
        for time in times.chain([Timestamp::MIN, Timestamp::MAX, Timestamp::UNIX_EPOCH]) {
            assert_eq!(*iso(time), *printed(time));
        }
    }

    #[test]
    fn the_name_is_the_type_on_the_wire() {
        for what in [What::TurnQueued { position: 0 }, What::StreamGap { from: 1, to: 2 }] {
            let json = serde_json::to_value(event(what.clone())).unwrap();
            assert_eq!(json["type"], what.name());
        }
    }

    #[test]
    fn whoever_confirms_a_call_sees_all_of_it_but_for_what_nobody_reads() {
        let asked = |arguments: Value| {
            let call = ToolCall { id: String::new(), name: "exec".to_owned(), arguments };
            AskedTool::of(&call).params
        };
        let command = "x".repeat(CONFIRMATION_TEXT_CHARS_MAX);
        let whole = json!({"args": [command, 1], "timeout": null});
        assert_eq!(asked(whole.clone()), whole);
        let long = asked(json!({"content": format!("{command}äö")}));
        assert_eq!(long, json!({"content": format!("{command}… 2 more characters")}));
        let many = asked(json!(vec![command; 9]));
        let shown = many.as_str().unwrap();
        assert!(shown.starts_with("[\"xxx") && shown.ends_with(" more characters"), "{shown}");
    }

    #[test]
    fn previews_are_cut_at_characters_and_say_so() {
        assert_eq!(shortened("äöü", 3), "äöü");
        assert_eq!(shortened("äöüß", 3), "äö…");
    }
}
