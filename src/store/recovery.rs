//! What the last server left open is closed, once, in one transaction: agents that ran, requests that
//! did not end, tool calls without a result. Nothing is run again.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use rusqlite::{Connection, Row};

use super::apply::Change;
use super::database::{number, sql};
use super::{AgentNumber, Write, budgets, messages, read};
use crate::choice::Choice;
use crate::code::ErrorObject;
use crate::event::{Ended, Event, What};
use crate::id::{AgentId, ConfirmId, RequestId};
use crate::limits::TOOL_CALLS_PER_MESSAGE_MAX;
use crate::message::{Message, ToolCall, ToolMeta};

const OUTCOME_UNKNOWN: &str =
    "outcome_unknown: the server stopped while this ran; whether it had an effect is not known.";
const NOT_RUN: &str = "Not run: the server stopped before it.";
/// The outcome of a request as JSON: the name alone.
const INTERRUPTED: &str = "\"interrupted\"";

/// How much was closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Closed {
    /// Agents that can be restored.
    pub dormant: usize,
    /// Temporary agents, which cannot.
    pub orphaned: usize,
    /// Requests that were queued or running.
    pub requests: usize,
    /// Confirmations that nobody had decided.
    pub confirmations: usize,
    /// Tool calls that were started, so that their effect is not known.
    pub calls_unknown: usize,
    /// Tool calls that were not.
    pub calls_not_run: usize,
}

impl fmt::Display for Closed {
    /// Names what there was; nothing where there was nothing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            ("agents to restore", self.dormant),
            ("temporary agents gone", self.orphaned),
            ("requests interrupted", self.requests),
            ("confirmations denied", self.confirmations),
            ("tool calls of unknown outcome", self.calls_unknown),
            ("tool calls not run", self.calls_not_run),
        ];
        let mut separator = "";
        for (name, count) in parts.into_iter().filter(|(_, count)| *count > 0) {
            write!(f, "{separator}{name}: {count}")?;
            separator = ", ";
        }
        Ok(())
    }
}

/// What was done: how much was closed, and the results that calls were given.
#[derive(Debug, Default)]
pub(super) struct Recovered {
    pub(super) closed: Closed,
    pub(super) results: Vec<(AgentId, Arc<Message>)>,
}

struct OpenRequest {
    agent: AgentNumber,
    agent_id: AgentId,
    id: RequestId,
}

/// Whether the last server left anything open. After a clean stop of one without agents: no.
pub(super) fn is_due(connection: &Connection) -> rusqlite::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM agents WHERE session_status = 'active') \
               OR EXISTS (SELECT 1 FROM counters WHERE open_from > 0) \
               OR EXISTS (SELECT 1 FROM confirmations WHERE status = 'pending')";
    connection.query_row(sql, (), |row| row.get(0))
}

pub(super) fn run(change: &mut Change<'_>, error: &ErrorObject) -> rusqlite::Result<Recovered> {
    let mut recovered = Recovered::default();
    let open = open_requests(change)?;
    let agents: BTreeMap<AgentNumber, &AgentId> =
        open.iter().map(|request| (request.agent, &request.agent_id)).collect();
    for (agent, id) in agents {
        close_calls(change, agent, id, &mut recovered)?;
        change.note_modified(agent)?;
    }
    let denied = deny_pending(change)?;
    for request in &open {
        interrupt(change, request, error)?;
    }
    let closed = &mut recovered.closed;
    closed.requests = open.len();
    closed.confirmations = denied;
    change.settle()?;
    // The ids of temporary agents are given again: nobody may become the parent of their children.
    change.run(
        "UPDATE agents SET parent = NULL WHERE parent IN (SELECT id FROM agents \
         WHERE session_status = 'active' AND session_type = 'temp')",
        (),
    )?;
    closed.orphaned = change.statements.run(
        "UPDATE agents SET session_status = 'orphaned' \
         WHERE session_status = 'active' AND session_type = 'temp'",
        (),
    )?;
    budgets::fold_gone(change)?;
    closed.dormant = change
        .statements
        .run("UPDATE agents SET session_status = 'dormant' WHERE session_status = 'active'", ())?;
    change.known.look_again();
    Ok(recovered)
}

/// Denies what nobody decided; returns how many there were.
fn deny_pending(change: &mut Change<'_>) -> rusqlite::Result<usize> {
    let text = "SELECT confirmations.agent, agents.id, request, confirm_id \
                FROM confirmations JOIN agents ON agents.number = confirmations.agent \
                WHERE status = 'pending' ORDER BY confirmations.rowid";
    let row = |row: &Row<'_>| {
        let (agent_id, request) = (read::agent_id(row, 1)?, read::request_id(row, 2)?);
        Ok((number(row, 0)?, agent_id, request, read::confirm_id(row, 3)?))
    };
    let pending: Vec<(AgentNumber, AgentId, RequestId, ConfirmId)> =
        change.statements.prepare(text)?.query_map((), row)?.collect::<Result<_, _>>()?;
    let count = pending.len();
    for (agent, agent_id, request, id) in pending {
        let (decision, by) = (Choice::Deny, "server".to_owned());
        let resolved =
            Write::ConfirmationResolved { agent, id: id.clone(), decision, by: by.clone() };
        change.apply(resolved)?;
        let what = What::ConfirmationResolved {
            confirm_id: id,
            decision,
            reason: Some("interrupted".to_owned()),
            resolved_by: by,
            resolved_at: Arc::clone(&change.now),
        };
        change.tell(agent_id, request, what)?;
    }
    Ok(count)
}

