//! Agents that are gone, as SQL: what is left of them, and how it goes for good. A piece at a time, so that
//! whatever else is to be written gets in between; the row of an agent goes last, so what was not finished
//! is found again.

use rusqlite::{Connection, OptionalExtension, Row};

use super::AgentNumber;
use super::apply::Change;
use super::database::{number, sql};
use super::read::agent_id;
use crate::event::Seq;
use crate::id::AgentId;
use crate::limits::PRUNED_ROWS_AT_ONCE_MAX;

/// An agent that is gone, with its row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoneAgent {
    pub number: AgentNumber,
    pub id: AgentId,
    /// Whether the id is somebody else's: of an agent that can be found, or of one that stays on record.
    pub is_shared: bool,
}

/// Agents that are gone and last changed before a time, in order of number; so many at most. The one
/// whose session was the last can still be resumed.
pub(super) fn gone(
    connection: &Connection,
    before: &str,
    (after, limit): (AgentNumber, usize),
) -> rusqlite::Result<Vec<GoneAgent>> {
    let text = "SELECT number, id, EXISTS (SELECT 1 FROM agents AS other \
                WHERE other.id = gone.id AND other.number != gone.number \
                AND (other.session_status IN ('active', 'dormant') OR other.modified_at >= ?1)) \
                FROM agents AS gone WHERE session_status IN ('destroyed', 'orphaned') \
                AND NOT EXISTS (SELECT 1 FROM last_session WHERE agent = gone.number) \
                AND modified_at < ?1 AND number > ?2 ORDER BY number LIMIT ?3";
    let row = |row: &Row<'_>| {
        Ok(GoneAgent { number: number(row, 0)?, id: agent_id(row, 1)?, is_shared: row.get(2)? })
    };
    let params = (before, sql(after), sql(limit as u64));
    connection.prepare_cached(text)?.query_map(params, row)?.collect()
}

/// How many bytes of the database are about an agent that is gone.
pub(super) fn bytes(connection: &Connection, agent: AgentNumber) -> rusqlite::Result<u64> {
    let of_tables = [
        "SELECT coalesce(sum(length(CAST(message AS BLOB))), 0) FROM agent_messages \
         WHERE agent = ?1",
        "SELECT coalesce(sum(length(CAST(recipe AS BLOB))), 0) FROM recipes WHERE agent = ?1",
        "SELECT coalesce(sum(length(CAST(summary AS BLOB))), 0) FROM summaries WHERE agent = ?1",
        "SELECT coalesce(sum(length(CAST(content AS BLOB)) \
         + coalesce(length(CAST(outcome AS BLOB)), 0)), 0) FROM agent_requests WHERE agent = ?1",
    ];
    let mut bytes = 0;
    for text in of_tables {
        bytes += connection.prepare_cached(text)?.query_row([sql(agent)], |row| number(row, 0))?;
    }
    if let Some(Events { id, from, until }) = events(connection, agent)? {
        let text = "SELECT coalesce(sum(length(CAST(json AS BLOB))), 0) FROM agent_events \
                    WHERE agent_id = ?1 AND seq >= ?2 AND seq < ?3";
        let params = (id, sql(from), sql(until));
        bytes += connection.prepare_cached(text)?.query_row(params, |row| number(row, 0))?;
    }
    Ok(bytes)
}

/// Whether the agent is gone, and something of it is left.
pub(super) fn is_left(connection: &Connection, agent: AgentNumber) -> rusqlite::Result<bool> {
    let text = "SELECT 1 FROM agents \
                WHERE number = ?1 AND session_status IN ('destroyed', 'orphaned')";
    connection.prepare_cached(text)?.exists([sql(agent)])
}

/// The events of an agent that is gone, among those of others that had its id before or have it now.
struct Events {
    id: String,
    from: Seq,
    /// The first that is not its own.
    until: Seq,
}

