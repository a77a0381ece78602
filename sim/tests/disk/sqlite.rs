//! Real SQLite on the simulated disk, with the power cut at every write and sync of a small workload,
//! inside commits and while it is closed too.

use std::sync::{Mutex, MutexGuard, PoisonError};

use nexus3::world::Sqlite;
use nexus3_sim::disk::{CrashMode, Databases, Disk, Fault, Item, Switch, View};
use rusqlite::{Connection, ErrorCode, Result, ffi};

use super::{chance, disk, p};

const COMMITS: u32 = 8;
const PATH: &str = "/d/store.db";

/// SQLite's generator belongs to the whole process, so tests that use it take turns.
static TURN: Mutex<()> = Mutex::new(());

pub(super) fn one_at_a_time() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Clone, Copy)]
struct Setting {
    locking: &'static str,
    journal: &'static str,
    synchronous: &'static str,
}

/// As the store does it.
const STORE: Setting = Setting { locking: "EXCLUSIVE", journal: "WAL", synchronous: "FULL" };

fn open(databases: &Databases, setting: Setting) -> Result<Connection> {
    let connection = databases.open(p(PATH))?;
    let set = |pragma: &str, value: &str| {
        let told = |row: &rusqlite::Row<'_>| row.get::<_, String>(0);
        connection.pragma_update_and_check(None, pragma, value, told)
    };
    set("locking_mode", setting.locking)?;
    let journal = set("journal_mode", setting.journal)?;
    assert_eq!(journal, setting.journal.to_lowercase(), "the journal is as asked for");
    connection.pragma_update(None, "synchronous", setting.synchronous)?;
    connection.execute_batch("CREATE TABLE IF NOT EXISTS word (n INTEGER PRIMARY KEY, t TEXT)")?;
    Ok(connection)
}

fn commit(connection: &mut Connection, n: u32) -> Result<()> {
    let transaction = connection.transaction()?;
    // Two rows and more than a page: half of a commit would show.
    let text = format!("{n} ").repeat(2000);
    transaction.execute("INSERT INTO word VALUES (?1, ?2)", (2 * n, &text))?;
    transaction.execute("INSERT INTO word VALUES (?1, ?2)", (2 * n + 1, &text))?;
    transaction.commit()
}

/// Runs until the disk fails; returns how many commits were acknowledged.
fn run(disk: &Disk, setting: Setting, seed: u64) -> usize {
    let databases = Databases::new(disk.clone(), chance(seed));
    let mut acknowledged = 0;
    let _ended_by_the_power_cut: Result<()> = (|| {
        let mut connection = open(&databases, setting)?;
        for n in 0..COMMITS {
            commit(&mut connection, n)?;
            acknowledged += 1;
            if n == COMMITS / 2 && setting.journal == "WAL" {
                connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")?;
            }
        }
        Ok(())
    })();
    acknowledged
}

/// What is wrong after a crash at that point, if anything.
fn violation(setting: Setting, point: u64, mode: CrashMode, seed: u64) -> Option<String> {
    let disk = disk();
    disk.power_off_in(point);
    let acknowledged = run(&disk, setting, seed);
    crash(&disk, mode, seed);
    judge(&disk, setting, seed, acknowledged)
}

fn crash(disk: &Disk, mode: CrashMode, seed: u64) {
    disk.power_off();
    disk.crash(&mut chance(seed), mode);
    disk.power_on();
}

fn judge(disk: &Disk, setting: Setting, seed: u64, acknowledged: usize) -> Option<String> {
    match found(disk, setting, seed) {
        Ok(rows) if rows != (0..rows.len()).collect::<Vec<_>>() => Some(format!("a gap: {rows:?}")),
        Ok(rows) if rows.len() % 2 != 0 => Some(format!("half of a commit: {rows:?}")),
        Ok(rows) if rows.len() / 2 < acknowledged => {
            Some(format!("{acknowledged} commits were acknowledged, {} rows are left", rows.len()))
        }
        Ok(_) => None,
        Err(error) => Some(format!("it is not sound: {error}")),
    }
}

