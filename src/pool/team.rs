//! The agents of a server as a team: what one of them asks of others through its tools. Each call is made
//! in the name of the agent, after the same checks as one over RPC, and told as JSON or in words that say
//! what to do instead.

use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::callers::FirstMessage;
use super::told::{
    AgentEntry, AgentSummary, CancelResult, CreateAgentResult, DestroyAgentResult, InitialResponse,
    RequestStatus, SendResult, ShutdownServerResult,
};
use super::{AskError, Children, CreateError, NewAgent, Pool, RestoreError, Wait};
use crate::agent::{
    Accepted, AgentHandle, CancelReason, Gone, Outcome, SendError, SendRequest, outcome,
};
use crate::code::ErrorObject;
use crate::id::{AgentId, RequestId};
use crate::message::UserMeta;
use crate::policy::Refusal;
use crate::policy::budget::Reader;
use crate::tool::ToolOutput;
use crate::tool::team::{Act, CreateAgentParams, Team, beyond, refused};
use crate::world::BoxFuture;

impl Team for Pool {
    fn may(&self, from: &AgentId, act: &Act) -> Result<(), Refusal> {
        match act {
            Act::Create(params) => self.may_create(from, params),
            Act::Send { to, .. } => self.may_send(from, to),
            Act::Status { of } | Act::Cancel { of, .. } => self.manages(from, of),
            Act::Destroy { id } => self.manages(from, id),
            Act::Shutdown => Ok(()),
        }
    }

    fn may_give(&self, from: &AgentId, act: &Act, cwd: &Path) -> Result<(), String> {
        match act {
            Act::Create(params) => {
                let given = self.may_give_writes(from, params, cwd);
                given.map_err(|error| not_created(&error.into(), from))
            }
            Act::Send { .. }
            | Act::Status { .. }
            | Act::Cancel { .. }
            | Act::Destroy { .. }
            | Act::Shutdown => Ok(()),
        }
    }

    fn has_left(&self, from: &AgentId, act: &Act) -> Result<(), String> {
        self.has_left(from, act)
    }

    fn act(
        self: Arc<Self>,
        from: AgentId,
        act: Act,
        beside: TaskTracker,
    ) -> BoxFuture<'static, ToolOutput> {
        Box::pin(async move {
            match act {
                Act::Create(params) => self.create_child(&from, *params, &beside).await,
                Act::Send { to, content } => self.send_to(&from, &to, content, &beside).await,
                Act::Status { of } => self.status_of(&of).await,
                Act::Cancel { of, request } => self.cancel_at(&of, request).await,
                Act::Destroy { id } => self.destroy_below(id).await,
                Act::Shutdown => {
                    tracing::info!(agent = %from, "asked to shut down");
                    self.request_stop();
                    Ok(json(&ShutdownServerResult::accepted()))
                }
            }
        })
    }
}

impl Pool {
    async fn create_child(
        self: &Arc<Self>,
        from: &AgentId,
        params: CreateAgentParams,
        beside: &TaskTracker,
    ) -> ToolOutput {
        let first = FirstMessage::of(&params).map_err(|error| not_asked(&error))?;
        let new = NewAgent::asked(params, Some(from)).map_err(|error| not_asked(&error))?;
        let child = self.create(new).await.map_err(|error| not_created(&error, from))?;
        let created = CreateAgentResult::of(&child);
        let Some(FirstMessage { content, is_awaited }) = first else {
            return Ok(json(&created));
        };
        let id = &child.id();
        let but = |why: String| format!("{id} was created, but its first message failed. {why}");
        let request = self.request_of(from, content);
        let created =
            CreateAgentResult { initial_request_id: Some(request.request_id.clone()), ..created };
        let not_sent = |error: SendError| but(not_sent(&error, id, Reader::ItsParent));
        if !is_awaited {
            child.send(request).await.map_err(not_sent)?;
            let initial_status = Some(RequestStatus::Queued);
            return Ok(json(&CreateAgentResult { initial_status, ..created }));
        }
        // Somebody may have sent to the child already, and it may be asking its parent.
        let waiting = self.wait_for(from, &child);
        let waiting = waiting.map_err(|deadlock| but(refused(&deadlock.refusal())))?;
        let request_id = request.request_id.clone();
        let ended = hand_over(child.clone(), request, waiting, beside).await;
        let outcome = ended.map_err(not_sent)?;
        let response = SendResult::of(&request_id, &outcome);
        let response = response.map_or_else(InitialResponse::Error, InitialResponse::Result);
        Ok(json(&CreateAgentResult { response: Some(response), ..created }))
    }

    async fn send_to(
        self: &Arc<Self>,
        from: &AgentId,
        to: &AgentId,
        content: Arc<str>,
        beside: &TaskTracker,
    ) -> ToolOutput {
        let agent = self.present_again(to).await?;
        let waiting = self.wait_for(from, &agent);
        let waiting = waiting.map_err(|deadlock| refused(&deadlock.refusal()))?;
        let request = self.request_of(from, content);
        let request_id = request.request_id.clone();
        let ended = hand_over(agent, request, waiting, beside).await;
        let outcome = ended.map_err(|error| not_sent(&error, to, self.reader(from, to)))?;
        if let Outcome::Cancelled { reason } = &*outcome {
            return Err(format!("{to} did not answer: {} (request {request_id}).", why(*reason)));
        }
        let answer = SendResult::of(&request_id, &outcome);
        answer.map(|answer| json(&answer)).map_err(|error| failed(to, &error))
    }

