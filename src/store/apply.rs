//! A change, as SQL, inside the transaction that makes it durable. Never commits.
//! Written so that doing it again changes nothing more, and so that what comes after the end of an
//! agent changes nothing at all.

use std::sync::Arc;

use super::database::{Counters, Statements, sql};
use super::journal::Journal;
use super::{AgentNumber, AgentRecord, Granted, Standing, Write, budgets, sessions};
use crate::event::{Committed, Event};
use crate::id::{AgentId, RequestId};
use crate::message::Message;

/// One transaction on its way.
pub(super) struct Change<'c> {
    pub(super) statements: Statements<'c>,
    pub(super) counters: Counters,
    pub(super) journal: &'c mut Journal,
    /// ISO 8601, UTC.
    pub(super) now: Arc<str>,
    /// To be published once it is committed.
    pub(super) events: Vec<Committed>,
}

impl Change<'_> {
    pub(super) fn apply(&mut self, write: Write) -> rusqlite::Result<()> {
        match write {
            Write::AgentCreated { number, record } => self.create_agent(number, &record),
            Write::AgentDestroyed { number } => self.destroy_agent(number),
            Write::AgentRestored { number } => self.restore_agent(number),
            Write::AgentRenamed { number, id } => self.rename_agent(number, &id),
            Write::AgentPruned { number } => self.prune_agent(number),
            Write::Message { agent, index, message } => self.put_message(agent, index, &message),
            Write::RequestQueued { agent, id, content } => self.run_if_there(
                agent,
                "INSERT INTO requests (agent, id, content, status) VALUES (?1, ?2, ?3, 'queued') \
                 ON CONFLICT (agent, id) DO UPDATE \
                 SET content = excluded.content, status = 'queued', outcome = NULL",
                (sql(agent), id.as_str(), &*content),
            ),
            Write::RequestStarted { agent, id } => self.run(
                "UPDATE requests SET status = 'running' WHERE agent = ?1 AND id = ?2",
                (sql(agent), id.as_str()),
            ),
            Write::RequestEnded { agent, id, status, outcome } => {
                self.end_request(agent, &id, status, &outcome)
            }
            Write::RequestForgotten { agent, id } => self.run(
                "DELETE FROM requests WHERE agent = ?1 AND id = ?2",
                (sql(agent), id.as_str()),
            ),
            Write::ToolStarted { agent, request, tool_id, name } => self.run_if_there(
                agent,
                "INSERT INTO tool_calls (agent, tool_id, request, name, ended) \
                 VALUES (?1, ?2, ?3, ?4, 0) ON CONFLICT (agent, tool_id) DO UPDATE \
                 SET request = excluded.request, name = excluded.name, ended = 0",
                (sql(agent), tool_id, request.as_str(), name),
            ),
            Write::ToolEnded { agent, request, tool_id } => self.run(
                "UPDATE tool_calls SET ended = 1 WHERE agent = ?1 AND tool_id = ?2 AND request = ?3",
                (sql(agent), tool_id, request.as_str()),
            ),
            Write::ConfirmationRequested { agent, asked } => self.ask_confirmation(agent, &asked),
            Write::ConfirmationResolved { agent, id, decision, by } => {
                self.resolve_confirmation(agent, &id, decision, &by)
            }
            Write::Allowed { agent, more } => self.allow(agent, &more),
            Write::Standing { agent, standing } => self.set_standing(agent, &standing),
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
            Write::Spent { agent, used } => budgets::spend(self, agent, used),
            Write::Exported { agent, exported } => sessions::set_exported(self, agent, exported),
            Write::SessionTaken { agent, taken } => sessions::take(self, agent, &taken),
            Write::LastSession { agent } => sessions::set_last(self, agent),
            Write::Event(event) => self.append_event(event),
        }
    }

    fn set_standing(&mut self, agent: AgentNumber, standing: &Standing) -> rusqlite::Result<()> {
        let now = Arc::clone(&self.now);
        self.run(
            "UPDATE agents SET standing = ?2, modified_at = ?3 WHERE number = ?1",
            (sql(agent), text(standing), now),
        )
    }

    /// What an agent is made from changes with it: the older of two records must not win.
    fn change_recipe(
        &mut self,
        agent: AgentNumber,
        update: &'static str,
        params: impl rusqlite::Params,
    ) -> rusqlite::Result<()> {
        let now = Arc::clone(&self.now);
        self.run("UPDATE agents SET modified_at = ?2 WHERE number = ?1", (sql(agent), now))?;
        self.run(update, params)
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
        self.run("DELETE FROM messages WHERE agent = ?1", number)?;
        self.run("DELETE FROM summaries WHERE agent = ?1", number)?;
        self.run("DELETE FROM requests WHERE agent = ?1", number)?;
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
        let there = self.statements.run(
            "UPDATE agents SET modified_at = ?2 \
             WHERE number = ?1 AND session_status IN ('active', 'dormant')",
            (sql(agent), &*self.now),
        )?;
        if there == 0 {
            return Ok(());
        }
        match message {
            // Models use the same ids again and again: from here on they are those of this message.
            Message::Assistant { .. } => self.forget_calls(agent)?,
            Message::User { .. } | Message::Tool { .. } => {}
        }
        self.run(
            "INSERT OR REPLACE INTO messages (agent, place, message) VALUES (?1, ?2, ?3)",
            (sql(agent), sql(index), text(message)),
        )
    }

    fn end_request(
        &mut self,
        agent: AgentNumber,
        id: &RequestId,
        status: &str,
        outcome: &str,
    ) -> rusqlite::Result<()> {
        self.run(
            "UPDATE requests SET status = ?3, outcome = ?4 WHERE agent = ?1 AND id = ?2",
            (sql(agent), id.as_str(), status, outcome),
        )?;
        self.run(
            "DELETE FROM tool_calls WHERE agent = ?1 AND request = ?2",
            (sql(agent), id.as_str()),
        )
    }

    fn forget_calls(&mut self, agent: AgentNumber) -> rusqlite::Result<()> {
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

    /// Two plain statements cost half of one that looks at two tables.
    fn run_if_there(
        &mut self,
        agent: AgentNumber,
        insert: &'static str,
        params: impl rusqlite::Params,
    ) -> rusqlite::Result<()> {
        let there = "SELECT 1 FROM agents \
                     WHERE number = ?1 AND session_status IN ('active', 'dormant')";
        if self.statements.prepare(there)?.exists([sql(agent)])? {
            self.run(insert, params)?;
        }
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
