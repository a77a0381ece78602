//! A change, as SQL, inside the transaction that makes it durable. Never commits.
//! Written so that doing it again changes nothing more, and so that what comes after the end of an
//! agent changes nothing at all.
//!
//! What turns write again and again waits until the end of the transaction, where it is written once:
//! how agents stand, and requests that are accepted. Whatever else is written finds that done. When an
//! agent changed last is written with the end of its turn: until then the open request says that it does.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::database::{Counters, Statements, sql};
use super::journal::Journal;
use super::known::Known;
use super::requests::Accepted;
use super::{AgentNumber, AgentRecord, Granted, Standing, Write, budgets, sessions};
use crate::event::{Committed, Event};
use crate::id::{AgentId, RequestId};
use crate::message::Message;

/// One transaction on its way.
pub(super) struct Change<'c> {
    pub(super) statements: Statements<'c>,
    pub(super) counters: Counters,
    pub(super) journal: &'c mut Journal,
    pub(super) known: Known,
    pub(super) accepted: Vec<Accepted>,
    /// How agents stand where that is new.
    pub(super) standings: BTreeMap<AgentNumber, Standing>,
    /// ISO 8601, UTC.
    pub(super) now: Arc<str>,
    /// To be published once it is committed.
    pub(super) events: Vec<Committed>,
}

