//! A long run: however much comes and goes, nothing of it may stay.

use std::cell::Cell;
use std::time::Duration;

use futures_util::future::try_join_all;
use serde_json::json;

use super::{create_request, destroy_request, new_id, path, send_request};
use crate::Bench;
use crate::child::Target;
use crate::load::{Connection, rpc};
use crate::measure::{Bound, Figures, Row, Unit};
use crate::yardstick::Yardstick;

const AGENTS: usize = 10_000;
const TURNS_OF_EACH: usize = 10;
/// With its turns, its creation and its end each makes a hundred calls.
const CALLS_OF_EACH: usize = 88;
const CLIENTS: usize = 8;
/// What the rest of the run is held against.
const BEGINNING: usize = 100;
/// Connections end a moment after their clients are gone.
const SETTLE: Duration = Duration::from_millis(200);

/// What the server holds.
struct Held {
    bytes: f64,
    handles: f64,
}

/// One run, which takes a minute or two: what grows by a little with every agent has grown by then. The
/// tasks of a server cannot be counted from outside; scenarios hold it to theirs (`bounds`).
pub(crate) async fn long_run(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let what = "memory after 1 M RPCs, 100 k turns, 10 k agents";
    let beginning = "its first 1 %";
    if bench.stand_in {
        let missing = "no yardstick has agents with turns";
        return Ok(vec![Row::not_yet(what, beginning, "≤ 1.1×", missing)]);
    }
    let is_brief = bench.pairs < 10;
    let agents = if is_brief { AGENTS / 100 } else { AGENTS };
    let mock = Yardstick::mock(1).start()?;
    let server = bench.server(mock.port, &Yardstick::bare(200)).await?;
    let first = held_after(&server, agents / BEGINNING).await?;
    let last = held_after(&server, agents - agents / BEGINNING).await?;
    let rows = [
        (what, Unit::Bytes, (last.bytes, first.bytes), 1.1),
        ("file handles after it", Unit::Count, (last.handles, first.handles), 1.0),
    ];
    let row = |(what, unit, pair, most): (&str, _, _, _)| {
        let row = Row::new(what, beginning, unit, &Figures::of(&[pair]), Bound::RatioAtMost(most));
        if is_brief { row.but_not_yet("a brief run is a hundredth as long") } else { row }
    };
    Ok(rows.map(row).into())
}

/// Lets so many agents live their lives, several at a time.
async fn held_after(server: &Target, agents: usize) -> anyhow::Result<Held> {
    let left = Cell::new(agents);
    try_join_all((0..CLIENTS).map(|_| lives(server, &left))).await?;
    tokio::time::sleep(SETTLE).await;
    Ok(Held { bytes: server.resident_bytes()?, handles: server.open_handles()? })
}

async fn lives(server: &Target, left: &Cell<usize>) -> anyhow::Result<()> {
    let mut connection = Connection::open(server).await?;
    while left.get() > 0 {
        left.set(left.get() - 1);
        let id = new_id();
        connection.call(&create_request(server, &id)).await?;
        let (send, look) =
            (send_request(server, &id), rpc(server, &path(&id), "get_context", &json!({})));
        for _ in 0..TURNS_OF_EACH {
            connection.call(&send).await?;
        }
        for _ in 0..CALLS_OF_EACH {
            connection.call(&look).await?;
        }
        connection.call(&destroy_request(server, &id)).await?;
    }
    Ok(())
}
