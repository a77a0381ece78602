//! Hosts that are connected by pipes: the server on a runtime of its own, so that it can be killed, and
//! all others together on one. Both take turns, a tick each, in an order that the seed decides; who is
//! written to reads it with its next turn.
//!
//! While nobody has anything to do, turns become longer, up to the longest latency of a network: what is
//! then written by the second of the two arrives as late as it may there. Whoever is first and begins to
//! do something ends the turn with that tick.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::runtime::{Builder, RngSeed, Runtime, UnhandledPanic};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use super::{Ended, LATENCY_MAX, Serving, TICK};
use crate::machine::{PipesNet, Sockets, SplitMix, pass};
use crate::pipes::Pipes;
use crate::scenario::SERVER;

type Software = Box<dyn Fn() -> Serving>;

/// How many ticks the longest turn has.
const TURN_MAX: u32 = 10;
const _: () = assert!(TICK.as_millis() * TURN_MAX as u128 <= LATENCY_MAX.as_millis());

pub struct Together {
    server: Part,
    others: Part,
    pipes: Pipes,
    /// Whose turn is first in a tick.
    order: SplitMix,
    elapsed: Duration,
    /// How many ticks the next turn has at most.
    turn: u32,
    /// Every host that was asked for, in the order of its first mention.
    names: RefCell<Vec<String>>,
}

impl std::fmt::Debug for Together {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Together").field("elapsed", &self.elapsed).finish_non_exhaustive()
    }
}

/// Hosts that live and die with one runtime.
struct Part {
    software: BTreeMap<String, Software>,
    running: BTreeMap<String, JoinHandle<Ended>>,
    runtime: Option<Runtime>,
    seeds: SplitMix,
    activity: Arc<Activity>,
}

/// Whether anything was done in a turn.
#[derive(Debug, Default)]
struct Activity {
    seen: AtomicBool,
    first: Notify,
}

impl Activity {
    fn note(&self) {
        if !self.seen.swap(true, Ordering::Relaxed) {
            self.first.notify_one();
        }
    }

    fn is_seen(&self) -> bool {
        self.seen.load(Ordering::Relaxed)
    }
}

/// What activity means for a long turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Haste {
    /// The other can still hear of it in time.
    EndsIt,
    /// The other has had that time already.
    Waits,
}

/// How many ticks a time takes, at least one.
fn ticks(time: Duration) -> u32 {
    u32::try_from(time.as_nanos().div_ceil(TICK.as_nanos())).unwrap_or(u32::MAX).max(1)
}

/// Lets a turn of so many ticks pass. Returns how many it had.
async fn turn(ticks_max: u32, activity: &Activity, haste: Haste) -> u32 {
    let begin = Instant::now();
    let end = begin + TICK * ticks_max;
    if ticks_max == 1 || haste == Haste::Waits {
        sleep_until(end).await;
        return ticks_max;
    }
    tokio::select! {
        biased;
        () = sleep_until(end) => ticks_max,
        () = activity.first.notified() => {
            let had = ticks(begin.elapsed());
            sleep_until(begin + TICK * had).await;
            had
        }
    }
}