/// The rows, which are checked by reading all of them.
fn found(disk: &Disk, setting: Setting, seed: u64) -> Result<Vec<usize>> {
    let databases = Databases::new(disk.clone(), chance(seed));
    let connection = open(&databases, setting)?;
    let health: String = connection.query_row("PRAGMA integrity_check", (), |row| row.get(0))?;
    if health != "ok" {
        return Err(rusqlite::Error::InvalidParameterName(health));
    }
    let mut rows = connection.prepare("SELECT n FROM word ORDER BY n")?;
    rows.query_map((), |row| row.get::<_, u32>(0).map(|n| n as usize))?.collect()
}

/// All violations over every crash point, mode and a few seeds.
fn sweep(setting: Setting) -> Vec<String> {
    let _alone = one_at_a_time();
    let whole = disk();
    assert_eq!(run(&whole, setting, 0), COMMITS as usize, "nothing fails without a crash");
    let mut violations = Vec::new();
    for point in 1..=whole.operations() + 1 {
        for (mode, seeds) in
            [(CrashMode::LoseAll, 1), (CrashMode::KeepAll, 1), (CrashMode::Torn, 3)]
        {
            for seed in 0..seeds {
                let found = violation(setting, point, mode, seed);
                violations.extend(found.map(|what| format!("point {point}, {mode:?}: {what}")));
            }
        }
    }
    violations
}

#[test]
fn a_synced_write_ahead_log_loses_no_acknowledged_commit() {
    assert_eq!(sweep(STORE), Vec::<String>::new());
}

#[test]
fn a_crash_during_recovery_loses_nothing_either() {
    let _alone = one_at_a_time();
    let whole = disk();
    run(&whole, STORE, 0);
    for point in 1..=whole.operations() {
        for seed in 0..4 {
            let disk = disk();
            disk.power_off_in(point);
            let acknowledged = run(&disk, STORE, seed);
            crash(&disk, CrashMode::Torn, seed);
            // Recovery, and the checkpoint when it is closed, take a handful of operations.
            disk.power_off_in(1 + (point + seed) % 8);
            let _ended_by_the_power_cut = found(&disk, STORE, seed);
            crash(&disk, CrashMode::Torn, seed + 100);
            let violation = judge(&disk, STORE, seed, acknowledged);
            assert_eq!(violation, None, "point {point}, seed {seed}");
        }
    }
}

#[test]
fn a_rollback_journal_with_every_sync_loses_no_acknowledged_commit() {
    let setting = Setting { locking: "NORMAL", journal: "DELETE", synchronous: "EXTRA" };
    assert_eq!(sweep(setting), Vec::<String>::new());
}

#[test]
fn a_rollback_journal_without_the_last_sync_is_caught() {
    // What EXTRA adds: that the journal is gone is durable before the commit is acknowledged.
    let setting = Setting { locking: "NORMAL", journal: "DELETE", synchronous: "FULL" };
    assert_ne!(sweep(setting), Vec::<String>::new());
}

#[test]
fn a_write_ahead_log_that_is_synced_at_checkpoints_only_is_caught() {
    assert_ne!(sweep(Setting { synchronous: "NORMAL", ..STORE }), Vec::<String>::new());
}

#[test]
fn a_write_ahead_log_that_is_never_synced_is_caught() {
    assert_ne!(sweep(Setting { synchronous: "OFF", ..STORE }), Vec::<String>::new());
}

#[test]
fn the_same_seed_leaves_the_same_bytes() {
    let _alone = one_at_a_time();
    let digest = |seed: u64| {
        let disk = disk();
        // Before the end: a closed database has no log and so none of its random salts.
        disk.power_off_in(60);
        run(&disk, STORE, seed);
        assert!(disk.is_off(), "the workload is longer");
        disk.digest(View::Now)
    };
    let first = digest(1);
    let other = digest(2);
    assert_ne!(first, other, "the salts are drawn from the seed");
    assert_eq!(digest(1), first, "whatever ran in between");
}

