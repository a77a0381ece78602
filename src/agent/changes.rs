//! What others may change of an agent besides sending to it: its model, its prompt, its permissions, and
//! how much of its conversation stands word for word. Each is durable before whoever asked is told.

use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use super::actor::Agent;
use super::context::{
    self, Automatic, Compacted, Draft, MayCompact, NotCompacted, When, summary_message,
};
use super::handle::{CompactError, CompactReply};
use super::outbox::{Entry, NotChanged, Then};
use super::preamble::Preamble;
use super::prepare::{self, Question, Summed};
use super::shown::Shown;
use crate::id::AgentId;
use crate::policy::Permissions;
use crate::provider::Model;
use crate::tool::workplace::Workplace;
use crate::world::Use;

/// A summary on its way, between turns.
pub struct Compacting {
    reply: CompactReply,
    summary: oneshot::Receiver<Summed>,
    task: AbortHandle,
}

/// The task that was to sum up has died.
pub struct Died;

impl Compacting {
    /// Waits for the summary; for ever where none is on its way. Dropping the future loses nothing.
    pub async fn ended(compacting: &mut Option<Self>) -> Result<Summed, Died> {
        match compacting {
            Some(compacting) => (&mut compacting.summary).await.map_err(|_| Died),
            None => std::future::pending().await,
        }
    }
}

impl Agent {
    pub(super) fn on_set_model(
        &mut self,
        (model, parent_agent_id): (Model, Option<AgentId>),
        reply: oneshot::Sender<Result<(), NotChanged>>,
    ) {
        if self.retirement.is_some() {
            // What is written after the agent's end would be its last event.
            let _ = reply.send(Err(NotChanged::Retiring));
            return;
        }
        let writes = self.journal().model_set(&model.name, parent_agent_id);
        let then = Then::Model(Box::new(model), reply);
        self.outbox.push(Entry { request: None, writes, then });
    }

    /// A prompt that was given comes from no file.
    pub(super) fn on_set_prompt(
        &mut self,
        (prompt, parent_agent_id): (Arc<str>, Option<AgentId>),
        reply: oneshot::Sender<Result<(), NotChanged>>,
    ) {
        if self.retirement.is_some() {
            let _ = reply.send(Err(NotChanged::Retiring));
            return;
        }
        let writes = self.journal().prompt_set(&prompt, parent_agent_id);
        let then = Then::Prompt(prompt, reply);
        self.outbox.push(Entry { request: None, writes, then });
    }

    /// They are on record already: whoever changes several agents at once sees to that.
    pub(super) fn on_adopt(&mut self, permissions: Arc<Permissions>, reply: oneshot::Sender<()>) {
        self.take_permissions(permissions);
        let _ = reply.send(());
    }

    /// Does everything from now on with these, which are on record.
    pub(super) fn take_permissions(&mut self, permissions: Arc<Permissions>) {
        let Preamble { system, path, .. } = self.preamble.as_ref();
        self.tools_seen = Some(self.shared.tools.generation());
        let tools = self.shared.tools.shown(&permissions, &self.workplace);
        let preamble = Preamble::new(Arc::clone(system), path.clone(), tools);
        self.preamble = Arc::new(preamble);
        self.shown = Arc::new(Shown::of(&self.facts, &permissions));
        self.permissions = permissions;
        // What runs with more than that finds the same in the published status, and so does whoever is told.
        self.publish();
        self.workplace.adopt(&self.permissions);
    }

    pub(super) fn place_of_work(&self) -> (Arc<Permissions>, Arc<Workplace>) {
        (Arc::clone(&self.permissions), Arc::clone(&self.workplace))
    }

