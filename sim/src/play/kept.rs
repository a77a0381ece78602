//! The server's database as it lies on the disk, read from outside: SQLite on a copy of the disk, so
//! that looking changes nothing. It judges nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use jiff::Timestamp;
use nexus3::event::{Event, Seq};
use nexus3::home::DATABASE;
use nexus3::message::Message;
use nexus3::world::{Program, Sqlite};
use rusqlite::{Connection, Row};
use serde::Deserialize;
use serde_json::Value;

use crate::disk::{Databases, Disk, Item, View};
use crate::machine::{EPOCH, HOME};

/// All that is kept.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    /// What SQLite finds wrong with its own file.
    pub damage: Vec<String>,
    pub last_seq: Seq,
    /// In order of their creation, those that are gone too.
    pub agents: Vec<KeptAgent>,
    pub requests: Vec<KeptRequest>,
    /// In order.
    pub events: Vec<KeptEvent>,
    /// Calls that are on record as started.
    pub tool_calls: Vec<KeptCall>,
    pub confirmations: Vec<KeptConfirmation>,
    /// How many turns are charged to agents that have limits, or stand below some.
    pub turns_charged: BTreeMap<i64, u64>,
    /// Up to which event those of an agent were forgotten.
    pub forgotten: BTreeMap<String, Seq>,
}

#[derive(Clone, Debug, Default)]
pub struct KeptAgent {
    pub number: i64,
    pub id: String,
    pub parent: Option<String>,
    pub status: String,
    pub messages: Vec<Message>,
}

#[derive(Clone, Debug, Default)]
pub struct KeptRequest {
    pub agent: i64,
    pub id: String,
    pub content: String,
    pub status: String,
    /// JSON, or null where there is none.
    pub outcome: Value,
}

#[derive(Clone, Debug, Default)]
pub struct KeptEvent {
    pub seq: Seq,
    pub agent: String,
    pub name: String,
    /// The event as clients get it; null where the line is no JSON.
    pub json: Value,
    /// `None` where it is no event of ours.
    pub event: Option<Event>,
}

#[derive(Clone, Debug, Default)]
pub struct KeptCall {
    pub agent: i64,
    pub tool_id: String,
    pub request: String,
}

#[derive(Clone, Debug, Default)]
pub struct KeptConfirmation {
    pub id: String,
    pub agent: i64,
    pub request: String,
    pub status: String,
}

/// Something that somebody allowed, as the events tell it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Allowed {
    pub target: String,
    pub cwd: String,
    pub decision: String,
}

/// What an agent was given to do, as its record has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeptGrant {
    pub number: i64,
    pub id: String,
    pub parent: Option<String>,
    pub recipe: Value,
    /// The tools of its calls that are on record as started, in the last message that asked for any. They
    /// may have ended: whoever looks now and then would miss the short ones.
    pub calls: Vec<String>,
    /// What somebody allowed it, once or for good.
    pub allowed: Vec<Allowed>,
}

impl KeptGrant {
    /// Those of the agents that are there now; `None` where there is no database that can be read.
    pub fn read(disk: &Disk) -> Option<Vec<Self>> {
        let path = Path::new(HOME).join(DATABASE);
        let databases = Databases::new(copy(disk, &path)?, || 1);
        let connection = databases.open(&path).ok()?;
        let exclusive = |_: &Row<'_>| Ok(());
        connection.pragma_update_and_check(None, "locking_mode", "EXCLUSIVE", exclusive).ok()?;
        let sql = "SELECT id, parent, recipe, number, \
                   (SELECT json_group_array(name) FROM tool_calls \
                   WHERE tool_calls.agent = agents.number) \
                   FROM agents JOIN recipes ON recipes.agent = agents.number \
                   WHERE session_status IN ('active', 'dormant') ORDER BY number";
        all(&connection, sql, |row| {
            let (id, parent, recipe) = (row.get::<_, String>(0)?, row.get(1)?, json(row, 2)?);
            let allowed = allowed(&connection, &id)?;
            Ok(Self { number: row.get(3)?, id, parent, recipe, calls: json(row, 4)?, allowed })
        })
        .ok()
    }
}

impl Kept {
    /// The same without these requests.
    pub fn without_requests(&self, ids: &BTreeSet<String>) -> Self {
        let mut kept = self.clone();
        kept.requests.retain(|request| !ids.contains(&request.id));
        kept
    }

    /// What is on the disk now; `None` where there is no database.
    pub fn read(disk: &Disk) -> Option<Result<Self, String>> {
        let path = Path::new(HOME).join(DATABASE);
        let copy = copy(disk, &path)?;
        let databases = Databases::new(copy, || 1);
        let read = databases.open(&path).and_then(|connection| Self::of(&connection));
        Some(read.map_err(|error| error.to_string()))
    }

