//! Scenario files: what a run is made of, read and checked before anything runs.
//! Pure: a text becomes a [`Scenario`] or the list of all that is wrong with it; playing it is for
//! others.

mod form; // the file as it is written
mod schema; // the form as a JSON schema
mod place; // the text as a tree with places
mod shape; // the tree against the schema
mod mcp; // [[mcp]]
mod agent; // [[agent]]
mod serve; // what the server is started with
mod config; // [config]
mod files; // [files], `writes`, `files`
mod program; // [[program]]
mod step; // [[step]]
mod typing; // terminal = { … }
mod fault; // [[fault]]
mod names; // what the parts call each other
mod substitution; // `${name}` while a run goes on
mod matching; // what was expected against what was found
mod first; // a file to start from
mod document; // a file for those who change it

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

pub use agent::{
    EarlierAgent, EarlierLimits, EarlierRequest, EarlierStatus, EarlierSummary, EarlierUse,
};
pub use document::{Document, DocumentError};
pub use fault::{Direction, Fault, FaultKind, Shift, Target, Trigger};
pub use files::{FileSpec, Files};
pub use first::first;
pub use matching::{Mismatch, REGEX_PREFIX, matches};
pub use mcp::{
    ELSEWHERE, McpAsks, McpError, McpFault, McpMoved, McpProgress, McpServer, McpTakes, McpTold,
    McpTool, Revision, Transport, host as mcp_host,
};
pub use nexus3::config::Problem;
pub use program::{Program, Run, Takes};
pub use schema::schema;
pub use serve::ServeFlag;
pub use step::{
    Action, Call, CallExpect, Confirm, EventTrigger, Ground, Pace, Raw, Signal, Step, Token, Turn,
    Watch, When,
};
pub use substitution::{BUILT_IN, Substitution, UnknownName};
pub use typing::Typing;

use nexus3::provider::script::{Entry, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use form::{ExpectForm, ScenarioForm};
use place::{Place, Problems};
use program::program;
use shape::Shape;

use crate::machine::PROJECT;

/// The host that runs the server.
pub const SERVER: &str = "server";
/// The host that plays the models.
pub const MODEL: &str = "model";
/// The host of the MCP servers that are reached by HTTP.
pub const MCP: &str = "mcp";

const LIMIT: Time = Time(Duration::from_mins(10));

/// All of a scenario file. Its names refer to something, and its patterns compile.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The file itself: with [`Wire::Script`] the server reads its models from it.
    pub text: String,
    pub about: String,
    pub seed: u64,
    /// How much virtual time the run may take.
    pub limit: Time,
    pub wire: Wire,
    pub lane: Lane,
    pub judge: Judge,
    pub serve: Vec<ServeFlag>,
    /// Where the server is started.
    pub cwd: PathBuf,
    pub env: BTreeMap<String, String>,
    /// As the file has it; [`Scenario::config_json`] is what the server reads.
    pub config: Map<String, Value>,
    pub files: Files,
    pub models: Vec<Entry>,
    pub programs: Vec<Program>,
    pub mcp: Vec<McpServer>,
    /// Those who were there before the server started, parents before their children.
    pub agents: Vec<EarlierAgent>,
    pub steps: Vec<Step>,
    pub faults: Vec<Fault>,
    pub expect: Expect,
}

/// How models are reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Wire {
    #[default]
    Openai,
    Anthropic,
    Script,
}

/// What lies between the hosts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Lane {
    #[default]
    Turmoil,
    Pipes,
}

/// What a run is judged by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Judge {
    /// What its steps and its end are expected to be, and the invariants.
    #[default]
    Everything,
    /// The invariants alone: for files whose faults come at times that nobody chose.
    Invariants,
}

/// What must hold at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expect {
    pub files: Files,
    /// None: nothing is said about them.
    pub agents: Option<Vec<String>>,
    pub model_calls: BTreeMap<String, u64>,
    /// Invariants that do not hold, with the reason.
    pub ignore: BTreeMap<Invariant, String>,
}

