//! What agents asked of each other, read from the events of their tools, as if a client had asked for it
//! in their name: so the same holds for both. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use nexus3::code::ErrorObject;
use nexus3::event::{Seq, What};
use nexus3::id::{AgentId, RequestId};
use nexus3::message::Message;
use nexus3::rpc::code::Code;
use serde_json::{Map, Value};

use super::spans::spans;
use crate::machine::EPOCH;
use crate::play::director::{Made, Sending, Told};
use crate::play::kept::{Kept, KeptEvent};
use crate::scenario::{Call, FaultKind, Scenario, Token};

/// The tools that ask something of another agent, and the method that a client would call.
const METHODS: [(&str, &str); 3] =
    [("nexus_create", "create_agent"), ("nexus_send", "send"), ("nexus_destroy", "destroy_agent")];
/// How a tool says that nobody knows what it did.
const UNSURE: [&str; 3] = ["is not known", "was created, but", "outcome_unknown"];

/// Whether the times that a server writes down are those of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostClock {
    Steady,
    Jumps,
}

impl HostClock {
    pub fn of(scenario: &Scenario) -> Self {
        let jumps = |kind: &FaultKind| matches!(kind, FaultKind::ClockJump { .. });
        if scenario.faults.iter().any(|fault| jumps(&fault.kind)) {
            Self::Jumps
        } else {
            Self::Steady
        }
    }
}

/// All that agents asked of each other.
#[derive(Debug, Default)]
pub struct Among {
    pub handoffs: Vec<Handoff>,
}

/// One call of a tool.
#[derive(Debug)]
pub struct Handoff {
    pub from: String,
    /// The turn that the call was made in.
    pub request: String,
    pub started: Seq,
    /// When nobody waited for it any more, and what it gave where it had ended.
    pub ended: Option<Over>,
    method: &'static str,
    /// `None` where they are not known to their end.
    params: Option<Map<String, Value>>,
    pub at: Duration,
}

#[derive(Clone, Debug)]
pub struct Over {
    pub seq: Seq,
    pub at: Duration,
    /// A server that was started again has ended it.
    pub is_cut: bool,
    answer: Option<Result<Value, ErrorObject>>,
}

impl Among {
    pub fn of(kept: &Kept) -> Self {
        let handoffs = spans(kept).into_iter().filter_map(|span| {
            let (_, method) = METHODS.iter().find(|(tool, _)| *tool == span.name)?;
            let ended = span.ended.map(|event| Over {
                seq: event.seq,
                at: at(event),
                is_cut: span.is_cut(),
                answer: answer(event),
            });
            Some(Handoff {
                from: span.started.agent.clone(),
                request: span.started.text("request_id").to_owned(),
                started: span.started.seq,
                ended,
                method,
                params: arguments(kept, span.tool_id, span.params),
                at: at(span.started),
            })
        });
        Self { handoffs: handoffs.collect() }
    }

    /// As calls of clients. By a clock that jumped nobody can tell when they were made, beside those
    /// of clients: each may have been at any time.
    pub fn calls(&self, clock: HostClock) -> Vec<Made> {
        let made = self.handoffs.iter().map(Handoff::made);
        match clock {
            HostClock::Steady => made.collect(),
            HostClock::Jumps => {
                made.map(|made| Made { at: Duration::ZERO, ended: None, ..made }).collect()
            }
        }
    }

    /// What is not known of them, as words.
    pub fn unknown(&self) -> Vec<String> {
        let cut = self.handoffs.iter().filter(|handoff| handoff.params.is_none());
        cut.map(|handoff| format!("{} initial_message", handoff.method)).collect()
    }

    /// Those that sent something and got an answer.
    pub fn sendings(&self) -> Vec<Sending> {
        self.handoffs.iter().filter_map(Handoff::sending).collect()
    }
}

impl Handoff {
    /// Whom it sent what to and waited for.
    pub fn sent(&self) -> Option<(&str, &str)> {
        let text = |name: &str| self.params.as_ref()?.get(name)?.as_str();
        match self.method {
            "send" => Some((text("agent_id")?, text("content")?)),
            _ => None,
        }
    }

    /// Whether it gave a result.
    pub fn was_done(&self) -> bool {
        self.result().is_some()
    }

    /// The agents that it destroyed.
    pub fn destroyed(&self) -> Vec<&str> {
        let destroyed = self.result().and_then(|result| result.get("destroyed")?.as_array());
        destroyed.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    fn result(&self) -> Option<&Value> {
        self.ended.as_ref()?.answer.as_ref()?.as_ref().ok()
    }

    fn made(&self) -> Made {
        let of_agent =
            |params: &Map<String, Value>| params.get("agent_id")?.as_str().map(str::to_owned);
        let agent = match self.method {
            "send" => self.params.as_ref().and_then(of_agent),
            _ => None,
        };
        let headers = BTreeMap::from([("x-nexus-agent".to_owned(), self.from.clone())]);
        let call = Call {
            method: self.method.to_owned(),
            agent,
            params: self.params.clone(),
            headers,
            token: Token::Server,
            expect: None,
            expect_http: None,
            save: BTreeMap::new(),
        };
        let answer = self.ended.as_ref().and_then(|over| over.answer.clone());
        let ended = self.ended.as_ref().map(|over| over.at);
        // Which start of the server it was is not written down: no temporary agent is expected of it.
        Made { call, server_start: 0, at: self.at, ended, answer }
    }

    fn sending(&self) -> Option<Sending> {
        let (to, _) = self.sent()?;
        let over = self.ended.as_ref()?;
        let result = self.result()?;
        Some(Sending {
            agent: AgentId::parse(to).ok()?,
            request: RequestId::parse(result.get("request_id")?.as_str()?).ok()?,
            server_start: 0,
            made: self.at,
            told: over.at,
            outcome: Told::Result(result.clone()),
        })
    }
}

/// The arguments of a call: whole in the conversation, if that is still there, else as the event shows
/// them.
fn arguments(kept: &Kept, tool: &str, shown: &str) -> Option<Map<String, Value>> {
    if let Ok(whole) = serde_json::from_str(shown) {
        return Some(whole);
    }
    let messages = kept.agents.iter().flat_map(|agent| &agent.messages);
    let mut calls = messages.flat_map(|message| match message {
        Message::Assistant { tool_calls, .. } => tool_calls.as_slice(),
        Message::User { .. } | Message::Tool { .. } => &[],
    });
    calls.find(|call| call.id == tool)?.arguments.as_object().cloned()
}

/// What a tool gave that ended with this event; `None` where that is not known.
fn answer(ended: &KeptEvent) -> Option<Result<Value, ErrorObject>> {
    match &ended.event.as_ref()?.what {
        What::ToolCompleted { output, error: None, .. } => {
            serde_json::from_str(output).ok().map(Ok)
        }
        What::ToolCompleted { error: Some(error), .. } => {
            let is_known = !UNSURE.iter().any(|words| error.contains(words));
            is_known.then(|| Err(ErrorObject::new(Code::Forbidden, error.as_str())))
        }
        _ => None,
    }
}

pub fn at(event: &KeptEvent) -> Duration {
    let at: Option<Timestamp> = event.text("at").parse().ok();
    let since = at.map(|at| at.duration_since(Timestamp::constant(EPOCH, 0)));
    since.and_then(|since| Duration::try_from(since).ok()).unwrap_or_default()
}
