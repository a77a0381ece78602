//! The opening of an event stream: what it is about, who may hear it, where it begins.
//! What it carries, and how fast, is the hub's business.

use std::sync::Arc;

use http::StatusCode;
use http::request::Parts;
use serde_json::json;

use super::Service;
use super::reply::Refusal;
use crate::code::ErrorObject;
use crate::event::Seq;
use crate::hub::{Scope, Start, SubscribeError, Subscription};
use crate::id::AgentId;
use crate::limits::{NAME_CHARS_SHOWN_MAX, STREAM_OPENINGS_MAX};
use crate::record::StreamSeen;
use crate::rpc::caller::Caller;
use crate::rpc::code::Code;
use crate::rpc::{Missing, Target};

pub(super) const LAST_EVENT_ID: &str = "last-event-id";
const AFTER: &str = "after";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    Here,
    /// The agent is gone; what happened to it is kept.
    Gone,
}

/// What came of opening a stream.
enum Opening {
    Open(Subscription),
    /// The agent was there, and is not any more.
    Left(AgentId),
}

impl Service {
    pub(super) async fn open_stream(
        &self,
        caller: &Caller,
        target: Target<'_>,
        parts: &Parts,
    ) -> Result<(Subscription, Option<StreamSeen>), Refusal> {
        let scope = match target {
            Target::Global => Scope::Everything,
            Target::Agent(segment) => Scope::Agent(parse(segment)?),
        };
        // An agent may leave or get another id in between; then what is there by now decides.
        for _ in 1..STREAM_OPENINGS_MAX {
            if let Opening::Open(events) = self.try_to_open(caller, &scope, parts).await? {
                return Ok((events, self.record(caller, &scope, parts)));
            }
        }
        match self.try_to_open(caller, &scope, parts).await? {
            Opening::Open(events) => Ok((events, self.record(caller, &scope, parts))),
            Opening::Left(agent) => Err(gone(&agent)),
        }
    }

    fn record(&self, caller: &Caller, scope: &Scope, parts: &Parts) -> Option<StreamSeen> {
        let recorder = self.rpc.recorder()?;
        let agent = match scope {
            Scope::Agent(agent) => Some(agent),
            Scope::Everything => None,
        };
        let by = (caller.client.as_str(), caller.agent.as_ref());
        Some(recorder.stream(by, agent, cursor(parts).unwrap_or_default()))
    }

    async fn try_to_open(
        &self,
        caller: &Caller,
        scope: &Scope,
        parts: &Parts,
    ) -> Result<Opening, Refusal> {
        let agent = match scope {
            Scope::Agent(agent) => Some(agent),
            Scope::Everything => None,
        };
        // A cursor decides whether a gone agent has a stream, but what is wrong with one is told last.
        let cursor = cursor(parts);
        let presence = match agent {
            Some(agent) => self.presence(agent, scope, &cursor).await?,
            None => Presence::Here,
        };
        let forbidden = |error| Refusal::new(StatusCode::FORBIDDEN, error);
        self.rpc.may_stream(caller, agent).map_err(forbidden)?;
        self.hub.has_room(scope).map_err(|error| no_room(&error))?;
        let cursor = cursor.and_then(|cursor| at_most(cursor, self.journal.last_seq()));
        let bad = |error: CursorError| Refusal::new(StatusCode::BAD_REQUEST, error.told());
        let start = match (cursor.map_err(bad)?, presence) {
            (None, _) => Start::Now,
            (Some(seq), Presence::Here) => Start::After(seq),
            (Some(seq), Presence::Gone) => Start::KeptOnly(seq),
        };
        let journal = Arc::clone(&self.journal);
        let events = self.hub.subscribe(journal, scope.clone(), start);
        let events = events.map_err(|error| no_room(&error))?;
        let events = match caller.agent {
            Some(_) => events.of_an_agent(),
            None => events,
        };
        // One that left in between has told its last event already, at least under this id: nothing
        // would follow.
        match agent {
            Some(agent) if presence == Presence::Here && !self.rpc.has_agent(agent) => {
                return Ok(Opening::Left(agent.clone()));
            }
            Some(agent) if caller.is_terminal() => self.rpc.follow(agent).await,
            Some(_) | None => {}
        }
        Ok(Opening::Open(events))
    }

    async fn presence(
        &self,
        agent: &AgentId,
        scope: &Scope,
        cursor: &Result<Option<Seq>, CursorError>,
    ) -> Result<Presence, Refusal> {
        match self.rpc.find_on_record(agent).await {
            Ok(_) => return Ok(Presence::Here),
            Err(Missing::Unknown(_)) if matches!(cursor, Ok(Some(_))) => {}
            Err(Missing::Unknown(_)) => return Err(gone(agent)),
            Err(Missing::Broken(error)) => {
                return Err(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error));
            }
            Err(Missing::Stopping) => return Err(no_room(&SubscribeError::Stopping)),
        }
        let kept = self.journal.page(scope, 0).await.map_err(|error| {
            tracing::error!(%error, %agent, "cannot look for kept events");
            Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, Code::of_journal(&error))
        })?;
        if kept.events.is_empty() { Err(gone(agent)) } else { Ok(Presence::Gone) }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum CursorError {
    #[error("Invalid cursor: {shown:?} is not a number")]
    NoNumber { shown: String },
    #[error("Invalid cursor: the newest event is {last}")]
    Above { last: Seq },
    #[error("Invalid cursor: it is given more than once")]
    Twice,
    #[error("Unknown query parameter: {shown:?}; known: {AFTER}")]
    UnknownKey { shown: String },
}

