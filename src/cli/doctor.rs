//! `nexus3 doctor`: looks for what keeps a server from working, and says what to do. It changes nothing
//! but a file of its own that it removes again. Providers are asked whether they take their key, models
//! nothing.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use futures_util::future::join_all;
use serde::Serialize;
use serde_json::json;

use super::config::LookedAt;
use super::doctor_mcp::of_mcp;
use super::{Failed, config, home, output};
use crate::causes;
use crate::client::{Detection, NexusClient};
use crate::config::words::shell_word;
use crate::config::{Config, Loaded, NetworkConfig, Notice, ProviderConfig};
use crate::home::{self as server_home, HomeError, Lock};
use crate::provider::{self, Fault, Models, ProbeError, Probed};
use crate::world::real::Landlock;
use crate::world::{Access, Dir, Use, World};

/// Looks for what keeps a server from working here, and says what to do about it.
///
/// Each provider is asked whether it takes its key, which costs nothing. The exit code is 1 where something is wrong.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    nexus3 doctor\n  \
    nexus3 doctor --config team.json --json")]
pub struct Arguments {
    #[command(flatten)]
    looked_at: LookedAt,
}

/// What was looked at, and what was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub check: &'static str,
    pub ok: bool,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Finding {
    pub(super) fn fine(check: &'static str, message: impl Into<String>) -> Self {
        Self { check, ok: true, message: message.into(), hint: None }
    }

    pub(super) fn wrong(
        check: &'static str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self { check, ok: false, message: message.into(), hint: Some(hint.into()) }
    }
}

pub(super) async fn run(world: &World, arguments: &Arguments) -> Result<(), Failed> {
    let LookedAt { home: given, config, json } = &arguments.looked_at;
    let home = home(world, given.clone())?;
    let findings = examine(world, &home, config.as_deref(), Landlock::here()).await;
    let healthy = findings.iter().all(|finding| finding.ok);
    if *json {
        output::json(&json!({"ok": healthy, "findings": findings}));
    } else {
        for Finding { check, ok, message, hint } in findings {
            let state = if ok { "ok    " } else { "WRONG " };
            output::line(output::hung(state, &format!("{check}: {message}")));
            if let Some(hint) = hint {
                output::line(output::hung("      ", &format!("hint: {hint}")));
            }
        }
    }
    if healthy { Ok(()) } else { Err(Failed::Silently) }
}

/// Everything there is to look at, in the order in which a server would meet it.
pub async fn examine(
    world: &World,
    home: &Path,
    given: Option<&Path>,
    landlock: Landlock,
) -> Vec<Finding> {
    let mut findings = of_home(world, home);
    match config::load(world, home, given, Vec::new()) {
        Ok(loaded) => {
            findings.extend(of_config(&loaded));
            findings.extend(of_providers(world, &loaded.config).await);
            findings.extend(of_mcp(world, &loaded.config));
            findings.push(of_port(world, &loaded.config).await);
        }
        Err(error) => findings.push(Finding::wrong(
            "configuration",
            format!("{error:#}"),
            "mend it, then run `nexus3 config show`",
        )),
    }
    findings.push(match landlock {
        Landlock::Present => Finding::fine("landlock", "the kernel holds programs to their paths"),
        Landlock::Missing => Finding::wrong(
            "landlock",
            "this kernel has no Landlock: programs of agents can read what you can",
            "use a kernel of 5.13 or later with Landlock enabled, and until then no agent that runs \
             programs",
        ),
    });
    findings
}

/// The directory itself, whether it can be written, its tokens and its lock.
fn of_home(world: &World, home: &Path) -> Vec<Finding> {
    let shown = shell_word(home);
    let dir = match world.fs.dir(home) {
        Ok(dir) => dir,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return vec![Finding::fine("home", format!("{shown} is not there yet"))];
        }
        Err(error) => {
            let message = format!("{shown} cannot be used: {error}");
            return vec![Finding::wrong("home", message, "name another place with --home")];
        }
    };
    let mut findings = vec![match server_home::Home::prepare(world.fs.as_ref(), home) {
        Ok(_) => Finding::fine("home", format!("{shown} is yours alone")),
        Err(HomeError::Open { .. }) => {
            let hint = format!("run `chmod 700 {shown}`");
            Finding::wrong("home", format!("others can enter {shown}"), hint)
        }
        Err(error) => {
            Finding::wrong("home", causes::told(&error), "name another place with --home")
        }
    }];
    findings.push(of_disk(world, dir.as_ref(), &shown));
    findings.extend(of_tokens(dir.as_ref(), home));
    findings
}

/// As much as the server's database grows by at a time.
const TRIED_BYTES: usize = 256 * 1024;
const TRIED_NAME_HEX: usize = 16;

