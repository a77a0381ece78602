//! A server's start with much on disk: agents load when they are used, so it should cost little.

use std::path::Path;

use anyhow::ensure;
use rusqlite::Connection as Database;
use serde_json::{Value, json};

use super::{create_agents, path, send_request};
use crate::Bench;
use crate::child::{Home, Target};
use crate::load::{Connection, rpc};
use crate::measure::{Bound, Figures, Row, Unit};
use crate::yardstick::Yardstick;

const AGENTS: u32 = 1000;
/// Two messages each.
const TURNS: usize = 50;
/// How many rows the server's store has in a block.
const BLOCK_ROWS: usize = 1024;

pub(crate) async fn start(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let (what, target) = ("start, 1,000 stored agents of 100 messages", "≤ 3.0×");
    if bench.stand_in {
        return Ok(vec![Row::not_yet(what, "empty home", target, "yardsticks store nothing")]);
    }
    let mock = Yardstick::mock(1).start()?;
    let home = filled(bench, &mock).await?;
    let (mut times, mut sizes) = (Vec::new(), Vec::new());
    for pair in 0..=bench.pairs {
        let (full, full_seconds) = Bench::server_in(Home::clone(&home), mock.port).await?;
        let full_bytes = full.resident_bytes()?;
        drop(full);
        let (empty, seconds) = bench.server_timed(mock.port, &Yardstick::bare(200)).await?;
        let bytes = empty.resident_bytes()?;
        // The first pair reads the disk, the others what is in memory of it.
        if pair > 0 {
            times.push((full_seconds, seconds));
            sizes.push((full_bytes, bytes));
        }
    }
    Ok(vec![
        Row::new(what, "empty home", Unit::Seconds, &Figures::of(&times), Bound::RatioAtMost(3.0)),
        Row::new(
            "memory after it",
            "empty home",
            Unit::Bytes,
            &Figures::of(&sizes),
            Bound::RatioAtMost(2.0),
        ),
    ])
}

/// A home in which a server had one agent, and now there are many like it.
async fn filled(bench: &Bench, mock: &Target) -> anyhow::Result<Home> {
    let (server, _) = bench.server_timed(mock.port, &Yardstick::bare(200)).await?;
    let ids = create_agents(&server, 1).await?;
    let mut connection = Connection::open(&server).await?;
    for _ in 0..TURNS {
        connection.call(&send_request(&server, &ids[0])).await?;
    }
    let database = server.database();
    let home = server.kill();
    multiply(&database)?;
    // The agent of the last server is closed once and for all before anything is measured.
    let (server, _) = Bench::server_in(home, mock.port).await?;
    let copy = path(&format!("{}-{}", ids[0], AGENTS - 1));
    let stored = messages(&server, &copy).await?;
    ensure!(stored == 2 * TURNS, "a copy has {stored} messages: the schema is another one");
    let home = server.kill();
    let (server, _) = Bench::server_in(home, mock.port).await?;
    Ok(server.kill())
}

/// How many messages of an agent the server finds.
async fn messages(server: &Target, agent: &str) -> anyhow::Result<usize> {
    let request = rpc(server, agent, "get_messages", &json!({"limit": 2 * TURNS}));
    let mut connection = Connection::open(server).await?;
    let (_, body) = connection.exchange(&request).await?;
    let answer: Value = serde_json::from_slice(body)?;
    Ok(answer["result"]["messages"].as_array().map_or(0, Vec::len))
}

/// Copies every row of the one agent for each further one.
fn multiply(database: &Path) -> anyhow::Result<()> {
    let database = Database::open(database)?;
    let copies = AGENTS - 1;
    database.execute_batch(&format!(
        "BEGIN;
         CREATE TEMP TABLE copy AS
             WITH RECURSIVE numbers (k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM numbers
                 WHERE k < {copies}) SELECT k FROM numbers;
         CREATE TEMP TABLE last AS SELECT max(seq) AS seq FROM events;
         INSERT INTO agents (number, id, parent, depth, created_at, modified_at, session_type,
             session_status, standing) SELECT number + k, id || '-' || k, parent, depth,
             created_at, modified_at, session_type, 'dormant', standing FROM agents, copy;
         INSERT INTO recipes (agent, recipe) SELECT agent + k, recipe FROM recipes, copy;
         INSERT INTO messages (agent, place, message)
             SELECT agent + k, place, message FROM messages, copy ORDER BY k, place;
         INSERT OR IGNORE INTO message_blocks (agent, block, place)
             SELECT agent, number / {BLOCK_ROWS}, min(place) FROM messages GROUP BY 1, 2;
         INSERT INTO requests (agent, id, content, status, outcome)
             SELECT agent + k, id, content, status, outcome FROM requests, copy;
         INSERT OR IGNORE INTO request_blocks (agent, block)
             SELECT DISTINCT agent, number / {BLOCK_ROWS} FROM requests;
         INSERT INTO events (seq, agent_id, at, name, json)
             SELECT events.seq + k * last.seq, agent_id || '-' || k, at, name, json
             FROM events, copy, last;
         INSERT OR IGNORE INTO event_blocks (agent_id, block)
             SELECT DISTINCT agent_id, seq / {BLOCK_ROWS} FROM events;
         UPDATE counters SET seq = (SELECT max(seq) FROM events),
             next_agent = (SELECT max(number) + 1 FROM agents);
         COMMIT;"
    ))?;
    Ok(())
}
