//! Databases that cannot be used as they are: newer ones are left alone, damaged ones set aside.

use std::path::{Path, PathBuf};

use nexus3::store::StoreError;
use nexus3_sim::disk::{CrashMode, Fault, Item, OperationKind, Switch, View};
use nexus3_sim::machine::EPOCH;

use super::support::{DATABASE, Heard, Host, created, event, open, options};

const LOG: &str = "/home/nexus3.db-wal";
const ASIDE: &str = "/home/nexus3.db.corrupt-2025-01-01T00-00-00.000Z";

/// A machine whose database has an agent, after a clean stop.
fn with_agent() -> Host {
    let machine = Host::new();
    machine.serve(async |opened, _| {
        opened.store.commit(vec![created(1, "a"), event("a", 0)]).await.expect("committed");
    });
    machine
}

fn replace(machine: &Host, content: Vec<u8>) {
    let item = Item::File { content, mode: 0o600 };
    machine.disk.put(Path::new(DATABASE), item).expect("it is replaced");
}

fn names(machine: &Host) -> Vec<String> {
    let names = machine.disk.tree(View::Now).into_keys();
    names.map(|path| path.display().to_string()).filter(|path| path != "/home").collect()
}

#[test]
fn nobody_else_can_read_the_database() {
    let machine = Host::new();
    machine.live(async |world| {
        let opened = open(&world, options(), &Heard::new()).await.expect("it opens");
        opened.store.commit(vec![created(1, "a")]).await.expect("committed");
        let mut found = Vec::new();
        for (path, item) in machine.disk.tree(View::Now) {
            if let Item::File { mode, .. } = item {
                found.push((path.display().to_string(), mode));
            }
        }
        let expected = [DATABASE, LOG].map(|path| (path.to_owned(), 0o600));
        assert_eq!(found, expected);
        opened.store.close().await;
    });
}

#[test]
fn a_newer_database_is_refused_untouched() {
    let machine = with_agent();
    let mut content = machine.file(DATABASE).expect("it is there");
    content[60..64].copy_from_slice(&99_u32.to_be_bytes());
    replace(&machine, content);
    let before = machine.disk.tree(View::Now);
    let operations = machine.disk.operations();
    machine.live(async |world| {
        let refused = open(&world, options(), &Heard::new()).await.expect_err("it is newer");
        assert!(matches!(refused, StoreError::Newer { found: 99, known: 7, .. }), "{refused:?}");
    });
    assert_eq!(machine.disk.tree(View::Now), before);
    assert_eq!(machine.disk.operations(), operations, "nothing is written");
}

#[test]
fn a_database_that_is_newer_only_in_its_log_is_refused_as_well() {
    let machine = with_agent();
    machine.live(async |world| {
        // A newer server that was killed after its migration.
        let connection = world.sqlite.open(Path::new(DATABASE)).expect("it opens");
        let set = |name: &str, value: &str| {
            connection.pragma_update_and_check(None, name, value, |_| Ok(())).expect("it is set");
        };
        set("locking_mode", "EXCLUSIVE");
        set("journal_mode", "WAL");
        connection.pragma_update(None, "user_version", 99).expect("it is set");
        machine.disk.kill();
    });
    let before = machine.disk.tree(View::Now);
    machine.live(async |world| {
        let refused = open(&world, options(), &Heard::new()).await.expect_err("it is newer");
        assert!(matches!(refused, StoreError::Newer { found: 99, known: 7, .. }), "{refused:?}");
    });
    assert_eq!(machine.disk.tree(View::Now), before);
}

#[test]
fn a_damaged_database_is_set_aside_and_a_new_one_is_made() {
    let machine = with_agent();
    let sound = machine.file(DATABASE).expect("it is there");
    let mut header = sound.clone();
    header[..16].fill(b'x');
    let mut tables = sound.clone();
    tables[4096..].fill(0xa5);
    let short = sound[..sound.len() / 2].to_vec();
    for (what, damaged) in
        [("header", header), ("tables", tables), ("short", short), ("text", b"hello".to_vec())]
    {
        let machine = Host::another();
        replace(&machine, damaged.clone());
        let log = Item::File { content: b"log".to_vec(), mode: 0o600 };
        machine.disk.put(Path::new(LOG), log).expect("it is put");
        machine.serve(async |opened, _| {
            assert_eq!(opened.set_aside, Some(PathBuf::from(ASIDE)), "{what}");
            // No number of the lost one is given again.
            let began = u64::try_from(EPOCH * 1000).expect("it is after 1970");
            assert_eq!((opened.residents.len(), opened.last_seq), (0, began));
            opened.store.commit(vec![created(1, "a"), event("a", 0)]).await.expect("it is new");
        });
        assert_eq!(machine.file(ASIDE), Some(damaged), "{what}");
        let log = format!("{ASIDE}-wal");
        assert_eq!(machine.file(&log), Some(b"log".to_vec()), "{what}");
        assert_eq!(names(&machine), [DATABASE.to_owned(), ASIDE.to_owned(), log]);
        machine.serve(async |opened, _| {
            assert_eq!((opened.set_aside, opened.residents.len()), (None, 1), "{what}");
        });
    }
}