fn of_disk(world: &World, dir: &dyn Dir, home: &str) -> Finding {
    let name = format!(".doctor.{}", world.chance.hex(Use::TempName, TRIED_NAME_HEX));
    let name = Path::new(&name);
    let tried = dir.open(name, Access::CreateNew { mode: 0o600 }).and_then(|file| {
        let written = file.write_at(&vec![0; TRIED_BYTES], 0).and_then(|()| file.sync());
        // What was written is gone in either case; a disk that failed may fail here as well.
        let removed = dir.remove_file(name);
        written.and(removed)
    });
    match tried {
        Ok(()) => Finding::fine("disk", "there is room to write"),
        Err(error) => match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Finding::wrong(
                "disk",
                format!("the disk of {home} is full"),
                "make room there, or name another place with --home",
            ),
            io::ErrorKind::ReadOnlyFilesystem => Finding::wrong(
                "disk",
                format!("the disk of {home} is read-only"),
                "name another place with --home",
            ),
            _ => Finding::wrong(
                "disk",
                format!("{home} cannot be written: {error}"),
                "name another place with --home",
            ),
        },
    }
}

/// Tokens that others can read, and those of a server that is no more.
fn of_tokens(dir: &dyn Dir, home: &Path) -> Vec<Finding> {
    let names = dir.list().unwrap_or_default().into_iter().map(|entry| PathBuf::from(entry.name));
    let tokens: Vec<PathBuf> = names.filter(|name| server_home::is_token(name)).collect();
    let is_open = |name: &&PathBuf| dir.stat(name).is_ok_and(|stat| stat.mode & 0o077 != 0);
    let mut findings: Vec<Finding> = tokens
        .iter()
        .filter(is_open)
        .map(|name| {
            let path = shell_word(&home.join(name));
            let message = format!("others can read the token file {path}");
            Finding::wrong("token", message, format!("run `chmod 600 {path}`"))
        })
        .collect();
    findings.push(match server_home::lock(dir) {
        Lock::Held { holder } => Finding::fine("lock", format!("a server uses the home: {holder}")),
        Lock::Free { .. } if tokens.is_empty() => Finding::fine("lock", "no server uses the home"),
        Lock::Free { holder } => Finding::wrong(
            "lock",
            format!("a server died and left its lock and its token behind ({holder})"),
            "start a server: it takes both away, and closes what was left open",
        ),
    });
    findings
}

/// What was left out of the configuration.
fn of_config(loaded: &Loaded) -> Vec<Finding> {
    let mut findings: Vec<Finding> = loaded
        .notices
        .iter()
        .map(|notice| match notice {
            Notice::Untrusted { .. } => {
                Finding::wrong("trust", notice.to_string(), "or go on without it")
            }
            Notice::NoTrust { .. } => {
                Finding::wrong("trust", notice.to_string(), "then look at `nexus3 trust --list`")
            }
            Notice::UnknownVariable { .. }
            | Notice::Unreadable { .. }
            | Notice::UnusableServer { .. } => {
                Finding::wrong("configuration", notice.to_string(), "mend it, or remove it")
            }
        })
        .collect();
    if findings.is_empty() {
        findings.push(Finding::fine("configuration", "it is read without complaint"));
    }
    findings
}

/// Each provider by itself, so that one that cannot be used does not hide the next; all at once, since
/// some may not answer.
async fn of_providers(world: &World, config: &Config) -> Vec<Finding> {
    let providers = provider::in_use(world, config);
    let network = &config.network;
    let asked =
        providers.iter().map(|(name, provider)| of_provider(world, name, provider, network));
    join_all(asked).await
}

async fn of_provider(
    world: &World,
    name: &str,
    config: &ProviderConfig,
    network: &NetworkConfig,
) -> Finding {
    let mut alone = Config { network: network.clone(), ..Config::default() };
    alone.providers.insert(name.to_owned(), config.clone());
    let see = format!("see `providers.{name}` in `nexus3 config show`");
    if let Err(error) = Models::new(world, &alone, None) {
        return Finding::wrong("provider", causes::told(&error), see);
    }
    match provider::probe(world, name, config, network).await {
        Ok(Probed::Inside) => Finding::fine("provider", format!("`{name}` is built in")),
        Ok(Probed::Welcome) => Finding::fine("provider", format!("`{name}` lets us in")),
        Ok(Probed::Unclear) => {
            let told = format!("`{name}` answers, and does not tell whether it lets us in");
            Finding::fine("provider", told)
        }
        Err(ProbeError::Unusable(error)) => Finding::wrong("provider", causes::told(&error), see),
        Err(ProbeError::Failed(error)) => {
            let hint = match error.fault {
                Fault::Auth => "put a key there that it takes, then look again",
                Fault::Status
                | Fault::Connect
                | Fault::Timeout
                | Fault::Stall
                | Fault::Reset
                | Fault::Eof
                | Fault::ErrorInStream
                | Fault::BadJson
                | Fault::Empty => "see whether it runs and is where `base_url` says",
            };
            Finding::wrong("provider", error.message, hint)
        }
    }
}

async fn of_port(world: &World, config: &Config) -> Finding {
    let address = SocketAddr::new(config.server.host, config.server.port);
    let client = NexusClient::on(world, address, None);
    let hint = "choose another port with `serve --port` or `server.port`";
    match client.detect().await {
        Detection::NexusServer => Finding::fine("port", format!("a server answers at {address}")),
        Detection::NoServer => Finding::fine("port", format!("{address} is free")),
        Detection::OtherService => {
            Finding::wrong("port", format!("another service answers at {address}"), hint)
        }
        Detection::Timeout | Detection::Error => {
            Finding::wrong("port", format!("something at {address} does not answer"), hint)
        }
    }
}
