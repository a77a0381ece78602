//! The invariant `window`, its half about secrets: no token, key or canary stands where it does not
//! belong. Looked through are the transcript, everything logged, every model request whole, and all
//! files of the disk.
//!
//! Secrets are the server's tokens, the values of variables that a provider takes its key from or
//! whose name ends in `_KEY`, `_TOKEN`, `_SECRET` or `_CANARY`, and the contents of key files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use http::HeaderMap;
use secrecy::ExposeSecret;
use serde_json::Value;

use super::{Check, End, Invariant, Observation, Seen};
use crate::disk::{Item, View};
use crate::machine::HOME;
use crate::play::observed::Request;
use crate::play::server::SCRIPT;
use crate::scenario::{FileSpec, Scenario};

/// A shorter text stands in too many places by accident to be looked for.
const SECRET_BYTES_MIN: usize = 8;
const SECRET_NAMES: [&str; 4] = ["_KEY", "_TOKEN", "_SECRET", "_CANARY"];
/// Where a provider's key belongs.
const KEY_HEADERS: [&str; 3] = ["authorization", "api-key", "x-api-key"];

#[derive(Debug, Default)]
pub struct Window {
    /// Keys and canaries of the scenario.
    given: Vec<String>,
    /// Files that hold secrets because the scenario says so.
    spared: BTreeSet<PathBuf>,
    /// How much of the transcript and the log has been looked through.
    lines: usize,
    logged: usize,
    /// What the disk had done when it was last looked through.
    operations: Option<u64>,
}

impl Window {
    pub fn new(scenario: &Scenario) -> Self {
        let config = scenario.config_json("");
        let providers = config["providers"].as_object().into_iter().flatten();
        let providers: Vec<&Value> = providers.map(|(_, provider)| provider).collect();
        let named = |key: &str| -> BTreeSet<&str> {
            providers.iter().filter_map(|provider| provider[key].as_str()).collect()
        };
        let variables = named("api_key_env");
        let is_secret = |name: &str| {
            variables.contains(name) || SECRET_NAMES.iter().any(|end| name.ends_with(end))
        };
        let values = scenario.env.iter().filter(|(name, _)| is_secret(name));
        let mut given: Vec<String> = values.map(|(_, value)| value.clone()).collect();
        for path in named("api_key_file") {
            let content = scenario.files.get(Path::new(path)).and_then(FileSpec::content);
            let content = content.and_then(|content| String::from_utf8(content).ok());
            given.extend(content.map(|content| content.trim().to_owned()));
        }
        given.retain(|secret| secret.len() >= SECRET_BYTES_MIN);
        let mut spared: BTreeSet<PathBuf> = scenario.files.keys().cloned().collect();
        spared.insert(SCRIPT.into());
        Self { given, spared, ..Self::default() }
    }

    /// Everything that must not be found, tokens last.
    fn secrets(&self, seen: &Seen<'_>) -> Vec<String> {
        self.given.iter().cloned().chain(tokens(seen)).collect()
    }

    fn in_request(&self, request: &Request, seen: &Seen<'_>) -> Vec<String> {
        let secrets = self.secrets(seen);
        let mut found = Vec::new();
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
        for (path, item) in seen.disk.tree(View::Now) {
            let holds = match &item {
                Item::File { content, .. } => holds_any(content, &secrets),
                Item::Link { target } => holds_any(target.as_os_str().as_encoded_bytes(), &secrets),
                Item::Dir { .. } => false,
            };
            if holds && !is_token_file(&path) && !self.spared.contains(&path) {
                found.push(format!("a secret stands in the file {}", path.display()));
            }
        }
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
        let mut lines = logged.split(|byte| *byte == b'\n');
        if let Some(line) = lines.find(|line| holds_any(line, &secrets)) {
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
            Observation::AskBegan { .. }
            | Observation::AskEnded { .. }
            | Observation::Answered(_) => Vec::new(),
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

fn holds_any(bytes: &[u8], secrets: &[String]) -> bool {
    // A secret is text, and what is no text around it does not change it.
    let text = String::from_utf8_lossy(bytes);
    secrets.iter().any(|secret| text.contains(secret.as_str()))
}

/// A line that can be shown.
fn hidden(line: &[u8], secrets: &[String]) -> String {
    let line = String::from_utf8_lossy(line).into_owned();
    secrets.iter().fold(line, |line, secret| line.replace(secret, "[secret]"))
}

#[cfg(test)]
#[path = "window_tests.rs"]
mod tests;
