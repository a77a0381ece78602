//! Agents that were there before the recording began, as session files of the scenario's home: each is in
//! the recording once it comes back.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::id::AgentId;
use crate::record::form::{File, Files, Yes};
use crate::record::hidden::{HOME, Hidden, PROJECT};

/// Session files are their owner's alone.
const FILE_MODE: u32 = 0o600;

#[derive(Debug, Default)]
pub(super) struct Earlier {
    agents: BTreeMap<String, Agent>,
}

#[derive(Debug)]
struct Agent {
    /// None where it was too long.
    session: Option<Value>,
    presence: Presence,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    OnDisk,
    Back,
}

impl Earlier {
    pub(super) fn was_there(&mut self, id: &AgentId, session: Option<Vec<u8>>, hidden: &Hidden) {
        let session = session.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let session = session.map(|session| hidden.value(&session));
        self.agents.insert(id.to_string(), Agent { session, presence: Presence::OnDisk });
    }

    /// Notes that an agent is needed. Returns its name the first time, if there is a session of it.
    pub(super) fn comes_back(&mut self, id: &str) -> Option<String> {
        let agent = self.agents.get_mut(id)?;
        let is_new = std::mem::replace(&mut agent.presence, Presence::Back) == Presence::OnDisk;
        (is_new && agent.session.is_some()).then(|| id.to_owned())
    }

    /// The sessions of those that came back, and where they work.
    pub(super) fn files(&self) -> Files {
        let mut files = Files::new();
        for (id, agent) in self.back() {
            let Some(session) = &agent.session else { continue };
            let text = serde_json::to_string_pretty(session).expect("what was JSON is JSON") + "\n";
            files.insert(
                format!("{HOME}/sessions/{id}.json"),
                File::TextWithMode { text, mode: FILE_MODE },
            );
            let cwd = session["working_directory"].as_str().unwrap_or(PROJECT);
            if cwd != PROJECT {
                files.insert(cwd.to_owned(), File::Dir { dir: Yes, mode: None });
            }
        }
        files
    }

    /// What is not in the recording though somebody asked for it.
    pub(super) fn missing(&self) -> Option<String> {
        let missing = self.back().filter(|(_, agent)| agent.session.is_none());
        let names: Vec<&str> = missing.map(|(id, _)| id.as_str()).collect();
        let told = || {
            let names = names.join(", ");
            format!("Agents of an earlier server that it has no room for, or no file: {names}.")
        };
        (!names.is_empty()).then(told)
    }

    fn back(&self) -> impl Iterator<Item = (&String, &Agent)> {
        self.agents.iter().filter(|(_, agent)| agent.presence == Presence::Back)
    }
}