impl CursorError {
    /// With the newest event for programs, which know by it when they have read all that is kept.
    fn told(&self) -> ErrorObject {
        let error = ErrorObject::new(Code::InvalidParams, self.to_string());
        match self {
            Self::Above { last } => error.with(json!({"newest": last})),
            Self::NoNumber { .. } | Self::Twice | Self::UnknownKey { .. } => error,
        }
    }
}

/// The event after which a reader wants to go on: the header, or else the query, says which.
fn cursor(parts: &Parts) -> Result<Option<Seq>, CursorError> {
    let mut headers = parts.headers.get_all(LAST_EVENT_ID).iter();
    let header = headers.next().map(|value| String::from_utf8_lossy(value.as_bytes()));
    let query = query(parts.uri.query().unwrap_or_default())?;
    match (header, headers.next(), query) {
        (Some(_), Some(_), _) => Err(CursorError::Twice),
        (Some(header), None, _) => number(&header).map(Some),
        (None, _, Some(query)) => number(query).map(Some),
        (None, _, None) => Ok(None),
    }
}

fn query(query: &str) -> Result<Option<&str>, CursorError> {
    let mut after = None;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=').unwrap_or((pair, "")) {
            (AFTER, _) if after.is_some() => return Err(CursorError::Twice),
            (AFTER, value) => after = Some(value),
            (key, _) => return Err(CursorError::UnknownKey { shown: shorten(key) }),
        }
    }
    Ok(after)
}

fn number(text: &str) -> Result<Seq, CursorError> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(CursorError::NoNumber { shown: shorten(text) });
    }
    // Digits that make no `Seq` are too many: no event has such a number.
    Ok(text.parse().unwrap_or(Seq::MAX))
}

fn at_most(cursor: Option<Seq>, last: Seq) -> Result<Option<Seq>, CursorError> {
    match cursor {
        Some(seq) if seq > last => Err(CursorError::Above { last }),
        Some(_) | None => Ok(cursor),
    }
}

fn shorten(text: &str) -> String {
    text.chars().take(NAME_CHARS_SHOWN_MAX).collect()
}

fn parse(segment: &str) -> Result<AgentId, Refusal> {
    AgentId::parse(segment)
        .map_err(|error| Refusal::new(StatusCode::NOT_FOUND, Code::of_id(&error)))
}

fn gone(agent: &AgentId) -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, Code::gone(agent))
}

fn no_room(error: &SubscribeError) -> Refusal {
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, Code::of_subscribe(error))
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn read(uri: &str, headers: &[&[u8]]) -> Result<Option<Seq>, CursorError> {
        let mut request = Request::get(uri);
        for value in headers {
            request = request.header(LAST_EVENT_ID, *value);
        }
        cursor(&request.body(()).unwrap().into_parts().0)
    }

    #[test]
    fn the_header_wins_over_the_query() {
        assert_eq!(read("/events", &[]), Ok(None));
        assert_eq!(read("/events?", &[]), Ok(None));
        assert_eq!(read("/events?after=0", &[]), Ok(Some(0)));
        assert_eq!(read("/events?&after=007&", &[]), Ok(Some(7)));
        assert_eq!(read("/events", &[b"7"]), Ok(Some(7)));
        assert_eq!(read("/events?after=x", &[b"7"]), Ok(Some(7)));
        assert_eq!(read("/events?after=99999999999999999999999", &[]), Ok(Some(Seq::MAX)));
    }

    #[test]
    fn what_is_no_cursor_is_told() {
        let no_number = |shown: &str| Err(CursorError::NoNumber { shown: shown.to_owned() });
        for bad in ["", "-1", "+1", "1.0", "0x1", "1%20"] {
            assert_eq!(read(&format!("/events?after={bad}"), &[]), no_number(bad));
        }
        assert_eq!(read("/events?after", &[]), no_number(""));
        assert_eq!(read("/events", &[b"1 2"]), no_number("1 2"));
        assert_eq!(read("/events", &[b"\xff"]), no_number("\u{fffd}"));
        assert_eq!(read("/events?after=1&after=1", &[]), Err(CursorError::Twice));
        assert_eq!(read("/events", &[b"1", b"1"]), Err(CursorError::Twice));
        let unknown = Err(CursorError::UnknownKey { shown: "before".to_owned() });
        assert_eq!(read("/events?before=1&after=1", &[b"1"]), unknown);
        assert_eq!(at_most(Some(7), 7), Ok(Some(7)));
        assert_eq!(at_most(Some(8), 7), Err(CursorError::Above { last: 7 }));
    }
}
