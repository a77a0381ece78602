//! What was written, read back. Costs what it returns, not what there is.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Row};

use super::database::{json, number, sql, unreadable};
use super::messages::{message_count, messages};
use super::{AgentNumber, AgentRecord, Recipe, Standing};
use crate::choice::Choice;
use crate::id::{AgentId, ConfirmId, RequestId};
use crate::message::Message;

/// An agent that can be restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resident {
    pub number: AgentNumber,
    pub id: AgentId,
    pub parent: Option<AgentId>,
    pub depth: u32,
    /// Whether its session file follows it.
    pub exported: bool,
}

/// All that is needed to restore an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    pub record: AgentRecord,
    pub standing: Standing,
    /// Of the whole conversation.
    pub message_count: u64,
    /// What stands for the messages before these to models.
    pub opening: Option<Opening>,
    /// The newest messages, from a user message on where there is one among them.
    pub messages: Vec<Arc<Message>>,
    /// Those that ended and are kept, oldest first.
    pub requests: Vec<RequestId>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Opening {
    Summary(Arc<str>),
    /// The first message, a user's.
    First(Arc<Message>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestRecord {
    pub content: Arc<str>,
    /// `queued`, `running`, `completed`, `cancelled`, `failed` or `interrupted`.
    pub status: String,
    /// JSON, as it was written.
    pub outcome: Option<String>,
}

/// A confirmation, as far as it matters to whoever answers it late.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfirmationRecord {
    pub options: Vec<Choice>,
    /// The decision, and whose it was.
    pub resolved: Option<(Choice, String)>,
}

/// The dormant agents, in order of number.
pub(super) fn residents(connection: &Connection) -> rusqlite::Result<Vec<Resident>> {
    let sql = "SELECT number, id, parent, depth, exported FROM agents \
               WHERE session_status = 'dormant' ORDER BY number";
    let row = |row: &Row<'_>| {
        let (id, parent) = (agent_id(row, 1)?, optional_agent_id(row, 2)?);
        let (depth, exported) = (row.get(3)?, row.get(4)?);
        Ok(Resident { number: number(row, 0)?, id, parent, depth, exported })
    };
    connection.prepare_cached(sql)?.query_map((), row)?.collect()
}

pub(super) fn load(
    connection: &Connection,
    agent: AgentNumber,
    messages_max: u64,
) -> rusqlite::Result<Option<Loaded>> {
    let Some((record, standing)) = record(connection, agent)? else {
        return Ok(None);
    };
    let message_count = message_count(connection, agent)?;
    let summary = summary(connection, agent)?;
    let newest = message_count.saturating_sub(messages_max);
    let upto = summary.as_ref().map_or(0, |(upto, _)| *upto);
    let mut found = messages(connection, agent, upto.max(newest), messages_max)?;
    if newest > upto {
        found.drain(..start(&found));
    }
    let opening = match summary {
        Some((_, summary)) => Some(Opening::Summary(summary)),
        None if found.len() as u64 == message_count => None,
        None => messages(connection, agent, 0, 1)?.pop().and_then(first_said),
    };
    let requests = requests(connection, agent)?;
    Ok(Some(Loaded { record, standing, message_count, opening, messages: found, requests }))
}

fn first_said(message: Arc<Message>) -> Option<Opening> {
    matches!(*message, Message::User { .. }).then_some(Opening::First(message))
}

/// Where the end of a conversation can be taken up: the first user message, or at least not the
/// result of a call that is not there.
fn start(messages: &[Arc<Message>]) -> usize {
    let first = |wanted: fn(&Message) -> bool| messages.iter().position(|found| wanted(found));
    first(|message| matches!(message, Message::User { .. }))
        .or_else(|| first(|message| !matches!(message, Message::Tool { .. })))
        .unwrap_or(messages.len())
}

fn record(
    connection: &Connection,
    agent: AgentNumber,
) -> rusqlite::Result<Option<(AgentRecord, Standing)>> {
    let text = "SELECT id, parent, depth, created_at, standing, recipe \
                FROM agents JOIN recipes ON agent = number \
                WHERE number = ?1 AND session_status IN ('active', 'dormant')";
    let row = |row: &Row<'_>| {
        let record = AgentRecord {
            id: agent_id(row, 0)?,
            parent: optional_agent_id(row, 1)?,
            depth: row.get(2)?,
            created_at: row.get(3)?,
            recipe: json::<Recipe>(row, 5)?,
        };
        Ok((record, json::<Standing>(row, 4)?))
    };
    connection.query_row(text, [sql(agent)], row).optional()
}

/// What stands for how many of an agent's first messages.
pub(super) fn summary(
    connection: &Connection,
    agent: AgentNumber,
) -> rusqlite::Result<Option<(u64, Arc<str>)>> {
    let text = "SELECT upto, summary FROM summaries WHERE agent = ?1";
    let row = |row: &Row<'_>| Ok((number(row, 0)?, row.get(1)?));
    connection.query_row(text, [sql(agent)], row).optional()
}

fn requests(connection: &Connection, agent: AgentNumber) -> rusqlite::Result<Vec<RequestId>> {
    let text = "SELECT id FROM agent_requests WHERE agent = ?1 \
                AND status NOT IN ('queued', 'running') ORDER BY block, number";
    connection.prepare_cached(text)?.query_map([sql(agent)], |row| request_id(row, 0))?.collect()
}

pub(super) fn request(
    connection: &Connection,
    agent: AgentNumber,
    id: &RequestId,
) -> rusqlite::Result<Option<RequestRecord>> {
    // Whoever asks for one most often asks for one of the newest.
    let text = "SELECT content, status, outcome FROM agent_requests \
                WHERE agent = ?1 AND id = ?2 ORDER BY block DESC, number DESC LIMIT 1";
    let row = |row: &Row<'_>| {
        let (content, status, outcome) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(RequestRecord { content, status, outcome })
    };
    connection.query_row(text, (sql(agent), id.as_str()), row).optional()
}

pub(super) fn confirmation(
    connection: &Connection,
    agent: AgentNumber,
    id: &ConfirmId,
) -> rusqlite::Result<Option<ConfirmationRecord>> {
    let text = "SELECT options, json_quote(decision), resolved_by FROM confirmations \
                WHERE agent = ?1 AND confirm_id = ?2";
    let row = |row: &Row<'_>| {
        let (decision, by) = (json::<Option<Choice>>(row, 1)?, row.get::<_, Option<String>>(2)?);
        Ok(ConfirmationRecord { options: json(row, 0)?, resolved: decision.zip(by) })
    };
    connection.query_row(text, (sql(agent), id.as_str()), row).optional()
}

pub(super) fn agent_id(row: &Row<'_>, column: usize) -> rusqlite::Result<AgentId> {
    AgentId::parse(row.get_ref(column)?.as_str()?).map_err(|error| unreadable(column, error))
}

pub(super) fn optional_agent_id(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<AgentId>> {
    let found = row.get_ref(column)?.as_str_or_null()?.is_some();
    found.then(|| agent_id(row, column)).transpose()
}

pub(super) fn confirm_id(row: &Row<'_>, column: usize) -> rusqlite::Result<ConfirmId> {
    ConfirmId::parse(row.get_ref(column)?.as_str()?).map_err(|error| unreadable(column, error))
}

pub(super) fn request_id(row: &Row<'_>, column: usize) -> rusqlite::Result<RequestId> {
    RequestId::parse(row.get_ref(column)?.as_str()?).map_err(|error| unreadable(column, error))
}
