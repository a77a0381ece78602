//! The sections of the table, in the order of the targets. Each starts what it needs, measures and
//! takes it all down again, so that one can be run alone.

mod agents; // create and destroy
mod busy; // calls while agents are busy
mod echo; // keys at the terminal
mod events; // chunks to subscribers
mod long_run; // what stays of much that came and went
mod memory; // resident sizes
mod process; // starting, and the command line
mod send; // turns
mod simulation; // the server in virtual time
mod small; // small calls
mod stored; // starting with much on disk
mod subscribers; // readers that do not read
mod tokens; // counting tokens
mod tools; // turns in which a tool runs

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::bail;
use serde_json::json;

use crate::Bench;
use crate::child::Target;
use crate::load::{Connection, Request, rpc};
use crate::measure::Row;

pub(crate) const NAMES: [&str; 26] = [
    "small-rpc",
    "history",
    "list-1000",
    "send-1",
    "send-200",
    "turns-per-second",
    "tool-turn",
    "chunk-to-subscriber",
    "subscribers",
    "growth",
    "create-agent",
    "destroy-agent",
    "memory-agent",
    "memory-idle",
    "start-empty",
    "start-1000",
    "rpc-list",
    "token-counting",
    "long-run",
    "sim-quiet",
    "sim-turns",
    "sim-crash",
    "p99-under-load",
    "key-echo",
    "scenarios",
    "cold-build",
];

pub(crate) async fn measure(name: &str, bench: &Bench) -> anyhow::Result<Vec<Row>> {
    match name {
        "small-rpc" => small::small_rpc(bench).await,
        "history" => small::history(bench).await,
        "list-1000" => small::list_1000(bench).await,
        "send-1" => send::send(bench, 1).await,
        "send-200" => send::send(bench, 200).await,
        "turns-per-second" => send::turns_per_second(bench).await,
        "tool-turn" => tools::turn(bench).await,
        "chunk-to-subscriber" => events::chunk_to_subscriber(bench).await,
        "subscribers" => subscribers::slowed(bench).await,
        "growth" => send::growth(bench).await,
        "create-agent" => agents::create(bench).await,
        "destroy-agent" => agents::destroy(bench).await,
        "memory-agent" => memory::per_agent(bench).await,
        "memory-idle" => memory::idle(bench).await,
        "start-empty" => process::start(bench).await,
        "start-1000" => stored::start(bench).await,
        "rpc-list" => process::rpc_list(bench).await,
        "sim-quiet" => simulation::quiet(bench).await,
        "sim-turns" => simulation::turns(bench).await,
        "sim-crash" => simulation::crashes(bench).await,
        "p99-under-load" => busy::p99_under_load(bench).await,
        "key-echo" => echo::key_echo(bench).await,
        "token-counting" => tokens::counting(bench).await,
        "long-run" => long_run::long_run(bench).await,
        "scenarios" => simulation::scenarios().await,
        "cold-build" => Ok(vec![process::cold_build()]),
        unknown => bail!("no section is called {unknown}"),
    }
}

/// An id no other agent of this run has.
fn new_id() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("a{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

fn path(id: &str) -> String {
    format!("/agent/{id}")
}

fn create_request(target: &Target, id: &str) -> Request {
    rpc(target, "/", "create_agent", &json!({"agent_id": id}))
}

fn destroy_request(target: &Target, id: &str) -> Request {
    rpc(target, "/", "destroy_agent", &json!({"agent_id": id}))
}

fn send_request(target: &Target, id: &str) -> Request {
    rpc(target, &path(id), "send", &json!({"content": "Say a word."}))
}

async fn create_agents(target: &Target, count: usize) -> anyhow::Result<Vec<String>> {
    let mut connection = Connection::open(target).await?;
    let mut ids = Vec::with_capacity(count);
    for _ in 0..count {
        let id = new_id();
        connection.call(&create_request(target, &id)).await?;
        ids.push(id);
    }
    Ok(ids)
}

async fn destroy_agents(target: &Target, ids: &[String]) -> anyhow::Result<()> {
    let mut connection = Connection::open(target).await?;
    for id in ids {
        connection.call(&destroy_request(target, id)).await?;
    }
    Ok(())
}
