//! `nexus3 init`: a first configuration and first instructions, to be edited. It never changes a file
//! that is there.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use serde_json::json;

use super::{home, output};
use crate::home::Home;
use crate::world::{Access, Dir, World};

/// Writes a first configuration and first instructions for agents, to be edited.
///
/// In this directory: .nexus3/config.json and NEXUS.md; with --global in the server's home: config.json
/// and NEXUS.md. What is there already stays as it is.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    nexus3 init            for the project in this directory\n  \
    nexus3 init --global   for everything on this machine")]
pub struct Arguments {
    /// Writes to the server's home instead of this directory
    #[arg(long)]
    global: bool,
    /// The server's home [default: `$NEXUS3_HOME`, or ~/.nexus3]
    #[arg(long, value_name = "DIR")]
    home: Option<PathBuf>,
    /// Prints the result as JSON
    #[arg(long)]
    json: bool,
}

const PROJECT_CONFIG: &str = r#"// The configuration of this project: JSON with comments. `nexus3 config show` tells what is in force.
// `providers`, `permissions`, `network` and `server` count here only after `nexus3 trust`.
{
  // "max_tool_iterations": 100,
  // "turn_timeout": 3600,
}
"#;

const PROJECT_INSTRUCTIONS: &str = "# This project

(Say here what agents should know: what this is, how it is built and tested, what to leave alone.)
";

const GLOBAL_CONFIG: &str = r#"// The configuration of NEXUS3: JSON with comments. `nexus3 config show` tells what is in force.
{
  // Without a provider there is a demo model, which does what it is told to.
  // "providers": {
  //   "local":  { "type": "ollama", "models": { "small": { "id": "qwen3" } } },
  //   "openai": { "type": "openai", "models": { "large": { "id": "gpt-4.1" } } },
  // },
  // "default_model": "small",
}
"#;

const GLOBAL_INSTRUCTIONS: &str = "# On this machine

(Say here what all agents should know, wherever they work.)
";

/// A file that is wanted, and what it holds at first.
struct Wanted {
    path: &'static str,
    text: &'static str,
}

const PROJECT: [Wanted; 2] = [
    Wanted { path: ".nexus3/config.json", text: PROJECT_CONFIG },
    Wanted { path: "NEXUS.md", text: PROJECT_INSTRUCTIONS },
];
const GLOBAL: [Wanted; 2] = [
    Wanted { path: "config.json", text: GLOBAL_CONFIG },
    Wanted { path: "NEXUS.md", text: GLOBAL_INSTRUCTIONS },
];

pub fn run(world: &World, arguments: &Arguments) -> anyhow::Result<()> {
    let (place, dir, wanted) = if arguments.global {
        let home = home(world, arguments.home.clone())?;
        let dir = Home::prepare(world.fs.as_ref(), &home)?;
        (home, dir, GLOBAL)
    } else {
        let here = world.environment.current_dir()?;
        let dir = world.fs.dir(&here)?;
        match dir.make_dir(Path::new(".nexus3"), 0o755) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => (),
            made => made.context("cannot make .nexus3")?,
        }
        (here, dir, PROJECT)
    };
    let (mut made, mut kept) = (Vec::new(), Vec::new());
    for Wanted { path, text } in wanted {
        let shown = place.join(path);
        match write(dir.as_ref(), Path::new(path), text) {
            Ok(()) => made.push(shown),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => kept.push(shown),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot write {}", shown.display()));
            }
        }
    }
    if arguments.json {
        output::json(&json!({"made": made, "kept": kept}));
        return Ok(());
    }
    for path in made {
        output::line(format_args!("made {}", path.display()));
    }
    for path in kept {
        output::line(format_args!("kept {}, which was there", path.display()));
    }
    Ok(())
}

/// Writes a new file, all of it or nothing.
fn write(dir: &dyn Dir, path: &Path, text: &str) -> io::Result<()> {
    let file = dir.open(path, Access::CreateNew { mode: 0o644 })?;
    let written = file.write_at(text.as_bytes(), 0).and_then(|()| file.sync());
    if written.is_err() {
        // The first error is the one to tell.
        let _ = dir.remove_file(path);
    }
    written
}
