//! Who calls, who listens, and what they and the server's own events tell: the door of a recorded
//! server. Whatever is begun here says at its end how it ended, or that nobody waited for it.

use std::path::Path;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::Recorder;
use super::note::{
    Call, CallEnd, Client, Event, LeftOut, Meaning, Number, RefusedRequest, Stream, What,
};
use crate::code::ErrorObject;
use crate::event::{Audience, Committed, NO_CONFIRMER, What as Happened};
use crate::id::AgentId;

/// A call that is under way.
#[derive(Debug)]
pub struct CallSeen {
    recorder: Recorder,
    number: Number,
    is_open: bool,
}

/// A stream that is open.
#[derive(Debug)]
pub struct StreamSeen {
    recorder: Recorder,
    number: Number,
}

impl Recorder {
    /// A client calls a method, of an agent if one is named.
    pub fn call(
        &self,
        (client, acting_as): (&str, Option<&AgentId>),
        agent: Option<&str>,
        method: &str,
        params: Map<String, Value>,
    ) -> CallSeen {
        let number = self.number();
        if let Some(cwd) = params.get("cwd").and_then(Value::as_str) {
            self.works_in(Path::new(cwd));
        }
        let by = Client { name: client.to_owned(), acting_as: acting_as.cloned() };
        let (agent, method) = (agent.map(str::to_owned), method.to_owned());
        self.note(What::CallBegan(number, Call { by, agent, method, params }));
        CallSeen { recorder: self.clone(), number, is_open: true }
    }

    /// A request was refused before it became a call.
    pub fn refused(&self, request: RefusedRequest) {
        self.note(What::Refused(request));
    }

    /// Something was refused for a reason that a replay cannot have: the recording says so.
    pub fn left_out(&self, what: LeftOut) {
        self.note(What::LeftOut(what));
    }

    /// A client opens a stream of events.
    pub fn stream(
        &self,
        (client, acting_as): (&str, Option<&AgentId>),
        agent: Option<&AgentId>,
        after: Option<u64>,
    ) -> StreamSeen {
        let number = self.number();
        let by = Client { name: client.to_owned(), acting_as: acting_as.cloned() };
        let agent = agent.map(ToString::to_string);
        self.note(What::StreamOpened(number, Stream { by, agent, after }));
        StreamSeen { recorder: self.clone(), number }
    }
}

impl CallSeen {
    pub fn answered(self, outcome: &Result<Box<RawValue>, ErrorObject>) {
        let end = match outcome {
            Ok(result) => {
                CallEnd::Result(serde_json::from_str(result.get()).unwrap_or(Value::Null))
            }
            Err(error) => CallEnd::Error(error.clone()),
        };
        self.end(end);
    }

    /// It was refused before anybody looked at what it wants.
    pub fn refused(self, http: u16, code: i64) {
        self.end(CallEnd::Refused { http, code });
    }

    fn end(mut self, end: CallEnd) {
        self.is_open = false;
        self.recorder.note(What::CallEnded(self.number, end));
    }
}

impl Drop for CallSeen {
    fn drop(&mut self) {
        if self.is_open {
            self.recorder.note(What::CallEnded(self.number, CallEnd::Left));
        }
    }
}

impl Drop for StreamSeen {
    fn drop(&mut self) {
        self.recorder.note(What::StreamClosed(self.number));
    }
}

impl Audience for Recorder {
    fn publish(&self, events: &[Committed]) {
        for Committed { event, .. } in events {
            let meaning = match (&event.what, &event.request_id) {
                (Happened::TurnQueued { .. }, Some(request_id)) => {
                    Meaning::Queued { request_id: request_id.clone() }
                }
                (Happened::TurnStarted { .. }, _) => Meaning::TurnStarted,
                (Happened::ConfirmationRequested { confirm_id, tool, .. }, _) => {
                    Meaning::Asks { confirm_id: confirm_id.clone(), tool: tool.name.clone() }
                }
                (Happened::ConfirmationResolved { confirm_id, reason: Some(reason), .. }, _)
                    if reason == NO_CONFIRMER =>
                {
                    Meaning::DecidedForNobody { confirm_id: confirm_id.clone() }
                }
                (Happened::ConfirmationResolved { confirm_id, .. }, _) => {
                    Meaning::Decided { confirm_id: confirm_id.clone() }
                }
                (what, _) if what.is_terminal() => Meaning::TurnEnded,
                _ => Meaning::None,
            };
            let (name, agent) = (event.what.name(), event.agent_id.clone());
            self.note(What::Event(Event { name, agent, meaning }));
        }
    }
}
