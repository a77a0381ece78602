//! Turns: one at a time, many at once, and after many others.

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufStream};
use tokio::net::TcpStream;

use super::events::Drain;
use super::{create_agents, destroy_agents, send_request};
use crate::Bench;
use crate::child::Target;
use crate::load::{Clients, Connection, get, timed, wait_p50};
use crate::measure::{Bound, Figures, Row, Spread, Unit, alone, alternate};
use crate::yardstick::{Commits, Shape, Yardstick};

const NO_STORE: &str = "the server has no store";

/// Durable sends against `baresend` with its commits; without a store, what can be said without.
pub(crate) async fn send(bench: &Bench, chunks: usize) -> anyhow::Result<Vec<Row>> {
    let (what, most) = match chunks {
        1 => ("send, 1 chunk".to_owned(), 1.5),
        _ => (format!("send, {chunks} chunks, one subscriber"), 1.8),
    };
    let mock = Yardstick::mock(chunks).start()?;
    let mut rows = Vec::new();
    for commits in [Commits::Full, Commits::None] {
        let yardstick = |shape| Yardstick::baresend(mock.port, shape, commits);
        let server = bench.server(mock.port, &yardstick(Shape::default())).await?;
        let baresend = yardstick(shape(&server, &mock).await?).start()?;
        let subscriber =
            if chunks > 1 && !bench.stand_in { Drain::open(&server).await? } else { None };
        let theirs = async || send_p50(&baresend, bench.calls).await;
        match (commits, server.has_store()) {
            (Commits::None, true) => {}
            (Commits::None, false) => {
                let ours = async || send_p50(&server, bench.calls).await;
                let figures = alternate(bench, ours, theirs).await?;
                rows.push(Row::new(
                    format!("{what}, no store yet"),
                    "baresend without commits",
                    Unit::Seconds,
                    &figures,
                    Bound::RatioAtMost(most),
                ));
            }
            (Commits::Full | Commits::Grouped, true) => {
                let ours = async || send_p50(&server, bench.calls).await;
                let figures = alternate(bench, ours, theirs).await?;
                let bound = Bound::RatioAtMost(most);
                let row = Row::new(what.clone(), "baresend full", Unit::Seconds, &figures, bound);
                let silent = chunks > 1 && subscriber.is_none() && !bench.stand_in;
                rows.push(if silent { row.but_not_yet("the server has no events") } else { row });
            }
            (Commits::Full | Commits::Grouped, false) => {
                let cost = Unit::Seconds.show(alone(bench, theirs).await?.median);
                let yardstick = format!("baresend full: {cost}");
                rows.push(Row::not_yet(&what, yardstick, &format!("≤ {most}×"), NO_STORE));
            }
        }
    }
    Ok(rows)
}

/// The sizes of one send's messages, as the client and the model see them.
pub(super) async fn shape(server: &Target, mock: &Target) -> anyhow::Result<Shape> {
    let ids = create_agents(server, 1).await?;
    let mut connection = Connection::open(server).await?;
    let reply_bytes = connection.call(&send_request(server, &ids[0])).await?;
    destroy_agents(server, &ids).await?;
    Ok(Shape { request_bytes: request_bytes(mock, "/last").await?, reply_bytes })
}

/// What the model says of the bodies it was sent.
async fn request_bytes(mock: &Target, path: &str) -> anyhow::Result<usize> {
    let mut connection = Connection::open(mock).await?;
    let (_, body) = connection.exchange(&get(mock, path)).await?;
    let bytes: Value = serde_json::from_slice(body)?;
    Ok(usize::try_from(bytes.as_u64().unwrap_or(0))?)
}

/// The median send of a new agent, so that no pair pays for the history of those before it.
async fn send_p50(target: &Target, calls: usize) -> anyhow::Result<f64> {
    let ids = create_agents(target, 1).await?;
    let mut connection = Connection::open(target).await?;
    let request = send_request(target, &ids[0]);
    let wait = wait_p50(&mut connection, &request, calls).await?;
    destroy_agents(target, &ids).await?;
    Ok(wait)
}

pub(crate) async fn turns_per_second(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let mock = Yardstick::mock(1).start()?;
    let mut rows = Vec::new();
    for commits in [Commits::Grouped, Commits::None] {
        let yardstick = |shape| Yardstick::baresend(mock.port, shape, commits);
        let server = bench.server(mock.port, &yardstick(Shape::default())).await?;
        let of_one = shape(&server, &mock).await?;
        let durable = commits != Commits::None;
        if !durable && server.has_store() {
            continue;
        }
        let (suffix, name) = if durable {
            ("", "baresend with group commit")
        } else {
            (", no store yet", "baresend without commits")
        };
        for agents in [8, 32] {
            let what = format!("turns per second, {agents} agents{suffix}");
            // Conversations grow within a slice, so the yardstick moves as many bytes as theirs on average.
            request_bytes(&mock, "/mean").await?;
            turn_rate(&server, agents, bench).await?;
            let request_bytes = request_bytes(&mock, "/mean").await?;
            let baresend = yardstick(Shape { request_bytes, ..of_one }).start()?;
            let theirs = async || turn_rate(&baresend, agents, bench).await;
            if durable && !server.has_store() {
                let rate = Unit::PerSecond.show(alone(bench, theirs).await?.median);
                rows.push(Row::not_yet(what, format!("{name}: {rate}"), "≥ 0.60", NO_STORE));
                continue;
            }
            let ours = async || turn_rate(&server, agents, bench).await;
            let figures = alternate(bench, ours, theirs).await?;
            let bound = Bound::RatioAtLeast(0.60);
            rows.push(Row::new(what, name, Unit::PerSecond, &figures, bound));
        }
        if durable == server.has_store() {
            let figures = alternate(
                bench,
                async || turn_rate(&server, 32, bench).await,
                async || turn_rate(&server, 8, bench).await,
            )
            .await?;
            let what = format!("turns per second, 32 agents against 8{suffix}");
            let bound = Bound::RatioAtLeast(0.80);
            rows.push(Row::new(what, "8 agents", Unit::PerSecond, &figures, bound));
        }
    }
    Ok(rows)
}

