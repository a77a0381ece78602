//! An agent's session, as a file would have it: between two turns, from what is on record.

use std::sync::Arc;

use crate::agent::AgentHandle;
use crate::limits::SESSION_MESSAGES_PAGE;
use crate::message::Message;
use crate::policy::Level;
use crate::pool::Pool;
use crate::session::{Provenance, SCHEMA_VERSION, SessionFile};
use crate::store::{AgentNumber, AgentRecord, Recipe, SessionRow, Standing, StoreError};

/// How much of a conversation a session has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upto {
    /// So many messages; of an agent that runs, the turns that ended.
    Count(u64),
    /// All of it; of an agent that runs nothing.
    Everything,
}

impl Pool {
    /// The session of an agent that runs, up to its last turn that ended; `None` of one that is gone.
    pub(super) async fn session_of(
        &self,
        agent: &AgentHandle,
    ) -> Result<Option<SessionFile>, StoreError> {
        let upto = Upto::Count(agent.status().settled_count as u64);
        self.session_on_record(agent.facts().number, upto).await
    }

    /// The session of an agent from its row; `None` where there is none. Its messages only ever get
    /// more, so they are read in pages, and commits get in between.
    pub async fn session_on_record(
        &self,
        number: AgentNumber,
        upto: Upto,
    ) -> Result<Option<SessionFile>, StoreError> {
        let Some(row) = self.shared.store.session(number).await? else {
            return Ok(None);
        };
        let upto = match upto {
            Upto::Count(count) => count.min(row.message_count),
            Upto::Everything => row.message_count,
        };
        let mut messages: Vec<Arc<Message>> = Vec::new();
        while (messages.len() as u64) < upto {
            let from = messages.len() as u64;
            let limit = SESSION_MESSAGES_PAGE.min(upto - from);
            let page = self.shared.store.messages(number, from, limit).await?;
            if page.is_empty() {
                // It was destroyed meanwhile.
                return Ok(None);
            }
            messages.extend(page);
        }
        Ok(Some(self.session_file(row, messages)))
    }

    fn session_file(&self, row: SessionRow, messages: Vec<Arc<Message>>) -> SessionFile {
        let SessionRow { record, standing, modified_at, message_count: _, unknown } = row;
        let permission_level = self.level_of(&record.recipe);
        // Taken apart by name: what an agent gets besides has to be thought of here.
        let AgentRecord { id, parent, depth, created_at, recipe } = record;
        let Recipe {
            preset,
            model,
            cwd,
            write_paths,
            disabled_tools,
            // What somebody gave besides the preset is not a file's to give.
            enabled_tools: _,
            system_prompt,
            system_prompt_path,
            root,
            session_allowances,
            // Whoever stands above it when it comes back decides on that.
            ceiling: _,
        } = recipe;
        // How its last turn went is over with it.
        let Standing {
            halted_at_iteration_limit: _,
            last_iteration_count: _,
            last_action_at: _,
            token_usage,
        } = standing;
        let time = |text: &str| text.parse().expect("the times on record are ours");
        SessionFile {
            schema_version: SCHEMA_VERSION,
            agent_id: id,
            created_at: time(&created_at),
            modified_at: time(&modified_at),
            messages,
            system_prompt,
            system_prompt_path,
            working_directory: cwd,
            permission_level,
            permission_preset: preset,
            disabled_tools,
            write_paths,
            session_allowances: session_allowances.unwrap_or_default(),
            model,
            token_usage,
            provenance: Provenance::of(parent.as_ref()),
            parent_agent_id: parent,
            depth,
            root_directory: root,
            unknown,
        }
    }

    /// What an agent made from this recipe would be today. One whose preset is gone cannot be made,
    /// and is told as the least there is.
    pub(super) fn level_of(&self, recipe: &Recipe) -> Level {
        let own = self.presets.get(&recipe.preset).map_or(Level::Sandboxed, |preset| preset.level);
        match &recipe.ceiling {
            Some(ceiling) => own.min(ceiling.level.below()),
            None => own,
        }
    }
}
