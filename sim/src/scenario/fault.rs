//! `[[fault]]`: what goes wrong, where, when and for how long. Reads one fault; whether its hosts
//! exist is checked by `names`.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use nexus3::config::words::quoted;
use nexus3::provider::script::{Time, TimeError};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use super::form::{FaultForm, KindForm};
use super::place::Place;
use super::{EventTrigger, Files, SERVER, files, names};
use crate::disk::OperationKind;

#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// Where it stands in the file.
    pub line: usize,
    pub trigger: Trigger,
    pub kind: FaultKind,
    pub target: Target,
    /// None: until the steps have ended.
    pub lasts: Option<Time>,
}

impl Fault {
    /// Whether it can happen where hosts are connected by pipes. There only the server can be killed,
    /// and whoever is connected to it learns of it.
    pub fn fits_pipes(&self) -> bool {
        match self.kind {
            FaultKind::Crash => self.target == Target::Host(SERVER.to_owned()),
            FaultKind::PowerLoss
            | FaultKind::Partition
            | FaultKind::Hold
            | FaultKind::Delay { .. } => false,
            FaultKind::DiskFull
            | FaultKind::IoError
            | FaultKind::ReadOnly
            | FaultKind::FsyncError
            | FaultKind::FsyncLies
            | FaultKind::TornWrite
            | FaultKind::ClockJump { .. }
            | FaultKind::Files(_) => true,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Trigger {
    /// Virtual time since the start.
    At(Time),
    Every(Time),
    /// A probability for each message or operation of the kind.
    Rate(f64),
    OnEvent(EventTrigger),
    /// A durable point, counted from 1.
    OnPoint(u64),
    /// Just before an operation on the server's disk: between the decision about a path and its use.
    OnFs {
        operation: OperationKind,
        path: PathBuf,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultKind {
    Crash,
    PowerLoss,
    Partition,
    Hold,
    Delay { by: Time },
    DiskFull,
    IoError,
    ReadOnly,
    FsyncError,
    FsyncLies,
    TornWrite,
    ClockJump { by: Shift },
    Files(Files),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A host, or all of its links.
    Host(String),
    Between(String, String),
}

/// A change of a clock, forward or back: `200ms`, `-2s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Shift {
    pub direction: Direction,
    pub time: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Forward,
    Back,
}

impl Shift {
    /// What schemas call a text of this form.
    pub const FORMAT: &str = "nexus-shift";
}

impl FromStr for Shift {
    type Err = TimeError;

    fn from_str(text: &str) -> Result<Self, TimeError> {
        Ok(match text.strip_prefix('-') {
            Some(time) => Self { direction: Direction::Back, time: time.parse()? },
            None => Self { direction: Direction::Forward, time: text.parse()? },
        })
    }
}

impl TryFrom<String> for Shift {
    type Error = TimeError;

    fn try_from(text: String) -> Result<Self, TimeError> {
        text.parse()
    }
}

impl fmt::Display for Shift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match self.direction {
            Direction::Forward => "",
            Direction::Back => "-",
        };
        write!(f, "{sign}{}", self.time)
    }
}

impl JsonSchema for Shift {
    fn schema_name() -> Cow<'static, str> {
        "Shift".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A length of time, maybe negative.",
            "type": "string",
            "format": Self::FORMAT,
            "pattern": r"^-?[0-9]+(\.[0-9]+)?(ms|s|m|h)$",
            "examples": ["200ms", "-2s"],
        })
    }
}

/// What a kind of fault happens to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Happens {
    /// To the links between hosts, also by chance.
    Links,
    /// To operations on the server's disk, also by chance.
    Disk,
    /// To a host as a whole.
    Host,
    /// To the server as a whole.
    Server,
}

fn happens(kind: KindForm) -> Happens {
    match kind {
        KindForm::Partition | KindForm::Hold | KindForm::Delay => Happens::Links,
        KindForm::DiskFull
        | KindForm::IoError
        | KindForm::ReadOnly
        | KindForm::FsyncError
        | KindForm::FsyncLies
        | KindForm::TornWrite => Happens::Disk,
        KindForm::Crash => Happens::Host,
        KindForm::PowerLoss | KindForm::ClockJump | KindForm::Files => Happens::Server,
    }
}

/// None, with problems added, where the fault makes no sense.
pub(super) fn read(place: &Place<'_>, form: FaultForm) -> Option<Fault> {
    let happens = happens(form.kind);
    let trigger = trigger(place, &form);
    if let Some(rate) = place.get("rate")
        && !matches!(happens, Happens::Links | Happens::Disk)
    {
        rate.refuse_key("this kind happens to no message and no operation", "use `at` or `every`");
    }
    let target = target(place, &form, happens);
    let lasts = form.lasts;
    if let (KindForm::Files, Some(lasts)) = (form.kind, place.get("for")) {
        lasts.refuse_key("changed files stay changed", "remove it");
    }
    Some(Fault { line: place.line(), trigger: trigger?, kind: kind(place, form)?, target, lasts })
}

