//! `discover`: which of many ports have a server, whether its token is here, and what runs on it.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use futures_util::stream::{self, StreamExt};
use serde::Serialize;
use serde_json::json;
use tokio::time::timeout;

use crate::cli::connection::Flags;
use crate::cli::{Failed, output};
use crate::client::{Detection, NexusClient};
use crate::world::World;

const AT_ONCE: usize = 50;
const EACH_MAX: Duration = Duration::from_millis(500);

/// Looks for servers on many ports; exit code 3 where there is none
///
/// Without --ports: the usual one, and those whose token is in the home.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    nexus3 rpc discover\n  \
    nexus3 rpc discover --ports 8765,9000-9005 --json")]
pub struct Discover {
    /// Ports and ranges of them: 8765,9000-9005
    #[arg(long, value_name = "SPEC")]
    ports: Option<Ports>,
}

/// Ports to look at, each once, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Ports(BTreeSet<u16>);

impl FromStr for Ports {
    type Err = String;

    fn from_str(spec: &str) -> Result<Self, String> {
        let mut ports = BTreeSet::new();
        for part in spec.split(',').map(str::trim) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let port = |text: &str| {
                let port = text.trim().parse::<u16>().ok().filter(|port| *port > 0);
                port.ok_or_else(|| format!("{part:?} is no port and no range of ports"))
            };
            let (first, last) = (port(first)?, port(last)?);
            if first > last {
                return Err(format!("{part:?} ends before it begins"));
            }
            ports.extend(first..=last);
        }
        Ok(Self(ports))
    }
}

/// What answers on a port.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Found {
    port: u16,
    detection: Detection,
    /// Of our servers only.
    auth: Option<Auth>,
    /// Whether there is a token for it here.
    token_present: bool,
    /// How many agents it has, for those whom it lets in.
    agents: Option<usize>,
}

/// What came of asking with the token that is here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Auth {
    /// It lets us in.
    Accepted,
    /// It wants another token, or one at all.
    Refused,
    /// It did not say.
    Unknown,
}

impl Discover {
    pub async fn run(self, world: &World, flags: &Flags) -> Result<(), Failed> {
        let home = flags.home(world)?;
        let ports = match self.ports {
            Some(ports) => ports,
            None => usual(world, &home, flags.address(world)?.port()),
        };
        let looking: Vec<_> = ports.0.into_iter().map(|port| look(world, flags, port)).collect();
        let mut found: Vec<Found> = stream::iter(looking).buffered(AT_ONCE).collect().await;
        // Of thousands of ports nobody wants to read that they are empty.
        found.retain(|found| found.detection != Detection::NoServer);
        if flags.as_json() {
            output::json(&json!({"servers": found}));
        } else {
            output::line(table(&found));
        }
        let any = found.iter().any(|found| found.detection == Detection::NexusServer);
        if any { Ok(()) } else { Err(Failed::NoServerFound) }
    }
}

/// The servers on the usual ports that let us in, with how many agents they have.
pub async fn usable(world: &World, flags: &Flags) -> Result<Vec<(u16, usize)>, Failed> {
    let ports = usual(world, &flags.home(world)?, flags.address(world)?.port());
    let looking: Vec<_> = ports.0.into_iter().map(|port| look(world, flags, port)).collect();
    let found: Vec<Found> = stream::iter(looking).buffered(AT_ONCE).collect().await;
    let usable = |found: Found| found.agents.map(|agents| (found.port, agents));
    Ok(found.into_iter().filter_map(usable).collect())
}

async fn look(world: &World, flags: &Flags, port: u16) -> Found {
    let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
    // A token file that must not be used is told by the command that needs it.
    let token = flags.token(world, port).ok().flatten();
    let token_present = token.is_some();
    let client = NexusClient::on(world, address, token).named("cli");
    let detection = timeout(EACH_MAX, client.detect()).await.unwrap_or(Detection::Timeout);
    let mut found = Found { port, detection, auth: None, token_present, agents: None };
    if detection == Detection::NexusServer {
        let (auth, agents) = match timeout(EACH_MAX, client.list_agents()).await {
            Ok(Ok(list)) => (Auth::Accepted, Some(list.agents.len())),
            Ok(Err(error)) if error.is_authentication() => (Auth::Refused, None),
            Ok(Err(_)) | Err(_) => (Auth::Unknown, None),
        };
        (found.auth, found.agents) = (Some(auth), agents);
    }
    found
}

/// The usual port, and those of which a token is in the home.
fn usual(world: &World, home: &Path, port: u16) -> Ports {
    let listed = world.fs.dir(home).and_then(|dir| dir.list()).unwrap_or_default();
    let named = |name: &str| name.strip_prefix("rpc-")?.strip_suffix(".token")?.parse().ok();
    let named = listed.iter().filter_map(|entry| named(entry.name.to_str()?));
    Ports(named.chain([port]).collect())
}

fn table(found: &[Found]) -> String {
    if found.is_empty() {
        return "nothing answers".to_owned();
    }
    let head = ["PORT", "DETECTION", "AUTH", "TOKEN", "AGENTS"];
    let rows = found.iter().map(|found| {
        let auth = match found.auth {
            Some(Auth::Accepted) => "accepted",
            Some(Auth::Refused) => "refused",
            Some(Auth::Unknown) => "unknown",
            None => "",
        };
        [
            found.port.to_string(),
            found.detection.name().to_owned(),
            auth.to_owned(),
            if found.token_present { "present" } else { "" }.to_owned(),
            found.agents.map(|agents| agents.to_string()).unwrap_or_default(),
        ]
    });
    output::table(head, rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_listed_and_ranged() {
        let read = |spec: &str| spec.parse::<Ports>().map(|ports| Vec::from_iter(ports.0));
        assert_eq!(read("8765,9000-9002"), Ok(vec![8765, 9000, 9001, 9002]));
        assert_eq!(read(" 3 - 4 , 3"), Ok(vec![3, 4]));
        for bad in ["", ",", "0", "5-", "-5", "9-3", "70000", "1-2-3", "x"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
