//! What those who are in charge wait for while agents are busy.

use std::time::{Duration, Instant};

use anyhow::bail;
use serde_json::{Value, json};

use super::{create_agents, path};
use crate::Bench;
use crate::child::Target;
use crate::load::{Connection, Request, knows, rpc};
use crate::measure::{Bound, Row, Unit, alternate};
use crate::yardstick::Yardstick;

const RUNNING: usize = 32;
const WAITING: usize = 200;
/// A model that has not ended by the time all is measured, and says a word now and then.
const WORDS: usize = 1_000_000;
const WORD_EVERY_US: u64 = 20_000;
/// Samples of one side of a pair, of which one in a hundred may be slow.
const CALLS: usize = 300;
const CALLS_BRIEF: usize = 100;

const LOOK_EVERY: Duration = Duration::from_millis(10);
const LOOKS_MAX: usize = 2000;

/// `cancel` and `confirm` name what is not there: they ask the busy agent and change nothing.
pub(crate) async fn p99_under_load(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let (what, yardstick, most) = ("p99, 32 sends run, 200 wait", "p99 idle", 10.0);
    if bench.stand_in {
        let missing = "no yardstick has turns";
        return Ok(vec![Row::not_yet(what, yardstick, "≤ 10×", missing)]);
    }
    let mock = Yardstick::stamping_mock(WORDS, WORD_EVERY_US).start()?;
    let like = Yardstick::bare(0);
    let (busy, idle) =
        (bench.server(mock.port, &like).await?, bench.server(mock.port, &like).await?);
    let (at_work, at_rest) =
        (create_agents(&busy, RUNNING).await?, create_agents(&idle, RUNNING).await?);
    let _senders = occupied(&busy, &at_work).await?;
    let calls = if bench.calls < 20 { CALLS_BRIEF } else { CALLS };
    let mut rows = Vec::new();
    for method in ["list_agents", "cancel", "confirm"] {
        let what = format!("{method} {what}");
        if !knows(&busy, &path(&at_work[0]), method).await? && method == "confirm" {
            rows.push(Row::not_yet(what, yardstick, "≤ 10×", "no confirm"));
            continue;
        }
        let (ours, theirs) = (asked(&busy, &at_work, method), asked(&idle, &at_rest, method));
        let figures = alternate(
            bench,
            async || wait_p99(&busy, &ours, calls).await,
            async || wait_p99(&idle, &theirs, calls).await,
        )
        .await?;
        rows.push(Row::new(what, yardstick, Unit::Seconds, &figures, Bound::RatioAtMost(most)));
    }
    Ok(rows)
}

/// Sends until every agent runs a turn and the rest waits; the callers wait for as long as they are
/// kept.
async fn occupied(server: &Target, agents: &[String]) -> anyhow::Result<Vec<Connection>> {
    let mut senders = Vec::with_capacity(RUNNING + WAITING);
    for number in 0..RUNNING + WAITING {
        let mut connection = Connection::open(server).await?;
        let params = json!({"content": "Say many words."});
        let agent = &agents[number % agents.len()];
        connection.ask(&rpc(server, &path(agent), "send", &params)).await?;
        senders.push(connection);
    }
    let mut connection = Connection::open(server).await?;
    let list = rpc(server, "/", "list_agents", &json!({}));
    for _ in 0..LOOKS_MAX {
        let (_, body) = connection.exchange(&list).await?;
        let answer: Value = serde_json::from_slice(body)?;
        let agents = answer["result"]["agents"].as_array().map_or(&[][..], Vec::as_slice);
        let running = agents.iter().filter(|agent| agent["status"] == "running").count();
        let waiting: u64 = agents.iter().filter_map(|agent| agent["queued"].as_u64()).sum();
        if running == RUNNING && waiting == WAITING as u64 {
            return Ok(senders);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    bail!("not all sends were taken")
}

/// The calls of a method, one for each agent where it is an agent's.
fn asked(server: &Target, agents: &[String], method: &str) -> Vec<Request> {
    let to = |agent: &String| match method {
        "list_agents" => rpc(server, "/", method, &json!({})),
        "cancel" => rpc(server, &path(agent), method, &json!({"request_id": "none"})),
        _ => {
            let params = json!({"confirm_id": "none", "decision": "deny"});
            rpc(server, &path(agent), method, &params)
        }
    };
    agents.iter().map(to).collect()
}

/// How long the slowest of a hundred answers takes.
async fn wait_p99(server: &Target, requests: &[Request], calls: usize) -> anyhow::Result<f64> {
    let mut connection = Connection::open(server).await?;
    let mut waits = Vec::with_capacity(calls);
    for number in 0..calls {
        let started = Instant::now();
        connection.exchange(&requests[number % requests.len()]).await?;
        waits.push(started.elapsed().as_secs_f64());
    }
    waits.sort_by(f64::total_cmp);
    Ok(waits[calls * 99 / 100 - 1])
}
