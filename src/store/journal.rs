//! Events that are kept: appended, forgotten when they are too many or too old, and read by cursor.
//! Never publishes anything; the writer does, after the commit.

use std::collections::BTreeMap;

use rusqlite::{Connection, Row};

use super::database::{Statements, number, sql};
use crate::event::{Committed, Seq, What};
use crate::hub::{KeptEvent, Page, Scope};
use crate::id::AgentId;
use crate::limits::{
    EVENT_COUNTS_MAX, EVENTS_FORGOTTEN_AT_ONCE_MAX, EVENTS_PAGE_MAX, STREAM_BUFFER_BYTES_MAX,
};

/// How many events are kept (`events.retain`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    pub per_agent: u64,
    pub days: u64,
}

/// Stands for all agents where it is noted what is not kept; no agent has this id.
const EVERYBODY: &str = "";

/// Counts the events of each agent, so that the oldest go as new ones come.
pub(super) struct Journal {
    per_agent: u64,
    /// Of agents that had an event since the last failure or forgetting; others are counted in the
    /// database when they have their next one.
    counts: BTreeMap<AgentId, u64>,
}

impl Journal {
    pub(super) fn new(per_agent: u64) -> Self {
        Self { per_agent, counts: BTreeMap::new() }
    }

    /// To be called when a transaction failed: what was counted in it is not there.
    pub(super) fn count_again(&mut self) {
        self.counts.clear();
    }

    /// The events of `from` since the one of number `since` are those of `to` from now on. They say what
    /// they said.
    pub(super) fn move_events(
        &mut self,
        statements: &Statements<'_>,
        (from, since): (&AgentId, Seq),
        to: &AgentId,
    ) -> rusqlite::Result<()> {
        // Both are counted again when they have their next one.
        self.counts.remove(from);
        self.counts.remove(to);
        let text = "UPDATE events SET agent_id = ?3 WHERE agent_id = ?1 AND seq >= ?2";
        statements.run(text, (from.as_str(), sql(since), to.as_str())).map(drop)
    }

    pub(super) fn append(
        &mut self,
        statements: &Statements<'_>,
        committed: &Committed,
    ) -> rusqlite::Result<()> {
        let event = &committed.event;
        let agent = event.agent_id.as_ref().expect("durable events are about an agent");
        statements.run(
            "INSERT INTO events (seq, agent_id, at, name, json) VALUES (?1, ?2, ?3, ?4, ?5)",
            (sql(committed.seq), agent.as_str(), &*event.at, event.what.name(), &*committed.json),
        )?;
        let count = match self.counts.get(agent) {
            Some(count) => count + 1,
            None => statements
                .prepare("SELECT count(*) FROM events WHERE agent_id = ?1")?
                .query_row([agent.as_str()], |row| number(row, 0))?,
        };
        if count > self.per_agent {
            self.forget_oldest(statements, agent, count - self.per_agent)?;
        }
        if matches!(event.what, What::AgentDestroyed { .. }) {
            // Nothing of it is left in memory; another of its id is counted when it comes.
            self.counts.remove(agent);
            return Ok(());
        }
        if self.counts.len() >= EVENT_COUNTS_MAX {
            self.counts.clear();
        }
        self.counts.insert(agent.clone(), count.min(self.per_agent));
        Ok(())
    }

    fn forget_oldest(
        &self,
        statements: &Statements<'_>,
        agent: &AgentId,
        excess: u64,
    ) -> rusqlite::Result<()> {
        let up_to = statements
            .prepare("SELECT seq FROM events WHERE agent_id = ?1 ORDER BY seq LIMIT 1 OFFSET ?2")?
            .query_row((agent.as_str(), sql(excess - 1)), |row| number(row, 0))?;
        let forgotten = statements.run(
            "DELETE FROM events WHERE agent_id = ?1 AND seq <= ?2",
            (agent.as_str(), sql(up_to)),
        )?;
        assert_eq!(forgotten as u64, excess, "exactly the oldest beyond {} go", self.per_agent);
        note_forgotten(statements, agent.as_str(), up_to)
    }

    /// Events of an agent up to this one are not kept any more.
    pub(super) fn note_forgotten(
        &mut self,
        statements: &Statements<'_>,
        agent: &str,
        up_to: Seq,
    ) -> rusqlite::Result<()> {
        // They are counted again when the next one comes.
        self.counts.remove(agent);
        note_forgotten(statements, agent, up_to)
    }

