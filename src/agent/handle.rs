//! What others hold of an agent: a way into its inbox, and the status it last published.
//! No state of its own; every question is answered by the agent's task.

use std::sync::Arc;

use arc_swap::{ArcSwap, ArcSwapOption};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::actor::{Agent, Ask};
use super::confirmations::{Answered, ConfirmError, Pending, offered};
use super::confirming::Decided;
use super::context::{Compacted, NotCompacted, When};
use super::counting::{self, Countable};
use super::outbox::NotChanged;
use super::outcome::{self, CancelReason, Outcome};
use super::preamble::Preamble;
use super::renaming::{NotRenamed, Renaming};
use super::requests::State;
use super::shown::Shown;
use super::tokens::{Encoding, Tokens};
use super::{Facts, Kit, Past, Shared};
use crate::id::{AgentId, RequestId};
use crate::limits::{INBOX_MAX, WAITING_SENDS_MAX};
use crate::message::{Message, UserMeta};
use crate::policy::budget::Exceeded;
use crate::policy::{Decision, Permissions};
use crate::provider::Model;
use crate::store::{ConfirmationRecord, StoreError};
use crate::tool::mcp::{Guest, WorkplaceNumber};

#[derive(Clone)]
pub struct AgentHandle(Arc<Inner>);

struct Inner {
    facts: Arc<Facts>,
    workplace: Option<WorkplaceNumber>,
    shared: Arc<Shared>,
    inbox: mpsc::Sender<Ask>,
    status: Arc<ArcSwap<Status>>,
    entry: ArcSwapOption<Entry>,
}

/// How an agent stands in lists, as it was last written, and what it was written from.
struct Entry {
    status: Arc<Status>,
    family: Family,
    text: Arc<RawValue>,
}

/// An agent's place among the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Family {
    pub parent: Option<AgentId>,
    pub child_count: usize,
}

impl std::fmt::Debug for AgentHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("AgentHandle").field(&self.id()).finish()
    }
}

/// What an agent shows of itself without being asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    pub id: AgentId,
    pub model: Model,
    pub preamble: Arc<Preamble>,
    pub permissions: Arc<Permissions>,
    pub shown: Arc<Shown>,
    pub message_count: usize,
    /// The messages up to the end of the last turn that ended.
    pub settled_count: usize,
    pub should_shutdown: bool,
    pub active_request: Option<RequestId>,
    pub queued: usize,
    /// Whether a call waits until somebody confirms it.
    pub waits_for_confirmation: bool,
    pub halted_at_iteration_limit: bool,
    /// ISO 8601, UTC.
    pub last_action_at: Option<Arc<str>>,
}

/// A send, as its agent receives it.
#[derive(Clone, Debug)]
pub struct SendRequest {
    pub request_id: RequestId,
    pub content: Arc<str>,
    pub meta: UserMeta,
    /// When waiting and turn together must be over.
    pub deadline: Instant,
}

/// A send that the agent took: it will end, or has ended already.
#[derive(Debug)]
pub enum Accepted {
    Waiting {
        state: State,
        outcome: oneshot::Receiver<Arc<Outcome>>,
    },
    Ended(Arc<Outcome>),
    /// The database knows how it ended.
    Recorded,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    #[error(transparent)]
    Limit(Exceeded),
    #[error("too many sends wait for this agent")]
    QueueFull,
    #[error("the agent takes no new work")]
    Retiring,
    #[error("the request id was used with other content")]
    OtherContent,
    #[error("the request could not be written down")]
    Storage,
    #[error("the agent is gone")]
    Gone,
}

impl SendError {
    /// What whoever sent to `agent` is told.
    pub fn told(&self, agent: &AgentId) -> String {
        match self {
            Self::Limit(exceeded) => exceeded.to_string(),
            Self::QueueFull => format!(
                "{agent} is busy: {WAITING_SENDS_MAX} sends are waiting for it already; try again later"
            ),
            Self::Retiring => {
                format!("{agent} takes no new work: it or the server is shutting down")
            }
            Self::OtherContent => {
                "this request_id was used with other content; use a new one".to_owned()
            }
            Self::Storage => outcome::storage().message,
            Self::Gone => format!("Agent not found: {agent}"),
        }
    }
}

