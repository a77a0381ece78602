//! What sessions need of the database, as SQL: which agents have a file that follows them, what else
//! stood in it, whose session was the last, and rows as lists tell them.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Row};
use serde_json::{Map, Value};

use super::apply::{Change, text};
use super::database::{json, number, sql};
use super::messages::message_count;
use super::read::{agent_id, optional_agent_id};
use super::{AgentNumber, AgentRecord, Recipe, Standing};
use crate::id::AgentId;
use crate::message::Message;

/// Whether an agent's session file follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exported {
    Yes,
    No,
}

/// What an agent has of a session from now on, in place of what it had.
#[derive(Clone, Debug)]
pub struct TakenSession {
    pub recipe: Recipe,
    pub messages: Vec<Arc<Message>>,
    pub standing: Standing,
    /// ISO 8601, UTC.
    pub modified_at: Arc<str>,
    /// Members of its file that we do not know.
    pub unknown: Map<String, Value>,
}

/// All of an agent's session but its messages.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionRow {
    pub record: AgentRecord,
    pub standing: Standing,
    pub modified_at: Arc<str>,
    pub message_count: u64,
    pub unknown: Map<String, Value>,
}

/// A session that the database knows best: of an agent that is only there, or that its file follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSession {
    pub number: AgentNumber,
    pub id: AgentId,
    pub modified_at: Arc<str>,
}

/// Which of these are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    Restorable,
    /// Those of temporary agents that ended with a server, too.
    WithTemporary,
}

pub(super) fn set_exported(
    change: &mut Change<'_>,
    agent: AgentNumber,
    exported: Exported,
) -> rusqlite::Result<()> {
    change.run(
        "UPDATE agents SET exported = ?2 WHERE number = ?1",
        (sql(agent), exported == Exported::Yes),
    )
}

pub(super) fn set_last(change: &mut Change<'_>, agent: AgentNumber) -> rusqlite::Result<()> {
    change.run("INSERT OR REPLACE INTO last_session (only_row, agent) VALUES (1, ?1)", [sql(agent)])
}

pub(super) fn take(
    change: &mut Change<'_>,
    agent: AgentNumber,
    taken: &TakenSession,
) -> rusqlite::Result<()> {
    forget(change, agent)?;
    let key = sql(agent);
    change.forget_messages(agent)?;
    change.run("DELETE FROM summaries WHERE agent = ?1", [key])?;
    change.forget_calls(agent)?;
    change.run(
        "UPDATE agents SET standing = ?2, modified_at = ?3 WHERE number = ?1",
        (key, text(&taken.standing), &*taken.modified_at),
    )?;
    change.run(
        "INSERT OR REPLACE INTO recipes (agent, recipe) VALUES (?1, ?2)",
        (key, text(&taken.recipe)),
    )?;
    for (place, message) in (0..).zip(&taken.messages) {
        change.keep_message(agent, place, &text(message))?;
    }
    if !taken.unknown.is_empty() {
        change.run(
            "INSERT INTO session_members (agent, members) VALUES (?1, ?2)",
            (key, text(&taken.unknown)),
        )?;
    }
    Ok(())
}

/// Forgets what an agent's file said besides.
pub(super) fn forget(change: &mut Change<'_>, agent: AgentNumber) -> rusqlite::Result<()> {
    change.run("DELETE FROM session_members WHERE agent = ?1", [sql(agent)])
}

/// Of an agent that is there, or of a temporary one that ended with its server.
pub(super) fn row(
    connection: &Connection,
    agent: AgentNumber,
) -> rusqlite::Result<Option<SessionRow>> {
    let message_count = message_count(connection, agent)?;
    let text = "SELECT id, parent, depth, created_at, standing, recipe, modified_at, \
                coalesce((SELECT members FROM session_members \
                WHERE session_members.agent = number), '{}') \
                FROM agents JOIN recipes ON recipes.agent = number \
                WHERE number = ?1 AND session_status IN ('active', 'dormant', 'orphaned')";
    let row = |row: &Row<'_>| {
        Ok(SessionRow {
            record: AgentRecord {
                id: agent_id(row, 0)?,
                parent: optional_agent_id(row, 1)?,
                depth: row.get(2)?,
                created_at: row.get(3)?,
                recipe: json::<Recipe>(row, 5)?,
            },
            standing: json::<Standing>(row, 4)?,
            modified_at: row.get(6)?,
            message_count,
            unknown: json(row, 7)?,
        })
    };
    connection.prepare_cached(text)?.query_row([sql(agent)], row).optional()
}

/// What the database knows best, in order of number.
pub(super) fn list(
    connection: &Connection,
    listing: Listing,
) -> rusqlite::Result<Vec<StoredSession>> {
    let text = "SELECT number, id, modified_at FROM agents WHERE session_status = 'dormant' \
                OR (session_status = 'active' AND exported) \
                OR (?1 AND session_status = 'orphaned') ORDER BY number";
    let row = |row: &Row<'_>| {
        Ok(StoredSession {
            number: number(row, 0)?,
            id: agent_id(row, 1)?,
            modified_at: row.get(2)?,
        })
    };
    let with_temporary = listing == Listing::WithTemporary;
    connection.prepare_cached(text)?.query_map([with_temporary], row)?.collect()
}

/// The agent whose session was the last.
pub(super) fn last(connection: &Connection) -> rusqlite::Result<Option<AgentNumber>> {
    let text = "SELECT agent FROM last_session";
    connection.query_row(text, (), |row| number(row, 0)).optional()
}
