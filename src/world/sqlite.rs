//! Databases: SQLite itself, on whatever disk this world has.

use std::path::Path;

pub trait Sqlite: Send + Sync {
    /// Opens the database at an absolute path, created where there is none. Blocks.
    fn open(&self, path: &Path) -> rusqlite::Result<rusqlite::Connection>;
}