/// A question about what is on record, or a change of it, that got no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unanswered {
    #[error("the agent is gone")]
    Gone,
    #[error("the record could not be read or written")]
    Storage,
    #[error("the agent takes no changes any more")]
    Retiring,
}

/// What a cancel ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cancelled {
    /// Those that were running or waiting.
    pub requests: Vec<RequestId>,
    /// Whether a summary was that somebody had asked for; it has no id.
    pub a_summary: bool,
}

impl Cancelled {
    pub fn is_something(&self) -> bool {
        !self.requests.is_empty() || self.a_summary
    }
}

pub type CompactReply = oneshot::Sender<Result<Compacted, CompactError>>;

/// Why an agent's conversation was not summed up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompactError {
    #[error(transparent)]
    NotCompacted(NotCompacted),
    #[error(transparent)]
    Limit(Exceeded),
    #[error("a turn is running or waiting")]
    Busy,
    #[error("it was cancelled")]
    Cancelled,
    #[error("the summary could not be written down")]
    Storage,
    #[error("the agent takes no changes any more")]
    Retiring,
    #[error("a defect of ours, {error_id}")]
    Defect { error_id: String },
    #[error("the agent is gone")]
    Gone,
}

/// The agent's task has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the agent is gone")]
pub struct Gone;

/// How an agent is told to take no more work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retire {
    /// The running turn may end by itself; what waits is cancelled.
    FinishTurn(CancelReason),
    CancelTurn(CancelReason),
    /// Cancels everything, and the task ends.
    Leave,
}

#[derive(Debug)]
pub struct Page {
    pub total: usize,
    pub messages: Vec<Arc<Message>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    pub message_count: usize,
    pub system_prompt: bool,
    pub halted_at_iteration_limit: bool,
    pub last_iteration_count: u32,
    pub max_tool_iterations: u32,
}

impl AgentHandle {
    /// Starts the agent's task.
    pub fn start(facts: Facts, kit: Kit, past: Past, shared: Arc<Shared>) -> Self {
        let facts = Arc::new(facts);
        let (sender, inbox) = mpsc::channel(INBOX_MAX);
        let agent = Agent::new(Arc::clone(&facts), kit, past, Arc::clone(&shared), inbox);
        let (status, workplace) = (agent.published(), agent.workplace.guest().map(Guest::number));
        tokio::spawn(agent.run());
        let entry = ArcSwapOption::empty();
        let inner = Inner { facts, workplace, shared, inbox: sender, status, entry };
        Self(Arc::new(inner))
    }