#[test]
fn a_second_damaged_database_does_not_replace_the_first() {
    let machine = Host::new();
    for suffix in ["", "-1", "-2"] {
        replace(&machine, format!("damaged {suffix}").into());
        machine.serve(async |opened, _| {
            assert_eq!(opened.set_aside, Some(format!("{ASIDE}{suffix}").into()));
        });
    }
    assert_eq!(machine.file(ASIDE), Some(b"damaged ".to_vec()));
}

#[test]
fn a_database_without_its_tables_is_damaged_and_one_on_a_bad_disk_is_not() {
    let machine = with_agent();
    machine.live(async |world| {
        let connection = world.sqlite.open(Path::new(DATABASE)).expect("it opens");
        let exclusive = |_: &rusqlite::Row<'_>| Ok(());
        connection
            .pragma_update_and_check(None, "locking_mode", "EXCLUSIVE", exclusive)
            .expect("it is set");
        connection.execute_batch("DROP TABLE counters").expect("it is dropped");
    });
    let before = machine.disk.tree(View::Now);
    machine.disk.set_fault(Fault::IoError, Switch::On);
    machine.live(async |world| {
        let refused = open(&world, options(), &Heard::new()).await.expect_err("the disk fails");
        assert!(matches!(refused, StoreError::Open { .. }), "{refused:?}");
    });
    machine.disk.set_fault(Fault::IoError, Switch::Off);
    assert_eq!(machine.disk.tree(View::Now), before, "it is still in its place");
    machine.serve(async |opened, _| {
        assert_eq!(opened.set_aside, Some(PathBuf::from(ASIDE)));
    });
}

#[test]
fn a_database_that_cannot_be_read_is_not_set_aside() {
    let machine = Host::new();
    machine.live(async |world| {
        let store = open(&world, options(), &Heard::new()).await.expect("it opens").store;
        store.commit(vec![created(1, "a")]).await.expect("committed");
        machine.disk.power_off();
    });
    machine.crash(CrashMode::LoseAll, 0);
    let before = machine.disk.tree(View::Now);
    // All of it is in the log, of which SQLite says that it is malformed.
    let disk = machine.disk.clone();
    machine.disk.on_operation(move |operation| {
        if operation.kind == OperationKind::Read && operation.path == Path::new(LOG) {
            disk.set_fault(Fault::IoError, Switch::Once);
        }
    });
    machine.live(async |world| {
        let refused = open(&world, options(), &Heard::new()).await.expect_err("the disk fails");
        assert!(matches!(refused, StoreError::Open { .. }), "{refused:?}");
    });
    machine.disk.on_operation(|_| ());
    assert_eq!(machine.disk.tree(View::Now), before, "it is still in its place");
    machine.serve(async |opened, _| assert_eq!(opened.residents.len(), 1));
}

#[test]
fn a_power_cut_while_a_database_is_set_aside_loses_nothing_of_it() {
    let _alone = Host::new();
    let damaged = b"what is left of a database".to_vec();
    for mode in CrashMode::ALL {
        for point in 1..60 {
            let machine = Host::another();
            replace(&machine, damaged.clone());
            machine.disk.power_off_in(point);
            machine.live(async |world| {
                // It ends wherever the power does.
                let _ = open(&world, options(), &Heard::new()).await;
            });
            machine.crash(mode, point);
            machine.serve(async |opened, _| {
                opened.store.commit(vec![created(1, "a")]).await.expect("it can be used");
            });
            let kept = machine.disk.tree(View::Now).into_values().any(|item| match item {
                Item::File { content, .. } => content == damaged,
                Item::Dir { .. } | Item::Link { .. } => false,
            });
            assert!(kept, "{mode:?} at {point}");
        }
    }
}
