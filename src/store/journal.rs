//! Events that are kept: appended, forgotten when they are too many or too old, and read by cursor.
//! Never publishes anything; the writer does, after the commit.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, Row};

use super::database::{Statements, number, sql};
use super::schema::BLOCK_ROWS;
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

/// Events from before the time `?2`, whose hour is `?1`. Those of an hour stand together but where a
/// clock was set back, so only the few of the last hour are looked at in vain.
macro_rules! from_before {
    () => {
        "FROM event_hours AS hours JOIN events ON seq >= hours.first_seq AND seq < coalesce( \
         (SELECT min(first_seq) FROM event_hours WHERE first_seq > hours.first_seq), \
         9223372036854775807) WHERE hours.hour <= ?1 AND at < ?2"
    };
}

/// Stands for all agents where it is noted what is not kept; no agent has this id.
const EVERYBODY: &str = "";

/// Counts the events of each agent, so that the oldest go as new ones come.
pub(super) struct Journal {
    per_agent: u64,
    /// Of agents that had an event since the last failure or forgetting; others are counted in the
    /// database when they have their next one.
    counts: BTreeMap<AgentId, Count>,
    /// The hour of the newest event, once one was written.
    hour: Option<String>,
}

/// The events of an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    kept: u64,
    /// None of them is older.
    oldest: Seq,
    /// The last block that is noted to have some.
    block: Option<u64>,
}

/// How much of a time in ISO 8601 names its hour.
const HOUR_CHARS: usize = "2026-01-01T00".len();

impl Journal {
    pub(super) fn new(per_agent: u64) -> Self {
        Self { per_agent, counts: BTreeMap::new(), hour: None }
    }

    /// To be called when a transaction failed: what was counted in it is not there.
    pub(super) fn count_again(&mut self) {
        self.counts.clear();
        self.hour = None;
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
        let block = sql(block_of(since));
        statements.run(
            "INSERT OR IGNORE INTO event_blocks (agent_id, block) \
             SELECT ?2, block FROM event_blocks WHERE agent_id = ?1 AND block >= ?3",
            (from.as_str(), to.as_str(), block),
        )?;
        statements.run(
            "UPDATE events SET agent_id = ?2 WHERE seq IN (SELECT seq FROM agent_events \
             WHERE agent_id = ?1 AND block >= ?3 AND seq >= ?4)",
            (from.as_str(), to.as_str(), block, sql(since)),
        )?;
        for agent in [from, to] {
            tidy_blocks(statements, agent.as_str(), i64::MAX as u64)?;
        }
        Ok(())
    }

    pub(super) fn append(
        &mut self,
        statements: &Statements<'_>,
        committed: &Committed,
    ) -> rusqlite::Result<()> {
        let event = &committed.event;
        let agent = event.agent_id.as_ref().expect("durable events are about an agent");
        let mut count = match self.counts.get(agent) {
            Some(count) => *count,
            None => self.count(statements, agent)?,
        };
        statements.run(
            "INSERT INTO events (seq, agent_id, at, name, json) VALUES (?1, ?2, ?3, ?4, ?5)",
            (sql(committed.seq), agent.as_str(), &*event.at, event.what.name(), &*committed.json),
        )?;
        self.note_hour(statements, committed.seq, &event.at)?;
        let block = block_of(committed.seq);
        if count.block != Some(block) {
            statements.run(
                "INSERT OR IGNORE INTO event_blocks (agent_id, block, kept, kept_max) \
                 VALUES (?1, ?2, ?3, ?4)",
                (agent.as_str(), sql(block), sql(count.kept), sql(self.per_agent)),
            )?;
            count.block = Some(block);
        }
        count.kept += 1;
        if count.kept > self.per_agent {
            count.oldest = self.forget_oldest(statements, agent, count)?;
            count.kept = self.per_agent;
        }
        if matches!(event.what, What::AgentDestroyed { .. }) {
            // Nothing of it is left in memory; another of its id is counted when it comes.
            self.counts.remove(agent);
            return Ok(());
        }
        if self.counts.len() >= EVENT_COUNTS_MAX {
            self.counts.clear();
        }
        self.counts.insert(agent.clone(), count);
        Ok(())
    }

