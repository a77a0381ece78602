//! The hosts of a run and what can be done to them from outside: links cut, processes killed, disks
//! broken. It decides nothing; `director` and `faults` do.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use nexus3::home::DEFAULT_PORT;
use nexus3::provider::script::Script;

use super::client::{Client, Desk};
use super::crash::Loss;
use super::models::Watching;
use super::observed::{Observation, Observed};
use super::observer::{Door, Heard, Observer};
use super::server::{Around, ProcessState, SCRIPT, ServerHost};
use super::story::{Happening, Keep};
use super::transcript::Transcript;
use super::{CHECKER, OBSERVER, checker, earlier, files};
use crate::disk::{CrashMode, Disk, Item};
use crate::hosts::{self, Hosts, LATENCY_MAX, LATENCY_MIN, now};
use crate::machine::{self, HOME, SplitMix, Traffic, VirtualClock, current_job};
use crate::mcp;
use crate::model::{self, Scripted};
use crate::scenario::{MODEL, SERVER, Scenario, Wire, mcp_host};

pub struct Theatre {
    hosts: Hosts,
    pub server: Arc<ServerHost>,
    pub desks: BTreeMap<String, Arc<Desk>>,
    pub checker: Arc<checker::Desk>,
    pub watching: Arc<Watching>,
    pub transcript: Transcript,
    /// What was observed and the invariants have not heard of.
    pub observed: Observed,
    /// The events that steps and faults wait for.
    pub heard: Heard,
    /// Every message of server, models and clients.
    pub traffic: Traffic,
    /// The host of MCP servers, where there is one.
    mcp: Option<&'static str>,
    /// Where it is reached.
    pub mcp_root: String,
    /// What a power cut leaves is drawn from here.
    chance: SplitMix,
}

impl std::fmt::Debug for Theatre {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Theatre").field("server", &self.server).finish_non_exhaustive()
    }
}

impl Theatre {
    pub fn open(scenario: &Scenario, seed: u64, keep: Keep) -> Self {
        machine::set_between_ticks(Duration::ZERO);
        let transcript = Transcript::keeping(keep);
        let mut hosts = Hosts::new(scenario.lane, seed);
        let clock = VirtualClock::new(now);
        let disk = {
            let clock = clock.clone();
            Disk::new(move || nexus3::world::Clock::now(&clock))
        };
        let empty = Item::Dir { mode: 0o755 };
        disk.put(&scenario.cwd, empty).expect("an empty disk takes a directory");
        // Logs may be lost, and are written at every turn.
        disk.set_unimportant(&Path::new(HOME).join("logs"));
        furnish(&disk, scenario, seed);
        let script = Script::new(scenario.models.clone());
        let script = script.expect("entries were checked when they were read");
        let models = Arc::new(Scripted::new(script, scenario.aliases()));
        let (observed, traffic, heard) = (watched(&disk), Traffic::default(), Heard::default());
        let around = (transcript.clone(), observed.clone(), heard.clone());
        let watching = Arc::new(Watching::new(&scenario.models, around));
        // The model host comes first: the server's configuration needs its address.
        let watcher: Arc<dyn model::Observer> = Arc::clone(&watching) as _;
        let root = hosts::add_models(&mut hosts, &models, &watcher, &traffic);
        let where_models_are = match scenario.wire {
            Wire::Openai | Wire::Anthropic => root,
            Wire::Script => SCRIPT.to_owned(),
        };
        let (mcp, mcp_root) =
            mcp_servers(&mut hosts, scenario, &disk, (&transcript, &observed, &traffic));
        let around = Around {
            clock,
            net: {
                let disk = disk.clone();
                hosts.sockets(SERVER, &traffic).until(move || disk.is_off())
            },
            disk,
            transcript: transcript.clone(),
            observed: observed.clone(),
            mcp,
        };
        let server = Arc::new(ServerHost::new(scenario, seed, &where_models_are, around));
        {
            let server = Arc::clone(&server);
            hosts.host(SERVER, move || {
                let server = Arc::clone(&server);
                async move {
                    server.live().await;
                    Ok(())
                }
            });
        }
        let mut theatre = Self {
            hosts,
            server,
            desks: BTreeMap::new(),
            checker: Arc::default(),
            watching,
            transcript,
            observed,
            heard,
            traffic,
            mcp: mcp_host(&scenario.mcp),
            mcp_root,
            chance: SplitMix::named(seed, "crash"),
        };
        for name in scenario.clients() {
            theatre.add_client(name);
        }
        theatre.add_checker();
        if scenario.waits_for_events() {
            theatre.add_observer();
        }
        theatre
    }

