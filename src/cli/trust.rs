//! `nexus3 trust`: says which projects may change where models are asked and what agents may do.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use serde::Serialize;
use serde_json::json;

use super::output::Hint;
use super::{home, output};
use crate::config::words::shell_word;
use crate::config::{self, Project, Standing, Trusted};
use crate::home::Home;
use crate::world::World;

/// Trusts what a project brings along, as it is now.
///
/// A project can come from anyone. Of its .nexus3/config.json the keys `providers`, `permissions`,
/// `network` and `server`, and its .nexus3/mcp.json, count only once its directory is trusted; after
/// a change of these files they are ignored again. Directories below it are not trusted with it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    nexus3 trust                   trust the project in this directory\n  \
    nexus3 trust ~/code/api        trust another one\n  \
    nexus3 trust --list            which are trusted, and which changed since\n  \
    nexus3 trust --revoke .        trust it no longer")]
pub struct Arguments {
    /// The directory that has the .nexus3 [default: this one]
    #[arg(value_name = "DIR", conflicts_with = "list")]
    dir: Option<PathBuf>,
    /// Lists the trusted projects
    #[arg(long, conflicts_with = "revoke")]
    list: bool,
    /// Trusts the directory no longer
    #[arg(long)]
    revoke: bool,
    /// The server's home, where trusted.json is [default: `$NEXUS3_HOME`, or ~/.nexus3]
    #[arg(long, value_name = "DIR")]
    home: Option<PathBuf>,
    /// Prints the result as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(world: &World, arguments: &Arguments) -> anyhow::Result<()> {
    let home = home(world, arguments.home.clone())?;
    if arguments.list {
        return list(world, &home, arguments);
    }
    let here = world.environment.current_dir()?;
    let given = arguments.dir.as_ref().map_or_else(|| here.clone(), |dir| here.join(dir));
    if arguments.revoke {
        revoke(world, &home, &given, arguments)
    } else {
        trust(world, &home, &given, arguments)
    }
}

fn trust(world: &World, home: &Path, given: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    let dir = world.fs.canonical(given);
    let dir = dir.with_context(|| format!("there is no directory {}", shell_word(given)))?;
    let Some(name) = dir.to_str() else {
        anyhow::bail!("the name of {} is no UTF-8 text: rename it first", shell_word(&dir));
    };
    let Some(project) = Project::read(world.fs.as_ref(), &dir)? else {
        return Err(nothing(world, &dir));
    };
    let keys = project.config.as_ref().map(config::needing_trust).transpose()?.unwrap_or_default();
    Home::prepare(world.fs.as_ref(), home)?;
    let hash = project.hash.clone();
    Trusted::change(world, home, |trusted| trusted.directories.insert(name.to_owned(), hash))?;
    let mcp = project.mcp.is_some();
    if arguments.json {
        output::json(&json!({"directory": name, "hash": project.hash, "keys": keys, "mcp": mcp}));
        return Ok(());
    }
    let mut what = keys;
    what.extend(mcp.then(|| "mcp.json".to_owned()));
    let what =
        if what.is_empty() { "nothing in it needs trust".to_owned() } else { what.join(", ") };
    output::line(format_args!("trusted {}: {what}", shell_word(&dir)));
    Ok(())
}

/// There is nothing to trust in `dir`; maybe in a directory above it.
fn nothing(world: &World, dir: &Path) -> anyhow::Error {
    let fs = world.fs.as_ref();
    let above = config::directories(fs, dir).into_iter().skip(1);
    let above = above.into_iter().find(|dir| matches!(Project::read(fs, dir), Ok(Some(_))));
    let dir = shell_word(dir);
    let error = anyhow::anyhow!("{dir} has no .nexus3/config.json and no .nexus3/mcp.json");
    match above {
        Some(above) => {
            let above = shell_word(above);
            error.context(Hint(format!("the project is {above}: run `nexus3 trust {above}`")))
        }
        None => error,
    }
}

fn revoke(world: &World, home: &Path, given: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    // What is gone from the disk can be revoked as well, by the path it had.
    let dir = world.fs.canonical(given).unwrap_or_else(|_| given.to_owned());
    let name = dir.to_string_lossy().into_owned();
    let listed = Trusted::read(world.fs.as_ref(), home)?;
    let shown = shell_word(&dir);
    if !listed.directories.contains_key(&name) {
        anyhow::bail!("{shown} is not trusted");
    }
    Trusted::change(world, home, |trusted| trusted.directories.remove(&name))?;
    if arguments.json {
        output::json(&json!({"directory": name, "revoked": true}));
    } else {
        output::line(format_args!("{shown} is no longer trusted"));
    }
    Ok(())
}

#[derive(Debug, Serialize)]
struct Listed {
    directory: String,
    state: &'static str,
    hash: String,
}

fn list(world: &World, home: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    let trusted = Trusted::read(world.fs.as_ref(), home)?;
    let listed: Vec<Listed> = trusted
        .directories
        .iter()
        .map(|(directory, hash)| Listed {
            directory: directory.clone(),
            state: state(world, &trusted, Path::new(directory)),
            hash: hash.clone(),
        })
        .collect();
    if arguments.json {
        output::json(&json!({ "directories": listed }));
    } else if listed.is_empty() {
        output::line("no project is trusted");
    } else {
        for Listed { directory, state, .. } in listed {
            output::line(format_args!("{state:<9} {}", shell_word(Path::new(&directory))));
        }
    }
    Ok(())
}

fn state(world: &World, trusted: &Trusted, dir: &Path) -> &'static str {
    match Project::read(world.fs.as_ref(), dir) {
        Ok(Some(project)) => match trusted.standing(&project) {
            Standing::Trusted => "trusted",
            Standing::Changed | Standing::Unknown => "changed",
        },
        Ok(None) => "gone",
        Err(error) if error.source.kind() == io::ErrorKind::NotFound => "gone",
        Err(_) => "changed",
    }
}
