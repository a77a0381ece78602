//! The tables, by numbered migrations. Each runs in a transaction of its own and takes the database
//! from one version to the next; one that fails leaves the version before it. An entry that has
//! shipped is never changed: what must be different is one more entry.

use rusqlite::{Connection, TransactionBehavior};

/// Migration `n` makes version `n + 1`.
pub(super) const MIGRATIONS: &[&str] =
    &[VERSION_1, VERSION_2, VERSION_3, VERSION_4, VERSION_5, VERSION_6, VERSION_7];

/// The newest version there is.
pub(super) fn known() -> u32 {
    u32::try_from(MIGRATIONS.len()).expect("there are few migrations")
}

pub(super) fn version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Brings a database that is not newer to the version that `migrations` make.
pub(super) fn migrate(connection: &mut Connection, migrations: &[&str]) -> rusqlite::Result<()> {
    let found = version(connection)?;
    for (number, migration) in (1..).zip(migrations) {
        if number > found {
            let step = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            step.execute_batch(migration)?;
            step.pragma_update(None, "user_version", number)?;
            step.commit()?;
        }
    }
    Ok(())
}

/// `agents` is narrow because it changes with every message; what is long and stays is in `recipes`.
/// `tool_calls` has the calls of each agent's last assistant message that were started.
/// Times are ISO 8601 in UTC to the millisecond, whose order as text is their order.
const VERSION_1: &str = "
CREATE TABLE counters (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    seq INTEGER NOT NULL,
    batch INTEGER NOT NULL,
    next_agent INTEGER NOT NULL
) STRICT;
INSERT INTO counters VALUES (1, 0, 0, 1);

