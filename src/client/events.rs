//! Events as they happen: one stream on one connection, read record by record.
//! It never reconnects; `following` does, with the `seq` of the last durable event.

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::LazyLock;

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Request, StatusCode};
use serde::Deserialize;
use tokio::time::{Instant, timeout, timeout_at};

use super::arriving::Arriving;
use super::{ClientError, NexusClient};
use crate::event::{Event, Seq, What};
use crate::id::AgentId;
use crate::limits::{CLIENT_ANSWER_BYTES_MAX, CLIENT_CALL_MAX, CLIENT_STREAM_SILENCE_MAX};
use crate::sse::{Record, SseParser};

const EVENT_STREAM: &str = "text/event-stream";

/// An open stream of events. Dropping it closes its connection.
pub struct EventStream {
    address: SocketAddr,
    arriving: Arriving,
    parser: SseParser,
    records: VecDeque<Record>,
    last_bytes: Instant,
    /// The types of events that are read, where not all are.
    wanted: Option<&'static [&'static str]>,
    /// It ended or broke; what came before that is still to be read.
    end: Option<Result<(), ClientError>>,
}

impl std::fmt::Debug for EventStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventStream").field("address", &self.address).finish_non_exhaustive()
    }
}

impl NexusClient {
    /// Opens one stream of an agent, or of everything: what is kept after a cursor, then live. It ends
    /// with its connection; see [`NexusClient::events`] for one that comes back.
    pub async fn open_events(
        &self,
        agent: Option<&AgentId>,
        after: Option<Seq>,
    ) -> Result<EventStream, ClientError> {
        let path = agent.map_or_else(|| "/events".into(), |agent| format!("/agent/{agent}/events"));
        let path = after.map_or_else(|| path.clone(), |after| format!("{path}?after={after}"));
        let request = Request::get(path).header(ACCEPT, EVENT_STREAM);
        let open = async {
            let (head, arriving) = self.open(request, String::new()).await?;
            let kind = head.headers.get(CONTENT_TYPE).map(http::HeaderValue::as_bytes);
            if head.status == StatusCode::OK && kind == Some(EVENT_STREAM.as_bytes()) {
                return Ok(arriving);
            }
            let body = arriving.whole().await.map_err(|what| self.protocol(what))?;
            let unexpected = |_| self.protocol("an answer that is no event stream".to_owned());
            Err(self.result(head.status, &body).map_or_else(|error| error, unexpected))
        };
        let arriving = timeout(CLIENT_CALL_MAX, open).await.map_err(|_| self.timed_out())??;
        Ok(EventStream {
            address: self.address,
            arriving,
            parser: SseParser::new(CLIENT_ANSWER_BYTES_MAX),
            records: VecDeque::new(),
            last_bytes: Instant::now(),
            wanted: None,
            end: None,
        })
    }
}

impl NexusClient {
    /// The number of the newest durable event, 0 before the first.
    pub async fn newest_event(&self) -> Result<Seq, ClientError> {
        // A cursor that no event can have is refused with the last that one has.
        match self.open_events(None, Some(Seq::MAX)).await {
            Err(ClientError::Refused { status: StatusCode::BAD_REQUEST, error }) => {
                let newest = error.data.as_ref().and_then(|data| data["newest"].as_u64());
                newest.ok_or_else(|| self.protocol("no word of the newest event".to_owned()))
            }
            Err(error) => Err(error),
            Ok(_) => Err(self.protocol("a stream after an event that cannot be".to_owned())),
        }
    }
}

