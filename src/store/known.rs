//! What the writer knows of the database without asking it: a turn of a known agent reads nothing.
//! Only ever a copy: a transaction that fails takes it along, and the next one reads it again.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::Row;

use super::AgentNumber;
use super::database::{Statements, number, sql};
use super::messages::{self, Tail};
use super::read::request_id;
use crate::id::RequestId;
use crate::limits::KNOWN_AGENTS_MAX;

/// The row of a request, which no other has as long as it is there.
pub(super) type RequestRow = i64;

#[derive(Debug)]
pub(super) struct Known {
    /// Whether an agent can be found, of those that something was written about.
    there: BTreeMap<AgentNumber, bool>,
    /// Where their conversations end.
    tails: BTreeMap<AgentNumber, Tail>,
    /// Agents with calls on record.
    with_calls: BTreeSet<AgentNumber>,
    /// Where their newest requests are.
    asked: BTreeMap<AgentNumber, u64>,
    /// Requests that have not ended.
    open: BTreeMap<(AgentNumber, RequestId), RequestRow>,
}

impl Known {
    /// `open_from` is what the last commit said of open requests.
    pub(super) fn read(statements: &Statements<'_>, open_from: u64) -> rusqlite::Result<Self> {
        let with_calls = statements
            .prepare("SELECT DISTINCT agent FROM tool_calls")?
            .query_map((), |row| number(row, 0))?
            .collect::<Result<_, _>>()?;
        let open = if open_from == 0 { BTreeMap::new() } else { read_open(statements, open_from)? };
        let (there, tails, asked) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Ok(Self { there, tails, with_calls, asked, open })
    }

    /// Whether an agent is there, active or dormant.
    pub(super) fn is_there(
        &mut self,
        statements: &Statements<'_>,
        agent: AgentNumber,
    ) -> rusqlite::Result<bool> {
        if let Some(there) = self.there.get(&agent) {
            return Ok(*there);
        }
        let text = "SELECT 1 FROM agents \
                    WHERE number = ?1 AND session_status IN ('active', 'dormant')";
        let there = statements.prepare(text)?.exists([sql(agent)])?;
        if self.there.len() >= KNOWN_AGENTS_MAX {
            self.there.clear();
        }
        self.there.insert(agent, there);
        Ok(there)
    }

    /// Who is there may be others now.
    pub(super) fn look_again(&mut self) {
        self.there.clear();
    }

    /// Where the conversation of an agent ends.
    pub(super) fn tail(
        &mut self,
        statements: &Statements<'_>,
        agent: AgentNumber,
    ) -> rusqlite::Result<Tail> {
        if let Some(tail) = self.tails.get(&agent) {
            return Ok(*tail);
        }
        let tail = messages::tail(statements.connection(), agent)?;
        self.ends(agent, tail);
        Ok(tail)
    }

    pub(super) fn ends(&mut self, agent: AgentNumber, tail: Tail) {
        if self.tails.len() >= KNOWN_AGENTS_MAX {
            self.tails.clear();
        }
        self.tails.insert(agent, tail);
    }

    pub(super) fn forget_tail(&mut self, agent: AgentNumber) {
        self.tails.remove(&agent);
    }

    /// Nothing of an agent is on record any more.
    pub(super) fn forget(&mut self, agent: AgentNumber) {
        self.there.remove(&agent);
        self.tails.remove(&agent);
        self.with_calls.remove(&agent);
        self.asked.remove(&agent);
        self.open.retain(|(of, _), _| *of != agent);
    }

    /// Notes in which block the newest request of an agent is. Returns whether it may be the first there.
    pub(super) fn is_asked_first_in(&mut self, agent: AgentNumber, block: u64) -> bool {
        if self.asked.len() >= KNOWN_AGENTS_MAX {
            self.asked.clear();
        }
        self.asked.insert(agent, block) != Some(block)
    }

    pub(super) fn opened(&mut self, agent: AgentNumber, id: RequestId, row: RequestRow) {
        self.open.insert((agent, id), row);
    }

    pub(super) fn open_row(&self, agent: AgentNumber, id: &RequestId) -> Option<RequestRow> {
        self.open.get(&(agent, id.clone())).copied()
    }

    pub(super) fn closed(&mut self, agent: AgentNumber, id: &RequestId) -> Option<RequestRow> {
        self.open.remove(&(agent, id.clone()))
    }

    /// All requests in rows before this one have ended; 0 where all have.
    pub(super) fn open_from(&self) -> u64 {
        let first = self.open.values().min();
        first.map_or(0, |row| u64::try_from(*row).expect("rows are numbered from 1 on"))
    }

    pub(super) fn has_calls(&self, agent: AgentNumber) -> bool {
        self.with_calls.contains(&agent)
    }

    pub(super) fn calls_came(&mut self, agent: AgentNumber) {
        self.with_calls.insert(agent);
    }

    /// Returns whether there were any.
    pub(super) fn calls_went(&mut self, agent: AgentNumber) -> bool {
        self.with_calls.remove(&agent)
    }
}

fn read_open(
    statements: &Statements<'_>,
    from: u64,
) -> rusqlite::Result<BTreeMap<(AgentNumber, RequestId), RequestRow>> {
    let text = "SELECT agent, id, number FROM requests \
                WHERE number >= ?1 AND status IN ('queued', 'running')";
    let row = |row: &Row<'_>| Ok(((number(row, 0)?, request_id(row, 1)?), row.get(2)?));
    statements.prepare(text)?.query_map([sql(from)], row)?.collect()
}
