//! The invariant `window`: no request to a model exceeds what it takes, and no token, key or canary
//! stands where it does not belong. Looked through are the transcript, everything logged, every model request whole, and all
//! files of the disk.
//!
//! Secrets are the server's tokens, the values of variables that a provider takes its key from or
//! whose name ends in `_KEY`, `_TOKEN`, `_SECRET` or `_CANARY`, and the contents of key files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use http::HeaderMap;
use memchr::memmem;
use secrecy::ExposeSecret;
use serde_json::Value;

use super::budget::Budgets;
use super::{Check, End, Invariant, Observation, Seen};
use crate::machine::HOME;
use crate::play::observed::Request;
use crate::play::server::SCRIPT;
use crate::scenario::{Action, FaultKind, FileSpec, Scenario};

/// A shorter text stands in too many places by accident to be looked for.
const SECRET_BYTES_MIN: usize = 8;
const SECRET_NAMES: [&str; 4] = ["_KEY", "_TOKEN", "_SECRET", "_CANARY"];
/// Where a provider's key belongs.
const KEY_HEADERS: [&str; 3] = ["authorization", "api-key", "x-api-key"];

#[derive(Debug, Default)]
pub struct Window {
    budgets: Budgets,
    /// Keys and canaries of the scenario.
    given: Vec<String>,
    /// Which secrets stand in which files because the scenario put them there.
    put: BTreeSet<(PathBuf, String)>,
    /// How much of the transcript and the log has been looked through.
    lines: usize,
    logged: usize,
    /// What the disk had done when it was last looked through.
    operations: Option<u64>,
}

impl Window {
    pub fn new(scenario: &Scenario) -> Self {
        let given = given(scenario);
        let put = put(scenario, &given);
        let budgets = Budgets::new(&scenario.config_json(""));
        Self { budgets, given, put, ..Self::default() }
    }

    /// Everything that must not be found, tokens last.
    fn secrets(&self, seen: &Seen<'_>) -> Vec<String> {
        self.given.iter().cloned().chain(tokens(seen)).collect()
    }

    fn in_request(&self, request: &Request, seen: &Seen<'_>) -> Vec<String> {
        let secrets = self.secrets(seen);
        let mut found = Vec::new();
        if let Some(too_much) = self.budgets.exceeded(&request.body) {
            found.push(format!("a model request of {} has {too_much}", request.agent));
        }
        if holds_any(&request.body, &secrets) {
            found.push(format!("a secret stands in a model request of {}", request.agent));
        }
        if headers_hold(&request.headers, &secrets, &tokens(seen)) {
            found.push(format!("a secret stands in a header of a request of {}", request.agent));
        }
        found
    }

    fn in_files(&self, seen: &Seen<'_>) -> Vec<String> {
        let secrets = self.secrets(seen);
        let mut found = Vec::new();
        seen.disk.look_into_files(|path, bytes| {
            if is_token_file(path) {
                return;
            }
            let mut held = held(bytes, &secrets).into_iter();
            if held.any(|secret| !self.put.contains(&(path.to_owned(), secret))) {
                found.push(format!("a secret stands in the file {}", path.display()));
            }
        });
        found.sort();
        found
    }

    /// What stands in the transcript and the log beyond what was looked through.
    fn in_texts(&mut self, seen: &Seen<'_>) -> Vec<String> {
        let secrets = self.secrets(seen);
        let mut found = Vec::new();
        let lines = seen.transcript.since(self.lines);
        self.lines += lines.len();
        if holds_any(lines.join("\n").as_bytes(), &secrets) {
            found.push("a secret stands in the transcript".to_owned());
        }
        let logged = seen.log.since(self.logged);
        self.logged += logged.len();
        // All at once: there is much of it, and hardly ever anything to find.
        if holds_any(&logged, &secrets) {
            let mut lines = logged.split(|byte| *byte == b'\n');
            // One that stands on several lines is shown with all of them.
            let line = lines.find(|line| holds_any(line, &secrets)).unwrap_or(&logged);
            found.push(format!("a secret stands in the log: {}", hidden(line, &secrets)));
        }
        found
    }
}

impl Check for Window {
    fn invariant(&self) -> Invariant {
        Invariant::Window
    }

