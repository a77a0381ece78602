//! Agents that were there before the recording began: each is in it once it, or somebody of its family, is
//! needed, since relatives see each other and share what they may use.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};

use super::order::rounded;
use crate::id::{AgentId, RequestId};
use crate::message::Usage;
use crate::policy::budget::{Bounds, KeptBudget, Presence};
use crate::provider::script::{ScriptUsage, Time};
use crate::record::form::{Agent, File, Files, Limits, Request, Summary, Used, Yes};
use crate::record::hidden::{HOME, Hidden, PROJECT};
use crate::record::note;
use crate::record::text::fits_toml;
use crate::session::{LAST_SESSION, SessionFile};
use crate::store::RequestRecord;

/// The permission bits of session files.
const SESSION_MODE: u32 = 0o600;
/// Times are told to the second from here on.
const LONG: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct Earlier {
    /// When the recording began.
    began: Timestamp,
    /// In order of creation.
    agents: Vec<(String, Known)>,
    /// Who was needed.
    needed: BTreeSet<String>,
    /// Requests that somebody named.
    named: BTreeSet<String>,
}

#[derive(Debug)]
struct Known {
    /// None where it was too long, or no agent could come from it.
    agent: Option<Box<Agent>>,
    /// What its session file says, where one follows it.
    file: Option<String>,
    /// Somebody who is gone limits it, which no scenario can say.
    is_left_behind: bool,
}

impl Earlier {
    pub(super) fn new(began: Timestamp) -> Self {
        Self { began, agents: Vec::new(), needed: BTreeSet::new(), named: BTreeSet::new() }
    }

    pub(super) fn was_there(
        &mut self,
        id: &AgentId,
        earlier: Option<&note::Earlier>,
        hidden: &Hidden,
    ) {
        let budget = earlier.and_then(|earlier| earlier.budget.as_ref());
        let has_parent = earlier.is_some_and(|earlier| earlier.session.parent_agent_id.is_some());
        let is_left_behind = budget.is_some_and(|budget| budget.parent.is_some()) && !has_parent;
        let agent = earlier.map(|earlier| Box::new(self.written(earlier, hidden)));
        let saved = earlier.filter(|earlier| earlier.is_saved);
        let file = saved.map(|earlier| session_file(&earlier.session, hidden));
        self.agents.push((id.to_string(), Known { agent, file, is_left_behind }));
    }

    /// Notes that an agent is needed.
    pub(super) fn needs(&mut self, id: &str) {
        let is_last = |known: &Known| {
            id == LAST_SESSION && known.agent.as_ref().is_some_and(|agent| agent.last.is_some())
        };
        let named = self.agents.iter().find(|(agent, known)| agent == id || is_last(known));
        if let Some((agent, _)) = named {
            self.needed.insert(agent.clone());
        }
    }

    /// Notes that somebody names a request, which may be one of those times.
    pub(super) fn names(&mut self, request: &str) {
        let has = |(_, known): &(String, Known)| {
            let requests = known.agent.as_ref().map_or(&[][..], |agent| &agent.requests);
            requests.iter().any(|known| known.id == request)
        };
        if self.agents.iter().any(has) {
            self.named.insert(request.to_owned());
        }
    }

    /// Those who were needed, and their families, with the requests that were named.
    pub(super) fn written_agents(&self) -> impl Iterator<Item = Agent> {
        self.agents().map(|agent| {
            let mut agent = agent.clone();
            agent.requests.retain(|request| self.named.contains(&request.id));
            agent
        })
    }

    fn agents(&self) -> impl Iterator<Item = &Agent> {
        self.back().filter_map(|(_, known)| known.agent.as_deref())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.agents().next().is_none()
    }

    /// Where they work.
    pub(super) fn directories(&self) -> Files {
        let places = self.agents().filter_map(|agent| agent.cwd.clone());
        places.map(|cwd| (cwd, File::PLAIN_DIR)).collect()
    }

    /// The sessions of those whose files follow them, which may outlive them.
    pub(super) fn session_files(&self) -> impl Iterator<Item = (String, File)> {
        self.back().filter_map(|(_, known)| {
            let path = format!("{HOME}/sessions/{}.json", known.agent.as_ref()?.id);
            Some((path, File::text(known.file.clone()?, Some(SESSION_MODE))))
        })
    }

    /// Whether a file of the scenario's is the session of one of them: its row says more.
    pub(super) fn is_session(&self, path: &str) -> bool {
        let name = path.strip_prefix(HOME).and_then(|path| path.strip_prefix("/sessions/"));
        let name = name.and_then(|name| name.strip_suffix(".json"));
        name.is_some_and(|name| self.agents().any(|agent| agent.id == name))
    }

    /// What is not in the recording though somebody asked for it.
    pub(super) fn missing(&self) -> Vec<String> {
        let names = |lacks: fn(&Known) -> bool| {
            let lacking = self.back().filter(|(_, known)| lacks(known));
            lacking.map(|(id, _)| id.as_str()).collect::<Vec<_>>().join(", ")
        };
        let told = [
            (
                "Agents of an earlier server that it has no room for, or no file",
                names(|known| known.agent.is_none()),
            ),
            (
                "Agents that are held to limits of others who are gone, and not so here",
                names(|known| known.is_left_behind),
            ),
        ];
        let told = told.into_iter().filter(|(_, names)| !names.is_empty());
        told.map(|(what, names)| format!("{what}: {names}.")).collect()
    }

