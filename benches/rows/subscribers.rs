//! Many subscribers, of whom some never read: the agent must not notice, and the server must not
//! collect what they do not take.

use anyhow::Context as _;
use tokio::task::JoinSet;

use super::{create_agents, destroy_agents, path, send_request};
use crate::Bench;
use crate::child::Target;
use crate::load::{Connection, get, timed};
use crate::measure::{Bound, Row, Spread, Unit, alternate};
use crate::yardstick::Yardstick;

const CHUNKS: usize = 100_000;
const SUBSCRIBERS: usize = 64;
/// A model that is faster than any: so many chunks, then a pause of a millisecond or two.
const BURST: usize = 20;
/// Turns at a model's pace take long: a few tell enough.
const PACED_PAIRS_MAX: usize = 3;
/// What a subscriber may hold: the buffer of the contract, and those of the HTTP library.
const HELD_BYTES_MAX: f64 = (256.0 + 128.0) * 1024.0;

#[derive(Clone, Copy, Debug)]
enum Reading {
    Nobody,
    Half,
}

pub(crate) async fn slowed(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    if bench.stand_in {
        let what = "turn of 100,000 chunks, 64 subscribers";
        let missing = "no yardstick does this";
        return Ok(vec![Row::not_yet(what, "without subscribers", "≤ 1.1×", missing)]);
    }
    let paced = Bench {
        pairs: bench.pairs.min(PACED_PAIRS_MAX),
        slice: bench.slice,
        calls: bench.calls,
        stand_in: false,
    };
    let mut rows = Vec::new();
    for (reading, bench, mock, what) in [
        (
            Reading::Nobody,
            bench,
            Yardstick::mock(CHUNKS),
            "at once, 64 subscribers that never read",
        ),
        (
            Reading::Half,
            &paced,
            Yardstick::bursting_mock(CHUNKS, BURST),
            "at 10 per ms, 64 subscribers, half never read",
        ),
    ] {
        let mock = mock.start()?;
        let server = bench.server(mock.port, &Yardstick::bare(200)).await?;
        let mut held = Vec::new();
        let figures = alternate(
            bench,
            async || {
                let (seconds, bytes) = turn_with(&server, reading).await?;
                held.push(bytes / SUBSCRIBERS as f64);
                Ok(seconds)
            },
            async || turn(&server, &create_agents(&server, 1).await?).await,
        )
        .await?;
        rows.push(Row::new(
            format!("100,000 chunks {what}"),
            "no subscribers",
            Unit::Seconds,
            &figures,
            Bound::RatioAtMost(1.1),
        ));
        let held = Spread::of(held);
        rows.push(Row::absolute(
            "memory for each of them",
            Unit::Bytes,
            held,
            Bound::OursAtMost(HELD_BYTES_MAX, Unit::Bytes),
        ));
    }
    Ok(rows)
}

async fn turn(server: &Target, ids: &[String]) -> anyhow::Result<f64> {
    let mut connection = Connection::open(server).await?;
    let seconds = timed(&mut connection, &send_request(server, &ids[0])).await?;
    destroy_agents(server, ids).await?;
    Ok(seconds)
}

/// One turn with subscribers; also what the server grew by while they were there.
async fn turn_with(server: &Target, reading: Reading) -> anyhow::Result<(f64, f64)> {
    let ids = create_agents(server, 1).await?;
    let events = get(server, &format!("{}/events", path(&ids[0])));
    let (mut silent, mut readers) = (Vec::new(), JoinSet::new());
    for number in 0..SUBSCRIBERS {
        let stream = Connection::open(server).await?.subscribe(&events).await?;
        let mut stream = stream.context("the stream was refused")?;
        match reading {
            Reading::Half if number % 2 == 0 => {
                readers.spawn(async move { while stream.more().await.is_ok() {} });
            }
            Reading::Half | Reading::Nobody => silent.push(stream),
        }
    }
    let before = server.resident_bytes()?;
    let mut connection = Connection::open(server).await?;
    let seconds = timed(&mut connection, &send_request(server, &ids[0])).await?;
    let bytes = server.resident_bytes()? - before;
    readers.shutdown().await;
    drop(silent);
    destroy_agents(server, &ids).await?;
    Ok((seconds, bytes.max(0.0)))
}