/// Turns per second of so many new agents, each with a connection of its own.
async fn turn_rate(target: &Target, agents: usize, bench: &Bench) -> anyhow::Result<f64> {
    let ids = create_agents(target, agents).await?;
    let requests: Vec<_> = ids.iter().map(|id| send_request(target, id)).collect();
    let mut clients = Clients::open(target, agents, &requests).await?;
    let rate = clients.rate(bench.slice).await?;
    destroy_agents(target, &ids).await?;
    Ok(rate)
}

/// Turns before the first and before the second look, and how many calls each look takes.
const EARLY: usize = 75;
const LATE: usize = 950;
const LOOK: usize = 50;
/// Turns before which it is noted how much was written to disk; the third time is the end.
const WEIGHED: [usize; 2] = [100, 550];
const _: () = assert!(LATE + LOOK - WEIGHED[1] == WEIGHED[1] - WEIGHED[0], "halves are equal");
/// The bodies of a stand-in at the two looks.
const STAND_IN_BODIES: Bodies = Bodies { early: 20_000, late: 200_000 };

/// How long the bodies of the model's requests are at the two looks.
#[derive(Clone, Copy, Debug)]
struct Bodies {
    early: usize,
    late: usize,
}

/// What every earlier turn adds to the next one.
pub(crate) async fn growth(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let mock = Yardstick::mock(1).start()?;
    let direct = Yardstick::direct(mock.port).start()?;
    let (what, name) = ("time per extra turn, turns 100–1,000", "direct, same bodies");
    let bound = Bound::RatioAtMost(4.0);
    if bench.stand_in {
        let other = Yardstick::direct(mock.port).start()?;
        let ours = async || direct_growth(&other, STAND_IN_BODIES).await;
        let theirs = async || direct_growth(&direct, STAND_IN_BODIES).await;
        let figures = alternate(bench, ours, theirs).await?;
        return Ok(vec![Row::new(what, name, Unit::Seconds, &figures, bound)]);
    }
    let server = bench.server(mock.port, &Yardstick::bare(0)).await?;
    let first = server_growth(&server, &mock).await?;
    let mut written = Vec::new();
    let ours = async || {
        let growth = server_growth(&server, &mock).await?;
        written.push(growth.written);
        Ok(growth.seconds)
    };
    let theirs = async || direct_growth(&direct, first.bodies).await;
    let figures = alternate(bench, ours, theirs).await?;
    let time = Row::new(what, name, Unit::Seconds, &figures, bound);
    let disk = Row::new(
        "written per turn, turns 550–1,000",
        "turns 100–550",
        Unit::Bytes,
        &Figures::of(&written),
        Bound::RatioAtMost(1.1),
    );
    Ok(if server.has_store() { vec![time, disk] } else { vec![time.but_not_yet(NO_STORE)] })
}

/// What one agent's history did to its turns.
struct Growth {
    /// For each extra turn.
    seconds: f64,
    bodies: Bodies,
    /// Bytes to disk for each turn of the later and of the earlier half.
    written: (f64, f64),
}

async fn server_growth(server: &Target, mock: &Target) -> anyhow::Result<Growth> {
    let ids = create_agents(server, 1).await?;
    let mut connection = Connection::open(server).await?;
    let request = send_request(server, &ids[0]);
    let (mut waits, mut bytes, mut written) = (Vec::new(), Vec::new(), Vec::new());
    for turn in 0..LATE + LOOK {
        if WEIGHED.contains(&turn) {
            written.push(server.written_bytes()?);
        }
        waits.push(timed(&mut connection, &request).await?);
        if turn == EARLY + LOOK / 2 || turn == LATE + LOOK / 2 {
            bytes.push(request_bytes(mock, "/last").await?);
        }
    }
    written.push(server.written_bytes()?);
    destroy_agents(server, &ids).await?;
    let look = |from: usize| Spread::of(waits[from..from + LOOK].to_vec()).median;
    let half = (LATE + LOOK - WEIGHED[1]) as f64;
    Ok(Growth {
        seconds: per_turn(look(EARLY), look(LATE)),
        bodies: Bodies { early: bytes[0], late: bytes[1] },
        written: ((written[2] - written[1]) / half, (written[1] - written[0]) / half),
    })
}

async fn direct_growth(direct: &Target, bodies: Bodies) -> anyhow::Result<f64> {
    let stream = TcpStream::connect(("127.0.0.1", direct.port)).await?;
    let mut stream = BufStream::new(stream);
    let mut looks = [0.0; 2];
    for (look, bytes) in looks.iter_mut().zip([bodies.early, bodies.late]) {
        let line = format!("{bytes} {LOOK}\n");
        stream.write_all(line.as_bytes()).await?;
        stream.flush().await?;
        let mut micros = String::new();
        stream.read_line(&mut micros).await?;
        *look = micros.trim().parse::<f64>()? / 1e6;
    }
    Ok(per_turn(looks[0], looks[1]))
}

fn per_turn(early: f64, late: f64) -> f64 {
    (late - early) / (LATE - EARLY) as f64
}
