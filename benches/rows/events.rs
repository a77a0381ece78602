//! Chunks to subscribers. The model writes into each chunk when it was sent; both processes read
//! the same clock, so a subscriber can tell how long the chunk took through the server.

use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

use super::send::shape;
use super::{create_agents, destroy_agents, path, send_request};
use crate::Bench;
use crate::child::Target;
use crate::load::{Connection, get};
use crate::measure::{Bound, Row, Spread, Unit, alternate};
use crate::yardstick::{Shape, Yardstick};

const GAP_US: u64 = 2000;
const RUN_MAX: Duration = Duration::from_secs(20);
/// Nanoseconds since 1970 have this many digits until the year 2286.
const STAMP_DIGITS: usize = 19;

/// A subscriber that reads every event and looks at none.
#[derive(Debug)]
pub(super) struct Drain(AbortHandle);

impl Drain {
    /// `None` where the server has no such stream.
    pub(super) async fn open(target: &Target) -> anyhow::Result<Option<Self>> {
        let connection = Connection::open(target).await?;
        let stream = connection.subscribe(&get(target, "/events")).await?;
        Ok(stream.map(|mut stream| {
            let reading = tokio::spawn(async move { while stream.more().await.is_ok() {} });
            Self(reading.abort_handle())
        }))
    }
}

impl Drop for Drain {
    fn drop(&mut self) {
        self.0.abort();
    }
}

pub(crate) async fn chunk_to_subscriber(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let chunks = bench.calls * 2;
    let mock = Yardstick::stamping_mock(chunks, GAP_US).start()?;
    let like = Yardstick::baresse(mock.port, Shape::default());
    let server = bench.server(mock.port, &like).await?;
    let shape = shape(&server, &mock).await?;
    let baresse = Yardstick::baresse(mock.port, shape).start()?;
    let mut rows = Vec::new();
    let has_events = Drain::open(&server).await?.is_some();
    for subscribers in [1, 8] {
        let what = match subscribers {
            1 => "chunk to subscriber p50".to_owned(),
            _ => format!("chunk to subscriber p50, {subscribers} subscribers"),
        };
        if !has_events {
            let missing = "the server has no events";
            rows.push(Row::not_yet(what, "baresse", "≤ 2.0×", missing));
            continue;
        }
        let figures = alternate(
            bench,
            async || delay_p50(&server, subscribers, chunks).await,
            async || delay_p50(&baresse, subscribers, chunks).await,
        )
        .await?;
        let bound = Bound::RatioAtMost(2.0);
        rows.push(Row::new(what, "baresse", Unit::Seconds, &figures, bound));
    }
    Ok(rows)
}

/// The median delay of all chunks of one turn, at all its subscribers.
async fn delay_p50(target: &Target, subscribers: usize, chunks: usize) -> anyhow::Result<f64> {
    let ids = create_agents(target, 1).await?;
    let events = get(target, &format!("{}/events", path(&ids[0])));
    let mut reading = JoinSet::new();
    for _ in 0..subscribers {
        let stream = Connection::open(target).await?.subscribe(&events).await?;
        let stream = stream.context("the stream was refused")?;
        reading.spawn(timeout(RUN_MAX, delays(stream, chunks)));
    }
    let mut connection = Connection::open(target).await?;
    connection.call(&send_request(target, &ids[0])).await?;
    let mut all = Vec::new();
    while let Some(done) = reading.join_next().await {
        all.extend(done?.context("a chunk did not reach its subscriber")??);
    }
    destroy_agents(target, &ids).await?;
    Ok(Spread::of(all).median)
}

/// Reads until `chunks` stamps have come; how long each was on its way, in seconds.
async fn delays(mut stream: Connection, chunks: usize) -> anyhow::Result<Vec<f64>> {
    let mut delays = Vec::with_capacity(chunks);
    let mut rest = String::new();
    while delays.len() < chunks {
        rest.push_str(&String::from_utf8_lossy(&stream.more().await?));
        let now = SystemTime::UNIX_EPOCH.elapsed()?.as_nanos();
        // Whole lines only: a stamp may be cut in two by the end of a read.
        while let Some(end) = rest.find('\n') {
            let line: String = rest.drain(..=end).collect();
            if line.starts_with("data:") && line.contains("content_chunk") {
                delays.extend(stamps(&line).map(|sent| now.saturating_sub(sent) as f64 / 1e9));
            }
        }
    }
    Ok(delays)
}

fn stamps(line: &str) -> impl Iterator<Item = u128> {
    line.split(|c: char| !c.is_ascii_digit())
        .filter(|digits| digits.len() == STAMP_DIGITS)
        .filter_map(|digits| digits.parse().ok())
}
