//! Hosts that are connected by pipes: the server on a runtime of its own, so that it can be killed, and
//! all others together on one. Both take turns, a tick each, in an order that the seed decides; who is
//! written to reads it with its next turn.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use tokio::runtime::{Builder, RngSeed, Runtime, UnhandledPanic};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::{Ended, Serving, TICK};
use crate::machine::{PipesNet, Sockets, SplitMix, pass};
use crate::pipes::Pipes;
use crate::scenario::SERVER;

type Software = Box<dyn Fn() -> Serving>;

pub struct Together {
    server: Part,
    others: Part,
    pipes: Pipes,
    /// Whose turn is first in a tick.
    order: SplitMix,
    elapsed: Duration,
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
}

impl Together {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            server: Part::new(SplitMix::named(seed, "runtime of the server")),
            others: Part::new(SplitMix::named(seed, "runtime of the others")),
            pipes: Pipes::new(),
            order: SplitMix::named(seed, "turns"),
            elapsed: Duration::ZERO,
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

    pub(super) fn step(&mut self) -> Result<(), String> {
        let parts = if self.order.draw().is_multiple_of(2) {
            [&mut self.server, &mut self.others]
        } else {
            [&mut self.others, &mut self.server]
        };
        for part in parts {
            part.take_turn(self.elapsed)?;
        }
        self.elapsed += TICK;
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
        Self { software, running, runtime: None, seeds }
    }

    fn start(&mut self, name: &str) {
        let software = self.software[name]();
        let seeds = &mut self.seeds;
        let runtime = self.runtime.get_or_insert_with(|| runtime(seeds.draw()));
        self.running.insert(name.to_owned(), runtime.spawn(software));
    }

    /// With all it was doing: nothing of it is polled again.
    fn die(&mut self) {
        self.running.clear();
        self.runtime = None;
    }

    /// One that has ended stands still, as a process that is gone does.
    fn take_turn(&mut self, elapsed: Duration) -> Result<(), String> {
        let Some(runtime) = self.runtime.as_ref().filter(|_| !self.running.is_empty()) else {
            return Ok(());
        };
        let turn = || runtime.block_on(async { pass(elapsed, sleep(TICK)).await });
        catch_unwind(AssertUnwindSafe(turn)).map_err(|_| "a host has panicked".to_owned())?;
        for (name, ended) in self.running.extract_if(.., |_, host| host.is_finished()) {
            let ended = runtime.block_on(ended).map_err(|error| format!("{name}: {error}"))?;
            ended.map_err(|error| format!("{name}: {error}"))?;
        }
        Ok(())
    }
}

fn runtime(seed: u64) -> Runtime {
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .rng_seed(RngSeed::from_bytes(&seed.to_le_bytes()))
        .unhandled_panic(UnhandledPanic::ShutdownRuntime)
        .build();
    runtime.expect("a runtime without a network needs nothing of the machine")
}
