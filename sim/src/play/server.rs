//! The server of a scenario: `nexus3`'s own, unchanged, on a simulated machine that it believes in.
//! It can be stopped, killed and started again; its disk stays.

use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nexus3::config::{self, Loaded, Source};
use nexus3::logs::Detail;
use nexus3::policy::ceiling::Yolo;
use nexus3::server::{Access, LogSettings, Resume, Server, Settings};
use nexus3::world::World;
use secrecy::SecretString;

use super::exchanges::Watched;
use super::observed::Observed;
use super::programs;
use super::story::Happening;
use super::transcript::Transcript;
use crate::disk::{Disk, Item, View};
use crate::hosts::now;
use crate::machine::{Acting, HOME, Machine, Raised, Sockets, SplitMix, VirtualClock};
use crate::mcp;
use crate::scenario::{SERVER, Scenario, ServeFlag};

/// Where the server finds its models with `wire = "script"`.
pub const SCRIPT: &str = "/scenario.toml";

/// What stays of a server when its process ends, and what is known of the process.
pub struct ServerHost {
    seed: u64,
    config: String,
    cwd: PathBuf,
    env: BTreeMap<String, String>,
    /// The programs of all its starts.
    pub programs: Arc<Acting>,
    /// Those of its MCP servers.
    pub servers: Arc<Acting>,
    pub disk: Disk,
    pub clock: VirtualClock,
    /// Counts the server's connections over all its starts.
    pub net: Sockets,
    transcript: Transcript,
    observed: Observed,
    /// Held for one look at a time; nothing is awaited under it.
    process: Mutex<Process>,
}

/// What there is around a server: its machine, and who listens.
#[derive(Debug)]
pub struct Around {
    pub clock: VirtualClock,
    pub disk: Disk,
    pub net: Sockets,
    pub transcript: Transcript,
    pub observed: Observed,
    pub mcp: Vec<Arc<mcp::Scripted>>,
}

#[derive(Debug, Default)]
pub struct Process {
    pub flags: Vec<ServeFlag>,
    /// How often it was started.
    pub starts: u64,
    pub state: ProcessState,
    pub token: Option<SecretString>,
    pub signals: Arc<Raised>,
    /// Every token there was, none of which may be told.
    pub secrets: Vec<SecretString>,
    /// Why the last start failed.
    pub refused: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProcessState {
    /// It has not started, or was killed.
    #[default]
    Down,
    Up,
    /// It ended by itself, as it was asked to.
    Stopped,
}

impl std::fmt::Debug for ServerHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerHost").field("process", &self.process).finish_non_exhaustive()
    }
}

impl ServerHost {
    pub fn new(scenario: &Scenario, seed: u64, models: &str, around: Around) -> Self {
        let Around { clock, disk, net, transcript, observed, mcp } = around;
        let process = Process { flags: scenario.serve.clone(), ..Process::default() };
        let (programs, told) = (&scenario.programs, (observed.clone(), transcript.clone()));
        Self {
            seed,
            config: scenario.config_json(models).to_string(),
            cwd: scenario.cwd.clone(),
            env: environment(&scenario.env),
            programs: Arc::new(programs::acting(&disk, programs, told.0, told.1)),
            servers: Arc::new(programs::servers(&disk, mcp)),
            disk,
            clock,
            net,
            transcript,
            observed,
            process: Mutex::new(process),
        }
    }

    pub fn process(&self) -> MutexGuard<'_, Process> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Processes that somebody has to end. Those of MCP servers are there as long as the server is.
    pub fn processes(&self, state: ProcessState) -> usize {
        let of_servers = match state {
            ProcessState::Stopped => self.servers.running(),
            ProcessState::Down | ProcessState::Up => 0,
        };
        self.programs.running() + of_servers
    }

    /// What its starts wrote down of themselves, those that were to.
    pub fn recordings(&self) -> Vec<String> {
        let starts = self.process().starts;
        let mut files = self.disk.tree(View::Now);
        let written = (1..=starts).filter_map(|start| match files.remove(&recording(start))? {
            Item::File { content, .. } => String::from_utf8(content).ok(),
            Item::Dir { .. } | Item::Link { .. } => None,
        });
        written.collect()
    }

    pub fn is_up(&self) -> bool {
        self.process().state == ProcessState::Up
    }

