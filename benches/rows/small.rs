//! Small calls: how much of the bare HTTP rate is left, and what agents and history cost them.

use std::sync::Arc;

use serde_json::json;

use super::{create_agents, destroy_agents, path, send_request};
use crate::Bench;
use crate::child::Target;
use crate::load::{Clients, Connection, Request, knows, rpc, wait_p50};
use crate::measure::{Bound, Figures, Row, Unit, alternate};
use crate::yardstick::{Commits, Shape, Yardstick};

const AGENTS: usize = 10;
const AGENTS_MANY: usize = 1000;
const TURNS: usize = 10;
const TURNS_MANY: usize = 1000;
/// Connections, and the share of the bare rate that must be left.
const LOADS: [(usize, f64); 3] = [(1, 0.70), (8, 0.60), (32, 0.60)];
/// What a stand-in answers: about what ten agents take.
const STAND_IN_BYTES: usize = 4500;

pub(crate) async fn small_rpc(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let mock = Yardstick::mock(1).start()?;
    let server = bench.server(mock.port, &Yardstick::bare(STAND_IN_BYTES)).await?;
    let ids = create_agents(&server, AGENTS).await?;
    let mut rows = Vec::new();
    let list = rpc(&server, "/", "list_agents", &json!({}));
    rows.extend(against_bare(bench, &server, &list, "list_agents, 10 agents").await?);
    let agent = path(&ids[0]);
    if knows(&server, &agent, "get_tokens").await? {
        let tokens = rpc(&server, &agent, "get_tokens", &json!({}));
        rows.extend(against_bare(bench, &server, &tokens, "get_tokens").await?);
    } else {
        rows.push(Row::not_yet(
            "get_tokens, 1 / 8 / 32 connections",
            "bare",
            "≥ 0.70 / 0.60 / 0.60",
            "no get_tokens",
        ));
    }
    Ok(rows)
}

async fn against_bare(
    bench: &Bench,
    server: &Target,
    request: &Request,
    what: &str,
) -> anyhow::Result<Vec<Row>> {
    let reply_bytes = Connection::open(server).await?.call(request).await?;
    let bare = Yardstick::bare(reply_bytes).start()?;
    let same = rpc(&bare, "/", "list_agents", &json!({}));
    let mut rows = Vec::new();
    for (connections, share) in LOADS {
        let figures = rates(bench, (server, request), (&bare, &same), connections).await?;
        rows.push(Row::new(
            match connections {
                1 => format!("{what}, 1 connection"),
                _ => format!("{what}, {connections} connections"),
            },
            "bare",
            Unit::PerSecond,
            &figures,
            Bound::RatioAtLeast(share),
        ));
    }
    Ok(rows)
}

type Side<'a> = (&'a Target, &'a Request);

async fn rates(
    bench: &Bench,
    ours: Side<'_>,
    yardstick: Side<'_>,
    connections: usize,
) -> anyhow::Result<Figures> {
    let mut ours = Clients::open(ours.0, connections, &[Arc::clone(ours.1)]).await?;
    let mut theirs = Clients::open(yardstick.0, connections, &[Arc::clone(yardstick.1)]).await?;
    alternate(bench, async || ours.rate(bench.slice).await, async || theirs.rate(bench.slice).await)
        .await
}

/// The same calls to an agent with a long past and to one with a short one.
pub(crate) async fn history(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let mock = Yardstick::mock(1).start()?;
    let like = Yardstick::baresend(mock.port, Shape::default(), Commits::None);
    let (long, short) =
        (bench.server(mock.port, &like).await?, bench.server(mock.port, &like).await?);
    let long_agent = with_turns(&long, TURNS_MANY).await?;
    // Both processes answer equally many calls before they are compared; only the past differs.
    let passing = with_turns(&short, TURNS_MANY - TURNS).await?;
    destroy_agents(&short, &[passing]).await?;
    let short_agent = with_turns(&short, TURNS).await?;
    let mut rows = Vec::new();
    for (method, of_agent) in [("list_agents", false), ("get_tokens", true)] {
        let what = format!("{method}, 1,000 turns of history, 8 connections");
        let at = |agent: &str| {
            if of_agent { path(agent) } else { "/".to_owned() }
        };
        if !knows(&long, &at(&long_agent), method).await? {
            let missing = format!("no {method}");
            rows.push(Row::not_yet(what, "10 turns", "≥ 0.90", &missing));
            continue;
        }
        let ours = rpc(&long, &at(&long_agent), method, &json!({}));
        let theirs = rpc(&short, &at(&short_agent), method, &json!({}));
        let figures = rates(bench, (&long, &ours), (&short, &theirs), 8).await?;
        let bound = Bound::RatioAtLeast(0.90);
        rows.push(Row::new(what, "10 turns", Unit::PerSecond, &figures, bound));
    }
    Ok(rows)
}

/// Makes an agent and gives it a past.
async fn with_turns(target: &Target, turns: usize) -> anyhow::Result<String> {
    let id = create_agents(target, 1).await?.remove(0);
    let mut connection = Connection::open(target).await?;
    let request = send_request(target, &id);
    for _ in 0..turns {
        connection.call(&request).await?;
    }
    Ok(id)
}

pub(crate) async fn list_1000(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let mock = Yardstick::mock(1).start()?;
    let like = Yardstick::bare(STAND_IN_BYTES);
    let (large, small) =
        (bench.server(mock.port, &like).await?, bench.server(mock.port, &like).await?);
    create_agents(&large, AGENTS_MANY).await?;
    create_agents(&small, AGENTS).await?;
    let (mut ours, mut theirs) = (Connection::open(&large).await?, Connection::open(&small).await?);
    let (ask_large, ask_small) =
        (rpc(&large, "/", "list_agents", &json!({})), rpc(&small, "/", "list_agents", &json!({})));
    let figures = alternate(
        bench,
        async || wait_p50(&mut ours, &ask_large, bench.calls * 5).await,
        async || wait_p50(&mut theirs, &ask_small, bench.calls * 5).await,
    )
    .await?;
    Ok(vec![Row::new(
        "list_agents p50, 1,000 agents",
        "10 agents",
        Unit::Seconds,
        &figures,
        Bound::RatioAtMost(40.0),
    )])
}
