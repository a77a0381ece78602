//! Tools that change files on a disk that fails: what was there is still there, nothing half-done is
//! left beside it, and the model is told which path it was.

use nexus3_sim::disk::{Disk, Fault, Switch, View};
use serde_json::{Value, json};

use crate::support::{Bench, disk, put_file};

const OLD: &str = "one\ntwo\n";

fn stage() -> Disk {
    let disk = disk();
    put_file(&disk, "/project/a", OLD);
    put_file(&disk, "/project/b", OLD);
    disk
}

/// A call of each tool that writes contents, and the path that its error has to name.
fn calls() -> Vec<(&'static str, Value, &'static str)> {
    let long = "new\n".repeat(30_000);
    let edit = json!({"old_string": "one", "new_string": long});
    let diff = format!("@@ -1,2 +1,3 @@\n one\n+{}\n two\n", "n".repeat(100_000));
    vec![
        ("write_file", json!({"path": "a", "content": long}), "`a`"),
        ("write_file", json!({"path": "new", "content": long}), "`new`"),
        ("append_file", json!({"path": "a", "content": long}), "`a`"),
        ("edit_file", json!({"path": "a", "old_string": "one", "new_string": long}), "`a`"),
        ("edit_file_batch", json!({"path": "a", "edits": [edit]}), "`a`"),
        ("edit_lines", json!({"path": "a", "start_line": 1, "new_content": long}), "`a`"),
        ("regex_replace", json!({"path": "a", "pattern": "one", "replacement": long}), "`a`"),
        ("patch", json!({"path": "a", "diff": diff}), "`a`"),
        ("copy_file", json!({"source": "a", "destination": "c"}), "`c`"),
        ("copy_file", json!({"source": "a", "destination": "b", "overwrite": true}), "`b`"),
    ]
}

#[test]
fn a_change_that_fails_changes_nothing() {
    let bench = Bench::new();
    for fault in [Fault::Full, Fault::ReadOnly, Fault::FsyncError, Fault::TornWrite] {
        for (tool, arguments, named) in calls() {
            let disk = stage();
            let before = disk.tree(View::Now);
            let once = matches!(fault, Fault::FsyncError | Fault::TornWrite);
            disk.set_fault(fault, if once { Switch::Once } else { Switch::On });
            let error = bench.call(&disk, tool, arguments).expect_err(tool);
            assert!(error.contains(named), "{fault:?}, {tool}: {error}");
            assert!(!error.contains("/project"), "{fault:?}, {tool}: {error}");
            assert_eq!(disk.tree(View::Now), before, "{fault:?}, {tool}");
        }
    }
}
