//! The layers of a configuration, from what is built in to the command line's flags, and what they
//! are together. Files and variables come from the world; what they mean is for the readers.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::load::Read;
use super::project::{MCP_FILE, Project};
use super::shown::{Origins, Shown};
use super::trust::{Standing, Trusted, reason};
use super::words::{shell_word, shown_key};
use super::{
    Config, ConfigError, McpConfigError, McpServer, Source, environment, load, mcp, project,
};
use crate::world::{Fs, World};

/// One of the texts that a configuration is made of.
#[derive(Clone, Debug)]
pub(super) struct Layer {
    pub(super) source: Source,
    pub(super) form: Form,
}

#[derive(Clone, Debug)]
pub(super) enum Form {
    /// An object with keys: JSON with comments.
    File,
    /// The same, of a project that anybody can have written.
    Project { standing: Standing },
    /// The value of one key: JSON, else text.
    Value { keys: Vec<String> },
}

/// A key that a flag of the command line sets.
#[derive(Clone, Debug)]
pub struct Flag {
    /// As it is written, with its dashes.
    pub name: &'static str,
    /// The path of the key.
    pub keys: &'static [&'static str],
    pub value: String,
}

/// Something that was left out of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    UnknownVariable {
        name: String,
        part: String,
        hint: String,
    },
    /// What of a project does not count.
    Untrusted {
        dir: PathBuf,
        what: Vec<String>,
        standing: Standing,
    },
    /// A project's files that cannot be read as they lie there.
    Unreadable {
        path: PathBuf,
        reason: String,
    },
    /// An MCP server that cannot be connected to as it is written.
    UnusableServer {
        path: PathBuf,
        name: String,
        error: McpConfigError,
    },
    /// Nobody is trusted, because the list cannot be used.
    NoTrust {
        reason: String,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownVariable { name, part, hint } => write!(
                f,
                "ignored the environment variable {name}: there is no key `{}` ({hint})",
                shown_key(part)
            ),
            Self::Untrusted { dir, what, standing } => {
                let why = match standing {
                    Standing::Changed => "changed since they were trusted",
                    Standing::Unknown | Standing::Trusted => "not trusted",
                };
                let (what, dir) = (what.join(", "), shell_word(dir));
                write!(
                    f,
                    "ignored {what} of the project {dir}, {why}: read its .nexus3, then run \
                     `nexus3 trust {dir}`"
                )
            }
            Self::Unreadable { path, reason } => {
                write!(f, "ignored {}: {reason}", shell_word(path))
            }
            Self::UnusableServer { path, name, error } => {
                write!(
                    f,
                    "ignored the MCP server {} of {}: {error}",
                    shown_key(name),
                    shell_word(path)
                )
            }
            Self::NoTrust { reason } => write!(f, "no project is trusted: {reason}"),
        }
    }
}

/// A configuration and how it came about.
#[derive(Clone, Debug)]
pub struct Loaded {
    pub config: Config,
    /// What was left out of it, a line each.
    pub notices: Vec<Notice>,
    origins: Origins,
}

impl Loaded {
    /// Every value in force, with where it comes from.
    pub fn values(&self) -> Vec<Shown> {
        self.origins.values(&self.config)
    }
}

/// The file at `given`, which must be there; else the home's own, if there is one.
pub fn base(fs: &dyn Fs, home: &Path, given: Option<&Path>) -> Result<Option<Source>, ConfigError> {
    match given {
        Some(path) => Source::read(fs, path).map(Some),
        None => match Source::read(fs, &home.join("config.json")) {
            Err(ConfigError::Missing { .. }) => Ok(None),
            read => read.map(Some),
        },
    }
}