    /// The agent of that id that is there, if one is.
    pub fn agent(&self, id: &str) -> Option<&KeptAgent> {
        self.agents.iter().find(|agent| agent.id == id && agent.exists())
    }

    /// What the agent of this id was called before, by its events.
    pub fn former_ids<'a>(&'a self, id: &'a str) -> impl Iterator<Item = &'a str> {
        let of_id = self.events.iter().filter(move |event| event.agent == id);
        of_id.map(|event| event.text("agent_id")).filter(move |told| *told != id)
    }

    /// The agent that has this id or, where nobody has, the last that had it and got another.
    pub fn agent_once_called(&self, id: &str) -> Option<&KeptAgent> {
        let there = || self.agents.iter().filter(|agent| agent.exists());
        let had_it = |agent: &&KeptAgent| self.former_ids(&agent.id).any(|former| former == id);
        self.agent(id).or_else(|| there().rfind(had_it))
    }

    /// The requests of an agent, in order.
    pub fn requests_of(&self, agent: &KeptAgent) -> impl Iterator<Item = &KeptRequest> {
        let number = agent.number;
        self.requests.iter().filter(move |request| request.agent == number)
    }

    /// Whether an event of an agent may be gone.
    pub fn is_forgotten(&self, agent: &str, seq: Seq) -> bool {
        self.forgotten.get(agent).is_some_and(|up_to| seq <= *up_to)
    }

    fn of(connection: &Connection) -> rusqlite::Result<Self> {
        // Without it a log would need shared memory, which the simulated disk has not.
        let exclusive = |_: &Row<'_>| Ok(());
        connection.pragma_update_and_check(None, "locking_mode", "EXCLUSIVE", exclusive)?;
        if connection.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0))? == 0 {
            // The server never got as far as making its tables.
            return Ok(Self::default());
        }
        let damage: Vec<String> = all(connection, "PRAGMA integrity_check", |row| row.get(0))?;
        let damage = damage.into_iter().filter(|line| line != "ok").collect();
        let forgotten = "SELECT agent_id, up_to FROM forgotten_events";
        let forgotten = all(connection, forgotten, |row| Ok((row.get(0)?, seq(row, 1)?)))?;
        Ok(Self {
            damage,
            last_seq: connection.query_row("SELECT seq FROM counters", (), |row| seq(row, 0))?,
            agents: agents(connection)?,
            requests: requests(connection)?,
            events: events(connection)?,
            tool_calls: all(connection, "SELECT agent, tool_id, request FROM tool_calls", |row| {
                Ok(KeptCall { agent: row.get(0)?, tool_id: row.get(1)?, request: row.get(2)? })
            })?,
            confirmations: all(
                connection,
                "SELECT confirm_id, agent, request, status FROM confirmations",
                |row| {
                    let (id, agent, request) = (row.get(0)?, row.get(1)?, row.get(2)?);
                    Ok(KeptConfirmation { id, agent, request, status: row.get(3)? })
                },
            )?,
            turns_charged: all(connection, "SELECT agent, turns FROM budgets", |row| {
                Ok((row.get(0)?, seq(row, 1)?))
            })?,
            forgotten,
        })
    }
}

impl KeptAgent {
    /// Whether it is there for those who ask.
    pub fn exists(&self) -> bool {
        matches!(self.status.as_str(), "active" | "dormant")
    }
}

impl KeptRequest {
    pub fn has_ended(&self) -> bool {
        !matches!(self.status.as_str(), "queued" | "running")
    }
}

impl KeptEvent {
    /// A member of the event that is a text; empty where it is none.
    pub fn text(&self, member: &str) -> &str {
        self.json.get(member).and_then(Value::as_str).unwrap_or_default()
    }
}

impl Allowed {
    /// Whether a program may be started by it.
    pub fn starts(&self, program: &Program) -> bool {
        let there = match self.decision.as_str() {
            "allow_exec_cwd" => program.directory.starts_with(&self.cwd),
            _ => program.directory == Path::new(&self.cwd),
        };
        there && program.program.to_string_lossy() == self.target
    }

    /// Whether programs may write there from now on.
    pub fn grants(&self, path: &Path) -> bool {
        self.target.split(" → ").map(Path::new).any(|target| match self.decision.as_str() {
            "allow_file" => path == target,
            "allow_dir" => Some(path) == target.parent(),
            _ => false,
        })
    }

