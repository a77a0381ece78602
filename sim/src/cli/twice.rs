//! `nexus3-sim twice`: the same seed in two processes, compared line by line at trace level.

use std::path::{Path, PathBuf};
use std::process::Command;

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
        let one = traced(&file, Place::Here)?;
        let other = traced(&file, Place::Elsewhere)?;
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

/// What a run of its own process prints. Whether it is a good run is not asked here.
fn traced(file: &Path, place: Place) -> anyhow::Result<String> {
    let program = std::env::current_exe().context("cannot find this program")?;
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
    let output = command.output().context("cannot start a second process")?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    anyhow::ensure!(!printed.is_empty(), "the run of {} printed nothing", file.display());
    Ok(printed)
}

fn file_name(file: &Path) -> String {
    file.file_name().unwrap_or_default().display().to_string()
}
