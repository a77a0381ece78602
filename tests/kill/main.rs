//! `kill -9` on a real disk: the program is killed at a moment that a seed draws, again and again in
//! one home, while four clients work. After each restart nothing that was acknowledged is missing,
//! and nothing is there that nobody asked for.
//!
//! `NEXUS3_KILL_ROUNDS=100 cargo test --workspace --test kill -- --nocapture` makes more rounds, and
//! `NEXUS3_KILL_SEED` draws others.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "these tests run the program, so they use the machine as a shell does"
)]
#![expect(clippy::print_stdout, reason = "whoever runs many rounds wants to see what they were")]

mod book; // what was asked and what was acknowledged
mod chance; // draws
mod inspect; // what a restarted server must show
mod process; // the server
mod watch; // a reader of events that comes back with its cursor
mod work; // the clients

#[path = "../private_home/home.rs"]
mod home;

use std::sync::Arc;

use crate::book::Book;
use crate::chance::Chance;
use crate::home::private_home;
use crate::process::{Process, Resume};
use crate::watch::Watcher;

const ROUNDS: u64 = 5;
const SEED: u64 = 1;
const CLIENTS: u64 = 4;
/// The kill comes with an acknowledgement between these.
const ACKNOWLEDGED: std::ops::Range<u64> = 1..60;

fn setting(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().expect("the variable is a number"),
        Err(_) => default,
    }
}

#[tokio::test]
async fn what_was_acknowledged_survives_kill_nine_and_nothing_else_appears() {
    let (rounds, seed) = (setting("NEXUS3_KILL_ROUNDS", ROUNDS), setting("NEXUS3_KILL_SEED", SEED));
    let home = private_home();
    let mut book = Book::default();
    let mut watcher = Watcher::default();
    let (mut starts, mut empty_starts) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let mut chance = Chance::new(&[seed, round]);
        let resume = if chance.below(3) == 0 { Resume::AtStart } else { Resume::WhenAsked };
        let empty = private_home();
        empty_starts.push(Process::start(empty.path(), Resume::WhenAsked).seconds);
        let process = Process::start(home.path(), resume);
        starts.push(process.seconds);
        inspect::all(&process, resume, &mut book, &mut watcher, round).await;
        let kill_at = chance.within(ACKNOWLEDGED);
        let killed = Arc::new(work::Killing::new(kill_at, process.pid()));
        let shared = Arc::new(std::sync::Mutex::new(std::mem::take(&mut book)));
        let clients = (0..CLIENTS).map(|client| {
            let chance = Chance::new(&[seed, round, client]);
            work::run(process.client(), client, chance, Arc::clone(&shared), Arc::clone(&killed))
        });
        let clients = futures_util::future::join_all(clients);
        let watching = watcher.follow(process.client());
        futures_util::future::join(clients, watching).await;
        process.ended_by_kill();
        book = std::mem::take(&mut *shared.lock().expect("no client panicked"));
        book.forget_temps();
    }
    let process = Process::start(home.path(), Resume::WhenAsked);
    inspect::all(&process, Resume::WhenAsked, &mut book, &mut watcher, rounds).await;
    let (median, empty) = (median(starts), median(empty_starts));
    println!(
        "{rounds} rounds: {book}; {} events; start {:.1} ms, in an empty home {:.1} ms: {:.2}x",
        watcher.len(),
        median * 1e3,
        empty * 1e3,
        median / empty
    );
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
