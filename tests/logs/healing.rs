//! A disk that is full or fails, and works again.

use std::time::Duration;

use nexus3::logs::{Detail, Logs};
use nexus3_sim::disk::{Disk, Fault, Switch};

use super::{LOGS, Said, entries, id, log_on, said, simulated};

/// Longer than the writer needs for what waits.
async fn written() {
    tokio::time::sleep(Duration::from_secs(1)).await;
}

/// A disk with the transcript of one agent, and what happens while `fault` is on.
async fn through(fault: Fault) -> (Disk, Said) {
    let (world, disk) = simulated();
    let logs = Logs::start(&world, LOGS.into(), Detail::default());
    let said_so = Said::listen();
    // Beyond a block, so that a full disk has no room left for the next entry.
    logs.message(&id("a"), &said(&"x".repeat(4096 - 36)));
    written().await;
    disk.set_fault(fault, Switch::On);
    for number in 0..5 {
        logs.message(&id("a"), &said(&format!("lost {number}")));
        logs.message(&id("b"), &said(&format!("lost {number}")));
        written().await;
    }
    assert_eq!(said_so.lines(), 1, "a failing disk is told once");
    disk.set_fault(fault, Switch::Off);
    logs.message(&id("a"), &said("back"));
    logs.close().await;
    (disk, said_so)
}

#[tokio::test(start_paused = true)]
async fn files_say_what_a_failing_disk_did_not_take() {
    for fault in [Fault::Full, Fault::IoError, Fault::ReadOnly, Fault::TornWrite] {
        let (disk, said_so) = through(fault).await;
        let written = entries(&log_on(&disk, "a/context.md"));
        let [_, lacking, back] = written.as_slice() else { panic!("{fault:?}: {written:?}") };
        assert_eq!(
            (lacking.as_str(), back.as_str()),
            ("5 entries were not written here", "user: back")
        );
        assert_eq!(
            entries(&log_on(&disk, "b/context.md")),
            ["5 entries were not written here"],
            "{fault:?}: an agent that says nothing more is told of as well"
        );
        assert_eq!(said_so.lines(), 1, "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_fails_again_is_told_again() {
    let (world, disk) = simulated();
    let logs = Logs::start(&world, LOGS.into(), Detail::default());
    let said_so = Said::listen();
    for times in 1..=3 {
        for (switch, words) in [(Switch::On, "lost"), (Switch::Off, "kept")] {
            disk.set_fault(Fault::IoError, switch);
            logs.message(&id("a"), &said(words));
            written().await;
        }
        assert_eq!(said_so.lines(), times);
    }
    let round = ["1 entry was not written here", "user: kept"];
    assert_eq!(entries(&log_on(&disk, "a/context.md")), [round, round, round].concat());
}
