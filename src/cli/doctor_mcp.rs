//! What `nexus3 doctor` looks at of MCP servers: whether there is a program to start, and whether an
//! address may be asked. Nothing is started and nobody is asked.

use std::path::{Path, PathBuf};

use super::doctor::Finding;
use crate::config::{Config, McpServer};
use crate::reach;
use crate::world::{Kind, World};

pub(super) fn of_mcp(world: &World, config: &Config) -> Vec<Finding> {
    let servers = config.mcp_servers.iter();
    servers.map(|(name, server)| of_server(world, config, (name, server))).collect()
}

fn of_server(world: &World, config: &Config, (name, server): (&str, &McpServer)) -> Finding {
    match server {
        McpServer::Stdio { command, env, cwd, .. } => {
            // A relative one depends on where the server is started.
            let absolute = cwd.as_ref().filter(|cwd| cwd.is_absolute());
            if let Some(cwd) = absolute.filter(|cwd| world.fs.dir(cwd).is_err()) {
                return Finding::wrong(
                    "mcp",
                    format!("{name}: there is no directory {} to run in", cwd.display()),
                    "make it, or name another `cwd` in mcp.json",
                );
            }
            let given = env.get("PATH").map(|path| path.expose().to_owned());
            let path = given.or_else(|| world.environment.var("PATH")).unwrap_or_default();
            match is_there(world, (command, absolute.map(PathBuf::as_path)), &path) {
                Some(true) => Finding::fine("mcp", format!("{name}: there is a program {command}")),
                Some(false) => Finding::wrong(
                    "mcp",
                    format!("{name}: there is no program {command}"),
                    "install it, make it executable, or name it by its path in mcp.json",
                ),
                None => Finding::fine(
                    "mcp",
                    format!("{name}: {command} is looked for where the server is started"),
                ),
            }
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

/// Whether there is a program to start; nobody knows of a relative one that runs where the server does.
fn is_there(world: &World, (command, cwd): (&str, Option<&Path>), path: &str) -> Option<bool> {
    if !command.contains('/') {
        return Some(
            std::env::split_paths(path).any(|place| is_program(world, &place.join(command))),
        );
    }
    let command = Path::new(command);
    let place = if command.is_absolute() { Some(Path::new("/")) } else { cwd };
    place.map(|place| is_program(world, &place.join(command)))
}

/// Whether somebody may execute what is there.
fn is_program(world: &World, path: &Path) -> bool {
    let found = world.fs.canonical(path).and_then(|path| {
        let (Some(place), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(std::io::ErrorKind::NotFound.into());
        };
        world.fs.dir(place)?.stat(Path::new(name))
    });
    found.is_ok_and(|found| found.kind == Kind::File && found.mode & 0o111 != 0)
}