impl EventStream {
    /// Reads only events of these types, or all.
    pub(super) fn want(&mut self, types: Option<&'static [&'static str]>) {
        self.wanted = types;
    }

    fn is_wanted(&self, record: &Record) -> bool {
        let named = self.wanted.zip(record.event.as_deref());
        named.is_none_or(|(types, name)| types.contains(&name))
    }

    /// The next event; `None` once the server has ended the stream, or after an error. Events of
    /// types that a newer server may have are passed over. Dropping the wait loses nothing.
    pub async fn next(&mut self) -> Option<Result<Event, ClientError>> {
        loop {
            while let Some(record) = self.records.pop_front() {
                if !self.is_wanted(&record) {
                    continue;
                }
                match read(&record) {
                    Reading::Event(event) => return Some(Ok(*event)),
                    Reading::Unknown => {}
                    Reading::Malformed(what) => {
                        self.records.clear();
                        self.end = Some(Ok(()));
                        return Some(Err(self.protocol(what)));
                    }
                }
            }
            match &mut self.end {
                None => self.receive().await,
                Some(end) => return std::mem::replace(end, Ok(())).err().map(Err),
            }
        }
    }

    async fn receive(&mut self) {
        let until = self.last_bytes + CLIENT_STREAM_SILENCE_MAX;
        let bytes = match timeout_at(until, self.arriving.next()).await {
            Err(_) => Err(ClientError::Timeout { address: self.address }),
            Ok(Some(Err(what))) => Err(self.protocol(what)),
            Ok(Some(Ok(bytes))) => Ok(Some(bytes)),
            Ok(None) => Ok(None),
        };
        self.last_bytes = Instant::now();
        match bytes {
            Ok(Some(bytes)) => {
                let mut records = Vec::new();
                if let Err(error) = self.parser.push(&bytes, &mut records) {
                    self.end = Some(Err(self.protocol(error.to_string())));
                }
                self.records.extend(records);
            }
            Ok(None) => self.end = Some(Ok(())),
            Err(error) => self.end = Some(Err(error)),
        }
    }

    fn protocol(&self, what: String) -> ClientError {
        ClientError::Protocol { address: self.address, what }
    }
}

#[derive(Debug, PartialEq)]
enum Reading {
    Event(Box<Event>),
    /// Of a type that this client does not know.
    Unknown,
    Malformed(String),
}

fn read(record: &Record) -> Reading {
    #[derive(Deserialize)]
    struct Typed {
        r#type: String,
    }
    let error = match Event::read(&record.data) {
        Ok(event) => return Reading::Event(Box::new(event)),
        Err(error) => error,
    };
    match serde_json::from_str::<Typed>(&record.data) {
        Ok(typed) if !TYPES.contains(&typed.r#type) => Reading::Unknown,
        Ok(_) | Err(_) => Reading::Malformed(format!("an event that is none: {error}")),
    }
}

/// The types of events that this client knows, as the schema of events has them.
static TYPES: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
    let schema = schemars::schema_for!(What);
    let variants = schema.as_value()["oneOf"].as_array().into_iter().flatten();
    let types = variants.filter_map(|variant| variant["properties"]["type"]["const"].as_str());
    types.map(str::to_owned).collect()
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Batch;

    fn read(data: &str) -> Reading {
        super::read(&Record { event: None, data: data.to_owned() })
    }

    #[test]
    fn only_types_of_a_newer_server_are_passed_over() {
        let envelope = r#""agent_id":null,"at":"2026-01-01T00:00:00.000Z""#;
        let known = format!(r#"{{"type":"server_stopping",{envelope}}}"#);
        let event = serde_json::from_str(&known).unwrap();
        assert_eq!(read(&known), Reading::Event(Box::new(event)));
        assert_eq!(read(&format!(r#"{{"type":"agent_dreamed",{envelope}}}"#)), Reading::Unknown);
        for broken in ["", "{", "{}", "[1]", r#"{"type":"content_chunk"}"#, r#"{"type":7}"#] {
            assert!(matches!(read(broken), Reading::Malformed(_)), "{broken}");
        }
    }

    #[test]
    fn types_of_every_shape_are_known() {
        let batch = Batch { tools: Vec::new(), parallel: false };
        let queued = What::TurnQueued { position: 0 };
        for what in [What::ThinkingStarted {}, queued, What::BatchStarted(batch)] {
            assert!(TYPES.contains(what.name()));
        }
    }
}
