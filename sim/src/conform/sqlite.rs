//! What databases keep: the pragmas the store relies on, commits that last and rollbacks that
//! do not, on the same disk as the world's files.

use std::path::Path;

use nexus3::world::{Kind, World};
use rusqlite::{Connection, Result};

/// `scratch` is an absolute path of an empty directory.
pub async fn sqlite(world: &World, scratch: &Path) {
    let path = scratch.join("conform.db");
    let on_disk = world.clone();
    let scratch = scratch.to_owned();
    world
        .blocking
        .call(move || {
            let mut connection = open(&on_disk, &path);
            commits_and_rolls_back(&mut connection).expect("a fresh database takes writes");
            drop(connection);
            commits_last(&open(&on_disk, &path)).expect("a closed database opens again");
            lies_among_the_files(&on_disk, &scratch);
            refuses_what_it_cannot_open(&on_disk, &scratch);
        })
        .await;
}

fn open(world: &World, path: &Path) -> Connection {
    let connection = world.sqlite.open(path).expect("a database opens where its directory is");
    // Exclusive before WAL, as the store does it: no shared memory, which not every disk has.
    let set = |pragma: &str, value: &str| -> Result<String> {
        connection.pragma_update_and_check(None, pragma, value, |row| row.get(0))
    };
    assert_eq!(set("locking_mode", "EXCLUSIVE").as_deref(), Ok("exclusive"), "one owner");
    assert_eq!(set("journal_mode", "WAL").as_deref(), Ok("wal"), "a write-ahead log");
    connection.pragma_update(None, "synchronous", "FULL").expect("a commit can be synced");
    let synchronous = connection.pragma_query_value(None, "synchronous", |row| row.get(0));
    assert_eq!(synchronous, Ok(2), "every commit is synced");
    connection
}

fn commits_and_rolls_back(connection: &mut Connection) -> Result<()> {
    connection.execute_batch("CREATE TABLE word (n INTEGER PRIMARY KEY, text TEXT NOT NULL)")?;
    let commit = connection.transaction()?;
    for n in 0..500 {
        commit.execute("INSERT INTO word VALUES (?1, ?2)", (n, format!("word {n}")))?;
    }
    commit.commit()?;

    let dropped = connection.transaction()?;
    dropped.execute("DELETE FROM word", ())?;
    dropped.execute("INSERT INTO word VALUES (1000, 'gone')", ())?;
    drop(dropped);
    assert_eq!(count(connection)?, 500, "a dropped transaction leaves nothing");

    let twice = connection.execute("INSERT INTO word VALUES (0, 'again')", ());
    assert!(twice.is_err(), "a primary key is there once");
    Ok(())
}

fn commits_last(connection: &Connection) -> Result<()> {
    assert_eq!(count(connection)?, 500, "what was committed is there after reopening");
    let query = "SELECT text FROM word WHERE n = 499";
    let text: String = connection.query_row(query, (), |row| row.get(0))?;
    assert_eq!(text, "word 499", "and reads as it was written");
    let health: String = connection.query_row("PRAGMA integrity_check", (), |row| row.get(0))?;
    assert_eq!(health, "ok", "the database is sound");
    Ok(())
}

fn count(connection: &Connection) -> Result<u32> {
    connection.query_row("SELECT count(*) FROM word", (), |row| row.get(0))
}

fn lies_among_the_files(world: &World, scratch: &Path) {
    let dir = world.fs.dir(scratch).expect("the scratch directory opens");
    let stat = dir.stat(Path::new("conform.db")).expect("the database is a file of this world");
    assert_eq!(stat.kind, Kind::File, "the database is a regular file");
    assert!(stat.len > 0, "and has content after it was closed");
}

fn refuses_what_it_cannot_open(world: &World, scratch: &Path) {
    let nowhere = world.sqlite.open(&scratch.join("no directory/conform.db"));
    assert!(nowhere.is_err(), "a database in a missing directory is an error");
    let relative = world.sqlite.open(Path::new("conform.db"));
    assert!(relative.is_err(), "a relative path is an error");
}
