//! Profiles: what may go wrong in a run, and how often, as data. Those that come with the program lie
//! in `profiles/`; a file of one's own has the same form. Reads them; drawing is for others.

use std::path::Path;

use nexus3::provider::script::{Fault, Time};
use serde::Deserialize;

use crate::scenario::Judge;

/// The profiles that come with the program.
const BUILT_IN: [(&str, &str); 6] = [
    ("quiet", include_str!("profiles/quiet.toml")),
    ("network", include_str!("profiles/network.toml")),
    ("provider", include_str!("profiles/provider.toml")),
    ("disk", include_str!("profiles/disk.toml")),
    ("crash", include_str!("profiles/crash.toml")),
    ("chaos", include_str!("profiles/chaos.toml")),
];

#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    #[error("there is no profile `{name}`; those that come with the program are {}", names().join(", "))]
    Unknown { name: String },
    #[error("the profile `{name}` is wrong")]
    Form {
        name: String,
        #[source]
        source: Box<toml::de::Error>,
    },
    #[error("the profile `{name}` is wrong: {problem}")]
    Sense { name: String, problem: String },
}

#[derive(Clone, Debug)]
pub struct Profile {
    pub name: String,
    pub judge: Judge,
    /// Of the runs that need no network, how many have pipes instead: those are faster.
    pub pipes: f64,
    /// The marks that a long sweep over many scenarios must reach.
    pub reaches: Vec<String>,
    /// What makes a sweep long enough for that; none is where nothing is said.
    pub promised: Option<Promised>,
    pub fault: Vec<FaultDraw>,
    pub model: ModelDraw,
    pub client: ClientDraw,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProfileForm {
    #[serde(rename = "about")]
    _about: String,
    #[serde(default)]
    judge: Judge,
    #[serde(default)]
    pipes: f64,
    #[serde(default)]
    reaches: Vec<String>,
    promised: Option<Promised>,
    #[serde(default)]
    fault: Vec<FaultDraw>,
    #[serde(default)]
    model: ModelDraw,
    #[serde(default)]
    client: ClientDraw,
}

/// A sweep of so many runs over so many scenarios reaches every mark: fewer need not come to it, and a
/// few files need not have it in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Promised {
    pub runs: u64,
    pub scenarios: usize,
}

/// A kind of fault that a run may have.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultDraw {
    /// As `[[fault]]` has it.
    pub kind: String,
    /// That a run has it.
    pub chance: f64,
    /// How many of it, from the first number to the second.
    #[serde(default = "once")]
    pub times: [u64; 2],
    /// What it may begin with; one of them is drawn.
    #[serde(default = "at_a_time")]
    pub begins: Vec<Begin>,
    /// Where it may happen; one of them is drawn.
    #[serde(default = "at_the_server")]
    pub place: Vec<Place>,
    pub rate: Option<[f64; 2]>,
    #[serde(rename = "for")]
    pub lasts: Option<[Time; 2]>,
    pub by: Option<[Time; 2]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Begin {
    /// With the run.
    Start,
    /// At any time of the run.
    Time,
    /// With an event.
    Event,
    /// At a durable point.
    Point,
    /// With single messages or operations, by `rate`.
    Rate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    Server,
    Model,
    /// One of the clients.
    Client,
    ClientServer,
    ServerModel,
    /// The host of MCP servers, where there is one.
    Mcp,
    ServerMcp,
}

impl Place {
    /// Whether it is in every run.
    pub fn is_everywhere(self) -> bool {
        match self {
            Self::Server | Self::Model | Self::Client | Self::ClientServer | Self::ServerModel => {
                true
            }
            Self::Mcp | Self::ServerMcp => false,
        }
    }
}

/// What may happen to the models of a run.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelDraw {
    /// That a run has troubled models at all.
    pub chance: f64,
    /// Then, for each entry: that one of `faults` comes before it.
    pub fault: f64,
    pub faults: Vec<Fault>,
    /// Then, for each entry: that it comes late, and by how much.
    pub late: f64,
    pub late_by: Option<[Time; 2]>,
}

/// What clients may do otherwise than the file says.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClientDraw {
    /// For each step: that its client waits before it, and for how long.
    pub pause: f64,
    pub pause_for: Option<[Time; 2]>,
    /// For each call: that it is made twice.
    pub again: f64,
    /// That a client closes its connections at some time, and how often.
    pub disconnect: f64,
    /// That the server is asked to stop at some time, and started again.
    pub restart: f64,
    /// For each step with a time: that it comes earlier or later, and by how much.
    pub shift: f64,
    pub shift_by: Option<[Time; 2]>,
}

fn once() -> [u64; 2] {
    [1, 1]
}

fn at_a_time() -> Vec<Begin> {
    vec![Begin::Time]
}

fn at_the_server() -> Vec<Place> {
    vec![Place::Server]
}

/// The names of those that come with the program.
pub fn names() -> Vec<&'static str> {
    BUILT_IN.iter().map(|(name, _)| *name).collect()
}

impl Profile {
    pub fn built_in(name: &str) -> Result<Self, ProfileError> {
        let found = BUILT_IN.iter().find(|(known, _)| *known == name);
        let (name, text) = found.ok_or_else(|| ProfileError::Unknown { name: name.to_owned() })?;
        Self::parse(name, text)
    }

    /// Whether a name means a file and none of those that come with the program.
    pub fn is_file(name: &str) -> bool {
        Path::new(name).extension().is_some_and(|extension| extension == "toml")
    }

    pub fn parse(name: &str, text: &str) -> Result<Self, ProfileError> {
        let form: ProfileForm = toml::from_str(text).map_err(|source| ProfileError::Form {
            name: name.to_owned(),
            source: Box::new(source),
        })?;
        let ProfileForm { _about, judge, pipes, reaches, promised, fault, model, client } = form;
        let name_given = name.to_owned();
        let profile =
            Self { name: name_given, judge, pipes, reaches, promised, fault, model, client };
        match profile.problem() {
            None => Ok(profile),
            Some(problem) => Err(ProfileError::Sense { name: name.to_owned(), problem }),
        }
    }

    /// What cannot be drawn from it.
    fn problem(&self) -> Option<String> {
        let Self { fault, model, client, pipes, .. } = self;
        let chances = fault.iter().map(|fault| fault.chance).chain([
            *pipes,
            model.chance,
            model.fault,
            model.late,
            client.pause,
            client.again,
            client.disconnect,
            client.restart,
            client.shift,
        ]);
        if let Some(chance) = chances.into_iter().find(|chance| !(0.0..=1.0).contains(chance)) {
            return Some(format!("{chance} is no probability"));
        }
        let goes_back = |range: &FaultDraw| range.times[0] > range.times[1] || range.times[0] == 0;
        if let Some(fault) = fault.iter().find(|fault| goes_back(fault)) {
            return Some(format!("`times` of {} is no range from 1 on", fault.kind));
        }
        let rateless =
            |fault: &FaultDraw| fault.begins.contains(&Begin::Rate) && fault.rate.is_none();
        if let Some(fault) = fault.iter().find(|fault| rateless(fault)) {
            return Some(format!("`rate` of {} is missing", fault.kind));
        }
        let nowhere = |fault: &FaultDraw| fault.place.is_empty() || fault.begins.is_empty();
        if let Some(fault) = fault.iter().find(|fault| nowhere(fault)) {
            return Some(format!("{} happens nowhere or never", fault.kind));
        }
        if model.fault > 0.0 && model.faults.is_empty() {
            return Some("`model.faults` is missing".to_owned());
        }
        None
    }
}