    /// Whether a change of this path is a part of it: the file itself, what takes its place, the way to
    /// it, and what is in its directory where that was allowed.
    pub fn covers(&self, path: &Path) -> bool {
        self.target.split(" → ").map(Path::new).any(|target| {
            let beside = path.parent().is_some_and(|parent| Some(parent) == target.parent());
            path == target
                || target.starts_with(path)
                || beside && path.to_string_lossy().contains("/.nexus3-")
                || self.decision == "allow_dir"
                    && target.parent().is_some_and(|parent| path.starts_with(parent))
        })
    }
}

fn allowed(connection: &Connection, agent: &str) -> rusqlite::Result<Vec<Allowed>> {
    let sql = "SELECT asked.json, decided.json FROM events AS decided JOIN events AS asked \
               ON asked.agent_id = decided.agent_id AND asked.name = 'confirmation_requested' \
               AND asked.json ->> 'confirm_id' = decided.json ->> 'confirm_id' \
               WHERE decided.name = 'confirmation_resolved' \
               AND decided.json ->> 'decision' LIKE 'allow%' \
               AND decided.agent_id = ?1 ORDER BY decided.seq";
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let row = |row: &Row<'_>| {
        let (asked, decided): (Value, Value) = (json(row, 0)?, json(row, 1)?);
        let (target, cwd) = (text(&asked["target"]), text(&asked["cwd"]));
        Ok(Allowed { target, cwd, decision: text(&decided["decision"]) })
    };
    connection.prepare(sql)?.query_map([agent], row)?.collect()
}

/// A disk with the database and its log, and nothing else; `None` where there is no database.
fn copy(disk: &Disk, database: &Path) -> Option<Disk> {
    let copy = Disk::new(|| Timestamp::constant(EPOCH, 0));
    let is_part = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        path.parent() == database.parent() && name.starts_with(DATABASE)
    };
    let mut found = None;
    for (path, item) in disk.tree(View::Now).into_iter().filter(|(path, _)| is_part(path)) {
        if let Item::File { content, .. } = item {
            // Whatever may not be touched there may be here.
            let copied = copy.put(&path, Item::File { content, mode: 0o600 });
            copied.expect("an empty disk takes a file");
            found = found.or((path == database).then_some(()));
        }
    }
    found.map(|()| copy)
}

fn agents(connection: &Connection) -> rusqlite::Result<Vec<KeptAgent>> {
    let sql = "SELECT number, id, parent, session_status FROM agents ORDER BY number";
    let mut agents: Vec<KeptAgent> = all(connection, sql, |row| {
        let (number, id, parent, status) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
        Ok(KeptAgent { number, id, parent, status, messages: Vec::new() })
    })?;
    let sql = "SELECT agent, message FROM messages ORDER BY agent, place";
    let messages: Vec<(i64, Message)> =
        all(connection, sql, |row| Ok((row.get(0)?, json(row, 1)?)))?;
    let mut by_agent: BTreeMap<i64, Vec<Message>> = BTreeMap::new();
    for (agent, message) in messages {
        by_agent.entry(agent).or_default().push(message);
    }
    for agent in &mut agents {
        agent.messages = by_agent.remove(&agent.number).unwrap_or_default();
    }
    Ok(agents)
}

fn requests(connection: &Connection) -> rusqlite::Result<Vec<KeptRequest>> {
    let sql = "SELECT agent, id, content, status, coalesce(outcome, 'null') FROM requests \
               ORDER BY number";
    all(connection, sql, |row| {
        let (agent, id, content) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(KeptRequest { agent, id, content, status: row.get(3)?, outcome: json(row, 4)? })
    })
}

fn events(connection: &Connection) -> rusqlite::Result<Vec<KeptEvent>> {
    all(connection, "SELECT seq, agent_id, name, json FROM events ORDER BY seq", |row| {
        let json: Value = serde_json::from_str(&row.get::<_, String>(3)?).unwrap_or_default();
        let event = Event::deserialize(&json).ok();
        Ok(KeptEvent { seq: seq(row, 0)?, agent: row.get(1)?, name: row.get(2)?, json, event })
    })
}

fn all<T, C: FromIterator<T>>(
    connection: &Connection,
    sql: &str,
    row: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<C> {
    connection.prepare(sql)?.query_map((), row)?.collect()
}

fn seq(row: &Row<'_>, column: usize) -> rusqlite::Result<Seq> {
    Ok(row.get::<_, i64>(column)?.unsigned_abs())
}

fn json<T: serde::de::DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    serde_json::from_str(&text).map_err(|error| {
        let text = rusqlite::types::Type::Text;
        rusqlite::Error::FromSqlConversionFailure(column, text, Box::new(error))
    })
}
