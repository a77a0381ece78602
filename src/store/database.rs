//! One connection to the database, set up as we want it, and what SQLite's types need to carry ours.
//! It never retries: what failed is dropped.

use std::cell::RefCell;
use std::error::Error;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::types::Type;
use rusqlite::{CachedStatement, Connection, Params, Row};
use serde::de::DeserializeOwned;

use super::error::Fault;
use super::files::Log;
use super::{Sync, schema};
use crate::limits::{STORE_CACHE_KIB, STORE_LOG_PAGES, STORE_STATEMENTS_KEPT};

pub(super) struct Database {
    pub(super) connection: Connection,
    page_bytes: u64,
}

/// What goes on over restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counters {
    pub(super) seq: u64,
    pub(super) batch: u64,
    pub(super) next_agent: u64,
    /// All requests in rows before this one have ended; 0 where all have.
    pub(super) open_from: u64,
}

impl Database {
    /// Sets up a connection that was just opened. Nothing is written to a database that is newer.
    pub(super) fn new(connection: Connection, sync: Sync) -> Result<Self, Fault> {
        // What the last batch wrote must not be copied from the log by a destructor: the process may
        // be about to find out that it failed.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        // Nobody else has any business here, so there is nobody to wait for.
        connection.busy_timeout(Duration::ZERO)?;
        // Before anything else: a log that nobody shares needs no shared memory.
        pragma(&connection, "locking_mode", "EXCLUSIVE")?;
        let found = schema::version(&connection)?;
        if found > schema::known() {
            return Err(Fault::Newer { found });
        }
        let mode = pragma(&connection, "journal_mode", "WAL")?;
        if mode != "wal" {
            return Err(Fault::NoLog { mode });
        }
        let synchronous = match sync {
            Sync::Full => "FULL",
            Sync::Normal => "NORMAL",
        };
        connection.pragma_update(None, "synchronous", synchronous)?;
        connection.pragma_update(None, "cache_size", -STORE_CACHE_KIB)?;
        connection.pragma_update(None, "temp_store", "MEMORY")?;
        // The types of `Write` hold what the checks of the schema say; looking a word up in their
        // lists takes longer than writing the row.
        connection.pragma_update(None, "ignore_check_constraints", "ON")?;
        connection
            .pragma_update_and_check(None, "wal_autocheckpoint", STORE_LOG_PAGES, |_| Ok(()))?;
        connection.set_prepared_statement_cache_capacity(STORE_STATEMENTS_KEPT);
        let page_bytes = connection.pragma_query_value(None, "page_size", |row| number(row, 0))?;
        Ok(Self { connection, page_bytes })
    }

    pub(super) fn migrate(&mut self) -> Result<(), Fault> {
        Ok(schema::migrate(&mut self.connection, schema::MIGRATIONS)?)
    }

    pub(super) fn counters(&self) -> Result<Counters, Fault> {
        let row = |row: &Row<'_>| {
            let (seq, batch, next_agent) = (number(row, 0)?, number(row, 1)?, number(row, 2)?);
            Ok(Counters { seq, batch, next_agent, open_from: number(row, 3)? })
        };
        let sql = "SELECT seq, batch, next_agent, open_from FROM counters";
        self.connection.query_row(sql, (), row).map_err(|source| match &source {
            rusqlite::Error::QueryReturnedNoRows => Fault::Incomplete { source },
            // The generic code: there is no such table.
            error if error.sqlite_error_code() == Some(rusqlite::ErrorCode::Unknown) => {
                Fault::Incomplete { source }
            }
            _ => Fault::Sqlite(source),
        })
    }

    /// The write-ahead log, as far as it counts. To be asked of a connection that has written nothing.
    pub(super) fn log(&self) -> rusqlite::Result<Log> {
        let frames = |row: &Row<'_>| number(row, 1);
        let frames = self.connection.query_row("PRAGMA wal_checkpoint(NOOP)", (), frames)?;
        Ok(Log { frames, page_bytes: self.page_bytes })
    }

    /// Copies all of the log into the database and removes it.
    pub(super) fn close(self) -> rusqlite::Result<()> {
        self.connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")?;
        self.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
        self.connection.close().map_err(|(_, error)| error)
    }
}

/// The statements of one transaction. Each is prepared once for as long as the connection lives:
/// preparing costs more than running most of them. Those that write are kept at hand until the end of
/// the transaction, since looking one up in the cache and putting it back costs a good part of a run.
pub(super) struct Statements<'c> {
    connection: &'c Connection,
    writing: RefCell<Vec<(&'static str, CachedStatement<'c>)>>,
}

impl<'c> Statements<'c> {
    pub(super) fn new(connection: &'c Connection) -> Self {
        Self { connection, writing: RefCell::default() }
    }

    pub(super) fn connection(&self) -> &'c Connection {
        self.connection
    }

    pub(super) fn prepare(&self, sql: &'static str) -> rusqlite::Result<CachedStatement<'c>> {
        self.connection.prepare_cached(sql)
    }

    /// Returns how many rows it changed.
    pub(super) fn run(&self, sql: &'static str, params: impl Params) -> rusqlite::Result<usize> {
        let mut writing = self.writing.borrow_mut();
        if let Some((_, statement)) = writing.iter_mut().find(|(text, _)| *text == sql) {
            return statement.execute(params);
        }
        let mut statement = self.prepare(sql)?;
        let changed = statement.execute(params);
        writing.push((sql, statement));
        changed
    }
}

/// Sets a pragma, and returns what it is then.
fn pragma(connection: &Connection, name: &str, value: &str) -> rusqlite::Result<String> {
    connection.pragma_update_and_check(None, name, value, |row| row.get(0))
}

/// A number of ours as SQLite has them, which is with a sign.
pub(super) fn sql(number: u64) -> i64 {
    number.try_into().expect("what is counted one by one stays below 2^63")
}

pub(super) fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    u64::try_from(row.get::<_, i64>(column)?).map_err(|error| unreadable(column, error))
}

pub(super) fn json<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let text = row.get_ref(column)?.as_str()?;
    serde_json::from_str(text).map_err(|error| unreadable(column, error))
}

/// What is in a column is not what we write there.
pub(super) fn unreadable(
    column: usize,
    error: impl Error + Send + std::marker::Sync + 'static,
) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error))
}
