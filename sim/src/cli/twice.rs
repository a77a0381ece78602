//! `nexus3-sim twice`: the same seed in two processes, compared line by line at trace level.

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::Context;
use clap::Args;

use super::{Verdict, output, read};
use crate::play::snapshot;

/// Proves that runs are deterministic: each scenario with the same seed in two processes, at trace
/// level, with different environment, directory and time zone. The first differing line is the error.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The scenario files
    #[arg(required = true)]
    files: Vec<PathBuf>,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Verdict> {
    let mut differ = 0;
    for file in &arguments.files {
        if let Err(verdict) = read(file) {
            return Ok(verdict);
        }
        let file = file.canonicalize()?;
        let one = Traced::start(&file, Place::Here)?;
        let other = Traced::start(&file, Place::Elsewhere)?;
        let (one, other) = (one.printed(&file)?, other.printed(&file)?);
        match snapshot::difference(&one, &other) {
            None => output::line(&format!(
                "same   {} ({} lines)",
                file_name(&file),
                one.lines().count()
            )),
            Some(difference) => {
                differ += 1;
                output::line(&format!("DIFFER {} at {difference}", file_name(&file)));
            }
        }
    }
    output::line(&format!("{} passed, {differ} failed", arguments.files.len() - differ));
    Ok(if differ == 0 { Verdict::Good } else { Verdict::Bad })
}

#[derive(Clone, Copy, Debug)]
enum Place {
    Here,
    Elsewhere,
}

/// A run in a process of its own. Whether it is a good run is not asked here.
struct Traced {
    process: Child,
    /// No pipe: nobody reads it before the run is over, and the other one runs meanwhile.
    printed: File,
}

impl Traced {
    fn start(file: &Path, place: Place) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("cannot find this program")?;
        let printed = tempfile::tempfile().context("cannot keep what a run prints")?;
        let mut command = Command::new(program);
        command.arg("run").arg("--trace").arg(file);
        match place {
            Place::Here => {
                command.env("TZ", "Europe/Berlin").env("NEXUS3_NOISE", "1");
            }
            Place::Elsewhere => {
                command.env_clear().env("TZ", "Asia/Tokyo").current_dir(std::env::temp_dir());
            }
        }
        command.stdin(Stdio::null()).stdout(printed.try_clone()?).stderr(Stdio::null());
        let process = command.spawn().context("cannot start a second process")?;
        Ok(Self { process, printed })
    }

    /// Waits for its end.
    fn printed(mut self, file: &Path) -> anyhow::Result<String> {
        self.process.wait().context("cannot wait for a second process")?;
        let mut bytes = Vec::new();
        self.printed.rewind()?;
        self.printed.read_to_end(&mut bytes)?;
        anyhow::ensure!(!bytes.is_empty(), "the run of {} printed nothing", file.display());
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

fn file_name(file: &Path) -> String {
    file.file_name().unwrap_or_default().display().to_string()
}
