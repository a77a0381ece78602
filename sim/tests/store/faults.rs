//! A disk that fails with the power on: what cannot be committed is refused and never comes back, and
//! once the disk is well again, so is the store.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use nexus3::hub::Scope;
use nexus3::store::{Store, StoreError};
use nexus3::world::{Access, Fs, World};
use nexus3_sim::disk::{CrashMode, Disk, Fault, OperationKind, Switch};

use super::support::{Heard, Host, created, event, open, options, put, queued, user};

const LOG: &str = "/home/nexus3.db-wal";
const FAULTS: [Fault; 5] =
    [Fault::Full, Fault::IoError, Fault::ReadOnly, Fault::FsyncError, Fault::TornWrite];

async fn seqs(store: &Store) -> Vec<u64> {
    let page = store.events(&Scope::Everything, 0).await.expect("read");
    page.events.iter().map(|event| event.seq).collect()
}

/// Two commits that wait together, and fail.
async fn refused(store: &Store, fault: Fault) {
    let one = store.commit(vec![created(2, "b"), event("b", 1), put(2, 0, user("lost"))]);
    let other = store.commit(vec![put(1, 1, user("lost")), event("a", 1)]);
    let (one, other) = tokio::join!(one, other);
    for result in [one, other] {
        assert!(matches!(result, Err(StoreError::Write { .. })), "{fault:?}: {result:?}");
    }
}

/// Whatever was refused, and repeated.
async fn accepted(store: &Store, heard: &Heard, fault: Fault) {
    store.commit(vec![created(2, "b"), event("b", 2)]).await.expect("the disk is well again");
    store.commit(vec![event("a", 3)]).await.expect("and stays so");
    assert_eq!(heard.seqs(), [1, 2, 3], "{fault:?}: no number is left out");
    assert_eq!(seqs(store).await, [1, 2, 3], "{fault:?}");
    assert_eq!(store.messages(1, 0, 10).await.expect("read"), [user("kept")], "{fault:?}");
    assert_eq!(store.messages(2, 0, 10).await.expect("read"), [], "{fault:?}");
}

async fn opened(world: &World, heard: &Arc<Heard>) -> Store {
    let store = open(world, options(), heard).await.expect("it opens").store;
    let writes = vec![created(1, "a"), put(1, 0, user("kept")), event("a", 0)];
    store.commit(writes).await.expect("all is well");
    store
}

/// After a power cut that loses what it can.
fn all_there(machine: &Host, fault: Fault) {
    machine.crash(CrashMode::LoseAll, 0);
    machine.serve(async |opened, _| {
        assert_eq!((opened.set_aside, opened.residents.len()), (None, 2), "{fault:?}");
        assert_eq!(seqs(&opened.store).await, [1, 2, 3], "{fault:?}");
    });
}

#[test]
fn while_the_disk_fails_commits_are_refused_and_afterwards_they_are_not() {
    let _alone = Host::new();
    for fault in FAULTS {
        let machine = Host::another();
        machine.live(async |world| {
            let heard = Heard::new();
            let store = opened(&world, &heard).await;
            machine.disk.set_fault(fault, Switch::On);
            for _ in 0..3 {
                refused(&store, fault).await;
            }
            assert_eq!((heard.seqs(), store.last_seq()), (vec![1], 1), "{fault:?}");
            machine.disk.set_fault(fault, Switch::Off);
            accepted(&store, &heard, fault).await;
            machine.disk.power_off();
        });
        all_there(&machine, fault);
    }
}

#[test]
fn what_can_be_read_is_read_while_nothing_can_be_written() {
    let _alone = Host::new();
    for fault in [Fault::Full, Fault::ReadOnly, Fault::TornWrite] {
        let machine = Host::another();
        machine.live(async |world| {
            let store = opened(&world, &Heard::new()).await;
            machine.disk.set_fault(fault, Switch::On);
            refused(&store, fault).await;
            let found = store.messages(1, 0, 10).await.expect("it can be read");
            assert_eq!(found, [user("kept")], "{fault:?}");
            machine.disk.power_off();
        });
    }
}

#[test]
fn an_io_error_fails_reads_too_until_it_is_over() {
    let machine = Host::new();
    machine.live(async |world| {
        let store = opened(&world, &Heard::new()).await;
        machine.disk.set_fault(Fault::IoError, Switch::On);
        refused(&store, Fault::IoError).await;
        let read = store.messages(1, 0, 10).await;
        assert!(matches!(read, Err(StoreError::Read { .. })), "{read:?}");
        machine.disk.set_fault(Fault::IoError, Switch::Off);
        assert_eq!(store.messages(1, 0, 10).await.expect("it is over"), [user("kept")]);
        store.close().await;
    });
}

