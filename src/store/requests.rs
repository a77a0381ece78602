//! Requests, as SQL inside the transaction that makes them durable. One that starts in the transaction
//! which accepts it, as most do, is written once.

use std::sync::Arc;

use super::AgentNumber;
use super::apply::Change;
use super::database::sql;
use crate::id::RequestId;

/// A request that the transaction accepts and has not written yet.
#[derive(Debug)]
pub(super) struct Accepted {
    agent: AgentNumber,
    id: RequestId,
    content: Arc<str>,
    status: &'static str,
}

impl Change<'_> {
    pub(super) fn accept_request(
        &mut self,
        agent: AgentNumber,
        id: RequestId,
        content: Arc<str>,
    ) -> rusqlite::Result<()> {
        if self.known.is_there(&self.statements, agent)? {
            self.accepted.push(Accepted { agent, id, content, status: "queued" });
        }
        Ok(())
    }

    pub(super) fn start_request(
        &mut self,
        agent: AgentNumber,
        id: &RequestId,
    ) -> rusqlite::Result<()> {
        let accepted = |accepted: &&mut Accepted| accepted.agent == agent && accepted.id == *id;
        if let Some(accepted) = self.accepted.iter_mut().rev().find(accepted) {
            accepted.status = "running";
            return Ok(());
        }
        match self.known.open_row(agent, id) {
            Some(row) => {
                self.run("UPDATE requests SET status = 'running' WHERE number = ?1", [row])
            }
            None => Ok(()),
        }
    }

    pub(super) fn end_request(
        &mut self,
        agent: AgentNumber,
        id: &RequestId,
        (status, outcome): (&str, &str),
    ) -> rusqlite::Result<()> {
        self.write_accepted()?;
        if let Some(row) = self.known.closed(agent, id) {
            self.run(
                "UPDATE requests SET status = ?2, outcome = ?3 WHERE number = ?1",
                (row, status, outcome),
            )?;
        }
        if self.known.has_calls(agent) {
            self.run(
                "DELETE FROM tool_calls WHERE agent = ?1 AND request = ?2",
                (sql(agent), id.as_str()),
            )?;
        }
        Ok(())
    }

    pub(super) fn forget_request(
        &mut self,
        agent: AgentNumber,
        id: &RequestId,
    ) -> rusqlite::Result<()> {
        self.known.closed(agent, id);
        self.run("DELETE FROM requests WHERE agent = ?1 AND id = ?2", (sql(agent), id.as_str()))
    }

    /// Writes what waits for it, in the order in which it was accepted.
    pub(super) fn write_accepted(&mut self) -> rusqlite::Result<()> {
        for Accepted { agent, id, content, status } in std::mem::take(&mut self.accepted) {
            let made = self.statements.run(
                "INSERT OR IGNORE INTO requests (agent, id, content, status) \
                 VALUES (?1, ?2, ?3, ?4)",
                (sql(agent), id.as_str(), &*content, status),
            )?;
            let row = if made == 1 {
                self.statements.connection().last_insert_rowid()
            } else {
                self.accept_again(agent, &id, (&content, status))?
            };
            self.known.opened(agent, id, row);
        }
        Ok(())
    }

    /// A request of this name is there already: it becomes this one.
    fn accept_again(
        &mut self,
        agent: AgentNumber,
        id: &RequestId,
        (content, status): (&str, &str),
    ) -> rusqlite::Result<i64> {
        self.run(
            "UPDATE requests SET content = ?3, status = ?4, outcome = NULL \
             WHERE agent = ?1 AND id = ?2",
            (sql(agent), id.as_str(), content, status),
        )?;
        self.statements
            .prepare("SELECT number FROM requests WHERE agent = ?1 AND id = ?2")?
            .query_row((sql(agent), id.as_str()), |row| row.get(0))
    }
}
