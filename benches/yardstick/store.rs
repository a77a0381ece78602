//! Commits as the server makes them: one SQLite database with WAL and `synchronous = FULL`, one
//! connection, one writer thread.

use std::path::Path;
use std::sync::mpsc;

use anyhow::Context as _;
use rusqlite::Connection;
use tokio::sync::oneshot;

const SCHEMA: &str = "CREATE TABLE record (seq INTEGER PRIMARY KEY, content TEXT NOT NULL)";
const CONTENT_BYTES: usize = 200;

/// An open database.
#[derive(Debug)]
pub(crate) struct Journal {
    connection: Connection,
    content: String,
}

impl Journal {
    /// Opens the database of a home and runs `statements` in one transaction.
    pub(crate) fn open(home: &Path, statements: &str) -> anyhow::Result<Self> {
        let connection = Connection::open(home.join("nexus3.db"))?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.execute_batch(&format!("BEGIN; {statements}; COMMIT"))?;
        Ok(Self { connection, content: "x".repeat(CONTENT_BYTES) })
    }

    /// A database of our own making, ready for commits.
    pub(crate) fn new(home: &Path) -> anyhow::Result<Self> {
        Self::open(home, SCHEMA)
    }

    /// Writes `records` rows and returns once they are on disk.
    pub(crate) fn commit(&mut self, records: usize) -> anyhow::Result<()> {
        let transaction = self.connection.transaction()?;
        {
            let mut insert = transaction.prepare("INSERT INTO record (content) VALUES (?1)")?;
            for _ in 0..records {
                insert.execute([&self.content])?;
            }
        }
        Ok(transaction.commit()?)
    }
}

/// The thread that owns the database.
#[derive(Clone, Debug)]
pub(crate) struct Writer {
    waiting: mpsc::SyncSender<oneshot::Sender<()>>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Grouping {
    Single,
    Grouped,
}

impl Writer {
    pub(crate) fn start(home: &Path, grouping: Grouping) -> anyhow::Result<Self> {
        let mut journal = Journal::new(home)?;
        let (sender, receiver) = mpsc::sync_channel::<oneshot::Sender<()>>(1024);
        std::thread::spawn(move || {
            while let Ok(first) = receiver.recv() {
                let mut group = vec![first];
                match grouping {
                    Grouping::Single => {}
                    Grouping::Grouped => group.extend(receiver.try_iter()),
                }
                journal.commit(group.len()).expect("a database of our own takes a commit");
                for waiting in group {
                    // A caller that went away has no use for the answer.
                    let _ = waiting.send(());
                }
            }
        });
        Ok(Self { waiting: sender })
    }

    pub(crate) async fn commit(&self) -> anyhow::Result<()> {
        let (sender, receiver) = oneshot::channel();
        self.waiting.try_send(sender).context("too many commits wait")?;
        receiver.await.context("the writer is gone")
    }
}
