//! The methods of one agent.

use std::time::Duration;

use tokio::time::Instant;

use super::code::Code;
use super::method::{
    CancelParams, CancelResult, CompactParams, CompactResult, ContextResult, GetMessagesParams,
    GetMessagesResult, GetModelResult, GetRequestParams, GetRequestResult, GetSystemPromptResult,
    GetTokensResult, NoParams, NumberedMessage, RequestStatus, SendParams, SendResult,
    SetModelParams, SetModelResult, SetSystemPromptParams, SetSystemPromptResult, ShutdownResult,
};
use super::params::invalid;
use super::wire::ErrorObject;
use super::{Call, Patience};
use crate::agent::{
    Accepted, AgentHandle, CompactError, Compacted, EndedAs, Gone, Outcome, SendError, SendRequest,
    State, Unanswered, When, outcome,
};
use crate::id::{AgentId, RequestId};
use crate::limits::{
    CLIENT_NAME_CHARS_MAX, MESSAGES_PAGE_DEFAULT, MESSAGES_PAGE_MAX, TIMEOUT_SECONDS_MAX,
};
use crate::message::UserMeta;
use crate::pool::SetModelError;
use crate::world::Use;

/// A send whose params have been checked.
pub(super) struct Prepared {
    pub request: SendRequest,
    wait: bool,
}

/// A send that its agent took.
pub(super) struct Sent {
    request_id: RequestId,
    progress: Accepted,
}