/// What is checked in every run, whatever the file says.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Invariant {
    Pairs,
    Answers,
    Order,
    Once,
    Durable,
    Events,
    Ceiling,
    Window,
    Bounds,
    Schema,
}

impl Invariant {
    /// As `ignore` names it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pairs => "pairs",
            Self::Answers => "answers",
            Self::Order => "order",
            Self::Once => "once",
            Self::Durable => "durable",
            Self::Events => "events",
            Self::Ceiling => "ceiling",
            Self::Window => "window",
            Self::Bounds => "bounds",
            Self::Schema => "schema",
        }
    }
}

impl Scenario {
    /// Reads a scenario. The problems come in the order of the text.
    pub fn parse(file_name: &str, text: &str) -> Result<Self, Vec<Problem>> {
        let problems = Problems::new(file_name, text);
        let scenario = place::parse(&problems).and_then(|root| {
            let root = Place::root(&root, &problems);
            read(&root, &problems)
        });
        match scenario {
            Some(scenario) if problems.is_empty() => Ok(scenario),
            Some(_) | None => Err(problems.told()),
        }
    }

    /// The configuration that the server reads. `models` is the URL of the model host's root or,
    /// with [`Wire::Script`], the path of the scenario on the server's disk.
    pub fn config_json(&self, models: &str) -> Value {
        Value::Object(config::filled(&self.config, self.wire, models))
    }

    /// Models by the id that the host sees, with the alias that entries name.
    pub fn aliases(&self) -> BTreeMap<String, String> {
        let config = self.config_json("http://model");
        let providers = config["providers"].as_object().into_iter().flatten();
        let models = providers
            .flat_map(|(_, provider)| provider["models"].as_object().into_iter().flatten());
        models
            .filter_map(|(alias, model)| Some((model["id"].as_str()?.to_owned(), alias.clone())))
            .collect()
    }

    /// Whether a step or a fault waits for an event.
    pub fn waits_for_events(&self) -> bool {
        self.steps.iter().any(|step| matches!(step.when, When::OnEvent(..)))
            || self
                .models
                .iter()
                .any(|model| model.after.as_ref().is_some_and(|it| it.event.is_some()))
            || self.faults.iter().any(|fault| matches!(fault.trigger, Trigger::OnEvent(_)))
    }

    /// The hosts that play steps.
    pub fn clients(&self) -> BTreeSet<&str> {
        self.steps.iter().map(|step| step.client.as_str()).collect()
    }
}