/// The fault strikes at the `point`-th operation of any kind while something is committed, and once.
/// Returns whether there were so many.
fn struck_once(fault: Fault, point: usize, crash: Option<CrashMode>) -> bool {
    let machine = Host::another();
    let case = format!("{fault:?} at {point}, then {crash:?}");
    let (struck, written) = machine.live(async |world| {
        let heard = Heard::new();
        let store = opened(&world, &heard).await;
        machine.strike_at(fault, point);
        let written = store.commit(vec![created(2, "b"), event("b", 2)]).await;
        let struck = machine.strike_no_more(fault) >= point;
        if written.is_err() {
            assert_eq!(heard.seqs(), [1], "{case}: nothing is published");
            assert_eq!(seqs(&store).await, [1], "{case}: nothing is there");
        }
        if crash.is_none() {
            if written.is_err() {
                let again = vec![created(2, "b"), event("b", 2)];
                store.commit(again).await.expect("it was only once");
            }
            store.commit(vec![event("a", 3)]).await.expect("all is well");
            assert_eq!((heard.seqs(), seqs(&store).await), (vec![1, 2, 3], vec![1, 2, 3]));
        }
        machine.disk.power_off();
        (struck, written)
    });
    machine.crash(crash.unwrap_or(CrashMode::LoseAll), 0);
    machine.serve(async |opened, _| {
        assert_eq!(opened.set_aside, None, "{case}");
        let expected = match (crash, written) {
            (None, _) => vec![1, 2, 3],
            (Some(_), Ok(())) => vec![1, 2],
            (Some(_), Err(_)) => vec![1],
        };
        assert_eq!(seqs(&opened.store).await, expected, "{case}");
    });
    struck
}

#[test]
fn a_fault_at_any_single_operation_fails_a_commit_for_good_or_not_at_all() {
    let _alone = Host::new();
    for fault in FAULTS {
        for crash in [None, Some(CrashMode::LoseAll), Some(CrashMode::KeepAll)] {
            let points = (1..1000).take_while(|point| struck_once(fault, *point, crash)).count();
            assert!((5..999).contains(&points), "a commit takes some operations: {points}");
        }
    }
}

/// The `nth` sync of the log makes it durable and is told to have failed all the same.
/// Counts how often the log is cut.
fn sync_and_deny(machine: &Host, nth: usize) -> Arc<AtomicUsize> {
    let cuts = Arc::new(AtomicUsize::new(0));
    let (disk, syncs, counted) = (machine.disk.clone(), AtomicUsize::new(0), cuts.clone());
    machine.disk.on_operation(move |operation| {
        let of_log = |kind| operation.kind == kind && operation.path == Path::new(LOG);
        if of_log(OperationKind::SetLen) {
            counted.fetch_add(1, Ordering::Relaxed);
        }
        if of_log(OperationKind::Sync) && syncs.fetch_add(1, Ordering::Relaxed) + 1 == nth {
            sync_log(&disk);
            disk.set_fault(Fault::FsyncError, Switch::Once);
        }
    });
    cuts
}

fn sync_log(disk: &Disk) {
    let home = disk.dir(Path::new("/home")).expect("it is there");
    let log = home.open(Path::new("nexus3.db-wal"), Access::Write).expect("it is there");
    log.sync().expect("it syncs");
}

#[test]
fn a_batch_that_is_durable_though_its_sync_failed_is_cut_off_durably() {
    let _alone = Host::new();
    for goes_on in [true, false] {
        let machine = Host::another();
        machine.live(async |world| {
            let heard = Heard::new();
            let store = opened(&world, &heard).await;
            let before = machine.file(LOG).expect("there is a log");
            let cuts = sync_and_deny(&machine, 1);
            refused(&store, Fault::FsyncError).await;
            machine.disk.on_operation(|_| ());
            assert_eq!(cuts.load(Ordering::Relaxed), 1, "it was there, and had to be cut off");
            assert_eq!(machine.file(LOG), Some(before), "the log is what it was");
            if goes_on {
                accepted(&store, &heard, Fault::FsyncError).await;
            }
            machine.disk.power_off();
        });
        if goes_on {
            all_there(&machine, Fault::FsyncError);
        } else {
            machine.crash(CrashMode::LoseAll, 0);
            machine.serve(async |opened, _| assert_eq!(seqs(&opened.store).await, [1]));
        }
    }
}