    /// Counts what there is, in the last block alone where it is known how many were before it.
    fn count(&self, statements: &Statements<'_>, agent: &AgentId) -> rusqlite::Result<Count> {
        let text = "SELECT block, CASE kept_max WHEN ?2 THEN kept END, \
                    (SELECT min(block) FROM event_blocks WHERE agent_id = ?1) \
                    FROM event_blocks WHERE agent_id = ?1 ORDER BY block DESC LIMIT 1";
        let row = |row: &Row<'_>| {
            let kept = row.get::<_, Option<i64>>(1)?.map(|_| number(row, 1)).transpose()?;
            Ok((number(row, 0)?, kept, number(row, 2)?))
        };
        let params = (agent.as_str(), sql(self.per_agent));
        let last = statements.prepare(text)?.query_row(params, row).optional()?;
        let Some((block, before, first)) = last else { return Ok(Count::default()) };
        let from = if before.is_some() { block } else { first };
        let text = "SELECT count(*) FROM agent_events WHERE agent_id = ?1 AND block >= ?2";
        let params = (agent.as_str(), sql(from));
        let found = statements.prepare(text)?.query_row(params, |row| number(row, 0))?;
        let kept = match before {
            Some(before) => (before + found).min(self.per_agent),
            None => found,
        };
        Ok(Count { kept, oldest: first * BLOCK_ROWS, block: Some(block) })
    }

    /// Returns what no event that is left is older than.
    fn forget_oldest(
        &self,
        statements: &Statements<'_>,
        agent: &AgentId,
        Count { kept, oldest, .. }: Count,
    ) -> rusqlite::Result<Seq> {
        let excess = kept - self.per_agent;
        let agent = agent.as_str();
        let up_to = oldest_but(statements, agent, (oldest, excess - 1))?;
        let forgotten = if excess == 1 {
            statements.run("DELETE FROM events WHERE seq = ?1", [sql(up_to)])?
        } else {
            statements.run(
                "DELETE FROM events WHERE seq IN (SELECT seq FROM agent_events \
                 WHERE agent_id = ?1 AND block <= ?2 AND seq <= ?3)",
                (agent, sql(block_of(up_to)), sql(up_to)),
            )?
        };
        assert_eq!(forgotten as u64, excess, "exactly the oldest beyond {} go", self.per_agent);
        let next = up_to + 1;
        if block_of(oldest) < block_of(next) {
            statements.run(
                "DELETE FROM event_blocks WHERE agent_id = ?1 AND block < ?2",
                (agent, sql(block_of(next))),
            )?;
        }
        note_forgotten(statements, agent, up_to)?;
        Ok(next)
    }

    /// To be called when events of an agent, none of them after this one, were removed.
    pub(super) fn removed(
        &mut self,
        statements: &Statements<'_>,
        agent: &str,
        up_to: Seq,
    ) -> rusqlite::Result<()> {
        // They are counted again when the next one comes.
        self.counts.remove(agent);
        note_removed(statements, agent, up_to)
    }

    /// Notes where another hour begins. An index of all times would be written with every event, to be
    /// read once an hour.
    fn note_hour(
        &mut self,
        statements: &Statements<'_>,
        seq: Seq,
        at: &str,
    ) -> rusqlite::Result<()> {
        let hour = &at[..HOUR_CHARS];
        if self.hour.as_deref() == Some(hour) {
            return Ok(());
        }
        statements.run(
            "INSERT INTO event_hours (first_seq, hour) SELECT ?1, ?2 WHERE ?2 IS NOT \
             (SELECT hour FROM event_hours ORDER BY first_seq DESC LIMIT 1)",
            (sql(seq), hour),
        )?;
        self.hour = Some(hour.to_owned());
        Ok(())
    }

    /// Forgets some of the events from before a time. Returns whether there may be more.
    pub(super) fn forget_before(
        &mut self,
        statements: &Statements<'_>,
        time: &str,
    ) -> rusqlite::Result<More> {
        let row = |row: &Row<'_>| Ok((number(row, 0)?, row.get::<_, String>(1)?));
        let limit = sql(EVENTS_FORGOTTEN_AT_ONCE_MAX as u64);
        let found: Vec<(Seq, String)> = statements
            .prepare(concat!("SELECT seq, agent_id ", from_before!(), " ORDER BY seq LIMIT ?3"))?
            .query_map((&time[..HOUR_CHARS], time, limit), row)?
            .collect::<Result<_, _>>()?;
        let mut newest: BTreeMap<&str, Seq> = BTreeMap::new();
        for (seq, agent) in &found {
            statements.run("DELETE FROM events WHERE seq = ?1", [sql(*seq)])?;
            newest.insert(agent, *seq);
        }
        for (agent, up_to) in newest {
            note_removed(statements, agent, up_to)?;
        }
        self.count_again();
        if found.len() == EVENTS_FORGOTTEN_AT_ONCE_MAX {
            return Ok(More::Maybe);
        }
        // The newest hour stays: events may still come into it.
        statements.run(
            "DELETE FROM event_hours AS old WHERE hour < ?1 AND EXISTS \
             (SELECT 1 FROM event_hours WHERE first_seq > old.first_seq) AND NOT EXISTS \
             (SELECT 1 FROM events WHERE seq >= old.first_seq AND seq < \
             (SELECT min(first_seq) FROM event_hours WHERE first_seq > old.first_seq))",
            [&time[..HOUR_CHARS]],
        )?;
        Ok(More::No)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum More {
    No,
    Maybe,
}

/// Whether any event is from before a time.
pub(super) fn any_before(connection: &Connection, time: &str) -> rusqlite::Result<bool> {
    let sql = concat!("SELECT EXISTS (SELECT 1 ", from_before!(), ")");
    connection.query_row(sql, [&time[..HOUR_CHARS], time], |row| row.get(0))
}

/// Whatever there was up to this number, of any agent, is not known any more.
pub(super) fn note_lost(statements: &Statements<'_>, up_to: Seq) -> rusqlite::Result<()> {
    note_forgotten(statements, EVERYBODY, up_to)
}

fn block_of(seq: Seq) -> u64 {
    seq / BLOCK_ROWS
}

/// The oldest event of an agent that is no older than `from`, but for so many.
fn oldest_but(
    statements: &Statements<'_>,
    agent: &str,
    (from, skipped): (Seq, u64),
) -> rusqlite::Result<Seq> {
    let seq = |row: &Row<'_>| number(row, 0);
    // What is older in the block of the last one that went is passed over.
    if skipped == 0 {
        let text = "SELECT seq FROM events WHERE seq >= ?2 AND seq < ?3 AND agent_id = ?1 \
                    ORDER BY seq LIMIT 1";
        let end = (block_of(from) + 1) * BLOCK_ROWS;
        let params = (agent, sql(from), sql(end));
        if let Some(found) = statements.prepare(text)?.query_row(params, seq).optional()? {
            return Ok(found);
        }
    }
    let text = "SELECT seq FROM agent_events WHERE agent_id = ?1 AND block >= ?2 \
                ORDER BY block, seq LIMIT 1 OFFSET ?3";
    statements.prepare(text)?.query_row((agent, sql(block_of(from)), sql(skipped)), seq)
}

/// Events of an agent, none of them after this one, are not there any more.
fn note_removed(statements: &Statements<'_>, agent: &str, up_to: Seq) -> rusqlite::Result<()> {
    note_forgotten(statements, agent, up_to)?;
    tidy_blocks(statements, agent, up_to)
}

/// Forgets the blocks up to an event that have none of an agent's any more, and how many events there
/// were before the last one.
fn tidy_blocks(statements: &Statements<'_>, agent: &str, up_to: Seq) -> rusqlite::Result<()> {
    statements.run(
        "DELETE FROM event_blocks AS old WHERE agent_id = ?1 AND block <= ?2 AND NOT EXISTS \
         (SELECT 1 FROM agent_events WHERE agent_id = ?1 AND block = old.block)",
        (agent, sql(block_of(up_to))),
    )?;
    statements
        .run(
            "UPDATE event_blocks SET kept = NULL WHERE agent_id = ?1 AND block = \
             (SELECT max(block) FROM event_blocks WHERE agent_id = ?1)",
            [agent],
        )
        .map(drop)
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
                "SELECT seq, name, json FROM agent_events \
                 WHERE agent_id = ?1 AND block >= ?3 AND seq > ?2 ORDER BY block, seq",
            )?;
            let forgotten = connection.query_row(
                "SELECT max(up_to) FROM forgotten_events WHERE agent_id IN (?1, ?2)",
                [agent.as_str(), EVERYBODY],
                highest,
            )?;
            (fill(rows.query((agent.as_str(), sql(after), sql(block_of(after))))?)?, forgotten)
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