    fn add_client(&mut self, name: &str) {
        let desk = Arc::new(Desk::default());
        self.desks.insert(name.to_owned(), Arc::clone(&desk));
        let client = Client {
            name: name.to_owned(),
            desk,
            net: Arc::new(self.hosts.sockets(name, &self.traffic)),
            now: Arc::new(now),
            transcript: self.transcript.clone(),
            observed: self.observed.clone(),
        };
        self.hosts.host(name, move || {
            let client = client.clone();
            async move {
                client.live().await;
                Ok(())
            }
        });
    }

    fn add_observer(&mut self) {
        let server = Arc::clone(&self.server);
        let observer = Observer {
            net: Arc::new(self.hosts.quiet_sockets()),
            address: self.server_address(),
            door: Arc::new(move || {
                let process = server.process();
                let (server_start, token) = (process.starts, process.token.clone());
                drop(process);
                server.is_up().then_some(Door { server_start, token })
            }),
            observed: self.observed.clone(),
            heard: self.heard.clone(),
        };
        self.hosts.host(OBSERVER, move || {
            let observer = observer.clone();
            async move {
                observer.live().await;
                Ok(())
            }
        });
        self.hosts.change_links(|links| links.set_link_latency(SERVER, OBSERVER, Duration::ZERO));
    }

    fn add_checker(&mut self) {
        let (desk, net) = (Arc::clone(&self.checker), self.hosts.quiet_sockets());
        self.hosts.host(CHECKER, move || {
            let (desk, net) = (Arc::clone(&desk), net.clone());
            async move {
                checker::live(desk, net).await;
                Ok(())
            }
        });
    }

    /// Lets one tick of virtual time pass. An error is a panic or a failure inside a host.
    pub fn step(&mut self, due: impl FnOnce() -> Option<Duration>) -> Result<(), String> {
        let stepped = self.hosts.step(due);
        machine::set_between_ticks(self.elapsed());
        stepped
    }

    pub fn elapsed(&self) -> Duration {
        self.hosts.elapsed()
    }

    pub fn address(&self, host: &str) -> IpAddr {
        self.hosts.lookup(host)
    }

    /// Where clients reach the server.
    pub fn server_address(&self) -> SocketAddr {
        SocketAddr::new(self.address(SERVER), DEFAULT_PORT)
    }

    pub fn note(&self, who: &str, what: &str) {
        self.transcript.note(self.elapsed(), who, what);
    }

    /// A line about something that goes wrong.
    pub fn note_fault(&self, what: &str, happening: Happening) {
        self.transcript.tell(self.elapsed(), "fault", what, || happening);
    }

    /// Kills a host's process: its sockets close, its disk keeps what was written.
    pub fn kill(&mut self, host: &str) {
        self.die(host, |theatre| theatre.server.disk.kill());
    }

    /// Cuts a host's power: nobody hears of it, and the disk loses what was not synced.
    pub fn cut_power(&mut self, host: &str) {
        self.partition_from_all(host);
        self.die(host, |theatre| {
            let chance = &mut theatre.chance;
            theatre.server.disk.crash(&mut || chance.draw(), CrashMode::Torn);
        });
    }

    /// The server's machine has died at a durable point: nothing of it is left but its disk. Those it
    /// was connected to learn of it, as they do from a machine that is back and knows of nothing.
    pub fn die_at_point(&mut self, loss: Loss, chance: &mut SplitMix) {
        let mode = match loss {
            Loss::Process => None,
            Loss::Unsynced => Some(CrashMode::LoseAll),
            Loss::Torn => Some(CrashMode::Torn),
        };
        self.die(SERVER, |theatre| match mode {
            None => theatre.server.disk.kill(),
            Some(mode) => theatre.server.disk.crash(&mut || chance.draw(), mode),
        });
    }

    /// The power goes first, so that no destructor makes durable what was not.
    fn die(&mut self, host: &str, disk: impl FnOnce(&mut Self)) {
        if host == SERVER {
            self.server.disk.power_off();
        }
        self.hosts.crash(host);
        if host == SERVER {
            disk(self);
            self.server.disk.power_on();
            let mut process = self.server.process();
            // One that was stopped before is not there to be killed.
            if process.state == ProcessState::Up {
                process.state = ProcessState::Down;
            }
            // What it said of its start was said after its death.
            process.refused = None;
        } else if let Some(desk) = self.desks.get(host) {
            desk.lost();
            let left = || Happening::Left { told: "is gone" };
            self.transcript.happened(self.elapsed(), host, left);
        }
    }