    /// Between turns only: a turn has its conversation summed up itself.
    pub(super) fn on_compact(&mut self, when: When, reply: CompactReply) {
        let refusal = if self.retirement.is_some() {
            Some(CompactError::Retiring)
        } else if self.is_busy() || !self.queue.is_empty() {
            Some(CompactError::Busy)
        } else if when == When::IfDue && self.shared.compaction.automatic == Automatic::Off {
            Some(CompactError::NotCompacted(NotCompacted::Disabled))
        } else {
            self.account.may_go_on().err().map(CompactError::Limit)
        };
        if let Some(refusal) = refusal {
            let _ = reply.send(Err(refusal));
            return;
        }
        let (draft, shared) = (Arc::new(self.draft()), Arc::clone(&self.shared));
        let (sender, summary) = oneshot::channel();
        let metered = self.account.metered();
        let task = self.tasks.spawn(async move {
            let summed = prepare::compact(&shared, &draft, (when, metered), None).await;
            // Nobody wants it any more if it was cancelled.
            let _ = sender.send(summed);
        });
        self.compacting = Some(Compacting { reply, summary, task });
    }

    pub(super) fn on_summed_up(&mut self, ended: Result<Summed, Died>) {
        let compacting = self.compacting.take().expect("only what is on its way ends");
        while self.tasks.try_join_next().is_some() {}
        let ended = ended.map(|summed| {
            self.on_summary_charged(summed.cost);
            summed.compacted
        });
        let refusal = match ended {
            Ok(Ok(compacted)) => {
                let writes = self.journal().compacted(None, &compacted);
                let then = Then::Compacted(Box::new(compacted), compacting.reply);
                self.outbox.push(Entry { request: None, writes, then });
                return;
            }
            Ok(Err(why)) => CompactError::NotCompacted(why),
            Err(Died) => {
                let error_id = self.shared.world.chance.hex(Use::ErrorId, 8);
                tracing::error!(error_id, agent = %self.id, "summing up panicked");
                CompactError::Defect { error_id }
            }
        };
        let _ = compacting.reply.send(Err(refusal));
    }

    /// Ends the summary that somebody asked for. Returns whether there was one.
    pub(super) fn stop_compacting(&mut self, why: CompactError) -> bool {
        let Some(compacting) = self.compacting.take() else { return false };
        compacting.task.abort();
        let _ = compacting.reply.send(Err(why));
        true
    }

    /// A summary stands for what it sums up from now on.
    pub(super) fn adopt(&mut self, compacted: &Compacted) {
        let summary = Arc::new(summary_message(&compacted.summary));
        self.conversation.compact(compacted.upto, summary);
    }

    /// Whether a turn or a summary is on its way or not yet on record.
    pub(super) fn is_busy(&mut self) -> bool {
        self.running.is_some() || self.compacting.is_some() || self.outbox.holds_turn()
    }

    /// Shows the model what MCP servers offer at this moment.
    pub(super) fn look_at_tools(&mut self) {
        let generation = self.shared.tools.generation();
        if self.tools_seen.replace(generation) == Some(generation) {
            return;
        }
        let tools = self.shared.tools.shown(&self.permissions, &self.workplace);
        if *tools != *self.preamble.tools {
            let Preamble { system, path, .. } = self.preamble.as_ref();
            let preamble = Preamble::new(Arc::clone(system), path.clone(), tools);
            self.preamble = Arc::new(preamble);
            self.publish();
        }
    }

    /// The next request to the model, as far as it does not depend on what fits.
    /// What a model is asked next. Only where it may not fit the conversation is looked through.
    pub(super) fn question(&mut self, may_compact: MayCompact) -> Question {
        self.look_at_tools();
        let of = (&self.id, &self.model, &*self.preamble);
        let unchanged_max = self.shared.compaction.unchanged_max(&self.model, may_compact);
        match context::whole(of, self.conversation.shown(), unchanged_max) {
            Some(request) => Question::Whole(request),
            None => Question::Draft(Box::new(self.draft())),
        }
    }

    fn draft(&mut self) -> Draft {
        self.look_at_tools();
        Draft {
            agent: self.id.clone(),
            model: self.model.clone(),
            preamble: Arc::clone(&self.preamble),
            view: self.conversation.view(),
        }
    }
}