impl Call<'_> {
    pub(super) async fn send(
        &self,
        agent: &AgentHandle,
        params: SendParams,
    ) -> Result<SendResult, ErrorObject> {
        self.may_send(&agent.id())?;
        let prepared = self.prepare_send(params)?;
        // A request that is known already is no new work: it is joined or told.
        if self.rpc.pool.is_stopping() && !is_known(agent, &prepared).await {
            return Err(ErrorObject::new(Code::Overloaded, "the server is shutting down"));
        }
        if prepared.wait && self.patience == Patience::Waits {
            self.send_and_wait(agent, prepared).await
        } else {
            self.deliver(agent, prepared).await?.accepted()
        }
    }

    /// Waits for the turn, unless the caller would thereby wait for itself.
    pub(super) async fn send_and_wait(
        &self,
        agent: &AgentHandle,
        prepared: Prepared,
    ) -> Result<SendResult, ErrorObject> {
        let _waiting = match &self.caller.agent {
            Some(from) => {
                let waiting = self.rpc.pool.wait_for(from, agent);
                Some(waiting.map_err(|deadlock| Code::of_deadlock(&deadlock))?)
            }
            None => None,
        };
        let sent = self.deliver(agent, prepared).await?;
        self.outcome(agent, sent).await
    }

    pub(super) async fn deliver(
        &self,
        agent: &AgentHandle,
        prepared: Prepared,
    ) -> Result<Sent, ErrorObject> {
        let request_id = prepared.request.request_id.clone();
        // Whoever waits for the disk executes nothing.
        let progress = match self.place.while_waiting(agent.send(prepared.request)).await {
            Ok(accepted) => accepted,
            Err(SendError::Gone) => return Err(self.gone(agent)),
            Err(error) => return Err(Code::of_send(&error, &agent.id())),
        };
        Ok(Sent { request_id, progress })
    }

    /// Waits for the end of a turn, without holding a place among the executing requests.
    async fn outcome(&self, agent: &AgentHandle, sent: Sent) -> Result<SendResult, ErrorObject> {
        let outcome = match sent.progress {
            Accepted::Ended(outcome) => outcome,
            Accepted::Recorded => return Err(outcome::storage()),
            Accepted::Waiting { outcome, .. } => {
                let outcome = self.place.while_waiting(outcome).await;
                outcome.map_err(|_| self.gone(agent))?
            }
        };
        SendResult::of(&sent.request_id, &outcome)
    }

    fn may_send(&self, target: &AgentId) -> Result<(), ErrorObject> {
        let Some(from) = &self.caller.agent else {
            return Ok(());
        };
        self.rpc.pool.may_send(from, target).map_err(|refusal| Code::of_refusal(&refusal))
    }

    pub(super) fn prepare_send(&self, params: SendParams) -> Result<Prepared, ErrorObject> {
        if params.content.is_empty() {
            return Err(invalid("Invalid parameter content: it must not be empty"));
        }
        let request_id = params.request_id.unwrap_or_else(|| self.rpc.pool.draw_request_id());
        let source = match params.source {
            Some(source) if source.chars().count() > CLIENT_NAME_CHARS_MAX => {
                let message = format!("it has more than {CLIENT_NAME_CHARS_MAX} characters");
                return Err(invalid(format!("Invalid parameter source: {message}")));
            }
            Some(source) => source,
            None => self.caller.client.as_str().to_owned(),
        };
        // Nobody sends in another agent's name who is not a client with all rights.
        let source_agent_id = self.caller.agent.clone().or(params.source_agent_id);
        let timeout = match params.timeout {
            None => self.rpc.pool.turn_timeout(),
            Some(seconds) if seconds > 0.0 && seconds <= TIMEOUT_SECONDS_MAX => {
                Duration::from_secs_f64(seconds)
            }
            Some(_) => {
                let range = format!("seconds from above 0 to {TIMEOUT_SECONDS_MAX}");
                return Err(invalid(format!("Invalid parameter timeout: it must be {range}")));
            }
        };
        let request = SendRequest {
            request_id,
            content: params.content.into(),
            meta: UserMeta { source, source_agent_id },
            deadline: Instant::now() + timeout,
        };
        Ok(Prepared { request, wait: params.wait.unwrap_or(true) })
    }

    pub(super) async fn cancel(
        &self,
        agent: &AgentHandle,
        params: CancelParams,
    ) -> Result<CancelResult, ErrorObject> {
        let cancelled =
            agent.cancel(params.request_id.clone()).await.map_err(|Gone| self.gone(agent))?;
        Ok(CancelResult::of(params.request_id, cancelled))
    }

    pub(super) async fn get_request(
        &self,
        agent: &AgentHandle,
        params: GetRequestParams,
    ) -> Result<GetRequestResult, ErrorObject> {
        let request_id = params.request_id;
        let state = agent.request(request_id.clone()).await;
        let state = state.map_err(|unanswered| self.unanswered(agent, unanswered))?;
        let state = state.ok_or_else(|| invalid(format!("Request not found: {request_id}")))?;
        let (status, outcome) = match state {
            State::Queued => (RequestStatus::Queued, None),
            State::Running => (RequestStatus::Running, None),
            State::Ended(outcome) => {
                (ended_status(&outcome), Some(SendResult::of(&request_id, &outcome)))
            }
            State::Recorded => return Err(outcome::storage()),
        };
        let (result, error) = match outcome {
            None => (None, None),
            Some(Ok(result)) => (Some(result), None),
            Some(Err(error)) => (None, Some(error)),
        };
        Ok(GetRequestResult { request_id, status, result, error })
    }

    pub(super) async fn get_tokens(
        &self,
        agent: &AgentHandle,
        _: NoParams,
    ) -> Result<GetTokensResult, ErrorObject> {
        let tokens = agent.tokens().await.map_err(|Gone| self.gone(agent))?;
        Ok(GetTokensResult {
            system: tokens.system,
            tools: tokens.tools,
            messages: tokens.messages,
            total: tokens.total(),
            budget: tokens.budget,
            available: tokens.available,
            remaining: tokens.remaining(),
        })
    }

    pub(super) async fn get_context(
        &self,
        agent: &AgentHandle,
        _: NoParams,
    ) -> Result<ContextResult, ErrorObject> {
        agent.context().await.map(Into::into).map_err(|Gone| self.gone(agent))
    }

    pub(super) async fn get_messages(
        &self,
        agent: &AgentHandle,
        params: GetMessagesParams,
    ) -> Result<GetMessagesResult, ErrorObject> {
        let offset = params.offset.unwrap_or(0);
        let limit = params.limit.unwrap_or(MESSAGES_PAGE_DEFAULT);
        if !(1..=MESSAGES_PAGE_MAX).contains(&limit) {
            let message =
                format!("Invalid parameter limit: it must be from 1 to {MESSAGES_PAGE_MAX}");
            return Err(invalid(message));
        }
        // An offset that no machine can count to lies beyond any conversation.
        let first = usize::try_from(offset).unwrap_or(usize::MAX);
        let count = usize::try_from(limit).expect("a page is small");
        let page = agent.messages(first, count).await;
        let page = page.map_err(|unanswered| self.unanswered(agent, unanswered))?;
        let messages = (offset..).zip(page.messages);
        Ok(GetMessagesResult {
            agent_id: agent.id(),
            total: page.total,
            offset,
            limit,
            messages: messages.map(|(index, message)| NumberedMessage { index, message }).collect(),
        })
    }

    #[expect(clippy::unused_self, reason = "all methods are called alike")]
    pub(super) fn get_model(&self, agent: &AgentHandle, _: NoParams) -> GetModelResult {
        let model = &agent.status().model;
        GetModelResult {
            model: model.name.to_string(),
            provider: model.provider_name.to_string(),
            reasoning: model.reasoning,
            context_window: model.context_window,
        }
    }

    pub(super) async fn set_model(
        &self,
        agent: &AgentHandle,
        params: SetModelParams,
    ) -> Result<SetModelResult, ErrorObject> {
        let set = self.rpc.pool.set_model(agent, &params.model).await;
        let model = set.map_err(|error| match error {
            SetModelError::Model(_) | SetModelError::DoesNotFit { .. } => {
                invalid(error.to_string())
            }
            SetModelError::Unanswered(unanswered) => self.unanswered(agent, unanswered),
        })?;
        Ok(SetModelResult {
            updated: true,
            model: model.name.to_string(),
            provider: model.provider_name.to_string(),
        })
    }

    /// Waits for a model, without holding a place among the executing requests.
    pub(super) async fn compact(
        &self,
        agent: &AgentHandle,
        params: CompactParams,
    ) -> Result<CompactResult, ErrorObject> {
        let when = if params.force.unwrap_or(true) { When::Now } else { When::IfDue };
        let not = |reason: &str| CompactResult {
            reason: Some(reason.to_owned()),
            ..CompactResult::default()
        };
        match self.place.while_waiting(agent.compact(when)).await {
            Ok(Compacted { tokens_before, tokens_after, .. }) => Ok(CompactResult {
                compacted: true,
                tokens_before: Some(tokens_before),
                tokens_after: Some(tokens_after),
                tokens_saved: Some(tokens_before - tokens_after),
                reason: None,
            }),
            Err(CompactError::NotCompacted(why)) => Ok(not(why.name())),
            Err(CompactError::Cancelled) => Ok(not("cancelled")),
            Err(CompactError::Limit(exceeded)) => Err(Code::of_refusal(&exceeded.into())),
            Err(CompactError::Busy) => {
                let message = "not possible during a turn: wait for it, or cancel it";
                Err(ErrorObject::new(Code::Conflict, message))
            }
            Err(CompactError::Storage) => Err(outcome::storage()),
            Err(CompactError::Retiring) => Err(Code::of_send(&SendError::Retiring, &agent.id())),
            Err(CompactError::Defect { error_id }) => Err(outcome::defect(&error_id)),
            Err(CompactError::Gone) => Err(self.gone(agent)),
        }
    }

    #[expect(clippy::unused_self, reason = "all methods are called alike")]
    pub(super) fn get_system_prompt(
        &self,
        agent: &AgentHandle,
        _: NoParams,
    ) -> GetSystemPromptResult {
        let preamble = &agent.status().preamble;
        GetSystemPromptResult {
            system_prompt: preamble.system.to_string(),
            system_prompt_path: preamble.path.as_ref().map(|path| path.display().to_string()),
        }
    }

    pub(super) async fn set_system_prompt(
        &self,
        agent: &AgentHandle,
        params: SetSystemPromptParams,
    ) -> Result<SetSystemPromptResult, ErrorObject> {
        let set = self.rpc.pool.set_system_prompt(agent, params.system_prompt.into()).await;
        set.map_err(|unanswered| self.unanswered(agent, unanswered))?;
        Ok(SetSystemPromptResult { updated: true })
    }

    fn unanswered(&self, agent: &AgentHandle, unanswered: Unanswered) -> ErrorObject {
        match unanswered {
            Unanswered::Gone => self.gone(agent),
            Unanswered::Storage => outcome::storage(),
            Unanswered::Retiring => Code::of_send(&SendError::Retiring, &agent.id()),
        }
    }

    /// An agent's task ends when it is destroyed; at any other time that is our defect.
    pub(super) fn gone(&self, agent: &AgentHandle) -> ErrorObject {
        let id = &agent.id();
        if !self.rpc.pool.agent(id).is_some_and(|present| present.is(agent)) {
            return Code::gone(id);
        }
        let error_id = self.rpc.chance.hex(Use::ErrorId, 8);
        tracing::error!(error_id, agent = %id, "the agent's task has died");
        outcome::defect(&error_id)
    }

    pub(super) async fn shutdown(
        &self,
        agent: &AgentHandle,
        _: NoParams,
    ) -> Result<ShutdownResult, ErrorObject> {
        agent.ask_for_shutdown().await.map_err(|Gone| self.gone(agent))?;
        self.rpc.pool.stop_if_all_asked();
        Ok(ShutdownResult { success: true })
    }
}

impl Sent {
    /// What a caller learns who does not wait.
    fn accepted(self) -> Result<SendResult, ErrorObject> {
        let Self { request_id, progress } = self;
        let status = match progress {
            Accepted::Ended(outcome) => return SendResult::of(&request_id, &outcome),
            Accepted::Waiting { state: State::Running, .. } => RequestStatus::Running,
            Accepted::Waiting { .. } => RequestStatus::Queued,
            Accepted::Recorded => return Err(outcome::storage()),
        };
        Ok(SendResult::Accepted { request_id, status })
    }
}

async fn is_known(agent: &AgentHandle, prepared: &Prepared) -> bool {
    let state = agent.request(prepared.request.request_id.clone()).await;
    matches!(state, Ok(Some(_)))
}

fn ended_status(outcome: &Outcome) -> RequestStatus {
    match outcome.ended_as() {
        EndedAs::Completed => RequestStatus::Completed,
        EndedAs::Cancelled => RequestStatus::Cancelled,
        EndedAs::Failed => RequestStatus::Failed,
        EndedAs::Interrupted => RequestStatus::Interrupted,
    }
}