    /// Starts what was killed or has ended.
    pub fn start(&mut self, host: &str) {
        self.repair_to_all(host);
        if host == SERVER {
            // Why an earlier start failed says nothing about this one.
            self.server.process().refused = None;
        }
        self.hosts.bounce(host);
    }

    pub fn is_running(&mut self, host: &str) -> bool {
        self.hosts.is_running(host)
    }

    pub fn partition(&self, one: &str, other: &str) {
        self.hosts.change_links(|links| links.partition(one, other));
    }

    pub fn repair(&self, one: &str, other: &str) {
        self.hosts.change_links(|links| links.repair(one, other));
    }

    pub fn hold(&self, one: &str, other: &str) {
        self.hosts.change_links(|links| links.hold(one, other));
    }

    pub fn release(&self, one: &str, other: &str) {
        self.hosts.change_links(|links| links.release(one, other));
    }

    /// Makes a link slower by so much.
    pub fn delay(&self, one: &str, other: &str, by: Duration) {
        self.hosts.change_links(|links| links.set_link_latency(one, other, LATENCY_MAX + by));
    }

    pub fn end_delay(&self, one: &str, other: &str) {
        self.hosts.change_links(|links| {
            // Sets the shortest as well, which would otherwise stay above the longest.
            links.set_link_latency(one, other, LATENCY_MIN);
            links.set_link_max_message_latency(one, other, LATENCY_MAX);
        });
    }

    /// Every other host.
    pub fn others(&self, host: &str) -> Vec<String> {
        let hosts = [SERVER, MODEL].into_iter().chain(self.mcp).map(str::to_owned);
        hosts.chain(self.desks.keys().cloned()).filter(|other| other != host).collect()
    }

    fn partition_from_all(&self, host: &str) {
        for other in self.others(host) {
            self.partition(host, &other);
        }
    }

    fn repair_to_all(&self, host: &str) {
        for other in self.others(host) {
            self.repair(host, &other);
        }
    }

    /// Paths that a clean end does not leave behind.
    pub fn left_behind(&self) -> Vec<String> {
        let tree = self.server.disk.tree(crate::disk::View::Now);
        // Logs of temporary agents lie in directories whose names begin with a dot.
        let logs = format!("{HOME}/logs");
        let ours = tree.keys().filter(|path| files::is_below(path, HOME));
        let ours = ours.filter(|path| !files::is_below(path, &logs));
        ours.filter(|path| {
            let is_temporary = path.file_name().is_some_and(|name| {
                path.as_os_str() != HOME && name.to_string_lossy().starts_with('.')
            });
            is_temporary || path.extension().is_some_and(|extension| extension == "token")
        })
        .map(|path| path.display().to_string())
        .collect()
    }
}

/// Has the invariants hear of what is used on the disk, but for what is the server's own: that it uses
/// all the time, and only its token is a secret to those who use files.
fn watched(disk: &Disk) -> Observed {
    let observed = Observed::default();
    let seen = observed.clone();
    disk.watch(move |operation| {
        let is_token = operation.path.extension().is_some_and(|extension| extension == "token");
        if is_token || !files::is_below(operation.path, HOME) {
            let (kind, path) = (operation.kind, operation.path.to_owned());
            seen.add(Observation::Touched { kind, path, job: current_job() });
        }
    });
    observed
}

/// Prepares the scenario's MCP servers, and writes where they are. Returns the URL of their host, too.
fn mcp_servers(
    hosts: &mut Hosts,
    scenario: &Scenario,
    disk: &Disk,
    (transcript, observed, traffic): (&Transcript, &Observed, &Traffic),
) -> (Vec<Arc<mcp::Scripted>>, String) {
    let scripted = |server| mcp::Scripted::new(server, transcript, observed);
    let servers: Vec<_> = scenario.mcp.iter().map(scripted).collect();
    let root = hosts::add_mcp(hosts, &servers, traffic);
    files::configure_mcp(disk, servers.iter().filter_map(|server| server.configuration(&root)));
    (servers, root)
}

/// Puts on the disk what is there at the start.
fn furnish(disk: &Disk, scenario: &Scenario, seed: u64) {
    files::put(disk, &scenario.files).expect("a scenario's files can be put on an empty disk");
    earlier::put(disk, &scenario.agents, seed).expect("an empty disk takes a database");
    put_script(disk, scenario);
}

/// Where models are played by the server, it reads them from its disk.
fn put_script(disk: &Disk, scenario: &Scenario) {
    if scenario.wire == Wire::Script {
        let content = scenario.text.clone().into_bytes();
        let script = Item::File { content, mode: 0o644 };
        disk.put(SCRIPT.as_ref(), script).expect("a new disk takes a file");
    }
}
