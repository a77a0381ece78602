//! `[[agent]]`: agents that were there before the server started, as an earlier one has left them.
//! Types and their checks only; `play::earlier` puts them where the server finds them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use nexus3::id::{AgentId, RequestId};
use nexus3::message::Message;
use nexus3::policy::{Allowances, Rights};
use nexus3::provider::script::{ScriptUsage, Time};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::files;
use super::place::Place;
use crate::machine::PROJECT;

#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Agent")]
pub struct EarlierAgent {
    pub id: String,
    /// One of the agents before it.
    pub parent: Option<String>,
    /// How far it is below the first of its family, where its parent is gone. Default: 0.
    #[serde(default)]
    pub depth: u32,
    /// Whether its session was saved, so that a file follows it.
    #[serde(default)]
    pub saved: bool,
    /// Whether its session is the last that a terminal followed.
    #[serde(default)]
    pub last: bool,
    pub preset: String,
    /// As `create_agent` names it. Default: default.
    #[serde(default = "default_model")]
    pub model: String,
    /// Where it works. Default: `/project`.
    #[serde(default = "project")]
    pub cwd: PathBuf,
    /// What a sandboxed agent cannot leave. Default: where it works.
    pub root: Option<PathBuf>,
    #[serde(default)]
    pub write_paths: Vec<PathBuf>,
    #[serde(default)]
    pub disabled_tools: Vec<String>,
    /// Tools that its preset disables and somebody enabled.
    #[serde(default)]
    pub enabled_tools: Vec<String>,
    /// What somebody allowed it for good.
    #[serde(default)]
    pub allowances: Allowances,
    /// What its parent could do, where that is gone.
    pub ceiling: Option<Map<String, Value>>,
    /// What it and all below it may use together.
    pub limits: Option<EarlierLimits>,
    /// What it has used of that.
    #[serde(default)]
    pub used: EarlierUse,
    /// What its models have told of tokens.
    pub tokens: Option<ScriptUsage>,
    #[serde(default)]
    pub system_prompt: String,
    /// The file that its prompt came from.
    pub system_prompt_path: Option<PathBuf>,
    /// What stands for its first messages when a model is asked.
    pub summary: Option<EarlierSummary>,
    /// Its conversation, as a session file has it.
    #[serde(default)]
    pub messages: Vec<Map<String, Value>>,
    /// The same as JSON, in place of `messages`: with a null, which TOML has not.
    pub messages_json: Option<String>,
    /// Requests that it has ended, which somebody may ask for or repeat.
    #[serde(default)]
    pub requests: Vec<EarlierRequest>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "AgentRequest")]
pub struct EarlierRequest {
    pub id: String,
    pub content: String,
    pub status: EarlierStatus,
    /// What came of it, as the server keeps it.
    pub outcome_json: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "AgentRequestStatus")]
pub enum EarlierStatus {
    Completed,
    Cancelled,
    Failed,
    Interrupted,
}

impl EarlierStatus {
    pub fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "AgentLimits")]
pub struct EarlierLimits {
    #[schemars(range(min = 1))]
    pub max_agents: Option<u64>,
    #[schemars(range(min = 1))]
    pub max_turns: Option<u64>,
    #[schemars(range(min = 1))]
    pub max_tokens: Option<u64>,
    /// How much time it has left when the run begins.
    pub deadline: Option<Time>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "AgentUse")]
pub struct EarlierUse {
    pub turns: u64,
    pub tokens: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "AgentSummary")]
pub struct EarlierSummary {
    /// How many messages it stands for.
    pub upto: u64,
    pub text: String,
}

impl EarlierAgent {
    /// Its conversation, however it is written.
    pub fn messages(&self) -> Vec<Message> {
        let given = self.messages_json.as_deref().and_then(|text| serde_json::from_str(text).ok());
        let written = self.messages.iter().filter_map(|message| read(message).ok());
        given.unwrap_or_else(|| written.collect())
    }

    /// What its parent could do, where that is gone.
    pub fn ceiling(&self) -> Option<Rights> {
        let ceiling = self.ceiling.clone()?;
        serde_json::from_value(Value::Object(ceiling)).ok()
    }
}

fn read(message: &Map<String, Value>) -> serde_json::Result<Message> {
    serde_json::from_value(Value::Object(message.clone()))
}

fn default_model() -> String {
    "default".to_owned()
}

fn project() -> PathBuf {
    PathBuf::from(PROJECT)
}

pub(super) fn check(root: &Place<'_>, agents: &[EarlierAgent]) {
    let mut known: BTreeSet<&str> = BTreeSet::new();
    for (place, agent) in root.items_of("agent").iter().zip(agents) {
        match AgentId::parse(&agent.id) {
            Err(error) => place.refuse_at("id", &error.to_string(), "choose another id"),
            Ok(id) if id.is_temp() && !agent.last => {
                place.refuse_at(
                    "id",
                    "temporary agents end with their server",
                    "choose another id",
                );
            }
            Ok(_) => {}
        }
        if let Some(parent) = &agent.parent
            && !known.contains(parent.as_str())
        {
            place.refuse_at(
                "parent",
                "no agent before this one has this id",
                "put it before this one",
            );
        }
        if !known.insert(&agent.id) {
            place.refuse_at("id", "another agent has this id", "choose another id");
        }
        check_paths(place, agent);
        check_texts(place, agent);
    }
}

fn check_paths(place: &Place<'_>, agent: &EarlierAgent) {
    let is_bad = |path: &Path| !files::is_plain(path);
    let hint = "write it like \"/project/tools\"";
    if is_bad(&agent.cwd) {
        place.refuse_at("cwd", "expected an absolute path", hint);
    }
    if agent.root.as_deref().is_some_and(is_bad) {
        place.refuse_at("root", "expected an absolute path", hint);
    }
}

fn check_texts(place: &Place<'_>, agent: &EarlierAgent) {
    if let Some(text) = &agent.messages_json {
        if !agent.messages.is_empty() {
            place.refuse_at("messages_json", "the same is said twice", "keep one of the two");
        }
        if let Err(error) = serde_json::from_str::<Vec<Message>>(text) {
            let problem = format!("these are no messages: {error}");
            place.refuse_at("messages_json", &problem, "write them as a session file does");
        }
    }
    for (place, message) in place.items_of("messages").iter().zip(&agent.messages) {
        if let Err(error) = read(message) {
            let problem = format!("this is no message: {error}");
            place.refuse(&problem, "write it as a session file does");
        }
    }
    if agent.ceiling.is_some() && agent.ceiling().is_none() {
        place.refuse_at("ceiling", "this is not what anybody could do", "take it from a recording");
    }
    for (place, request) in place.items_of("requests").iter().zip(&agent.requests) {
        if let Err(error) = RequestId::parse(&request.id) {
            place.refuse_at("id", &error.to_string(), "choose another id");
        }
        if serde_json::from_str::<Value>(&request.outcome_json).is_err() {
            let hint = "take it from a recording";
            place.refuse_at("outcome_json", "this is no JSON", hint);
        }
    }
    let count = agent.messages().len() as u64;
    if agent.summary.as_ref().is_some_and(|summary| summary.upto > count) {
        let problem = format!("there are {count} messages");
        place.refuse_at("summary", &problem, "`upto` is at most so many");
    }
}
