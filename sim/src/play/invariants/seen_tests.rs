//! What the tests of the invariants are made of: a run that never was, as it would have been seen.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use nexus3::event::{Ended, Event, What};
use nexus3::id::{AgentId, RequestId};
use nexus3::message::Usage;
use nexus3::rpc::wire::ErrorObject;
use secrecy::SecretString;
use serde_json::Value;

use super::super::checker::Survey;
use super::super::director::{Made, Sending, Told};
use super::super::log::Log;
use super::super::observed::{Answer, Observation, Request};
use super::super::server::ProcessState;
use super::super::transcript::Transcript;
use super::Seen;
use crate::disk::Disk;
use crate::machine::EPOCH;
use crate::play::kept::{Kept, KeptEvent};
use crate::scenario::{Call, Token};

/// A quiet run with a server that has been started once.
pub struct Run {
    pub server_start: u64,
    pub server: ProcessState,
    pub connections: usize,
    pub accepted: usize,
    pub processes: usize,
    pub sendings: Vec<Sending>,
    pub calls: Vec<Made>,
    pub raw: Vec<String>,
    pub destroyed: BTreeSet<String>,
    pub tokens: Vec<SecretString>,
    pub transcript: Transcript,
    pub log: Log,
    pub disk: Disk,
}

impl Default for Run {
    fn default() -> Self {
        Self {
            server_start: 1,
            server: ProcessState::Up,
            connections: 0,
            accepted: 0,
            processes: 0,
            sendings: Vec::new(),
            calls: Vec::new(),
            raw: Vec::new(),
            destroyed: BTreeSet::new(),
            tokens: Vec::new(),
            transcript: Transcript::default(),
            log: Log::default(),
            disk: Disk::new(|| Timestamp::UNIX_EPOCH),
        }
    }
}

impl Run {
    pub fn seen(&self) -> Seen<'_> {
        Seen {
            server_start: self.server_start,
            server: self.server,
            connections: self.connections,
            accepted: self.accepted,
            processes: self.processes,
            sendings: &self.sendings,
            calls: &self.calls,
            raw: &self.raw,
            destroyed: &self.destroyed,
            tokens: self.tokens.clone(),
            transcript: &self.transcript,
            log: &self.log,
            disk: &self.disk,
        }
    }
}

/// What a server with one agent says, which knows no request.
pub fn survey(agent: &str, messages: &[Value]) -> Survey {
    let read = |message: &Value| serde_json::from_value(message.clone()).unwrap();
    let messages = messages.iter().map(|message| Arc::new(read(message))).collect();
    let mut survey = Survey::default();
    survey.conversations.insert(AgentId::parse(agent).unwrap(), messages);
    survey
}

/// To the agent `scout`: made at one second of the run, told at the next.
pub fn sending(id: &str, made: u64, outcome: Told) -> Sending {
    Sending {
        agent: AgentId::parse("scout").unwrap(),
        request: RequestId::parse(id).unwrap(),
        server_start: 1,
        made: Duration::from_secs(made),
        told: Duration::from_secs(made + 1),
        outcome,
    }
}

pub fn asked(agent: &str, body: &Value) -> Observation {
    let body = body.to_string().into();
    Observation::Asked(Request { agent: agent.to_owned(), body, ..Request::default() })
}

pub fn answered(method: &str, agent: Option<&str>, result: Value) -> Observation {
    Observation::Answered(Answer {
        server_start: 1,
        method: method.to_owned(),
        agent: agent.map(str::to_owned),
        result: Ok(result),
    })
}

/// A call by its method, agent, params and answer, which was made at one second of the run and ended
/// at the next.
pub fn made(
    method: &str,
    agent: Option<&str>,
    params: &Value,
    at: u64,
    answer: Option<Result<Value, ErrorObject>>,
) -> Made {
    let call = Call {
        method: method.to_owned(),
        agent: agent.map(str::to_owned),
        params: params.as_object().cloned(),
        headers: BTreeMap::new(),
        token: Token::Server,
        expect: None,
        expect_http: None,
        save: BTreeMap::new(),
    };
    let (at, ended) = (Duration::from_secs(at), Some(Duration::from_secs(at + 1)));
    Made { call, server_start: 1, at, ended, answer }
}

/// The kept events of the agent `scout`, after its creation: one of a turn each.
pub fn kept(events: &[(&str, What)]) -> Kept {
    let created = (None, What::AgentCreated { parent_agent_id: None });
    let of_turns = events.iter().map(|(id, what)| (Some(*id), what.clone()));
    let all = std::iter::once(created).chain(of_turns).zip(1..);
    let events = all.map(|((id, what), seq)| {
        let event = event(id, what, Some(seq));
        let json = serde_json::to_value(&event).expect("an event has only string keys");
        let (agent, name) = ("scout".to_owned(), event.what.name().to_owned());
        KeptEvent { seq, agent, name, json, event: Some(event) }
    });
    Kept { events: events.collect(), ..Kept::default() }
}

/// Kept events by their second, agent and request, which may be empty.
pub fn kept_at(events: Vec<(u64, &str, &str, What)>) -> Kept {
    let all = events.into_iter().zip(1..).map(|((second, agent, request, what), seq)| {
        let at = Timestamp::constant(EPOCH, 0);
        let at = at + SignedDuration::from_secs(i64::try_from(second).unwrap());
        let event = Event::new(&AgentId::parse(agent).unwrap(), at, what);
        let event = Event { seq: Some(seq), request_id: RequestId::parse(request).ok(), ..event };
        let json = serde_json::to_value(&event).unwrap();
        let (agent, name) = (agent.to_owned(), event.what.name().to_owned());
        KeptEvent { seq, agent, name, json, event: Some(event) }
    });
    Kept { events: all.collect(), ..Kept::default() }
}

/// An event of the agent `scout`.
pub fn event(request: Option<&str>, what: What, seq: Option<u64>) -> Event {
    let request_id = request.map(|id| RequestId::parse(id).unwrap());
    let event = Event::new(&AgentId::parse("scout").unwrap(), Timestamp::UNIX_EPOCH, what);
    Event { request_id, seq, ..event }
}

pub fn queued() -> What {
    What::TurnQueued { position: 0 }
}

pub fn started() -> What {
    let (content, source) = ("go".into(), "client".to_owned());
    What::TurnStarted { content, source, source_agent_id: None }
}

pub fn ended(content: &str) -> What {
    let (content, finish_reason) = (content.into(), "stop".to_owned());
    What::TurnCompleted { content, halted: false, finish_reason, usage: Usage::default() }
}

pub fn cancelled() -> What {
    let (reason, partial) = ("cancelled".to_owned(), String::new());
    What::TurnCancelled(Ended { reason, error: None, partial })
}