#[test]
fn so_is_one_that_could_not_be_looked_at_before_the_close() {
    let machine = Host::new();
    machine.live(async |world| {
        let store = opened(&world, &Heard::new()).await;
        let (disk, syncs) = (machine.disk.clone(), AtomicUsize::new(0));
        machine.disk.on_operation(move |operation| {
            let is_log = operation.kind == OperationKind::Sync && operation.path == Path::new(LOG);
            if is_log && syncs.fetch_add(1, Ordering::Relaxed) == 0 {
                sync_log(&disk);
                disk.set_fault(Fault::FsyncError, Switch::Once);
            } else if !is_log && syncs.load(Ordering::Relaxed) > 1 {
                disk.set_fault(Fault::IoError, Switch::On);
            }
        });
        refused(&store, Fault::FsyncError).await;
        machine.disk.on_operation(|_| ());
        machine.disk.set_fault(Fault::IoError, Switch::Off);
        store.close().await;
    });
    machine.serve(async |opened, _| assert_eq!(seqs(&opened.store).await, [1]));
}

#[test]
fn so_is_one_that_began_the_log_anew() {
    let machine = Host::new();
    machine.live(async |world| {
        let heard = Heard::new();
        let store = opened(&world, &heard).await;
        // As many pages as make SQLite copy the log; the next commit writes over its beginning.
        let long = user(&"x".repeat(5_000_000));
        store.commit(vec![created(3, "c"), put(3, 0, long.clone())]).await.expect("committed");
        // The first makes the new beginning durable, before anything follows it.
        let cuts = sync_and_deny(&machine, 2);
        refused(&store, Fault::FsyncError).await;
        machine.disk.on_operation(|_| ());
        let left = machine.file(LOG).map(|log| log.len());
        assert_eq!((cuts.load(Ordering::Relaxed), left), (1, Some(0)), "none of it was needed");
        accepted(&store, &heard, Fault::FsyncError).await;
        assert_eq!(store.messages(3, 0, 1).await.expect("read"), [long]);
        machine.disk.power_off();
    });
    machine.crash(CrashMode::LoseAll, 0);
    machine.serve(async |opened, _| {
        assert_eq!(opened.residents.len(), 3);
        assert_eq!(seqs(&opened.store).await, [1, 2, 3]);
    });
}

#[test]
fn the_end_of_a_process_on_a_failing_disk_leaves_all_of_a_refused_batch_or_nothing() {
    let _alone = Host::new();
    for fault in FAULTS {
        for mode in CrashMode::ALL {
            let machine = Host::another();
            machine.live(async |world| {
                let store = opened(&world, &Heard::new()).await;
                machine.disk.set_fault(fault, Switch::On);
                refused(&store, fault).await;
                machine.disk.power_off();
            });
            machine.disk.set_fault(fault, Switch::Off);
            machine.crash(mode, 7);
            machine.serve(async |opened, _| {
                let found = (opened.residents.len(), seqs(&opened.store).await);
                let whole = [(1, vec![1]), (2, vec![1, 2, 3])];
                assert!(whole.contains(&found), "{fault:?}, {mode:?}: {found:?}");
            });
        }
    }
}

#[test]
fn a_fault_while_it_is_opened_costs_nothing_and_sets_nothing_aside() {
    let _alone = Host::new();
    let left_behind = || {
        let machine = Host::another();
        machine.live(async |world| {
            let store = opened(&world, &Heard::new()).await;
            store.commit(vec![queued(1, "r")]).await.expect("committed");
            machine.disk.power_off();
        });
        machine.crash(CrashMode::LoseAll, 0);
        machine
    };
    for fault in FAULTS {
        let points = (1..1000).take_while(|point| {
            let machine = left_behind();
            let case = format!("{fault:?} at {point}");
            let set_aside = machine.live(async |world| {
                machine.strike_at(fault, *point);
                let opened = open(&world, options(), &Heard::new()).await;
                opened.ok().and_then(|opened| opened.set_aside)
            });
            assert_eq!(set_aside, None, "{case}");
            let struck = machine.strike_no_more(fault) >= *point;
            machine.disk.kill();
            machine.serve(async |opened, _| {
                assert_eq!((opened.set_aside, opened.residents.len()), (None, 1), "{case}");
                assert_eq!(seqs(&opened.store).await, [1, 2], "{case}: closed once");
            });
            struck
        });
        let points = points.count();
        assert!((10..999).contains(&points), "opening takes some operations: {points}");
    }
}