/// The configuration of a server that is started in this world: the base, the files of the project
/// around the working directory, what the environment says, and the flags, each over those before.
pub fn gather(
    world: &World,
    home: &Path,
    base: Option<Source>,
    flags: Vec<Flag>,
) -> Result<Loaded, ConfigError> {
    let mut notices = Vec::new();
    let mut layers = Vec::new();
    layers.extend(base.map(|source| Layer { source, form: Form::File }));
    let projects = projects(world, home, &mut notices);
    // The layer of a project, where it has one: without, it offers MCP servers alone.
    let mut layer_of = Vec::new();
    for (project, standing) in &projects {
        let layer = project.config.clone();
        layer_of.push(layer.as_ref().map(|_| layers.len()));
        let form = Form::Project { standing: *standing };
        layers.extend(layer.map(|source| Layer { source, form }));
    }
    layers.extend(environment::layers(world.environment.as_ref(), &mut notices));
    layers.extend(flags.into_iter().map(|Flag { name, keys, value }| Layer {
        source: Source { name: name.to_owned(), text: value },
        form: Form::Value { keys: keys.iter().map(|&key| key.to_owned()).collect() },
    }));
    let Read { mut config, merged, screened } = load::read(&layers)?;
    config.mcp_servers = servers(world.fs.as_ref(), home, &projects, &mut notices);
    for ((project, standing), layer) in projects.into_iter().zip(layer_of) {
        let screened = screened.iter().find(|screened| Some(screened.layer) == layer);
        let mut what: Vec<_> = screened
            .into_iter()
            .flat_map(|screened| screened.keys.iter().map(|key| format!("`{key}`")))
            .collect();
        if standing != Standing::Trusted && project.mcp.is_some() {
            what.push("mcp.json".to_owned());
        }
        if !what.is_empty() {
            notices.push(Notice::Untrusted { dir: project.dir, what, standing });
        }
    }
    Ok(Loaded { config, notices, origins: Origins { layers, merged } })
}

/// The MCP servers of the home and of the projects that are trusted, the nearer over the farther.
fn servers(
    fs: &dyn Fs,
    home: &Path,
    projects: &[(Project, Standing)],
    notices: &mut Vec<Notice>,
) -> BTreeMap<String, McpServer> {
    let path = home.join(MCP_FILE);
    let own = match Source::read(fs, &path) {
        Ok(source) => Some((source, None)),
        Err(ConfigError::Missing { .. }) => None,
        Err(error) => {
            notices.push(Notice::Unreadable { path, reason: error.to_string() });
            None
        }
    };
    let trusted = projects.iter().filter(|(_, standing)| *standing == Standing::Trusted);
    let theirs = trusted.filter_map(|(project, _)| {
        let source = project.mcp.clone()?;
        Some((source, Some(project.dir.as_path())))
    });
    let mut servers = BTreeMap::new();
    for (source, base) in own.into_iter().chain(theirs) {
        let path = PathBuf::from(&source.name);
        let offered = mcp::read(&source, base).unwrap_or_else(|reason| {
            notices.push(Notice::Unreadable { path: path.clone(), reason });
            BTreeMap::new()
        });
        for (name, server) in offered {
            match server {
                Ok(server) => drop(servers.insert(name, server)),
                Err(error) => {
                    let path = path.clone();
                    notices.push(Notice::UnusableServer { path, name, error });
                }
            }
        }
    }
    servers
}

/// What the directories around the working directory bring along, the outermost first. The server's
/// own home is no project, also where a repository lies around it.
fn projects(world: &World, home: &Path, notices: &mut Vec<Notice>) -> Vec<(Project, Standing)> {
    let fs = world.fs.as_ref();
    // A server without a working directory says so itself.
    let cwd = world.environment.current_dir().and_then(|cwd| fs.canonical(&cwd));
    let Ok(cwd) = cwd else { return Vec::new() };
    let home_dir = fs.canonical(home).ok();
    let is_home = |dir: &Path| {
        let folder = fs.canonical(&dir.join(project::FOLDER)).ok();
        folder.is_some() && folder == home_dir
    };
    let mut found = Vec::new();
    for dir in project::directories(fs, &cwd).into_iter().rev().filter(|dir| !is_home(dir)) {
        match Project::read(fs, dir) {
            Ok(project) => found.extend(project),
            Err(error) => {
                let reason = reason(&error.source);
                notices.push(Notice::Unreadable { path: error.path, reason });
            }
        }
    }
    if found.is_empty() {
        return Vec::new();
    }
    let trusted = Trusted::read(fs, home).unwrap_or_else(|error| {
        notices.push(Notice::NoTrust { reason: error.to_string() });
        Trusted::default()
    });
    let standing = |project: Project| {
        let standing = trusted.standing(&project);
        (project, standing)
    };
    found.into_iter().map(standing).collect()
}

#[cfg(test)]
#[path = "layer_tests.rs"]
mod tests;