impl Change<'_> {
    pub(super) fn apply(&mut self, write: Write) -> rusqlite::Result<()> {
        if !is_of_turns(&write) {
            self.settle()?;
        }
        match write {
            Write::Message { agent, index, message } => self.put_message(agent, index, &message),
            Write::RequestQueued { agent, id, content } => self.accept_request(agent, id, content),
            Write::RequestStarted { agent, id } => self.start_request(agent, &id),
            Write::RequestEnded { agent, id, status, outcome } => {
                self.end_request(agent, &id, (status, &outcome))
            }
            Write::Standing { agent, standing } => {
                if self.known.is_there(&self.statements, agent)? {
                    self.standings.insert(agent, standing);
                }
                Ok(())
            }
            Write::ToolStarted { agent, request, tool_id, name } => {
                self.start_call(agent, &request, (&tool_id, &name))
            }
            Write::ToolEnded { agent, request, tool_id } => self.run(
                "UPDATE tool_calls SET ended = 1 WHERE agent = ?1 AND tool_id = ?2 AND request = ?3",
                (sql(agent), tool_id, request.as_str()),
            ),
            Write::Spent { agent, used } => budgets::spend(self, agent, used),
            Write::Event(event) => self.append_event(event),
            Write::AgentCreated { number, record } => self.create_agent(number, &record),
            Write::AgentDestroyed { number } => self.destroy_agent(number),
            Write::AgentRestored { number } => self.restore_agent(number),
            Write::AgentRenamed { number, id } => self.rename_agent(number, &id),
            Write::AgentPruned { number } => self.prune_agent(number),
            Write::RequestForgotten { agent, id } => self.forget_request(agent, &id),
            Write::ConfirmationRequested { agent, asked } => self.ask_confirmation(agent, &asked),
            Write::ConfirmationResolved { agent, id, decision, by } => {
                self.resolve_confirmation(agent, &id, decision, &by)
            }
            Write::Allowed { agent, more } => self.allow(agent, &more),
            Write::ModelSet { agent, model } => self.change_recipe(
                agent,
                "UPDATE recipes SET recipe = json_set(recipe, '$.model', ?2) WHERE agent = ?1",
                (sql(agent), model),
            ),
            Write::PromptSet { agent, prompt } => self.change_recipe(
                agent,
                "UPDATE recipes SET recipe = json_set(recipe, '$.system_prompt', ?2, \
                 '$.system_prompt_path', NULL) WHERE agent = ?1",
                (sql(agent), &*prompt),
            ),
            Write::PermissionsSet { agent, granted } => self.set_permissions(agent, &granted),
            Write::Summary { agent, upto, summary } => self.run(
                "INSERT OR REPLACE INTO summaries (agent, upto, summary) \
                 SELECT ?1, ?2, ?3 WHERE EXISTS (SELECT 1 FROM agents \
                 WHERE number = ?1 AND session_status IN ('active', 'dormant'))",
                (sql(agent), sql(upto), &*summary),
            ),
            Write::BudgetOpened(budget) => budgets::open(self, &budget),
            Write::Exported { agent, exported } => sessions::set_exported(self, agent, exported),
            Write::SessionTaken { agent, taken } => sessions::take(self, agent, &taken),
            Write::LastSession { agent } => sessions::set_last(self, agent),
        }
    }

    /// Writes what waited. To be called before the transaction is committed.
    pub(super) fn settle(&mut self) -> rusqlite::Result<()> {
        self.write_accepted()?;
        for (agent, standing) in std::mem::take(&mut self.standings) {
            let now = Arc::clone(&self.now);
            self.run(
                "UPDATE agents SET modified_at = ?2, standing = ?3 WHERE number = ?1",
                (sql(agent), now, text(&standing)),
            )?;
        }
        Ok(())
    }

    /// What an agent is made from changes with it: the older of two records must not win.
    fn change_recipe(
        &mut self,
        agent: AgentNumber,
        update: &'static str,
        params: impl rusqlite::Params,
    ) -> rusqlite::Result<()> {
        self.note_modified(agent)?;
        self.run(update, params)
    }

    pub(super) fn note_modified(&mut self, agent: AgentNumber) -> rusqlite::Result<()> {
        let now = Arc::clone(&self.now);
        self.run("UPDATE agents SET modified_at = ?2 WHERE number = ?1", (sql(agent), now))
    }

    /// Each member as a whole: one that is an object is replaced, not merged.
    fn set_permissions(&mut self, agent: AgentNumber, granted: &Granted) -> rusqlite::Result<()> {
        let granted = serde_json::to_value(granted).expect("what we keep has only string keys");
        for (member, value) in granted.as_object().expect("it is a struct") {
            self.change_recipe(
                agent,
                "UPDATE recipes SET recipe = json_set(recipe, '$.' || ?2, json(?3)) \
                 WHERE agent = ?1",
                (sql(agent), member, value.to_string()),
            )?;
        }
        Ok(())
    }

    fn create_agent(&mut self, number: AgentNumber, record: &AgentRecord) -> rusqlite::Result<()> {
        self.counters.next_agent = self.counters.next_agent.max(number + 1);
        self.known.look_again();
        self.run(
            "INSERT INTO agents (number, id, parent, depth, created_at, modified_at, \
             session_type, session_status, standing) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6, 'active', ?7)",
            (
                sql(number),
                record.id.as_str(),
                record.parent.as_ref().map(AgentId::as_str),
                record.depth,
                &*record.created_at,
                session_type(record),
                text(&Standing::default()),
            ),
        )?;
        self.run(
            "INSERT INTO recipes (agent, recipe) VALUES (?1, ?2)",
            (sql(number), text(&record.recipe)),
        )
    }

    fn restore_agent(&mut self, agent: AgentNumber) -> rusqlite::Result<()> {
        self.run(
            "UPDATE agents SET session_status = 'active' \
             WHERE number = ?1 AND session_status = 'dormant'",
            [sql(agent)],
        )
    }

    fn destroy_agent(&mut self, agent: AgentNumber) -> rusqlite::Result<()> {
        self.known.forget(agent);
        let number = [sql(agent)];
        self.run(
            "UPDATE agents SET parent = NULL WHERE parent = (SELECT id FROM agents \
             WHERE number = ?1 AND session_status IN ('active', 'dormant'))",
            number,
        )?;
        self.run(
            "UPDATE agents SET session_status = 'destroyed', modified_at = ?2 WHERE number = ?1",
            (number[0], Arc::clone(&self.now)),
        )?;
        self.run("DELETE FROM recipes WHERE agent = ?1", number)?;
        self.forget_messages(agent)?;
        self.run("DELETE FROM summaries WHERE agent = ?1", number)?;
        self.forget_requests(agent)?;
        self.run("DELETE FROM tool_calls WHERE agent = ?1", number)?;
        self.run("DELETE FROM confirmations WHERE agent = ?1", number)?;
        self.run("DELETE FROM last_session WHERE agent = ?1", number)?;
        sessions::forget(self, agent)?;
        budgets::fold(self, agent)
    }

    fn put_message(
        &mut self,
        agent: AgentNumber,
        index: u64,
        message: &Message,
    ) -> rusqlite::Result<()> {
        if !self.known.is_there(&self.statements, agent)? {
            return Ok(());
        }
        match message {
            // Models use the same ids again and again: from here on they are those of this message.
            Message::Assistant { .. } => self.forget_calls(agent)?,
            Message::User { .. } | Message::Tool { .. } => {}
        }
        self.keep_message(agent, index, &text(message))
    }

    fn start_call(
        &mut self,
        agent: AgentNumber,
        request: &RequestId,
        (tool_id, name): (&str, &str),
    ) -> rusqlite::Result<()> {
        if !self.known.is_there(&self.statements, agent)? {
            return Ok(());
        }
        self.known.calls_came(agent);
        self.run(
            "INSERT INTO tool_calls (agent, tool_id, request, name, ended) \
             VALUES (?1, ?2, ?3, ?4, 0) ON CONFLICT (agent, tool_id) DO UPDATE \
             SET request = excluded.request, name = excluded.name, ended = 0",
            (sql(agent), tool_id, request.as_str(), name),
        )
    }

    pub(super) fn forget_calls(&mut self, agent: AgentNumber) -> rusqlite::Result<()> {
        if !self.known.calls_went(agent) {
            return Ok(());
        }
        self.run("DELETE FROM tool_calls WHERE agent = ?1", [sql(agent)])
    }

    fn append_event(&mut self, mut event: Event) -> rusqlite::Result<()> {
        assert!(event.what.is_durable(), "live events are not kept");
        self.counters.seq += 1;
        let seq = self.counters.seq;
        assert!(self.events.last().is_none_or(|last| last.seq < seq), "seq only grows");
        event.seq = Some(seq);
        let json = event.json().into();
        let committed = Committed { seq, event, json };
        self.journal.append(&self.statements, &committed)?;
        self.events.push(committed);
        Ok(())
    }

    pub(super) fn run(
        &mut self,
        sql: &'static str,
        params: impl rusqlite::Params,
    ) -> rusqlite::Result<()> {
        self.statements.run(sql, params).map(drop)
    }
}

/// Whether turns write it again and again. None of these reads what waits for the end.
fn is_of_turns(write: &Write) -> bool {
    matches!(
        write,
        Write::Message { .. }
            | Write::RequestQueued { .. }
            | Write::RequestStarted { .. }
            | Write::RequestEnded { .. }
            | Write::Standing { .. }
            | Write::ToolStarted { .. }
            | Write::ToolEnded { .. }
            | Write::Spent { .. }
            | Write::Event(_)
    )
}

fn session_type(record: &AgentRecord) -> &'static str {
    match (record.id.is_temp(), &record.parent) {
        (true, _) => "temp",
        (false, Some(_)) => "subagent",
        (false, None) => "saved",
    }
}

pub(super) fn text(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("what we keep has only string keys")
}