fn open_requests(change: &mut Change<'_>) -> rusqlite::Result<Vec<OpenRequest>> {
    let from = change.known.open_from();
    if from == 0 {
        return Ok(Vec::new());
    }
    let text = "SELECT requests.agent, agents.id, requests.id \
                FROM requests JOIN agents ON agents.number = requests.agent \
                WHERE requests.number >= ?1 AND requests.status IN ('queued', 'running') \
                ORDER BY requests.number";
    let row = |row: &Row<'_>| {
        let (agent_id, id) = (read::agent_id(row, 1)?, read::request_id(row, 2)?);
        Ok(OpenRequest { agent: number(row, 0)?, agent_id, id })
    };
    change.statements.prepare(text)?.query_map([sql(from)], row)?.collect()
}

fn interrupt(
    change: &mut Change<'_>,
    request: &OpenRequest,
    error: &ErrorObject,
) -> rusqlite::Result<()> {
    change.apply(Write::RequestEnded {
        agent: request.agent,
        id: request.id.clone(),
        status: "interrupted",
        outcome: INTERRUPTED.to_owned(),
    })?;
    let what = What::TurnInterrupted(Ended {
        reason: "interrupted".to_owned(),
        error: Some(error.clone()),
        partial: String::new(),
    });
    change.tell(request.agent_id.clone(), request.id.clone(), what)
}

impl Change<'_> {
    fn tell(&mut self, agent: AgentId, request: RequestId, what: What) -> rusqlite::Result<()> {
        let at = Arc::clone(&self.now);
        let event = Event { what, agent_id: Some(agent), at, request_id: Some(request), seq: None };
        self.apply(Write::Event(event))
    }
}

/// Gives every call of the last message that has no result one, in the order of the calls.
fn close_calls(
    change: &mut Change<'_>,
    agent: AgentNumber,
    id: &AgentId,
    recovered: &mut Recovered,
) -> rusqlite::Result<()> {
    let connection = change.statements.connection();
    let count = messages::message_count(connection, agent)?;
    // The message with the calls, and less than all of their results.
    let tail = count.saturating_sub(TOOL_CALLS_PER_MESSAGE_MAX as u64);
    let messages = messages::messages(connection, agent, tail, TOOL_CALLS_PER_MESSAGE_MAX as u64)?;
    for (index, call) in (count..).zip(calls_without_result(&messages)) {
        let content = if was_started(change, agent, &call.id)? {
            recovered.closed.calls_unknown += 1;
            OUTCOME_UNKNOWN
        } else {
            recovered.closed.calls_not_run += 1;
            NOT_RUN
        };
        let message = Arc::new(Message::Tool {
            content: content.to_owned(),
            tool_call_id: call.id.clone(),
            meta: Some(ToolMeta { error: true }),
        });
        recovered.results.push((id.clone(), Arc::clone(&message)));
        change.apply(Write::Message { agent, index, message })?;
    }
    Ok(())
}

/// The calls at the end of a conversation that nothing answers. Results stand in the order of the
/// calls, so as many calls are answered as there are results.
fn calls_without_result(messages: &[Arc<Message>]) -> &[ToolCall] {
    let results = messages
        .iter()
        .rev()
        .take_while(|message| matches!(***message, Message::Tool { .. }))
        .count();
    match messages.get(messages.len().wrapping_sub(results + 1)).map(|message| &**message) {
        Some(Message::Assistant { tool_calls, .. }) => tool_calls.get(results..).unwrap_or(&[]),
        Some(Message::User { .. } | Message::Tool { .. }) | None => &[],
    }
}

/// Whether a call may have had its effect. One that ended, too, is not known if its result is not.
fn was_started(
    change: &mut Change<'_>,
    agent: AgentNumber,
    tool_id: &str,
) -> rusqlite::Result<bool> {
    change
        .statements
        .prepare("SELECT EXISTS (SELECT 1 FROM tool_calls WHERE agent = ?1 AND tool_id = ?2)")?
        .query_row((sql(agent), tool_id), |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_there_was_is_told() {
        let closed = Closed { dormant: 2, requests: 1, ..Closed::default() };
        assert_eq!(closed.to_string(), "agents to restore: 2, requests interrupted: 1");
        assert_eq!(Closed::default().to_string(), "");
    }
}
