//! Conversations, as SQL. The messages of all agents stand mixed, in the order in which they came; an
//! agent's are found by the blocks that have some (see `schema`).

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Row};

use super::AgentNumber;
use super::apply::Change;
use super::database::{json, number, sql};
use super::schema::BLOCK_ROWS;
use crate::message::Message;

/// Where a conversation ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tail {
    /// The place of the next message.
    pub(super) next: u64,
    /// The block of the last one.
    pub(super) block: Option<u64>,
}

pub(super) fn message_count(connection: &Connection, agent: AgentNumber) -> rusqlite::Result<u64> {
    tail(connection, agent).map(|tail| tail.next)
}

pub(super) fn tail(connection: &Connection, agent: AgentNumber) -> rusqlite::Result<Tail> {
    let text = "SELECT place + 1, block FROM agent_messages WHERE agent = ?1 AND block = \
                (SELECT max(block) FROM message_blocks WHERE agent = ?1) \
                ORDER BY number DESC LIMIT 1";
    let row = |row: &Row<'_>| Ok(Tail { next: number(row, 0)?, block: Some(number(row, 1)?) });
    let found = connection.prepare_cached(text)?.query_row([sql(agent)], row).optional()?;
    Ok(found.unwrap_or_default())
}

pub(super) fn messages(
    connection: &Connection,
    agent: AgentNumber,
    offset: u64,
    limit: u64,
) -> rusqlite::Result<Vec<Arc<Message>>> {
    let text = "SELECT message FROM agent_messages WHERE agent = ?1 AND place >= ?2 \
                AND block >= coalesce((SELECT max(block) FROM message_blocks \
                WHERE agent = ?1 AND place <= ?2), 0) ORDER BY block, number LIMIT ?3";
    // Both come from outside and may be any number.
    let [offset, limit] = [offset, limit].map(|number| i64::try_from(number).unwrap_or(i64::MAX));
    let row = |row: &Row<'_>| json(row, 0).map(Arc::new);
    connection.prepare_cached(text)?.query_map((sql(agent), offset, limit), row)?.collect()
}

impl Change<'_> {
    /// Puts a message at its place: after all others, or instead of the one that has it.
    pub(super) fn keep_message(
        &mut self,
        agent: AgentNumber,
        place: u64,
        message: &str,
    ) -> rusqlite::Result<()> {
        let tail = self.known.tail(&self.statements, agent)?;
        if place < tail.next {
            return self.run(
                "UPDATE messages SET message = ?3 WHERE number = \
                 (SELECT number FROM agent_messages WHERE agent = ?1 AND place = ?2)",
                (sql(agent), sql(place), message),
            );
        }
        self.run(
            "INSERT INTO messages (agent, place, message) VALUES (?1, ?2, ?3)",
            (sql(agent), sql(place), message),
        )?;
        let row = self.statements.connection().last_insert_rowid();
        let block = u64::try_from(row).expect("rows are numbered from 1 on") / BLOCK_ROWS;
        if tail.block != Some(block) {
            self.run(
                "INSERT OR IGNORE INTO message_blocks (agent, block, place) VALUES (?1, ?2, ?3)",
                (sql(agent), sql(block), sql(place)),
            )?;
        }
        self.known.ends(agent, Tail { next: place + 1, block: Some(block) });
        Ok(())
    }

    pub(super) fn forget_messages(&mut self, agent: AgentNumber) -> rusqlite::Result<()> {
        self.known.forget_tail(agent);
        self.run(
            "DELETE FROM messages WHERE number IN \
             (SELECT number FROM agent_messages WHERE agent = ?1)",
            [sql(agent)],
        )?;
        self.run("DELETE FROM message_blocks WHERE agent = ?1", [sql(agent)])
    }
}
