//! What the server's database says once the server has ended: its events and its agents. It is read
//! from a copy of the files, so that nothing of the run is touched.

use std::collections::BTreeMap;
use std::path::Path;

use jiff::Timestamp;
use nexus3::event::{Event, Seq};
use nexus3::world::Sqlite;
use rusqlite::{Connection, Row};

use crate::disk::{Databases, Disk, Item, View};
use crate::machine::{EPOCH, HOME};

/// The database and what lies beside it.
const DATABASE: &str = "nexus3.db";

#[derive(Clone, Debug, Default)]
pub struct Kept {
    /// In order.
    pub events: Vec<KeptEvent>,
    /// Up to which event those of an agent are forgotten.
    pub forgotten: BTreeMap<String, Seq>,
    /// Agents that are active or dormant, in order of their creation.
    pub agents: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct KeptEvent {
    pub seq: Seq,
    /// One line of JSON, as everybody is told it.
    pub json: String,
    /// `None` where the line is none.
    pub event: Option<Event>,
}

impl Kept {
    pub fn read(disk: &Disk) -> rusqlite::Result<Self> {
        let copy = Disk::new(|| Timestamp::constant(EPOCH, 0));
        let path = Path::new(HOME).join(DATABASE);
        let tree = disk.tree(View::Now);
        let is_part = |path: &Path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            path.parent() == Some(Path::new(HOME)) && name.starts_with(DATABASE)
        };
        for (path, item) in tree.into_iter().filter(|(path, _)| is_part(path)) {
            if let Item::File { content, .. } = item {
                // Whatever may not be touched there may be here.
                let copied = copy.put(&path, Item::File { content, mode: 0o600 });
                copied.expect("an empty disk takes a file");
            }
        }
        // The databases must outlive the connection, which opens further files by them.
        let databases = Databases::new(copy, || 1);
        let connection = databases.open(&path)?;
        // As the server does it: a log that nobody shares needs no shared memory, which there is none of.
        connection.pragma_update_and_check(None, "locking_mode", "EXCLUSIVE", |_| Ok(()))?;
        read(&connection)
    }

    /// Whether an event of an agent may be gone.
    pub fn is_forgotten(&self, agent: &str, seq: Seq) -> bool {
        self.forgotten.get(agent).is_some_and(|up_to| seq <= *up_to)
    }
}

fn read(connection: &Connection) -> rusqlite::Result<Kept> {
    let event = |row: &Row<'_>| {
        let (seq, json) = (seq(row, 0)?, row.get::<_, String>(1)?);
        let event = serde_json::from_str(&json).ok();
        Ok(KeptEvent { seq, json, event })
    };
    let events = "SELECT seq, json FROM events ORDER BY seq";
    let forgotten = "SELECT agent_id, up_to FROM forgotten_events";
    let agents = "SELECT id FROM agents WHERE session_status IN ('active', 'dormant') \
                  ORDER BY number";
    Ok(Kept {
        events: connection.prepare(events)?.query_map((), event)?.collect::<Result<_, _>>()?,
        forgotten: connection
            .prepare(forgotten)?
            .query_map((), |row| Ok((row.get(0)?, seq(row, 1)?)))?
            .collect::<Result<_, _>>()?,
        agents: connection
            .prepare(agents)?
            .query_map((), |row| row.get(0))?
            .collect::<Result<_, _>>()?,
    })
}

fn seq(row: &Row<'_>, column: usize) -> rusqlite::Result<Seq> {
    let number: i64 = row.get(column)?;
    Ok(Seq::try_from(number).unwrap_or_default())
}
