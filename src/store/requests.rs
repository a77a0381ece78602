//! Requests, as SQL inside the transaction that makes them durable. One that starts in the transaction
//! which accepts it, as most do, is written once. Those of all agents stand mixed, and an agent's are found
//! by the blocks that have some (see `schema`).

use std::sync::Arc;

use rusqlite::{OptionalExtension, Row};

use super::AgentNumber;
use super::apply::Change;
use super::database::{number, sql};
use super::schema::BLOCK_ROWS;
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
        // What is forgotten is among the oldest.
        let text = "SELECT number, block FROM agent_requests WHERE agent = ?1 AND id = ?2 \
                    ORDER BY block, number LIMIT 1";
        let row = |row: &Row<'_>| Ok((number(row, 0)?, number(row, 1)?));
        let params = (sql(agent), id.as_str());
        let found = self.statements.prepare(text)?.query_row(params, row).optional()?;
        let Some((row, block)) = found else { return Ok(()) };
        self.run("DELETE FROM requests WHERE number = ?1", [sql(row)])?;
        self.run(
            "DELETE FROM request_blocks AS old WHERE agent = ?1 AND block < ?2 AND NOT EXISTS \
             (SELECT 1 FROM agent_requests WHERE agent = ?1 AND block = old.block)",
            (sql(agent), sql(block)),
        )
    }

    pub(super) fn forget_requests(&mut self, agent: AgentNumber) -> rusqlite::Result<()> {
        self.run(
            "DELETE FROM requests WHERE number IN \
             (SELECT number FROM agent_requests WHERE agent = ?1)",
            [sql(agent)],
        )?;
        self.run("DELETE FROM request_blocks WHERE agent = ?1", [sql(agent)])
    }

    /// Writes what waits for it, in the order in which it was accepted.
    pub(super) fn write_accepted(&mut self) -> rusqlite::Result<()> {
        for Accepted { agent, id, content, status } in std::mem::take(&mut self.accepted) {
            self.run(
                "INSERT INTO requests (agent, id, content, status) VALUES (?1, ?2, ?3, ?4)",
                (sql(agent), id.as_str(), &*content, status),
            )?;
            let row = self.statements.connection().last_insert_rowid();
            let block = u64::try_from(row).expect("rows are numbered from 1 on") / BLOCK_ROWS;
            if self.known.is_asked_first_in(agent, block) {
                self.run(
                    "INSERT OR IGNORE INTO request_blocks (agent, block) VALUES (?1, ?2)",
                    (sql(agent), sql(block)),
                )?;
            }
            self.known.opened(agent, id, row);
        }
        Ok(())
    }
}