    async fn status_of(self: &Arc<Self>, of: &AgentId) -> ToolOutput {
        let agent = self.present_again(of).await?;
        let listed = self.list().into_iter().find(|listed| listed.agent.is(&agent));
        let listed = listed.ok_or_else(|| unknown(of))?;
        let entry = AgentEntry::of(&listed, &agent.status());
        let tokens = agent.tokens().await.map_err(|Gone| unknown(of))?;
        let context = agent.context().await.map_err(|Gone| unknown(of))?;
        let (tokens, context) = (Some(tokens.into()), Some(context.into()));
        Ok(json(&AgentSummary { entry, tokens, context }))
    }

    async fn cancel_at(self: &Arc<Self>, of: &AgentId, request: Option<RequestId>) -> ToolOutput {
        let agent = self.present_again(of).await?;
        let cancelled = agent.cancel(request.clone()).await.map_err(|Gone| unknown(of))?;
        Ok(json(&CancelResult::of(request, cancelled)))
    }

    async fn destroy_below(self: &Arc<Self>, id: AgentId) -> ToolOutput {
        let destroyed = self.destroy(&id, Children::Destroy).await;
        let destroyed = destroyed.map_err(|_| outcome::storage().message)?;
        Ok(json(&DestroyAgentResult::of(id, destroyed)))
    }

    /// The agent of this id; one that is only on disk comes back.
    async fn present_again(self: &Arc<Self>, id: &AgentId) -> Result<AgentHandle, String> {
        match self.find(id).await {
            Ok(agent) => agent.ok_or_else(|| unknown(id)),
            Err(RestoreError::Stopping) => Err(format!("{}.", SendError::Retiring.told(id))),
            Err(error) => {
                tracing::warn!(agent = %id, error = &error as &dyn std::error::Error, "cannot restore");
                Err(format!("{id} cannot be brought back from disk: {error}."))
            }
        }
    }

    /// A message of one agent to another.
    fn request_of(&self, from: &AgentId, content: Arc<str>) -> SendRequest {
        SendRequest {
            request_id: self.draw_request_id(),
            content,
            meta: UserMeta { source: from.to_string(), source_agent_id: Some(from.clone()) },
            deadline: Instant::now() + self.turn_timeout,
        }
    }
}

/// Sends, and waits for the end of the turn. Whoever drops the future ends the turn as well, and goes
/// only after that: a task beside it sees to both.
async fn hand_over(
    agent: AgentHandle,
    request: SendRequest,
    waiting: Wait,
    beside: &TaskTracker,
) -> Result<Arc<Outcome>, SendError> {
    let unwanted = CancellationToken::new();
    let _wanted = unwanted.clone().drop_guard();
    let request_id = request.request_id.clone();
    let followed = beside.spawn(async move {
        let ended = tokio::select! {
            // A turn that has ended is not cancelled.
            biased;
            ended = follow(&agent, request) => Some(ended),
            () = unwanted.cancelled() => None,
        };
        // Who is to wait no longer stands in nobody's way.
        drop(waiting);
        if ended.is_none() {
            // It comes after the request, wherever that is: in the inbox, in the queue, or running.
            let _ = agent.cancel(Some(request_id)).await;
        }
        ended
    });
    match followed.await {
        Ok(Some(ended)) => ended,
        // Both are seen by nobody: the one is dropped, and the other is our defect.
        Ok(None) => Err(SendError::Gone),
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
    }
}

async fn follow(agent: &AgentHandle, request: SendRequest) -> Result<Arc<Outcome>, SendError> {
    match agent.send(request).await? {
        Accepted::Ended(outcome) => Ok(outcome),
        Accepted::Waiting { outcome, .. } => outcome.await.map_err(|_| SendError::Gone),
        Accepted::Recorded => Err(SendError::Storage),
    }
}

fn json(told: &impl Serialize) -> String {
    serde_json::to_string(told).expect("results have only string keys")
}

fn unknown(id: &AgentId) -> String {
    format!("Agent not found: {id}. It was destroyed, or there never was one of this name.")
}

fn not_sent(error: &SendError, to: &AgentId, reader: Reader) -> String {
    match error {
        SendError::Gone => unknown(to),
        SendError::Limit(exceeded) => beyond(exceeded, to, reader),
        SendError::QueueFull
        | SendError::Retiring
        | SendError::OtherContent
        | SendError::Storage => format!("{}.", error.told(to)),
    }
}

fn not_asked(error: &AskError) -> String {
    match error {
        AskError::Refused(refusal) => refused(refusal),
        AskError::EmptyMessage
        | AskError::NothingToWaitFor
        | AskError::Id(_)
        | AskError::Reserved => {
            format!("Invalid arguments for nexus_create: {error}.")
        }
    }
}

fn not_created(error: &CreateError, parent: &AgentId) -> String {
    match (error.refusal(), error) {
        (Some(refusal), _) => refused(refusal),
        (None, CreateError::Limit(exceeded)) => beyond(exceeded, parent, Reader::ItsParent),
        (None, CreateError::Storage { .. }) => format!("{}.", outcome::storage().message),
        (None, error) => format!("Not created: {error}."),
    }
}

/// Why a turn was cancelled that a model waited for.
fn why(reason: CancelReason) -> &'static str {
    match reason {
        CancelReason::Cancelled => "its turn was cancelled",
        CancelReason::Destroyed => "it was destroyed",
        CancelReason::Shutdown => "the server is shutting down",
    }
}

/// How a turn failed, for a model that waited for it.
fn failed(to: &AgentId, error: &ErrorObject) -> String {
    let data = error.data.as_ref().map(|data| format!(" {data}")).unwrap_or_default();
    format!("The turn of {to} failed: {} ({}{data}).", error.message, error.code)
}