    /// Whether both lead to the same agent, not just to one of the same id.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub fn facts(&self) -> &Facts {
        &self.0.facts
    }

    /// What the agent is called now.
    pub fn id(&self) -> AgentId {
        self.0.status.load().id.clone()
    }

    /// Where its tools work, as MCP servers know it.
    pub fn workplace(&self) -> Option<WorkplaceNumber> {
        self.0.workplace
    }

    /// What the agent may do now.
    pub fn permissions(&self) -> Arc<Permissions> {
        Arc::clone(&self.status().permissions)
    }

    pub fn status(&self) -> Arc<Status> {
        self.0.status.load_full()
    }

    /// The entry of this agent in lists: written by `write`, and not again before its status or
    /// family changes. Lists are asked for far more often than agents change.
    pub fn entry(
        &self,
        family: &Family,
        write: impl FnOnce(&Status) -> Box<RawValue>,
    ) -> Arc<RawValue> {
        let status = self.status();
        if let Some(entry) = &*self.0.entry.load()
            && Arc::ptr_eq(&entry.status, &status)
            && entry.family == *family
        {
            return Arc::clone(&entry.text);
        }
        let text: Arc<RawValue> = write(&status).into();
        let entry = Entry { status, family: family.clone(), text: Arc::clone(&text) };
        self.0.entry.store(Some(Arc::new(entry)));
        text
    }

    pub async fn send(&self, request: SendRequest) -> Result<Accepted, SendError> {
        let (id, content) = (request.request_id.clone(), Arc::clone(&request.content));
        let asked = self.ask(|reply| Ask::Send(Box::new(request), reply)).await;
        match asked.unwrap_or(Err(SendError::Gone))? {
            Accepted::Recorded => match self.recorded(&id).await {
                Ok(Some((recorded, _))) if recorded != content => Err(SendError::OtherContent),
                Ok(Some((_, outcome))) => Ok(Accepted::Ended(outcome)),
                // The record was forgotten at this very moment, or cannot be read.
                Ok(None) | Err(_) => Err(SendError::Storage),
            },
            accepted @ (Accepted::Waiting { .. } | Accepted::Ended(_)) => Ok(accepted),
        }
    }

    /// Cancels one request, or everything that runs or waits.
    pub async fn cancel(&self, request: Option<RequestId>) -> Result<Cancelled, Gone> {
        self.ask(|reply| Ask::Cancel(request, reply)).await
    }

    pub async fn request(&self, id: RequestId) -> Result<Option<State>, Unanswered> {
        let state = self.ask(|reply| Ask::Request(id.clone(), reply)).await;
        match state.map_err(|Gone| Unanswered::Gone)? {
            Some(State::Recorded) => {
                let recorded = self.recorded(&id).await.map_err(|_| Unanswered::Storage)?;
                Ok(recorded.map(|(_, outcome)| State::Ended(outcome)))
            }
            state => Ok(state),
        }
    }

    /// The content and the outcome of a request that is on record.
    async fn recorded(
        &self,
        id: &RequestId,
    ) -> Result<Option<(Arc<str>, Arc<Outcome>)>, StoreError> {
        let record = self.0.shared.store.request(self.facts().number, id).await?;
        Ok(record.and_then(|record| {
            let outcome = serde_json::from_str(&record.outcome?).ok()?;
            Some((record.content, Arc::new(outcome)))
        }))
    }

    /// A page of the conversation, as it is on disk.
    pub async fn messages(&self, offset: usize, limit: usize) -> Result<Page, Unanswered> {
        let total = self.status().message_count;
        let limit = limit.min(total.saturating_sub(offset));
        if limit == 0 {
            return Ok(Page { total, messages: Vec::new() });
        }
        let page = self.0.shared.store.messages(self.facts().number, offset as u64, limit as u64);
        let messages = page.await.map_err(|_| Unanswered::Storage)?;
        Ok(Page { total, messages })
    }

    pub async fn context(&self) -> Result<Context, Gone> {
        self.ask(Ask::Context).await
    }

    pub async fn tokens(&self) -> Result<Tokens, Gone> {
        let what = self.countable(self.status().model.clone()).await?;
        Ok(counting::count(self.0.shared.world.blocking.as_ref(), what).await)
    }

    /// The tokens of the next request if it would be too long for `model`.
    pub async fn too_long_for(&self, model: Model) -> Result<Option<Tokens>, Gone> {
        let what = self.countable(model).await?;
        // What is short enough in bytes need not be counted, which can take its time.
        if what.surely_fits() {
            return Ok(None);
        }
        let tokens = counting::count(self.0.shared.world.blocking.as_ref(), what).await;
        Ok(Some(tokens).filter(|tokens| tokens.total() > tokens.available))
    }

    async fn countable(&self, model: Model) -> Result<Countable, Gone> {
        let encoding = Encoding::of(&model.id);
        let messages = self.ask(|reply| Ask::Tokens(encoding, reply)).await?;
        Ok(Countable { model, preamble: Arc::clone(&self.status().preamble), messages })
    }

    /// Has every request from the next one on go to `model`; `parent` is whose child the agent is.
    pub async fn set_model(&self, model: Model, parent: Option<AgentId>) -> Result<(), Unanswered> {
        changed(self.ask(|reply| Ask::SetModel(Box::new((model, parent)), reply)).await)
    }

    /// Has every request from the next one on begin with `prompt`; `parent` is whose child the agent
    /// is.
    pub async fn set_prompt(
        &self,
        prompt: Arc<str>,
        parent: Option<AgentId>,
    ) -> Result<(), Unanswered> {
        changed(self.ask(|reply| Ask::SetPrompt(Box::new((prompt, parent)), reply)).await)
    }

    /// Has the agent do everything from now on with these permissions, which are on record.
    pub async fn adopt(&self, permissions: Arc<Permissions>) -> Result<(), Gone> {
        self.ask(|reply| Ask::Adopt(permissions, reply)).await
    }

    /// How a call of the agent would be decided on now.
    pub async fn explain(&self, tool: &str, arguments: Option<Value>) -> Result<Decision, Gone> {
        let (permissions, workplace) = self.ask(Ask::Workplace).await?;
        let tools = &self.0.shared.tools;
        Ok(tools.explain(tool, arguments, &permissions, &workplace).await)
    }

    /// Has a summary take the place of the older messages.
    pub async fn compact(&self, when: When) -> Result<Compacted, CompactError> {
        let asked = self.ask(|reply| Ask::Compact(when, reply)).await;
        asked.unwrap_or(Err(CompactError::Gone))
    }

    /// Answers a confirmation of the agent. Where it was decided before, what was decided is told.
    pub async fn confirm(&self, answer: Decided) -> Result<Answered, ConfirmError> {
        let (id, decision) = (answer.confirm_id.clone(), answer.decision.clone());
        let asked = self.ask(|reply| Ask::Confirm(Box::new(answer), reply)).await;
        match asked.unwrap_or(Err(ConfirmError::Gone)) {
            Err(ConfirmError::Unknown) => {}
            answered => return answered,
        }
        let record = self.0.shared.store.confirmation(self.facts().number, &id).await;
        let record = record.map_err(|_| ConfirmError::Storage)?;
        let ConfirmationRecord { options, resolved } = record.ok_or(ConfirmError::Unknown)?;
        offered(&options, &decision)?;
        // One that is not decided is one whose decision could not be written.
        let (decision, resolved_by) = resolved.ok_or(ConfirmError::Storage)?;
        Ok(Answered { accepted: false, decision, resolved_by })
    }

    /// The confirmations that somebody can answer, oldest first.
    pub async fn confirmations(&self) -> Result<Vec<Pending>, Gone> {
        self.ask(Ask::Confirmations).await
    }

    /// Gives the agent another id, unless it is in a turn.
    pub async fn rename(&self, renaming: Renaming) -> Result<(), NotRenamed> {
        let asked = self.ask(|reply| Ask::Rename(renaming, reply)).await;
        asked.unwrap_or(Err(NotRenamed::Gone))
    }

    /// Notes that this agent has nothing against the server's end.
    pub async fn ask_for_shutdown(&self) -> Result<(), Gone> {
        self.ask(Ask::Shutdown).await
    }

    /// Tells the agent to take no more work, and waits until nothing of it runs. Says why something that
    /// it did could not be written, where that is so.
    pub async fn retire(&self, how: Retire) -> Result<(), StoreError> {
        // An agent that is gone already has nothing running.
        self.ask(|reply| Ask::Retire(how, reply)).await.unwrap_or(Ok(()))
    }

    /// Takes back that the agent was told to take no more work.
    pub async fn resume(&self) {
        let _ = self.ask(Ask::Resume).await;
    }

    async fn ask<T>(&self, question: impl FnOnce(oneshot::Sender<T>) -> Ask) -> Result<T, Gone> {
        let (reply, answer) = oneshot::channel();
        self.0.inbox.send(question(reply)).await.map_err(|_| Gone)?;
        answer.await.map_err(|_| Gone)
    }
}

fn changed(asked: Result<Result<(), NotChanged>, Gone>) -> Result<(), Unanswered> {
    asked.map_err(|Gone| Unanswered::Gone)?.map_err(|not_changed| match not_changed {
        NotChanged::Storage => Unanswered::Storage,
        NotChanged::Retiring => Unanswered::Retiring,
    })
}
