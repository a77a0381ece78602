//! What `nexus3 doctor` looks at of MCP servers: whether there is a program to start, and whether an
//! address may be asked. Nothing is started and nobody is asked.

use std::path::Path;

use super::doctor::Finding;
use crate::config::{Config, McpServer};
use crate::reach;
use crate::world::World;

pub(super) fn of_mcp(world: &World, config: &Config) -> Vec<Finding> {
    let servers = config.mcp_servers.iter();
    servers.map(|(name, server)| of_server(world, config, (name, server))).collect()
}

fn of_server(world: &World, config: &Config, (name, server): (&str, &McpServer)) -> Finding {
    match server {
        McpServer::Stdio { command, env, .. } => {
            let given = env.get("PATH").map(|path| path.expose().to_owned());
            let path = given.or_else(|| world.environment.var("PATH")).unwrap_or_default();
            if is_there(world, command, &path) {
                return Finding::fine("mcp", format!("{name}: there is a program {command}"));
            }
            Finding::wrong(
                "mcp",
                format!("{name}: there is no program {command}"),
                "install it, or name it by its path in mcp.json",
            )
        }
        McpServer::Http { url, .. } => {
            let host = url.host().unwrap_or_default();
            let address = reach::literal(host);
            match address.map(|address| config.network.reach().check(address)) {
                Some(Err(forbidden)) => Finding::wrong(
                    "mcp",
                    format!("{name}: {forbidden}"),
                    "see `network.allow_private`, or remove the server from mcp.json",
                ),
                Some(Ok(())) | None => Finding::fine("mcp", format!("{name}: at {host}")),
            }
        }
    }
}

fn is_there(world: &World, command: &str, path: &str) -> bool {
    let is_file = |path: &Path| world.fs.canonical(path).is_ok();
    if command.contains('/') {
        // A relative one depends on where the server is started.
        return !command.starts_with('/') || is_file(Path::new(command));
    }
    std::env::split_paths(path).any(|place| is_file(&place.join(command)))
}
