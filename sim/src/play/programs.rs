//! The `[[program]]` entries of a scenario as programs of its machine: they are held to what they were
//! granted, as a kernel would.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nexus3::provider::script::Times;
use nexus3::tool::asked_for;
use nexus3::world::{BoxFuture, Confinement, Exit, Process, Programs};
use regex::Regex;
use tokio::io::AsyncWriteExt;
use tokio::time::sleep;

use super::files;
use super::observed::{Observation, Observed};
use super::story::Happening;
use super::transcript::Transcript;
use crate::disk::Disk;
use crate::hosts::now;
use crate::machine::{Act, Acting, Stage};
use crate::mcp;
use crate::scenario::{Program, Run, SERVER, Takes};

/// The invariants and the story hear of each that is started.
pub fn acting(
    disk: &Disk,
    programs: &[Program],
    observed: Observed,
    transcript: Transcript,
) -> Acting {
    let (disk, programs) = (disk.clone(), programs.to_vec());
    let fs = Arc::new(disk.clone());
    let uses: Vec<AtomicU64> = programs.iter().map(|_| AtomicU64::new(0)).collect();
    Acting::new(fs, move |name, started| {
        let words = asked_for(&name.to_string_lossy(), started);
        let is_left = |count: &AtomicU64, times: Times| match times {
            Times::Exactly(times) => count.load(Ordering::Relaxed) < times,
            Times::Always => true,
        };
        let entries = programs.iter().zip(&uses);
        let (entry, count) = entries
            .filter(|(program, count)| is_left(count, program.times))
            .find(|(program, _)| fits(&program.run, &words))?;
        count.fetch_add(1, Ordering::Relaxed);
        observed.add(Observation::Started(Box::new(started.clone())));
        let directory = || started.directory.clone();
        let happening = || Happening::Started { words: words.clone(), directory: directory() };
        transcript.happened(now(), SERVER, happening);
        Some(Arc::new(Entry { program: entry.clone(), disk: disk.clone() }) as Arc<dyn Act>)
    })
}

/// The programs of MCP servers, which agents do not start and invariants do not judge as theirs.
pub fn servers(disk: &Disk, servers: Vec<Arc<mcp::Scripted>>) -> Acting {
    Acting::new(Arc::new(disk.clone()), move |name, _| {
        let name = name.to_str()?.strip_prefix("mcp-")?;
        let mut stdio =
            servers.iter().filter(|server| !server.is_at_host() && !server.is_missing());
        let server = stdio.find(|server| server.name() == name)?;
        Some(mcp::program(Arc::clone(server)))
    })
}

/// All programs of a machine.
pub struct All {
    pub servers: Arc<Acting>,
    pub others: Arc<Acting>,
}

impl Programs for All {
    fn start(
        &self,
        program: nexus3::world::Program,
    ) -> BoxFuture<'_, io::Result<Box<dyn Process>>> {
        Box::pin(async move {
            match self.servers.start(program.clone()).await {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    self.others.start(program).await
                }
                started => started,
            }
        })
    }
}

fn fits(run: &Run, words: &[String]) -> bool {
    match run {
        Run::Exactly(exactly) => exactly == words,
        // A pattern is about the programs that are found by their names.
        Run::Matching(_) if words[0].contains('/') => false,
        Run::Matching(pattern) => {
            let pattern = Regex::new(pattern).expect("patterns were checked when they were read");
            pattern.is_match(&words.join(" "))
        }
    }
}

struct Entry {
    program: Program,
    disk: Disk,
}

impl Act for Entry {
    fn play(&self, stage: Stage) -> BoxFuture<'static, Exit> {
        let (program, disk) = (self.program.clone(), self.disk.clone());
        Box::pin(async move {
            // A reader that went away is the server's business.
            let _ = stage.stdout.lock().await.write_all(program.stdout.as_bytes()).await;
            let _ = stage.stderr.lock().await.write_all(program.stderr.as_bytes()).await;
            match program.takes {
                Takes::Time(time) => sleep(time.0).await,
                Takes::Forever => std::future::pending().await,
            }
            let confinement = &stage.program.confinement;
            if let Some(path) = program.writes.keys().find(|path| !may_write(confinement, path)) {
                let refusal = format!("{}: Permission denied\n", path.display());
                let _ = stage.stderr.lock().await.write_all(refusal.as_bytes()).await;
                return Exit::Code(1);
            }
            files::put(&disk, &program.writes).expect("a scenario's files can be written");
            program.exit
        })
    }
}

fn may_write(confinement: &Confinement, path: &Path) -> bool {
    match confinement {
        Confinement::None => true,
        Confinement::Landlock { write, .. } => write.iter().any(|root| path.starts_with(root)),
    }
}
