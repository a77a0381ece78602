//! Another id for an agent, as SQL inside the transaction that makes it durable. Agents are known by their
//! numbers; what is kept by id moves along.

use std::sync::Arc;

use rusqlite::{OptionalExtension, Row};

use super::AgentNumber;
use super::apply::Change;
use super::database::{number, sql};
use super::read::agent_id;
use crate::event::Seq;
use crate::id::AgentId;

impl Change<'_> {
    pub(super) fn rename_agent(
        &mut self,
        agent: AgentNumber,
        to: &AgentId,
    ) -> rusqlite::Result<()> {
        let text = "SELECT id, created_at FROM agents \
                    WHERE number = ?1 AND session_status IN ('active', 'dormant')";
        let row = |row: &Row<'_>| Ok((agent_id(row, 0)?, row.get::<_, String>(1)?));
        let found = self.statements.prepare(text)?.query_row([sql(agent)], row).optional()?;
        let Some((from, created_at)) = found else { return Ok(()) };
        assert!(!to.is_temp(), "whoever is given a name is temporary no more");
        // A file of the name that is older or newer is another's where a temporary agent takes its place.
        self.run(
            "UPDATE agents SET id = ?2, \
             modified_at = CASE session_type WHEN 'temp' THEN ?3 ELSE modified_at END, \
             session_type = CASE WHEN parent IS NULL THEN 'saved' ELSE 'subagent' END \
             WHERE number = ?1",
            (sql(agent), to.as_str(), Arc::clone(&self.now)),
        )?;
        // Whoever had this id before and is gone has left no children.
        self.run("UPDATE agents SET parent = ?2 WHERE parent = ?1", (from.as_str(), to.as_str()))?;
        let ended = self.after_the_last_end(&from)?;
        let created = self.created_event(&from, &created_at)?;
        // One that came from a session has the creation of an earlier one.
        let since = if let Some(created) = created.filter(|created| *created >= ended) {
            created
        } else {
            self.forget_as(&from, to)?;
            ended
        };
        self.journal.move_events(&self.statements, (&from, since), to)
    }

    /// The first event of an agent, where it is kept: those before it are of earlier agents of its id.
    fn created_event(&self, agent: &AgentId, at: &str) -> rusqlite::Result<Option<Seq>> {
        let text = "SELECT max(seq) FROM agent_events \
                    WHERE agent_id = ?1 AND name = 'agent_created' AND at = ?2";
        self.statements.prepare(text)?.query_row((agent.as_str(), at), maybe_seq)
    }

    fn after_the_last_end(&self, agent: &AgentId) -> rusqlite::Result<Seq> {
        let text = "SELECT max(seq) FROM agent_events \
                    WHERE agent_id = ?1 AND name = 'agent_destroyed'";
        let end = self.statements.prepare(text)?.query_row([agent.as_str()], maybe_seq)?;
        Ok(end.map_or(0, |end| end + 1))
    }

    /// What is no longer kept of `from` is no longer kept of `to`.
    fn forget_as(&mut self, from: &AgentId, to: &AgentId) -> rusqlite::Result<()> {
        self.run(
            "INSERT INTO forgotten_events (agent_id, up_to) \
             SELECT ?2, up_to FROM forgotten_events WHERE agent_id = ?1 \
             ON CONFLICT (agent_id) DO UPDATE SET up_to = max(up_to, excluded.up_to)",
            (from.as_str(), to.as_str()),
        )
    }
}

fn maybe_seq(row: &Row<'_>) -> rusqlite::Result<Option<Seq>> {
    row.get::<_, Option<i64>>(0)?.map(|_| number(row, 0)).transpose()
}
