//! All processes of a sweep: starts them, hears of their runs as they end, and tells how it goes on.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::Context;

use super::sum::{Run, Sum};
use super::{Arguments, output};

const PROGRESS_EVERY: Duration = Duration::from_secs(5);

/// Runs until all seeds are played, the time is over, or a violation ends it.
pub fn run(arguments: &Arguments, sum: &mut Sum, started: Instant) -> anyhow::Result<()> {
    let mut children: Vec<Child> =
        (0..arguments.jobs).map(|index| child(arguments, index)).collect::<Result<_, _>>()?;
    let (tell, told) = mpsc::channel();
    for child in &mut children {
        let printed = child.stdout.take().expect("a child's output is piped");
        let tell = tell.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(printed).lines() {
                // Nobody listens any more once a violation has ended the sweep.
                if tell.send(line).is_err() {
                    return;
                }
            }
        });
    }
    drop(tell);
    let mut progress = started + PROGRESS_EVERY;
    for line in told {
        let line = line.context("a process cannot be read")?;
        let run: Run = serde_json::from_str(&line).context("a process printed something else")?;
        let failed = run.found.is_some();
        sum.add(run);
        if failed && !arguments.keep_going {
            return end(&mut children);
        }
        if progress <= Instant::now() {
            output::note(&sum.progress(started.elapsed()));
            progress = Instant::now() + PROGRESS_EVERY;
        }
    }
    for mut child in children {
        let status = child.wait().context("a process was lost")?;
        anyhow::ensure!(status.success(), "a process failed: {status}");
    }
    Ok(())
}

/// Ends the processes that were started here.
fn end(children: &mut [Child]) -> anyhow::Result<()> {
    for child in children {
        // One that has ended by itself meanwhile is no problem.
        let _ = child.kill();
        child.wait().context("a process was lost")?;
    }
    Ok(())
}

fn child(arguments: &Arguments, index: u64) -> anyhow::Result<Child> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let mut command = Command::new(program);
    let seeds = &arguments.seeds.0;
    command.arg("explore").arg("--shard").arg(format!("{index}/{}", arguments.jobs));
    command.arg("--seeds").arg(format!("{}..{}", seeds.start, seeds.end));
    command.arg("--profile").arg(&arguments.profile).arg("--found").arg(&arguments.found);
    if let Some(time) = arguments.time {
        command.arg("--time").arg(time.to_string());
    }
    if arguments.team {
        command.arg("--team");
    }
    command.arg("--").args(&arguments.files).stdout(Stdio::piped());
    command.spawn().context("cannot start another process")
}
