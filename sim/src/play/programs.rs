//! The `[[program]]` entries of a scenario as programs of its machine.

use std::sync::Arc;

use nexus3::world::{BoxFuture, Exit};
use regex::Regex;
use tokio::io::AsyncWriteExt;
use tokio::time::sleep;

use super::files;
use crate::disk::Disk;
use crate::machine::{Act, Acting, Stage};
use crate::scenario::{Program, Run, Takes};

pub fn acting(disk: &Disk, programs: &[Program]) -> Acting {
    let (disk, programs) = (disk.clone(), programs.to_vec());
    let fs = Arc::new(disk.clone());
    Acting::new(fs, move |name, started| {
        let mut words = vec![name.to_string_lossy().into_owned()];
        words.extend(started.arguments.iter().map(|word| word.to_string_lossy().into_owned()));
        let entry = programs.iter().find(|program| fits(&program.run, &words))?;
        Some(Arc::new(Entry { program: entry.clone(), disk: disk.clone() }) as Arc<dyn Act>)
    })
}

fn fits(run: &Run, words: &[String]) -> bool {
    match run {
        Run::Exactly(exactly) => exactly == words,
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
            match program.takes {
                Takes::Time(time) => sleep(time.0).await,
                Takes::Forever => std::future::pending().await,
            }
            files::put(&disk, &program.writes).expect("a scenario's files can be written");
            // A reader that went away is the server's business.
            let _ = stage.stdout.lock().await.write_all(program.stdout.as_bytes()).await;
            Exit::Code(program.exit.into())
        })
    }
}
