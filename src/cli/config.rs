//! `nexus3 config`: what is configured and where that was said, and the schema for editors. Also how
//! every command that needs the configuration gets it.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use super::{home, output};
use crate::config::{self, Flag, Loaded, Notice, Shown};
use crate::world::World;

/// Shows the configuration.
///
/// It is made of layers, the later over the earlier: what is built in; config.json in the home, or
/// the file of --config instead; .nexus3/config.json of each directory from the repository's root to
/// this one; variables such as `NEXUS3_SERVER__PORT`; flags. Objects merge, everything else replaces.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    nexus3 config show                        every value, and where it comes from\n  \
    NEXUS3_TURN_TIMEOUT=60 nexus3 config show --json\n  \
    nexus3 config schema > config.schema.json for an editor")]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Show(ShowArguments),
    /// Prints the JSON schema of a configuration file
    #[command(after_help = "Example:\n  nexus3 config schema > config.schema.json")]
    Schema,
}

/// Prints every value that a server started here would use, and where it comes from.
///
/// Keys of providers are never shown: the configuration only names the variable or the file that
/// holds one.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    nexus3 config show\n  \
    nexus3 config show --config team.json --json")]
struct ShowArguments {
    #[command(flatten)]
    looked_at: LookedAt,
}

// No doc comment: clap would take it for the help of the command.
#[derive(Debug, Args)]
pub struct LookedAt {
    /// The server's home [default: `$NEXUS3_HOME`, or ~/.nexus3]
    #[arg(long, value_name = "DIR")]
    pub home: Option<PathBuf>,
    /// The configuration file [default: config.json in the home, if there is one]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Prints the result as JSON
    #[arg(long)]
    pub json: bool,
}

pub fn run(world: &World, arguments: &Arguments) -> anyhow::Result<()> {
    match &arguments.command {
        Command::Show(arguments) => show(world, &arguments.looked_at),
        Command::Schema => {
            output::json(&config::schema());
            Ok(())
        }
    }
}

fn show(world: &World, looked_at: &LookedAt) -> anyhow::Result<()> {
    let home = home(world, looked_at.home.clone())?;
    let loaded = load(world, &home, looked_at.config.as_deref(), Vec::new())?;
    let values = loaded.values();
    if looked_at.json {
        let sources: Map<String, Value> =
            values.into_iter().map(|Shown { key, source, .. }| (key, source.into())).collect();
        let ignored: Vec<String> = loaded.notices.iter().map(Notice::to_string).collect();
        output::json(&json!({"config": loaded.config, "sources": sources, "ignored": ignored}));
        return Ok(());
    }
    tell(&loaded.notices);
    let lines: Vec<(String, String)> = values
        .into_iter()
        .map(|Shown { key, value, source }| (format!("{key} = {value}"), source))
        .collect();
    let widest = lines.iter().map(|(said, _)| said.chars().count()).max().unwrap_or(0);
    let width = widest.min(WIDTH_MAX);
    let terminal = output::width();
    let fits = |(said, source): &(String, String)| {
        let whole = said.chars().count().max(width) + 2 + source.chars().count();
        terminal.is_none_or(|columns| whole <= columns)
    };
    let beside = lines.iter().all(fits);
    for (said, source) in lines {
        if beside {
            output::line(format_args!("{said:<width$}  {source}"));
        } else {
            output::line(format_args!("{said}\n    {source}"));
        }
    }
    Ok(())
}

/// A value that is longer moves its source to the right, and nobody else's.
const WIDTH_MAX: usize = 60;

/// The configuration of a server that is started here.
pub fn load(
    world: &World,
    home: &Path,
    given: Option<&Path>,
    flags: Vec<Flag>,
) -> anyhow::Result<Loaded> {
    let here = world.environment.current_dir()?;
    let given = given.map(|path| here.join(path));
    let base = config::base(world.fs.as_ref(), home, given.as_deref())?;
    Ok(config::gather(world, home, base, flags)?)
}

/// Says what was left out of a configuration.
pub fn tell(notices: &[Notice]) {
    for notice in notices {
        output::note(format_args!("warning: {notice}"));
    }
}