CREATE TABLE agents (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    parent TEXT,
    depth INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    modified_at TEXT NOT NULL,
    session_type TEXT NOT NULL CHECK (session_type IN ('saved', 'temp', 'subagent')),
    session_status TEXT NOT NULL
        CHECK (session_status IN ('active', 'dormant', 'destroyed', 'orphaned')),
    standing TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX agents_id ON agents (id) WHERE session_status IN ('active', 'dormant');
CREATE INDEX agents_status ON agents (session_status);
CREATE INDEX agents_parent ON agents (parent) WHERE parent IS NOT NULL;

CREATE TABLE recipes (agent INTEGER PRIMARY KEY, recipe TEXT NOT NULL) STRICT;

CREATE TABLE messages (
    agent INTEGER NOT NULL,
    place INTEGER NOT NULL,
    message TEXT NOT NULL,
    PRIMARY KEY (agent, place)
) STRICT;

CREATE TABLE requests (
    number INTEGER PRIMARY KEY,
    agent INTEGER NOT NULL,
    id TEXT NOT NULL,
    content TEXT NOT NULL,
    status TEXT NOT NULL
        CHECK (status IN ('queued', 'running', 'completed', 'cancelled', 'failed', 'interrupted')),
    outcome TEXT,
    UNIQUE (agent, id)
) STRICT;
CREATE INDEX requests_open ON requests (number) WHERE status IN ('queued', 'running');

CREATE TABLE tool_calls (
    agent INTEGER NOT NULL,
    tool_id TEXT NOT NULL,
    request TEXT NOT NULL,
    name TEXT NOT NULL,
    ended INTEGER NOT NULL CHECK (ended IN (0, 1)),
    PRIMARY KEY (agent, tool_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
    seq INTEGER PRIMARY KEY,
    agent_id TEXT NOT NULL,
    at TEXT NOT NULL,
    name TEXT NOT NULL,
    json TEXT NOT NULL
) STRICT;
CREATE INDEX events_agent ON events (agent_id, seq);
CREATE INDEX events_at ON events (at);

CREATE TABLE forgotten_events (agent_id TEXT PRIMARY KEY, up_to INTEGER NOT NULL)
    STRICT, WITHOUT ROWID;
CREATE INDEX forgotten_events_up_to ON forgotten_events (up_to);

CREATE TABLE confirmations (
    confirm_id TEXT PRIMARY KEY,
    agent INTEGER NOT NULL,
    request TEXT NOT NULL,
    tool TEXT NOT NULL,
    options TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('pending', 'resolved')),
    decision TEXT,
    resolved_by TEXT,
    expires_at TEXT NOT NULL
) STRICT;
CREATE INDEX confirmations_agent ON confirmations (agent);
";

/// What stands for the first `upto` messages of an agent when a model is asked.
const VERSION_2: &str = "
CREATE TABLE summaries (
    agent INTEGER PRIMARY KEY,
    upto INTEGER NOT NULL,
    summary TEXT NOT NULL
) STRICT;
";

/// The limits of agents that have some or stand below some, and what was used of them: by the agent
/// itself, and by agents below it whose rows are gone. `parent` is a number, since ids are given again.
const VERSION_3: &str = "
CREATE TABLE budgets (
    agent INTEGER PRIMARY KEY,
    parent INTEGER,
    max_agents INTEGER,
    max_turns INTEGER,
    max_tokens INTEGER,
    deadline TEXT,
    turns INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    gone_turns INTEGER NOT NULL,
    gone_tokens INTEGER NOT NULL
) STRICT;
CREATE INDEX budgets_parent ON budgets (parent) WHERE parent IS NOT NULL;
";

/// `exported` has agents whose session file follows them, since they were saved or loaded once.
/// `session_members` has what stood in their files besides what we know; `last_session` has the agent
/// whose stream a terminal opened last.
const VERSION_4: &str = "
ALTER TABLE agents ADD COLUMN exported INTEGER NOT NULL DEFAULT 0 CHECK (exported IN (0, 1));
CREATE TABLE session_members (agent INTEGER PRIMARY KEY, members TEXT NOT NULL) STRICT;
CREATE TABLE last_session (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    agent INTEGER NOT NULL
) STRICT;
";

/// Indexes that every turn wrote and hardly anybody read give way to what is written seldom, or anyhow.
/// `event_hours` says from which event on all are of an hour, up to its next row. No request in a row
/// before `open_from` is open; 0 means that none is.
const VERSION_5: &str = "
DROP INDEX events_at;
CREATE TABLE event_hours (first_seq INTEGER PRIMARY KEY, hour TEXT NOT NULL) STRICT;
INSERT INTO event_hours SELECT seq, hour FROM (
    SELECT seq, substr(at, 1, 13) AS hour, lag(substr(at, 1, 13)) OVER (ORDER BY seq) AS before
    FROM events
) WHERE hour IS NOT before;
DROP INDEX requests_open;
ALTER TABLE counters ADD COLUMN open_from INTEGER NOT NULL DEFAULT 0;
UPDATE counters SET open_from =
    coalesce((SELECT min(number) FROM requests WHERE status IN ('queued', 'running')), 0);
";

/// How many rows in a row are a block, of messages, events and requests.
pub(super) const BLOCK_ROWS: u64 = 1024;

/// Messages and events stand in the order in which they came, those of all agents mixed. An index that
/// begins with the agent has a page of its own for each of them, so that every commit wrote as many pages
/// as it had members, and more of them than of anything else. What is noted instead is in which blocks an
/// agent has rows: once for each block, and whoever looks for them passes over the others in it.
/// `message_blocks.place` is the place of the agent's first message in the block. `event_blocks.kept` is
/// how many events of the agent were kept before its first one in the block, where at most `kept_max` are
/// kept; null where it has to be counted.
const VERSION_6: &str = "
ALTER TABLE messages RENAME TO indexed_messages;
CREATE TABLE messages (
    number INTEGER PRIMARY KEY,
    agent INTEGER NOT NULL,
    place INTEGER NOT NULL,
    message TEXT NOT NULL
) STRICT;
INSERT INTO messages (agent, place, message)
    SELECT agent, place, message FROM indexed_messages ORDER BY agent, place;
DROP TABLE indexed_messages;
CREATE TABLE message_blocks (
    agent INTEGER NOT NULL,
    block INTEGER NOT NULL,
    place INTEGER NOT NULL,
    PRIMARY KEY (agent, block)
) STRICT, WITHOUT ROWID;
INSERT INTO message_blocks SELECT agent, number / 256, min(place) FROM messages GROUP BY 1, 2;
CREATE VIEW agent_messages AS
    SELECT blocks.agent, block, number, messages.place, message
    FROM message_blocks AS blocks CROSS JOIN messages
    ON number >= block * 256 AND number < (block + 1) * 256 AND messages.agent = blocks.agent;
DROP INDEX events_agent;
CREATE TABLE event_blocks (
    agent_id TEXT NOT NULL,
    block INTEGER NOT NULL,
    kept INTEGER,
    kept_max INTEGER,
    PRIMARY KEY (agent_id, block)
) STRICT, WITHOUT ROWID;
INSERT INTO event_blocks (agent_id, block) SELECT DISTINCT agent_id, seq / 256 FROM events;
CREATE VIEW agent_events AS
    SELECT blocks.agent_id, block, seq, at, name, json
    FROM event_blocks AS blocks CROSS JOIN events
    ON seq >= block * 256 AND seq < (block + 1) * 256 AND events.agent_id = blocks.agent_id;
";

/// Requests are found as messages are, for the same reason. Their numbers stay: `open_from` is one. That
/// an agent has each id once is its own care, who knows them all. Blocks are longer than before: with many
/// agents at work, their notes were a fifth of what was written.
const VERSION_7: &str = "
ALTER TABLE requests RENAME TO indexed_requests;
CREATE TABLE requests (
    number INTEGER PRIMARY KEY,
    agent INTEGER NOT NULL,
    id TEXT NOT NULL,
    content TEXT NOT NULL,
    status TEXT NOT NULL
        CHECK (status IN ('queued', 'running', 'completed', 'cancelled', 'failed', 'interrupted')),
    outcome TEXT
) STRICT;
INSERT INTO requests SELECT number, agent, id, content, status, outcome FROM indexed_requests;
DROP TABLE indexed_requests;
CREATE TABLE request_blocks (
    agent INTEGER NOT NULL,
    block INTEGER NOT NULL,
    PRIMARY KEY (agent, block)
) STRICT, WITHOUT ROWID;
INSERT INTO request_blocks SELECT DISTINCT agent, number / 1024 FROM requests;
CREATE VIEW agent_requests AS
    SELECT blocks.agent, block, number, id, content, status, outcome
    FROM request_blocks AS blocks CROSS JOIN requests
    ON number >= block * 1024 AND number < (block + 1) * 1024 AND requests.agent = blocks.agent;
DROP VIEW agent_messages;
DELETE FROM message_blocks;
INSERT INTO message_blocks SELECT agent, number / 1024, min(place) FROM messages GROUP BY 1, 2;
CREATE VIEW agent_messages AS
    SELECT blocks.agent, block, number, messages.place, message
    FROM message_blocks AS blocks CROSS JOIN messages
    ON number >= block * 1024 AND number < (block + 1) * 1024 AND messages.agent = blocks.agent;
DROP VIEW agent_events;
DELETE FROM event_blocks;
INSERT INTO event_blocks (agent_id, block) SELECT DISTINCT agent_id, seq / 1024 FROM events;
CREATE VIEW agent_events AS
    SELECT blocks.agent_id, block, seq, at, name, json
    FROM event_blocks AS blocks CROSS JOIN events
    ON seq >= block * 1024 AND seq < (block + 1) * 1024 AND events.agent_id = blocks.agent_id;
";

#[cfg(test)]
mod tests {
    use super::*;

    /// Every table and index, as SQLite keeps them.
    fn shape(connection: &Connection) -> Vec<(String, Option<String>)> {
        let mut rows =
            connection.prepare("SELECT name, sql FROM sqlite_schema ORDER BY name").unwrap();
        let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
        rows.query_map((), row).unwrap().map(Result::unwrap).collect()
    }

    fn migrated(migrations: &[&str]) -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, migrations).unwrap();
        connection
    }

    #[test]
    fn every_earlier_version_becomes_the_newest() {
        let newest = shape(&migrated(MIGRATIONS));
        for from in 0..=MIGRATIONS.len() {
            let mut connection = migrated(&MIGRATIONS[..from]);
            assert_eq!(version(&connection), Ok(u32::try_from(from).unwrap()));
            migrate(&mut connection, MIGRATIONS).unwrap();
            assert_eq!(version(&connection), Ok(known()));
            assert_eq!(shape(&connection), newest, "from version {from}");
        }
    }

    #[test]
    fn hours_and_open_requests_are_found_in_what_is_there() {
        let mut connection = migrated(&MIGRATIONS[..4]);
        let there = "INSERT INTO events VALUES (3, 'a', '2026-01-01T00:59:59.999Z', 'n', '{}'),
                         (4, 'b', '2026-01-01T01:00:00.000Z', 'n', '{}'),
                         (7, 'a', '2026-01-01T01:30:00.000Z', 'n', '{}'),
                         (8, 'a', '2026-01-01T00:10:00.000Z', 'n', '{}');
                     INSERT INTO requests (number, agent, id, content, status)
                         VALUES (1, 1, 'r1', '', 'completed'), (2, 1, 'r2', '', 'running'),
                         (3, 2, 'r1', '', 'queued');";
        connection.execute_batch(there).unwrap();
        migrate(&mut connection, MIGRATIONS).unwrap();
        let mut hours = connection.prepare("SELECT first_seq, hour FROM event_hours").unwrap();
        let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let hours: Vec<(i64, String)> =
            hours.query_map((), row).unwrap().map(Result::unwrap).collect();
        let expected = [(3, "2026-01-01T00"), (4, "2026-01-01T01"), (8, "2026-01-01T00")];
        assert_eq!(hours, expected.map(|(seq, hour)| (seq, hour.to_owned())));
        let open_from = "SELECT open_from FROM counters";
        assert_eq!(connection.query_row(open_from, (), |row| row.get(0)), Ok(2));
    }

    #[test]
    fn blocks_are_found_in_what_is_there() {
        let mut connection = migrated(&MIGRATIONS[..5]);
        let there = "INSERT INTO messages (agent, place, message) VALUES (2, 1, 'd'), (1, 0, 'a');
                     WITH RECURSIVE more (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM more
                         WHERE n < 1100)
                     INSERT INTO messages (agent, place, message) SELECT 1, n, n FROM more;
                     INSERT INTO messages (agent, place, message) VALUES (2, 0, 'c');
                     INSERT INTO events VALUES (1023, 'a', '', 'n', '{}'), (1024, 'b', '', 'n', '{}'),
                         (1100, 'b', '', 'n', '{}'), (2100, 'a', '', 'n', '{}');
                     INSERT INTO requests (number, agent, id, content, status)
                         VALUES (7, 1, 'r1', 'x', 'completed'), (1024, 1, 'r2', 'y', 'running'),
                         (1030, 2, 'r1', 'z', 'completed');";
        connection.execute_batch(there).unwrap();
        migrate(&mut connection, MIGRATIONS).unwrap();
        let found = |sql: &str| -> Vec<(String, i64)> {
            let mut rows = connection.prepare(sql).unwrap();
            let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
            rows.query_map((), row).unwrap().map(Result::unwrap).collect()
        };
        let row = |(name, number): (&str, i64)| (name.to_owned(), number);
        let of_two = "SELECT message, place FROM agent_messages WHERE agent = 2 ORDER BY number";
        assert_eq!(found(of_two), [("c", 0), ("d", 1)].map(row));
        let count = "SELECT 'all', count(*) FROM agent_messages WHERE agent = 1";
        assert_eq!(found(count), [row(("all", 1101))]);
        let blocks = "SELECT agent || ' ' || block, place FROM message_blocks";
        assert_eq!(found(blocks), [("1 0", 0), ("1 1", 1023), ("2 1", 0)].map(row));
        let events =
            "SELECT agent_id || ' ' || block, seq FROM agent_events ORDER BY agent_id, seq";
        let expected = [("a 0", 1023), ("a 2", 2100), ("b 1", 1024), ("b 1", 1100)];
        assert_eq!(found(events), expected.map(row));
        let requests = "SELECT agent || ' ' || block || ' ' || id || ' ' || content, number \
                        FROM agent_requests ORDER BY agent, number";
        let expected = [("1 0 r1 x", 7), ("1 1 r2 y", 1024), ("2 1 r1 z", 1030)];
        assert_eq!(found(requests), expected.map(row));
    }

    #[test]
    fn a_migration_that_fails_half_way_leaves_the_version_before_it() {
        let mut connection = migrated(MIGRATIONS);
        let before = shape(&connection);
        let broken = "CREATE TABLE more (a) STRICT; INSERT INTO nowhere VALUES (1);";
        let further = [MIGRATIONS, &["CREATE TABLE extra (a INTEGER) STRICT;", broken]].concat();
        migrate(&mut connection, &further).unwrap_err();
        assert_eq!(version(&connection), Ok(known() + 1), "the one before the broken one is done");
        let names = |shape: Vec<(String, Option<String>)>| {
            shape.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
        };
        let mut expected = names(before);
        expected.push("extra".into());
        expected.sort();
        assert_eq!(names(shape(&connection)), expected, "and nothing of the broken one");
    }
}