fn events(connection: &Connection, agent: AgentNumber) -> rusqlite::Result<Option<Events>> {
    let text = "SELECT id, (SELECT max(seq) FROM agent_events WHERE agent_id = agents.id \
                AND name = 'agent_created' AND at = agents.created_at) \
                FROM agents WHERE number = ?1 AND session_status IN ('destroyed', 'orphaned')";
    let row = |row: &Row<'_>| {
        let from = row.get::<_, Option<i64>>(1)?.map(|_| number(row, 1)).transpose()?;
        Ok((row.get::<_, String>(0)?, from))
    };
    let found = connection.prepare_cached(text)?.query_row([sql(agent)], row).optional()?;
    // Without their first event they cannot be told from those of others; they go when they are too old.
    let Some((id, Some(from))) = found else { return Ok(None) };
    // Whoever came from a session was never created; a temporary agent is restored in no other way.
    let text = "SELECT min(CASE name WHEN 'agent_destroyed' THEN seq + 1 ELSE seq END) \
                FROM agent_events WHERE agent_id = ?1 AND seq > ?2 \
                AND (name IN ('agent_created', 'agent_destroyed') \
                OR (name = 'agent_restored' AND agent_id LIKE '.%'))";
    let next = |row: &Row<'_>| row.get::<_, Option<i64>>(0)?.map(|_| number(row, 0)).transpose();
    let until = connection.prepare_cached(text)?.query_row((&id, sql(from)), next)?;
    Ok(Some(Events { id, from, until: until.unwrap_or(i64::MAX as u64) }))
}

impl Change<'_> {
    /// Removes a piece of what is left of an agent that is gone, or the last of it.
    pub(super) fn prune_agent(&mut self, agent: AgentNumber) -> rusqlite::Result<()> {
        if !is_left(self.statements.connection(), agent)? {
            return Ok(());
        }
        self.known.forget(agent);
        let mut left = PRUNED_ROWS_AT_ONCE_MAX;
        let of_agent = [
            "DELETE FROM messages WHERE number IN \
             (SELECT number FROM agent_messages WHERE agent = ?1 LIMIT ?2)",
            "DELETE FROM requests WHERE number IN \
             (SELECT number FROM agent_requests WHERE agent = ?1 LIMIT ?2)",
            "DELETE FROM confirmations WHERE rowid IN \
             (SELECT rowid FROM confirmations WHERE agent = ?1 LIMIT ?2)",
        ];
        for delete in of_agent {
            left -= self.statements.run(delete, (sql(agent), sql(left as u64)))?;
        }
        left -= self.prune_events(agent, left)?;
        if left == 0 {
            return Ok(());
        }
        for delete in [
            "DELETE FROM message_blocks WHERE agent = ?1",
            "DELETE FROM request_blocks WHERE agent = ?1",
            "DELETE FROM tool_calls WHERE agent = ?1",
            "DELETE FROM summaries WHERE agent = ?1",
            "DELETE FROM recipes WHERE agent = ?1",
            "DELETE FROM session_members WHERE agent = ?1",
            "DELETE FROM agents WHERE number = ?1",
        ] {
            self.run(delete, [sql(agent)])?;
        }
        Ok(())
    }

    /// The newest first: by the first one they are known.
    fn prune_events(&mut self, agent: AgentNumber, limit: usize) -> rusqlite::Result<usize> {
        let Some(Events { id, from, until }) = events(self.statements.connection(), agent)? else {
            return Ok(0);
        };
        let text = "SELECT max(seq) FROM agent_events \
                    WHERE agent_id = ?1 AND seq >= ?2 AND seq < ?3";
        let last = |row: &Row<'_>| number(row, 0);
        let up_to = self.statements.prepare(text)?.query_row((&id, sql(from), sql(until)), last)?;
        let removed = self.statements.run(
            "DELETE FROM events WHERE seq IN (SELECT seq FROM agent_events \
             WHERE agent_id = ?1 AND seq >= ?2 AND seq < ?3 ORDER BY seq DESC LIMIT ?4)",
            (&id, sql(from), sql(until), sql(limit as u64)),
        )?;
        self.journal.removed(&self.statements, &id, up_to)?;
        Ok(removed)
    }
}
