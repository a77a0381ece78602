//! A call that nobody waits for any more ends soon, in the middle of its work.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use nexus3::tool::{ToolOutput, Tools};
use nexus3::world::{Blocking, BoxFuture};
use nexus3_sim::disk::OperationKind;
use serde_json::json;

use crate::support::{CWD, alone, confined, disk, put_file, run, world};

const FILES: usize = 500;
const READS_BEFORE: usize = 20;

type Job = Box<dyn FnOnce() + Send>;

/// Keeps jobs for the test to do.
#[derive(Default)]
struct Later(Mutex<Vec<Job>>);

impl Blocking for Later {
    fn run(&self, job: Job) -> BoxFuture<'static, ()> {
        self.0.lock().expect("nobody panics with it").push(job);
        Box::pin(std::future::pending())
    }
}

/// Starts a search of many files, does its job, and drops the call once so many files were opened.
/// Returns how many were.
fn opened(drop_after: usize) -> usize {
    let disk = disk();
    for index in 0..FILES {
        put_file(&disk, &format!("{CWD}/{index}"), "text\n");
    }
    let later = Arc::new(Later::default());
    let tools = Tools::new();
    let workplace = tools.workplace(&world(&disk, Arc::clone(&later) as _), &confined(), alone());
    let arguments = json!({"path": ".", "pattern": "nothing"});
    let mut call: BoxFuture<'static, ToolOutput> =
        run(&tools, &workplace, "search_text", arguments);
    assert!(call.as_mut().now_or_never().is_none(), "its job waits to be done");
    let call = Mutex::new(Some(call));
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    disk.on_operation(move |operation| {
        let is_file = operation.path.parent() == Some(Path::new(CWD))
            && !operation.path.to_string_lossy().contains("ignore");
        if operation.kind == OperationKind::Open && is_file {
            let count = counted.fetch_add(1, Ordering::Relaxed) + 1;
            if count == drop_after {
                drop(call.lock().expect("nobody panics with it").take());
            }
        }
    });
    let jobs = std::mem::take(&mut *later.0.lock().expect("nobody panics with it"));
    assert_eq!(jobs.len(), 1);
    for job in jobs {
        job();
    }
    count.load(Ordering::Relaxed)
}

#[test]
fn a_search_ends_when_its_call_is_dropped() {
    assert_eq!(opened(usize::MAX), FILES, "all are searched while somebody waits");
    assert_eq!(opened(READS_BEFORE), READS_BEFORE, "none after that");
}