impl Together {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            server: Part::new(SplitMix::named(seed, "runtime of the server")),
            others: Part::new(SplitMix::named(seed, "runtime of the others")),
            pipes: Pipes::new(),
            order: SplitMix::named(seed, "turns"),
            elapsed: Duration::ZERO,
            turn: 1,
            names: RefCell::default(),
        }
    }

    pub(super) fn host(&mut self, name: &str, software: Software) {
        let part = self.part(name);
        part.software.insert(name.to_owned(), software);
        part.start(name);
    }

    pub(super) fn lookup(&self, name: &str) -> IpAddr {
        let mut names = self.names.borrow_mut();
        let known = names.iter().position(|known| known == name);
        let place = known.unwrap_or_else(|| {
            names.push(name.to_owned());
            names.len() - 1
        });
        let last = u8::try_from(place + 1).expect("a scenario has few hosts");
        IpAddr::V4(Ipv4Addr::new(192, 168, 0, last))
    }

    pub(super) fn sockets(&self) -> Sockets {
        Sockets::Pipes(PipesNet::new(self.pipes.clone()))
    }

    pub(super) fn step(&mut self, due: Option<Duration>) -> Result<(), String> {
        let [first, second] = if self.order.draw().is_multiple_of(2) {
            [&mut self.server, &mut self.others]
        } else {
            [&mut self.others, &mut self.server]
        };
        let until_due = due.map_or(TURN_MAX, |due| ticks(due.saturating_sub(self.elapsed)));
        let ticks = first.take_turn(self.elapsed, self.turn.min(until_due), Haste::EndsIt)?;
        second.take_turn(self.elapsed, ticks, Haste::Waits)?;
        self.elapsed += TICK * ticks;
        let idle = !first.activity.is_seen() && !second.activity.is_seen();
        // Whatever was due gives somebody something to do.
        self.turn = if idle && ticks < until_due { (self.turn * 2).min(TURN_MAX) } else { 1 };
        Ok(())
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.elapsed
    }

    pub(super) fn crash(&mut self, name: &str) {
        assert_eq!(name, SERVER, "the others are on one runtime, which is never killed");
        self.server.die();
    }

    pub(super) fn bounce(&mut self, name: &str) {
        assert_eq!(name, SERVER, "the others are never started again");
        self.server.die();
        self.server.start(name);
    }

    pub(super) fn is_running(&self, name: &str) -> bool {
        [&self.server, &self.others].iter().any(|part| part.running.contains_key(name))
    }

    fn part(&mut self, name: &str) -> &mut Part {
        if name == SERVER { &mut self.server } else { &mut self.others }
    }
}

impl Part {
    fn new(seeds: SplitMix) -> Self {
        let (software, running) = (BTreeMap::new(), BTreeMap::new());
        Self { software, running, runtime: None, seeds, activity: Arc::default() }
    }

    fn start(&mut self, name: &str) {
        let software = self.software[name]();
        let seeds = &mut self.seeds;
        let activity = &self.activity;
        let runtime = self.runtime.get_or_insert_with(|| runtime(seeds.draw(), activity));
        self.running.insert(name.to_owned(), runtime.spawn(software));
    }

    /// With all it was doing: nothing of it is polled again.
    fn die(&mut self) {
        self.running.clear();
        self.runtime = None;
    }

    /// One that has ended stands still, as a process that is gone does. Returns how many ticks have passed.
    fn take_turn(
        &mut self,
        elapsed: Duration,
        ticks_max: u32,
        haste: Haste,
    ) -> Result<u32, String> {
        self.activity.seen.store(false, Ordering::Relaxed);
        let Some(runtime) = self.runtime.as_ref().filter(|_| !self.running.is_empty()) else {
            return Ok(ticks_max);
        };
        let activity = &*self.activity;
        let turn = turn(ticks_max, activity, haste);
        let turn = || runtime.block_on(async { pass(elapsed, turn).await });
        let had = catch_unwind(AssertUnwindSafe(turn));
        let had = had.map_err(|_| "a host has panicked".to_owned())?;
        for (name, ended) in self.running.extract_if(.., |_, host| host.is_finished()) {
            let ended = runtime.block_on(ended).map_err(|error| format!("{name}: {error}"))?;
            ended.map_err(|error| format!("{name}: {error}"))?;
        }
        Ok(had)
    }
}

fn runtime(seed: u64, activity: &Arc<Activity>) -> Runtime {
    let activity = Arc::clone(activity);
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .rng_seed(RngSeed::from_bytes(&seed.to_le_bytes()))
        .unhandled_panic(UnhandledPanic::ShutdownRuntime)
        .on_before_task_poll(move |_| activity.note())
        .build();
    runtime.expect("a runtime without a network needs nothing of the machine")
}