    /// Forgets some of the events from before a time. Returns whether there may be more.
    pub(super) fn forget_before(
        &mut self,
        statements: &Statements<'_>,
        time: &str,
    ) -> rusqlite::Result<More> {
        let row = |row: &Row<'_>| Ok((number(row, 0)?, row.get::<_, String>(1)?));
        let found: Vec<(Seq, String)> = statements
            .prepare("SELECT seq, agent_id FROM events WHERE at < ?1 ORDER BY at, seq LIMIT ?2")?
            .query_map((time, sql(EVENTS_FORGOTTEN_AT_ONCE_MAX as u64)), row)?
            .collect::<Result<_, _>>()?;
        let mut newest: BTreeMap<&str, Seq> = BTreeMap::new();
        for (seq, agent) in &found {
            statements.run("DELETE FROM events WHERE seq = ?1", [sql(*seq)])?;
            let newest = newest.entry(agent).or_default();
            *newest = (*newest).max(*seq);
        }
        for (agent, up_to) in newest {
            note_forgotten(statements, agent, up_to)?;
        }
        self.count_again();
        Ok(if found.len() < EVENTS_FORGOTTEN_AT_ONCE_MAX { More::No } else { More::Maybe })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum More {
    No,
    Maybe,
}

/// Whether any event is from before a time.
pub(super) fn any_before(connection: &Connection, time: &str) -> rusqlite::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM events WHERE at < ?1)";
    connection.query_row(sql, [time], |row| row.get(0))
}

/// Whatever there was up to this number, of any agent, is not known any more.
pub(super) fn note_lost(statements: &Statements<'_>, up_to: Seq) -> rusqlite::Result<()> {
    note_forgotten(statements, EVERYBODY, up_to)
}

fn note_forgotten(statements: &Statements<'_>, agent: &str, up_to: Seq) -> rusqlite::Result<()> {
    // The clock can go backwards, so what is too old need not be what came first.
    let sql_text = "INSERT INTO forgotten_events (agent_id, up_to) VALUES (?1, ?2) \
                    ON CONFLICT (agent_id) DO UPDATE SET up_to = max(up_to, excluded.up_to)";
    statements.run(sql_text, (agent, sql(up_to))).map(drop)
}

/// The events after a cursor, at least one where there is any.
pub(super) fn page(connection: &Connection, of: &Scope, after: Seq) -> rusqlite::Result<Page> {
    // A cursor comes from outside and may be any number; no event has one that high.
    let after = after.min(i64::MAX as u64 - 1);
    let (mut page, forgotten) = match of {
        Scope::Agent(agent) => {
            let mut rows = connection.prepare_cached(
                "SELECT seq, name, json FROM events WHERE agent_id = ?1 AND seq > ?2 ORDER BY seq",
            )?;
            let forgotten = connection.query_row(
                "SELECT max(up_to) FROM forgotten_events WHERE agent_id IN (?1, ?2)",
                [agent.as_str(), EVERYBODY],
                highest,
            )?;
            (fill(rows.query((agent.as_str(), sql(after)))?)?, forgotten)
        }
        Scope::Everything => {
            let mut rows = connection
                .prepare_cached("SELECT seq, name, json FROM events WHERE seq > ?1 ORDER BY seq")?;
            let forgotten =
                connection.query_row("SELECT max(up_to) FROM forgotten_events", (), highest)?;
            (fill(rows.query([sql(after)])?)?, forgotten)
        }
    };
    page.gap = forgotten.filter(|up_to| *up_to > after).map(|up_to| (after + 1, up_to));
    Ok(page)
}

/// The highest number of those that were asked for, if there was any.
fn highest(row: &Row<'_>) -> rusqlite::Result<Option<Seq>> {
    row.get::<_, Option<i64>>(0)?.map(|_| number(row, 0)).transpose()
}

fn fill(mut rows: rusqlite::Rows<'_>) -> rusqlite::Result<Page> {
    let mut page = Page::default();
    let mut bytes = 0;
    while let Some(row) = rows.next()? {
        let json = row.get_ref(2)?.as_str()?;
        bytes += json.len();
        let full = page.events.len() == EVENTS_PAGE_MAX || bytes > STREAM_BUFFER_BYTES_MAX;
        if full && !page.events.is_empty() {
            page.more = true;
            break;
        }
        page.events.push(KeptEvent { seq: number(row, 0)?, name: row.get(1)?, json: json.into() });
    }
    Ok(page)
}
