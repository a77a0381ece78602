//! What can go wrong with the database. Only what is for the operator alone names a path.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Told to everybody who was part of a batch, so it can be cloned.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    #[error("cannot open the database {}", path.display())]
    Open {
        path: PathBuf,
        #[source]
        source: Arc<Fault>,
    },
    #[error(
        "the database {} has version {found}, and this server knows versions up to {known}: use a \
         newer server, or another home",
        path.display()
    )]
    Newer { path: PathBuf, found: u32, known: u32 },
    #[error("cannot write to the database")]
    Write {
        #[source]
        source: Arc<Fault>,
    },
    #[error("cannot read from the database")]
    Read {
        #[source]
        source: Arc<Fault>,
    },
    #[error("the database is closed")]
    Closed,
}

/// The cause below a [`StoreError`].
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    #[error("SQLite failed")]
    Sqlite(#[from] rusqlite::Error),
    #[error("a file of the database failed")]
    File(#[from] io::Error),
    #[error("version {found} of the database is not known")]
    Newer { found: u32 },
    #[error("the database lacks what every database of its version has")]
    Incomplete {
        #[source]
        source: rusqlite::Error,
    },
    #[error("the database has no write-ahead log, its journal is `{mode}`")]
    NoLog { mode: String },
    /// Something else changed the files, or they lost what was written.
    #[error("the database is at batch {found} and not at {expected}")]
    Diverged { found: u64, expected: u64 },
}

impl Fault {
    /// Whether the file itself is broken, as opposed to the way to it.
    pub(super) fn is_damage(&self) -> bool {
        match self {
            Self::Sqlite(error) => matches!(
                error.sqlite_error_code(),
                Some(rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase)
            ),
            Self::Incomplete { .. } => true,
            Self::File(_) | Self::Newer { .. } | Self::NoLog { .. } | Self::Diverged { .. } => {
                false
            }
        }
    }
}
