//! What stands in a session file: its members by their names, those of later versions and of strangers
//! included. Pure: bytes to a session and back.

use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::error::ContentError;
use super::mend::mended;
use crate::event::iso;
use crate::id::AgentId;
use crate::limits::{PATH_BYTES_MAX, SESSION_FILE_BYTES_MAX, SESSION_UNKNOWN_BYTES_MAX};
use crate::message::{Message, Usage};
use crate::policy::{Allowances, Level};

/// The version that is written, and the newest that is read.
pub const SCHEMA_VERSION: u64 = 1;
const VERSION: &str = "schema_version";
const USER: &str = "user";

/// One session, whole, with its members in the order in which they are written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionFile {
    pub schema_version: u64,
    pub agent_id: AgentId,
    /// ISO 8601, UTC.
    #[serde(serialize_with = "write_time", deserialize_with = "read_time")]
    #[schemars(with = "String")]
    pub created_at: Timestamp,
    #[serde(serialize_with = "write_time", deserialize_with = "read_time")]
    #[schemars(with = "String")]
    pub modified_at: Timestamp,
    /// Paired: each call has its result.
    pub messages: Vec<Arc<Message>>,
    #[serde(default, deserialize_with = "text_or_null")]
    pub system_prompt: Arc<str>,
    #[serde(default)]
    pub system_prompt_path: Option<PathBuf>,
    /// Absolute.
    pub working_directory: PathBuf,
    pub permission_level: Level,
    pub permission_preset: String,
    #[serde(default)]
    pub disabled_tools: Vec<String>,
    #[serde(default)]
    pub write_paths: Vec<PathBuf>,
    #[serde(default)]
    pub session_allowances: Allowances,
    pub model: String,
    #[serde(default)]
    pub token_usage: Usage,
    pub provenance: Provenance,
    #[serde(default)]
    pub parent_agent_id: Option<AgentId>,
    #[serde(default)]
    pub depth: u32,
    /// What a sandboxed agent cannot leave, where that is not its working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_directory: Option<PathBuf>,
    /// Members that this version does not know, in their order.
    #[serde(flatten, skip_deserializing)]
    pub unknown: Map<String, Value>,
}

const MEMBERS: [&str; 19] = [
    "schema_version",
    "agent_id",
    "created_at",
    "modified_at",
    "messages",
    "system_prompt",
    "system_prompt_path",
    "working_directory",
    "permission_level",
    "permission_preset",
    "disabled_tools",
    "write_paths",
    "session_allowances",
    "model",
    "token_usage",
    "provenance",
    "parent_agent_id",
    "depth",
    "root_directory",
];

/// Who made an agent: `user`, or the id of its parent.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(with = "String")]
pub enum Provenance {
    User,
    Agent(AgentId),
}

/// What lists tell of a session: everything but its conversation.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Summary {
    pub schema_version: u64,
    #[serde(deserialize_with = "read_time")]
    pub created_at: Timestamp,
    #[serde(deserialize_with = "read_time")]
    pub modified_at: Timestamp,
    #[serde(rename = "messages", deserialize_with = "count")]
    pub message_count: usize,
    pub working_directory: PathBuf,
    pub permission_level: Level,
    pub model: String,
    pub provenance: Provenance,
}

impl SessionFile {
    /// Reads a file that anybody may have written.
    pub fn parse(bytes: &[u8]) -> Result<Self, ContentError> {
        if bytes.len() > SESSION_FILE_BYTES_MAX {
            return Err(ContentError::TooLarge);
        }
        let json = serde_json::from_slice(bytes).map_err(|source| ContentError::NotJson { source });
        let Value::Object(mut unknown) = json? else {
            return Err(ContentError::NotAnObject);
        };
        check_version(unknown.get(VERSION).and_then(Value::as_u64))?;
        let known = MEMBERS.iter().filter_map(|name| unknown.shift_remove_entry(*name)).collect();
        let unknown_bytes = serde_json::to_vec(&unknown).expect("what was JSON is JSON").len();
        if unknown_bytes > SESSION_UNKNOWN_BYTES_MAX {
            return Err(ContentError::TooMuchUnknown);
        }
        let file = serde_path_to_error::deserialize(Value::Object(known));
        let file: Self = file.map_err(|error| ContentError::Member {
            member: error.path().to_string(),
            problem: error.into_inner().to_string(),
        })?;
        Self { unknown, ..file }.checked()
    }

    fn checked(mut self) -> Result<Self, ContentError> {
        let root = self.root_directory.as_ref().map(|root| ("root_directory", root));
        for (member, directory) in
            [("working_directory", &self.working_directory)].into_iter().chain(root)
        {
            if !directory.is_absolute() || directory.as_os_str().len() > PATH_BYTES_MAX {
                let problem = "it is no absolute path".to_owned();
                return Err(ContentError::Member { member: member.to_owned(), problem });
            }
        }
        let conversation = mended(std::mem::take(&mut self.messages));
        self.messages = conversation.map_err(|problem| ContentError::Conversation { problem })?;
        Ok(self)
    }

    /// The file as it is written.
    pub fn bytes(&self) -> Result<Vec<u8>, ContentError> {
        assert_eq!(self.schema_version, SCHEMA_VERSION, "only this version is written");
        let bytes = serde_json::to_vec(self).expect("a session has only string keys");
        if bytes.len() > SESSION_FILE_BYTES_MAX { Err(ContentError::TooLarge) } else { Ok(bytes) }
    }
}

impl Summary {
    /// Reads as much as a list needs, without building the conversation.
    pub fn parse(bytes: &[u8]) -> Result<Self, ContentError> {
        let summary: Self =
            serde_json::from_slice(bytes).map_err(|source| ContentError::NotJson { source })?;
        check_version(Some(summary.schema_version))?;
        Ok(summary)
    }
}

fn check_version(found: Option<u64>) -> Result<(), ContentError> {
    match found {
        Some(SCHEMA_VERSION) => Ok(()),
        None | Some(0) => Err(ContentError::NoVersion),
        Some(found) => Err(ContentError::Newer { found }),
    }
}

/// Refuses what a newer server wrote, and nothing else that may be wrong with a file.
pub(super) fn check_not_newer(bytes: &[u8]) -> Result<(), ContentError> {
    #[derive(Deserialize)]
    struct Version {
        schema_version: u64,
    }
    match serde_json::from_slice(bytes) {
        Ok(Version { schema_version: found }) if found > SCHEMA_VERSION => {
            Err(ContentError::Newer { found })
        }
        Ok(Version { .. }) | Err(_) => Ok(()),
    }
}

impl Provenance {
    pub fn of(parent: Option<&AgentId>) -> Self {
        parent.map_or(Self::User, |parent| Self::Agent(parent.clone()))
    }

    pub fn as_str(&self) -> &str {
        match self {
            Self::User => USER,
            Self::Agent(id) => id.as_str(),
        }
    }
}

impl Serialize for Provenance {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Provenance {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text == USER {
            return Ok(Self::User);
        }
        AgentId::parse(&text).map(Self::Agent).map_err(serde::de::Error::custom)
    }
}

fn write_time<S: Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&iso(*time))
}

fn read_time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
}

fn text_or_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<str>, D::Error> {
    Ok(Option::<Arc<str>>::deserialize(deserializer)?.unwrap_or_default())
}

fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    Ok(Vec::<IgnoredAny>::deserialize(deserializer)?.len())
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
