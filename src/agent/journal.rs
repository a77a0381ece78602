//! What happens to an agent, as the writes that make it durable.
//! Pure: it names the agent and the time; `outbox` sees to the order.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::confirmations::{Confirmation, Resolution};
use super::context::Compacted;
use super::handle::SendRequest;
use super::outcome::Outcome;
use super::turn::ToolResult;
use crate::event::{Event, What, iso};
use crate::id::{AgentId, RequestId};
use crate::message::{Message, ToolCall};
use crate::store::{AgentNumber, ConfirmationAsked, Standing, Write};

/// Writes about one agent at one moment.
#[derive(Debug)]
pub struct Journal<'a> {
    pub agent: AgentNumber,
    pub id: &'a AgentId,
    pub now: Timestamp,
}

impl Journal<'_> {
    pub fn event(&self, request: &RequestId, what: What) -> Write {
        Write::Event(Event::new(self.id, self.now, what).of(request))
    }

    pub fn queued(&self, request: &SendRequest, position: usize) -> Vec<Write> {
        let (agent, id) = (self.agent, request.request_id.clone());
        let queued = self.event(&id, What::TurnQueued { position });
        vec![Write::RequestQueued { agent, id, content: Arc::clone(&request.content) }, queued]
    }

    pub fn started(&self, request: &SendRequest) -> Vec<Write> {
        let id = &request.request_id;
        let what = What::TurnStarted {
            content: Arc::clone(&request.content),
            source: request.meta.source.clone(),
            source_agent_id: request.meta.source_agent_id.clone(),
        };
        let started = Write::RequestStarted { agent: self.agent, id: id.clone() };
        vec![started, self.event(id, what)]
    }

    pub fn message(&self, index: usize, message: Arc<Message>) -> Write {
        Write::Message { agent: self.agent, index: index as u64, message }
    }

    pub fn tool_started(&self, request: &RequestId, call: &ToolCall) -> Vec<Write> {
        let started = Write::ToolStarted {
            agent: self.agent,
            request: request.clone(),
            tool_id: call.id.clone(),
            name: call.name.clone(),
        };
        vec![started, self.event(request, What::tool_started(call))]
    }

    pub fn tool_ended(
        &self,
        request: &RequestId,
        call: &ToolCall,
        result: &ToolResult,
    ) -> Vec<Write> {
        let ended = Write::ToolEnded {
            agent: self.agent,
            request: request.clone(),
            tool_id: call.id.clone(),
        };
        let what = if result.error {
            What::tool_failed(call, &result.content)
        } else {
            What::tool_succeeded(call, &result.content)
        };
        vec![ended, self.event(request, what)]
    }

    pub fn confirmation_requested(&self, asked: &Confirmation, timeout: Duration) -> Vec<Write> {
        let record = ConfirmationAsked {
            id: asked.id.clone(),
            request: asked.request.clone(),
            tool: asked.tool.name.clone(),
            options: asked.options(),
            expires_at: Arc::clone(&asked.expires_at),
        };
        let requested = Write::ConfirmationRequested { agent: self.agent, asked: Box::new(record) };
        let what = What::ConfirmationRequested {
            confirm_id: asked.id.clone(),
            tool: asked.tool.clone(),
            target: asked.question.target.clone(),
            cwd: Some(asked.question.cwd.clone()),
            timeout_s: timeout.as_secs_f64(),
            options: asked.options().to_vec(),
        };
        vec![requested, self.event(&asked.request, what)]
    }

    pub fn confirmation_resolved(
        &self,
        asked: &Confirmation,
        resolution: &Resolution,
    ) -> Vec<Write> {
        let Resolution { decision, reason, by } = resolution;
        let resolved = Write::ConfirmationResolved {
            agent: self.agent,
            id: asked.id.clone(),
            decision: *decision,
            by: by.clone(),
        };
        let what = What::ConfirmationResolved {
            confirm_id: asked.id.clone(),
            decision: *decision,
            reason: reason.clone(),
            resolved_by: by.clone(),
            resolved_at: iso(self.now),
        };
        vec![resolved, self.event(&asked.request, what)]
    }

    /// The end of a request; `partial` is the text of its turn so far.
    pub fn ended(&self, request: &RequestId, outcome: &Outcome, partial: &str) -> Vec<Write> {
        let ended = Write::RequestEnded {
            agent: self.agent,
            id: request.clone(),
            status: outcome.ended_as().name(),
            outcome: serde_json::to_string(outcome).expect("outcomes have only string keys"),
        };
        vec![ended, self.event(request, outcome.event(partial))]
    }

    pub fn model_set(&self, model: &str, parent_agent_id: Option<AgentId>) -> Vec<Write> {
        let changed = Map::from_iter([("model".to_owned(), model.into())]);
        let what = What::AgentUpdated { parent_agent_id, changed, previous_agent_id: None };
        let set = Write::ModelSet { agent: self.agent, model: model.to_owned() };
        vec![set, Write::Event(Event::new(self.id, self.now, what))]
    }

    pub fn prompt_set(&self, prompt: &Arc<str>, parent_agent_id: Option<AgentId>) -> Vec<Write> {
        let changed = Map::from_iter([
            ("system_prompt".to_owned(), (&**prompt).into()),
            ("system_prompt_path".to_owned(), Value::Null),
        ]);
        let what = What::AgentUpdated { parent_agent_id, changed, previous_agent_id: None };
        let set = Write::PromptSet { agent: self.agent, prompt: Arc::clone(prompt) };
        vec![set, Write::Event(Event::new(self.id, self.now, what))]
    }

    /// A summary, of the turn that needed it or of somebody who asked for it.
    pub fn compacted(&self, request: Option<&RequestId>, compacted: &Compacted) -> Vec<Write> {
        let Compacted { upto, summary, tokens_before, tokens_after, usage: _ } = compacted;
        let (tokens_before, tokens_after) = (*tokens_before, *tokens_after);
        let what = What::Compacted { tokens_before, tokens_after };
        let event = match request {
            Some(request) => self.event(request, what),
            None => Write::Event(Event::new(self.id, self.now, what)),
        };
        let upto = *upto as u64;
        vec![Write::Summary { agent: self.agent, upto, summary: Arc::clone(summary) }, event]
    }

    pub fn standing(&self, standing: Standing) -> Write {
        Write::Standing { agent: self.agent, standing }
    }
}