/// None, with the problems added, where the file does not even fit the schema.
fn read(root: &Place<'_>, problems: &Problems<'_>) -> Option<Scenario> {
    let json = root.json();
    if !problems.is_empty() {
        return None;
    }
    Shape::new(&schema::SCHEMA).check_file(root);
    let form: ScenarioForm = match serde_json::from_value(json) {
        Ok(form) => form,
        Err(error) => {
            if problems.is_empty() {
                let hint = "compare it with `nexus3-sim schema`";
                root.refuse(&format!("the file does not fit the schema: {error}"), hint);
            }
            return None;
        }
    };
    config::check(root, problems, &form.config);
    check_models(root, &form.model);
    mcp::check(root, &form.mcp);
    agent::check(root, &form.agent);
    let steps = root.items_of("step").into_iter().zip(form.step);
    let steps: Vec<_> = steps
        .filter_map(|(place, form)| step::read(&place, form).map(|step| (place, step)))
        .collect();
    names::check_steps(&steps);
    for (place, entry) in root.items_of("model").iter().zip(&form.model) {
        let Some((place, after)) = place.get("after").zip(entry.after.as_ref()) else { continue };
        names::check_answer(&place, after, &steps);
        if form.wire == Wire::Script {
            place.refuse_key("a script inside the server waits for nothing", "leave out `wire`");
        }
    }
    let clients = steps.iter().map(|(_, step)| step.client.as_str());
    let hosts = clients.chain(mcp::host(&form.mcp)).collect();
    let faults = root.items_of("fault").into_iter().zip(form.fault);
    let faults = faults
        .filter_map(|(place, form_of_fault)| {
            names::check_hosts(&place, &hosts);
            let fault = fault::read(&place, form_of_fault)?;
            if form.lane == Lane::Pipes && !fault.fits_pipes() {
                let problem = "nothing is cut, kept back or lost over pipes";
                place.refuse(problem, "leave out `lane`, or this fault");
            }
            Some(fault)
        })
        .collect();
    let programs = root.items_of("program").into_iter().zip(form.program);
    if form.limit.is_some_and(|limit| limit.0.is_zero()) {
        root.refuse_at("limit", "nothing can happen in no time", "use a time above 0");
    }
    Some(Scenario {
        text: problems.text().to_owned(),
        about: form.about,
        seed: form.seed,
        limit: form.limit.unwrap_or(LIMIT),
        wire: form.wire,
        lane: form.lane,
        judge: form.judge,
        serve: serve::read(root, &form.serve),
        cwd: cwd(root, form.cwd),
        env: form.env,
        config: form.config,
        files: files::read(root, "files", form.files),
        models: form.model,
        programs: programs.map(|(place, form)| program(&place, form)).collect(),
        mcp: form.mcp,
        agents: form.agent,
        steps: steps.into_iter().map(|(_, step)| step).collect(),
        faults,
        expect: expect(root, form.expect),
    })
}

fn cwd(root: &Place<'_>, given: Option<String>) -> PathBuf {
    let cwd = PathBuf::from(given.unwrap_or_else(|| PROJECT.to_owned()));
    if !files::is_plain(&cwd) || !cwd.starts_with(PROJECT) {
        let hint = format!("write it like \"{PROJECT}/tools\"");
        root.refuse_at("cwd", &format!("expected a directory in {PROJECT}"), &hint);
    }
    cwd
}

fn check_models(root: &Place<'_>, entries: &[Entry]) {
    for (place, entry) in root.items_of("model").iter().zip(entries) {
        if let (Some(when), Some(pattern)) = (place.get("when"), &entry.when) {
            names::check_pattern(&when, pattern);
        }
        if let (Some(model), Some(_)) = (place.get("model"), &entry.agent) {
            model.refuse_key("`agent` and `model` are both given", "keep one of them");
        }
        for (place, ask) in place.items_of("asks").iter().zip(&entry.asks) {
            if let (Some(given), Some(_)) = (place.get("args"), &ask.args_json) {
                given.refuse_key("`args` and `args_json` are both given", "keep one of them");
            }
        }
        if entry.says.is_none() && entry.asks.is_empty() && entry.fault.is_none() {
            place.refuse("this answer is empty", "add `says`, `asks` or `fault`");
        }
    }
}

fn expect(root: &Place<'_>, form: ExpectForm) -> Expect {
    let Some(place) = root.get("expect") else {
        return Expect::default();
    };
    let ExpectForm { files, agents, model_calls, ignore: ignored } = form;
    if let Some(files) = place.get("files") {
        names::check_patterns(&files);
    }
    let mut ignore = BTreeMap::new();
    for (place, form) in place.items_of("ignore").iter().zip(ignored) {
        if ignore.insert(form.invariant, form.reason).is_some() {
            let name = place.get("invariant").map(|place| place.shown()).unwrap_or_default();
            place.refuse(&format!("{name} is ignored already"), "remove one of the two");
        }
    }
    Expect { files: files::read(&place, "files", files), agents, model_calls, ignore }
}

#[cfg(test)]
#[path = "scenario_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "told_tests.rs"]
mod told_tests;

#[cfg(test)]
#[path = "told_parts_tests.rs"]
mod told_parts_tests;