    fn on(&mut self, observation: &Observation, seen: &Seen<'_>) -> Vec<String> {
        match observation {
            Observation::Asked(request) => self.in_request(request, seen),
            Observation::Event { event, .. } => {
                let found = holds_any(event.json().as_bytes(), &self.secrets(seen));
                let told = || format!("a secret stands in an event {}", event.what.name());
                found.then(told).into_iter().collect()
            }
            Observation::AskBegan(_)
            | Observation::AskEnded { .. }
            | Observation::Answered(_)
            | Observation::StreamOpened(_)
            | Observation::StreamEnded { .. }
            | Observation::Touched { .. }
            | Observation::Started(_)
            | Observation::McpCalled { .. }
            | Observation::Decided { .. } => Vec::new(),
        }
    }

    fn after_step(&mut self, seen: &Seen<'_>) -> Vec<String> {
        let mut found = self.in_texts(seen);
        let operations = Some(seen.disk.operations());
        if operations != self.operations {
            self.operations = operations;
            found.extend(self.in_files(seen));
        }
        found
    }

    fn at_end(&mut self, seen: &Seen<'_>, _: &End<'_>) -> Vec<String> {
        // From the beginning: what was a secret later may have been told earlier.
        (self.lines, self.logged, self.operations) = (0, 0, None);
        self.after_step(seen)
    }
}

/// The keys and canaries of a scenario.
pub fn given(scenario: &Scenario) -> Vec<String> {
    let config = scenario.config_json("");
    let providers = config["providers"].as_object().into_iter().flatten();
    let providers: Vec<&Value> = providers.map(|(_, provider)| provider).collect();
    let named = |key: &str| -> BTreeSet<&str> {
        providers.iter().filter_map(|provider| provider[key].as_str()).collect()
    };
    let variables = named("api_key_env");
    let is_secret =
        |name: &str| variables.contains(name) || SECRET_NAMES.iter().any(|end| name.ends_with(end));
    let values = scenario.env.iter().filter(|(name, _)| is_secret(name));
    let mut given: Vec<String> = values.map(|(_, value)| value.clone()).collect();
    for path in named("api_key_file") {
        let content = scenario.files.get(Path::new(path)).and_then(FileSpec::content);
        let content = content.and_then(|content| String::from_utf8(content).ok());
        given.extend(content.map(|content| content.trim().to_owned()));
    }
    given.retain(|secret| secret.len() >= SECRET_BYTES_MIN);
    given
}

fn tokens(seen: &Seen<'_>) -> Vec<String> {
    seen.tokens.iter().map(|token| token.expose_secret().to_owned()).collect()
}

/// Whether a secret stands in a header where it does not belong. The server's tokens belong in none.
fn headers_hold(headers: &HeaderMap, secrets: &[String], tokens: &[String]) -> bool {
    headers.iter().any(|(name, value)| {
        let is_for_keys = KEY_HEADERS.contains(&name.as_str());
        holds_any(value.as_bytes(), if is_for_keys { tokens } else { secrets })
    })
}

fn is_token_file(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.starts_with(HOME) && name.starts_with("rpc") && name.ends_with(".token")
}

/// The secrets that a scenario puts into files itself.
fn put(scenario: &Scenario, given: &[String]) -> BTreeSet<(PathBuf, String)> {
    let by_programs = scenario.programs.iter().map(|program| &program.writes);
    let by_steps = scenario.steps.iter().filter_map(|step| match &step.action {
        Action::Files(files) => Some(files),
        _ => None,
    });
    let by_faults = scenario.faults.iter().filter_map(|fault| match &fault.kind {
        FaultKind::Files(files) => Some(files),
        _ => None,
    });
    let files =
        std::iter::once(&scenario.files).chain(by_programs).chain(by_steps).chain(by_faults);
    let files = files.flatten().filter_map(|(path, spec)| Some((path.clone(), spec.content()?)));
    // The scenario itself lies on the disk where the server reads its models from it.
    let all = files.chain([(SCRIPT.into(), scenario.text.clone().into_bytes())]);
    all.flat_map(|(path, content)| {
        held(&content, given).into_iter().map(move |secret| (path.clone(), secret))
    })
    .collect()
}

fn holds_any(bytes: &[u8], secrets: &[String]) -> bool {
    !held(bytes, secrets).is_empty()
}

/// Those that stand in bytes.
pub fn held(bytes: &[u8], secrets: &[String]) -> Vec<String> {
    let stands = |secret: &&String| memmem::find(bytes, secret.as_bytes()).is_some();
    secrets.iter().filter(stands).cloned().collect()
}

/// A line that can be shown.
fn hidden(line: &[u8], secrets: &[String]) -> String {
    let line = String::from_utf8_lossy(line).into_owned();
    secrets.iter().fold(line, |line, secret| line.replace(secret, "[secret]"))
}

#[cfg(test)]
#[path = "window_tests.rs"]
mod tests;
