//! SQLite on the system's files. Sets no pragma: how a database is used is the store's business.

use std::path::Path;

use rusqlite::{Connection, Error, OpenFlags, Result};

use crate::world::Sqlite;

pub(super) struct Files;

impl Sqlite for Files {
    fn open(&self, path: &Path) -> Result<Connection> {
        if !path.is_absolute() {
            return Err(Error::InvalidPath(path.to_owned()));
        }
        // Without SQLITE_OPEN_URI: a path is a path, whatever it looks like.
        Connection::open_with_flags(
            path,
            OpenFlags::SQLITE_OPEN_READ_WRITE
                | OpenFlags::SQLITE_OPEN_CREATE
                | OpenFlags::SQLITE_OPEN_NO_MUTEX,
        )
    }
}
