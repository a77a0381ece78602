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
/// As many chunks as take half a second at that pace.
const PACED_CHUNKS: usize = 5_000;
/// What a subscriber may hold: the buffer of the contract, and those of the HTTP library.
const HELD_BYTES_MAX: f64 = (256.0 + 128.0) * 1024.0;

/// Who is there during a turn.
#[derive(Clone, Copy, Debug)]
struct Audience {
    reading: usize,
    silent: usize,
}

const NOBODY: Audience = Audience { reading: 0, silent: 0 };
const SILENT: Audience = Audience { reading: 0, silent: SUBSCRIBERS };
const READING: Audience = Audience { reading: SUBSCRIBERS / 2, silent: 0 };
const HALF: Audience = Audience { reading: SUBSCRIBERS / 2, silent: SUBSCRIBERS / 2 };

/// Those who never read must cost the agent nothing, whether or not others do. What those cost who
/// read is not compared: on few cores they take the agent's time simply by reading, and so the base
/// line has them too. At the pace of a model there is time for all, and there the base line is a
/// turn that nobody hears.
pub(crate) async fn slowed(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    if bench.stand_in {
        let what = "turn of 100,000 chunks, 64 subscribers";
        let missing = "no yardstick does this";
        return Ok(vec![Row::not_yet(what, "without those who never read", "≤ 1.1×", missing)]);
    }
    let at_once = Yardstick::mock(CHUNKS);
    let paced = Yardstick::bursting_mock(PACED_CHUNKS, BURST);
    let mut rows = Vec::new();
    for (mock, audience, what, base, name) in [
        (&at_once, SILENT, "100,000 chunks, 64 never read", NOBODY, "no subscribers"),
        (&at_once, HALF, "100,000 chunks, 32 of 64 never read", READING, "only the 32 that read"),
        (&paced, HALF, "10 chunks per ms, 32 of 64 never read", NOBODY, "no subscribers"),
    ] {
        let mock = mock.start()?;
        let server = bench.server(mock.port, &Yardstick::bare(200)).await?;
        let mut held = Vec::new();
        let figures = alternate(
            bench,
            async || {
                let (seconds, bytes) = turn_with(&server, audience).await?;
                held.push(bytes / SUBSCRIBERS as f64);
                Ok(seconds)
            },
            async || Ok(turn_with(&server, base).await?.0),
        )
        .await?;
        let bound = Bound::RatioAtMost(1.1);
        rows.push(Row::new(what, name, Unit::Seconds, &figures, bound));
        rows.push(Row::absolute(
            "memory for each of them",
            Unit::Bytes,
            Spread::of(held),
            Bound::OursAtMost(HELD_BYTES_MAX, Unit::Bytes),
        ));
    }
    Ok(rows)
}

/// One turn of a new agent; also what the server grew by while it ran.
async fn turn_with(server: &Target, audience: Audience) -> anyhow::Result<(f64, f64)> {
    let ids = create_agents(server, 1).await?;
    let events = get(server, &format!("{}/events", path(&ids[0])));
    let subscribe = async || {
        let stream = Connection::open(server).await?.subscribe(&events).await?;
        stream.context("the stream was refused")
    };
    let (mut silent, mut readers) = (Vec::new(), JoinSet::new());
    for _ in 0..audience.silent {
        silent.push(subscribe().await?);
    }
    for _ in 0..audience.reading {
        readers.spawn(subscribe().await?.discard());
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