    /// Runs the server from its start to its end. Called again for every start.
    pub async fn live(self: Arc<Self>) {
        let (signals, start) = {
            let mut process = self.process();
            process.starts += 1;
            process.signals = Arc::default();
            process.refused = None;
            process.state = ProcessState::Down;
            (Arc::clone(&process.signals), process.starts)
        };
        let world = self.world(signals, start);
        let bound = match self.settings(&world) {
            Ok(settings) => Server::bind(world, settings).await.map_err(|error| told(&error)),
            Err(problem) => Err(problem),
        };
        match bound {
            Ok(server) => {
                self.transcript.tell(now(), SERVER, "listens", || Happening::Listens);
                {
                    let mut process = self.process();
                    process.token = server.token().cloned();
                    let token = process.token.clone();
                    process.secrets.extend(token);
                    process.state = ProcessState::Up;
                }
                server.run().await;
                if self.disk.is_off() {
                    return;
                }
                self.transcript.note(now(), SERVER, "has stopped");
                self.process().state = ProcessState::Stopped;
            }
            // A dead machine says nothing, here and above.
            Err(_) if self.disk.is_off() => {}
            Err(problem) => {
                self.transcript.note(now(), SERVER, &format!("cannot start: {problem}"));
                self.process().refused = Some(problem);
            }
        }
    }

    /// What `nexus3 serve` would start with: the scenario's `[config]` stands for the home's file.
    fn settings(&self, world: &World) -> Result<Settings, String> {
        let base = Source { name: "config.json".to_owned(), text: self.config.clone() };
        let loaded = config::gather(world, HOME.as_ref(), Some(base), Vec::new());
        let Loaded { config, notices, .. } = loaded.map_err(|error| error.to_string())?;
        for notice in notices {
            self.transcript.note(now(), SERVER, &notice.to_string());
        }
        let flags = self.process().flags.clone();
        let has = |flag| flags.contains(&flag);
        Ok(Settings {
            config,
            home: PathBuf::from(HOME),
            access: if has(ServeFlag::NoAuth) { Access::Everybody } else { Access::TokenHolders },
            yolo: if has(ServeFlag::AllowYolo) { Yolo::Allowed } else { Yolo::Refused },
            resume: if has(ServeFlag::Resume) { Resume::AtStart } else { Resume::WhenAsked },
            logs: LogSettings {
                dir: PathBuf::from(HOME).join("logs"),
                detail: Detail { verbose: has(ServeFlag::Verbose), raw: has(ServeFlag::RawLog) },
            },
            record: has(ServeFlag::Record).then(|| recording(self.process().starts)),
        })
    }

    fn world(&self, signals: Arc<Raised>, start: u64) -> World {
        // A process that is started again draws other numbers than the one before.
        let seed = SplitMix::named(self.seed, &format!("server {start}")).draw();
        let machine = Machine {
            net: Arc::new(self.net.clone()),
            clock: self.clock.clone(),
            disk: self.disk.clone(),
            programs: Arc::new(programs::All {
                servers: Arc::clone(&self.servers),
                others: Arc::clone(&self.programs),
            }),
            signals,
            vars: self.env.clone(),
        };
        let world = machine.world_in(&self.cwd, seed);
        let (observed, transcript) = (self.observed.clone(), self.transcript.clone());
        let http = Arc::new(Watched::new(world.http, start, observed, transcript));
        World { http, ..world }
    }
}

/// Where `--record` of a scenario writes to. A recording replaces none, so each further start has a file
/// of its own.
fn recording(start: u64) -> PathBuf {
    let name = match start {
        1 => "recording.toml".to_owned(),
        _ => format!("recording-{start}.toml"),
    };
    PathBuf::from(HOME).join(name)
}

/// What the server is started with: a scenario's programs are found unless it wants otherwise.
fn environment(given: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let path = ("PATH".to_owned(), "/usr/bin".to_owned());
    std::iter::once(path).chain(given.clone()).collect()
}

/// What went wrong and why, as `nexus3 serve` prints it but for the words of libraries: those change
/// with their versions, and a transcript does not.
fn told(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        if error.is::<rusqlite::Error>() {
            break;
        }
        let machine = error.downcast_ref::<io::Error>();
        text.push_str(": ");
        text.push_str(&machine.map_or_else(|| error.to_string(), words));
        cause = error.source();
    }
    text
}

fn words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull => "the disk is full".to_owned(),
        io::ErrorKind::ReadOnlyFilesystem => "the disk is read-only".to_owned(),
        // The name is part of the language.
        other => format!("{other:?}"),
    }
}
