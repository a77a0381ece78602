//! Every scenario of the project, twice: good both times, and the same to the byte at trace level.
//! One process each, because SQLite's generator and other statics are one per process.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the tests start the simulation as a program"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Failed, Trial};
use nexus3_sim::play::snapshot;

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("sim lies in the project");
    let scenarios = files(&root.join("scenarios"), "toml");
    let snapshots = files(&root.join("snapshots"), "snap");
    let mut trials: Vec<Trial> = scenarios
        .iter()
        .map(|file| {
            let file = file.clone();
            Trial::test(stem(&file), move || holds_twice(&file))
        })
        .collect();
    let all = scenarios.clone();
    trials.push(Trial::test("a_sweep_in_one_process_is_the_same", move || sweep(&all)));
    trials
        .push(Trial::test("no_snapshot_is_an_orphan", move || no_orphans(&scenarios, &snapshots)));
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the folder is part of the project");
    let paths = entries.map(|entry| entry.expect("a folder can be listed").path());
    let mut files: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|found| found == extension)).collect();
    files.sort();
    files
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().display().to_string()
}

fn holds_twice(file: &Path) -> Result<(), Failed> {
    let (one, other) = (run(file)?, run(file)?);
    match snapshot::difference(&one, &other) {
        None => Ok(()),
        Some(difference) => Err(format!("two runs part at {difference}").into()),
    }
}

/// What a run at trace level prints; a run that is not good fails with the lines that say why.
fn run(file: &Path) -> Result<String, Failed> {
    let output = Command::new(env!("CARGO_BIN_EXE_nexus3-sim"))
        .args(["run", "--trace"])
        .arg(file)
        .output()?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(printed);
    }
    let verdict = printed.lines().skip_while(|line| !line.starts_with("FAILED"));
    let verdict: Vec<&str> = verdict.collect();
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(format!("{}\n{errors}", verdict.join("\n")).into())
}

/// All scenarios one after another in one process, backwards: what one leaves behind must not show
/// in the next.
fn sweep(scenarios: &[PathBuf]) -> Result<(), Failed> {
    let output = Command::new(env!("CARGO_BIN_EXE_nexus3-sim"))
        .arg("run")
        .args(scenarios.iter().rev())
        .output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stdout).into_owned().into())
}

fn no_orphans(scenarios: &[PathBuf], snapshots: &[PathBuf]) -> Result<(), Failed> {
    let stems = |paths: &[PathBuf]| paths.iter().map(|path| stem(path)).collect::<Vec<_>>();
    let (scenarios, snapshots) = (stems(scenarios), stems(snapshots));
    let scenarios: Vec<&str> = scenarios.iter().map(String::as_str).collect();
    let snapshots: Vec<&str> = snapshots.iter().map(String::as_str).collect();
    let orphans = snapshot::orphans(&scenarios, &snapshots);
    if orphans.is_empty() {
        return Ok(());
    }
    let orphans = orphans.join(", ");
    Err(format!("snapshots without a scenario, remove or rename them: {orphans}").into())
}