#[test]
fn a_database_is_on_the_clock_of_its_disk() {
    let _alone = one_at_a_time();
    let disk = Disk::new(|| "2031-05-06T07:08:09Z".parse().expect("it is a time"));
    let databases = Databases::new(disk, chance(0));
    let connection = databases.open(p("/store.db")).expect("it opens");
    let now: String = connection
        .query_row("SELECT datetime('now')", (), |row| row.get(0))
        .expect("SQLite has a clock");
    assert_eq!(now, "2031-05-06 07:08:09");
}

#[test]
fn a_database_has_one_owner() {
    let _alone = one_at_a_time();
    let disk = disk();
    let databases = Databases::new(disk.clone(), chance(0));
    let first = open(&databases, STORE).expect("it opens");
    let second = open(&databases, STORE).expect_err("it is held");
    assert_eq!(second.sqlite_error_code(), Some(ErrorCode::DatabaseBusy));
    // The machine crashes under the first: its lock goes with it, however long it stays around.
    disk.crash(&mut chance(0), CrashMode::LoseAll);
    disk.power_on();
    open(&databases, STORE).expect("the owner is gone");
    drop(first);
}

#[test]
fn a_connection_outlives_what_opened_it() {
    let _alone = one_at_a_time();
    let disk = disk();
    let mut connection = open(&Databases::new(disk, chance(0)), STORE).expect("it opens");
    let other = super::disk();
    let elsewhere = open(&Databases::new(other.clone(), chance(0)), STORE).expect("it opens");
    commit(&mut connection, 0).expect("it is on its own disk still");
    drop((connection, elsewhere));
    assert_eq!(found(&other, STORE, 0), Ok(vec![]), "and not on the other");
}

#[test]
fn a_failing_disk_fails_commits_with_its_reason() {
    let _alone = one_at_a_time();
    let cases = [
        (Fault::Full, ffi::SQLITE_FULL),
        (Fault::IoError, ffi::SQLITE_IOERR_WRITE),
        (Fault::TornWrite, ffi::SQLITE_IOERR_WRITE),
        (Fault::ReadOnly, ffi::SQLITE_IOERR_WRITE),
        (Fault::FsyncError, ffi::SQLITE_IOERR_FSYNC),
    ];
    for (fault, code) in cases {
        let disk = disk();
        let databases = Databases::new(disk.clone(), chance(0));
        let mut connection = open(&databases, STORE).expect("it opens");
        commit(&mut connection, 0).expect("all is well");
        disk.set_fault(fault, Switch::On);
        let error = commit(&mut connection, 1).expect_err("it cannot be written");
        let told = error.sqlite_error().map(|error| error.extended_code);
        assert_eq!(told, Some(code), "{fault:?}: {error}");
        disk.set_fault(fault, Switch::Off);
        commit(&mut connection, 1).expect("all is well again");
        drop(connection);
        assert_eq!(found(&disk, STORE, 0), Ok(vec![0, 1, 2, 3]), "{fault:?}");
    }
}

#[test]
fn a_disk_that_lies_about_syncs_is_caught() {
    let _alone = one_at_a_time();
    let disk = disk();
    disk.put(p("/d/other"), Item::Dir { mode: 0o700 }).expect("there is nothing yet");
    disk.set_fault(Fault::FsyncLies, Switch::On);
    disk.power_off_in(60);
    assert!(run(&disk, STORE, 0) > 0, "it says that commits are durable");
    disk.crash(&mut chance(0), CrashMode::LoseAll);
    disk.power_on();
    assert_eq!(found(&disk, STORE, 0), Ok(vec![]), "they are not");
}