    fn back(&self) -> impl Iterator<Item = &(String, Known)> {
        let parents: BTreeMap<&str, &str> = self
            .agents
            .iter()
            .filter_map(|(id, known)| Some((id.as_str(), known.agent.as_ref()?.parent.as_deref()?)))
            .collect();
        let root = move |id: &str| {
            let mut root = id;
            // Nobody is its own ancestor; a record that says so is not followed for ever.
            for _ in 0..parents.len() {
                root = parents.get(root).copied().unwrap_or(root);
            }
            root.to_owned()
        };
        let roots: BTreeSet<String> = self.needed.iter().map(|id| root(id)).collect();
        self.agents.iter().filter(move |(id, _)| roots.contains(&root(id)))
    }

    fn written(&self, earlier: &note::Earlier, hidden: &Hidden) -> Agent {
        let note::Earlier { session, enabled_tools, ceiling, summary, budget, .. } = earlier;
        let note::Earlier { is_saved, is_last, requests, .. } = earlier;
        let paths =
            |paths: &[std::path::PathBuf]| paths.iter().map(|path| hidden.path(path)).collect();
        let messages: Vec<Value> =
            session.messages.iter().map(|message| hidden.value(&json(message))).collect();
        let fits = fits_toml(&Map::from_iter([(String::new(), messages.clone().into())]));
        let (cwd, parent) = (hidden.path(&session.working_directory), &session.parent_agent_id);
        let mut allowances = object(hidden.value(&json(&session.session_allowances)));
        allowances.retain(|_, allowed| {
            *allowed != Value::Array(Vec::new()) && *allowed != Value::Object(Map::new())
        });
        Agent {
            id: hidden.text(session.agent_id.as_str()),
            parent: parent.as_ref().map(|parent| hidden.text(parent.as_str())),
            // Below a parent it follows from the parent's, as does what it may do at most.
            depth: (parent.is_none() && session.depth > 0).then_some(session.depth),
            ceiling: ceiling
                .as_ref()
                .filter(|_| parent.is_none())
                .map(|ceiling| hidden.value(&json(ceiling))),
            saved: is_saved.then_some(Yes),
            last: is_last.then_some(Yes),
            preset: session.permission_preset.clone(),
            model: session.model.clone(),
            cwd: (cwd != PROJECT).then_some(cwd),
            root: session.root_directory.as_deref().map(|root| hidden.path(root)),
            write_paths: paths(&session.write_paths),
            disabled_tools: session.disabled_tools.clone(),
            enabled_tools: enabled_tools.clone(),
            allowances,
            limits: budget.as_ref().and_then(|budget| self.limits(budget)),
            used: budget.as_ref().and_then(used),
            tokens: (session.token_usage != Usage::default()).then_some(ScriptUsage {
                input: session.token_usage.input_tokens,
                output: session.token_usage.output_tokens,
            }),
            system_prompt: hidden.text(&session.system_prompt),
            system_prompt_path: session.system_prompt_path.as_deref().map(|path| hidden.path(path)),
            summary: summary
                .as_ref()
                .map(|(upto, text)| Summary { upto: *upto, text: hidden.text(text) }),
            messages_json: (!fits).then(|| Value::Array(messages.clone()).to_string()),
            messages: if fits { messages } else { Vec::new() },
            requests: requests.iter().map(|asked| request(asked, hidden)).collect(),
        }
    }

    fn limits(&self, budget: &KeptBudget) -> Option<Limits> {
        let Bounds { max_agents, max_turns, max_tokens, deadline } = budget.bounds;
        let left = |deadline: Timestamp| {
            let left = deadline.duration_since(self.began);
            let left: Duration = left.try_into().unwrap_or_default();
            // Of a long time nobody minds less than a second.
            Time(if left > LONG { Duration::from_secs(left.as_secs()) } else { rounded(left) })
        };
        let limits = Limits { max_agents, max_turns, max_tokens, deadline: deadline.map(left) };
        (budget.bounds != Bounds::default() && budget.presence == Presence::Here).then_some(limits)
    }
}

/// A session as its file has it. It is as old as can be, so that the agent's row counts, which says more.
fn session_file(session: &SessionFile, hidden: &Hidden) -> String {
    let session = SessionFile {
        created_at: Timestamp::UNIX_EPOCH,
        modified_at: Timestamp::UNIX_EPOCH,
        ..session.clone()
    };
    hidden.value(&json(&session)).to_string()
}

fn request((id, asked): &(RequestId, RequestRecord), hidden: &Hidden) -> Request {
    let RequestRecord { content, status, outcome } = asked;
    Request {
        id: id.to_string(),
        content: hidden.text(content),
        status: status.clone(),
        outcome_json: outcome.as_deref().map(|outcome| hidden.text(outcome)),
    }
}

/// By the agent itself, and by those of its children that are gone.
fn used(budget: &KeptBudget) -> Option<Used> {
    let (turns, tokens) =
        (budget.own.turns + budget.gone.turns, budget.own.tokens + budget.gone.tokens);
    (turns > 0 || tokens > 0).then_some(Used { turns, tokens })
}

fn json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).expect("what is kept has only string keys")
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}