fn trigger(place: &Place<'_>, form: &FaultForm) -> Option<Trigger> {
    const KEYS: [&str; 4] = ["at", "on", "every", "rate"];
    let given: Vec<_> = KEYS.into_iter().filter_map(|key| place.get(key)).collect();
    match given.as_slice() {
        [_] => (),
        [] => place.refuse("it is not said when this happens", "add `at`, `on`, `every` or `rate`"),
        [_, second, ..] => second.refuse_key(
            "of `at`, `on`, `every` and `rate` a fault has exactly one",
            "keep one of them",
        ),
    }
    if form.every.is_some_and(|time| time.0.is_zero()) {
        place.refuse_at("every", "this would never let time pass", "use a time above 0");
    }
    let at_event = form.on.as_deref().is_some_and(|on| on.starts_with("event:"));
    for key in ["agent", "nth"].into_iter().filter_map(|key| place.get(key)) {
        if !at_event {
            key.refuse_key("belongs to an event of `on`", "add `on`, or remove it");
        }
    }
    let at = form.at.map(Trigger::At);
    let every = form.every.map(Trigger::Every);
    let rate = form.rate.map(Trigger::Rate);
    at.or(every).or(rate).or_else(|| {
        let on = form.on.as_deref()?;
        let trigger = on_trigger(on, form);
        if let Some(Trigger::OnEvent(EventTrigger { event, .. })) = &trigger {
            names::check_event(place, "on", event);
        }
        if trigger.is_none() {
            place.refuse_at(
                "on",
                &format!("expected an event, a point or a file operation, found {}", quoted(on)),
                "write it like \"event:tool_started\", \"point:17\" or \"fs:open:/project/x\"",
            );
        }
        trigger
    })
}

fn on_trigger(text: &str, form: &FaultForm) -> Option<Trigger> {
    let (kind, rest) = text.split_once(':')?;
    match kind {
        "event" if !rest.is_empty() => {
            let (event, agent) = (rest.to_owned(), form.agent.clone());
            Some(Trigger::OnEvent(EventTrigger { event, agent, nth: form.nth.unwrap_or(1) }))
        }
        "point" => rest.parse().ok().filter(|point| *point > 0).map(Trigger::OnPoint),
        "fs" => {
            let (operation, path) = rest.split_once(':')?;
            let operation = OperationKind::named(operation)?;
            path.starts_with('/').then(|| Trigger::OnFs { operation, path: path.into() })
        }
        _ => None,
    }
}

fn target(place: &Place<'_>, form: &FaultForm, happens: Happens) -> Target {
    if let Some([one, other]) = form.between.as_deref() {
        if happens != Happens::Links {
            place.refuse_at("between", "this kind happens to no link", "use `host`");
        } else if form.host.is_some() {
            place.refuse_at("between", "`host` and `between` are both given", "keep one of them");
        } else if one == other {
            place.refuse_at("between", "a link has two ends", "name two hosts");
        }
        return Target::Between(one.clone(), other.clone());
    }
    let host = form.host.clone().unwrap_or_else(|| SERVER.to_owned());
    let server_only = matches!(happens, Happens::Disk | Happens::Server);
    if server_only && host != SERVER {
        place.refuse_at("host", "this kind happens to the server only", "use \"server\"");
    }
    Target::Host(host)
}

fn kind(place: &Place<'_>, form: FaultForm) -> Option<FaultKind> {
    let moves = matches!(form.kind, KindForm::Delay | KindForm::ClockJump);
    match (moves, place.get("by")) {
        (true, Some(_)) | (false, None) => (),
        (true, None) => place.refuse("`by` is missing", "say by how much: by = \"200ms\""),
        (false, Some(by)) => by.refuse_key("belongs to `delay` and `clock_jump`", "remove it"),
    }
    match (form.kind, place.get("files")) {
        (KindForm::Files, None) => {
            place
                .refuse("`files` is missing", "say what changes: files = { \"/path\" = \"text\" }");
        }
        (KindForm::Files, Some(_)) | (_, None) => (),
        (_, Some(files)) => files.refuse_key("belongs to the kind `files`", "remove it"),
    }
    Some(match form.kind {
        KindForm::Crash => FaultKind::Crash,
        KindForm::PowerLoss => FaultKind::PowerLoss,
        KindForm::Partition => FaultKind::Partition,
        KindForm::Hold => FaultKind::Hold,
        KindForm::Delay => FaultKind::Delay { by: delay(place, form.by?)? },
        KindForm::DiskFull => FaultKind::DiskFull,
        KindForm::IoError => FaultKind::IoError,
        KindForm::ReadOnly => FaultKind::ReadOnly,
        KindForm::FsyncError => FaultKind::FsyncError,
        KindForm::FsyncLies => FaultKind::FsyncLies,
        KindForm::TornWrite => FaultKind::TornWrite,
        KindForm::ClockJump => FaultKind::ClockJump { by: form.by? },
        KindForm::Files => FaultKind::Files(files::read(place, "files", form.files?)),
    })
}

fn delay(place: &Place<'_>, by: Shift) -> Option<Time> {
    match by.direction {
        Direction::Forward => Some(by.time),
        Direction::Back => {
            place.refuse_at("by", "a message cannot arrive earlier", "remove the `-`");
            None
        }
    }
}
