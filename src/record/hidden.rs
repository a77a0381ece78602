//! What a recording must not say: secrets, and where on this machine everything lies. The server's
//! working directory and home become those of a scenario, in paths and in texts.
//! Pure but for its making.

use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};

use super::{Setting, keys};
use crate::config::directories;
use crate::provider::Secrets;
use crate::world::World;

/// Where things lie in a scenario.
pub(super) const PROJECT: &str = "/project";
pub(super) const HOME: &str = "/home/nexus/.nexus3";
const USER: &str = "/home/nexus";

/// How the names of variables end whose values nobody shows, in any case and also as the whole name.
const SECRET_NAMES: [&str; 9] =
    ["key", "token", "secret", "password", "passwd", "passphrase", "credentials", "_pat", "canary"];
/// How many keys are learnt from what they stand in.
const LEARNT_MAX: usize = 256;

#[derive(Clone, Debug)]
pub(super) struct Hidden {
    secrets: Secrets,
    /// Places of this machine with those of the scenario, the innermost first.
    places: Vec<(String, String)>,
    /// Where the server was started.
    pub(super) cwd: String,
    /// How many more keys may be learnt.
    learnt_left: usize,
}

impl Hidden {
    pub(super) fn new(world: &World, secrets: &Secrets, setting: &Setting) -> Self {
        let variables = world.environment.vars().into_iter();
        let is_secret = |name: &str| {
            let name = name.to_ascii_lowercase();
            SECRET_NAMES.iter().any(|end| name.ends_with(end))
        };
        let secret = variables.filter(|(name, _)| is_secret(name));
        let secrets = secrets.and(secret.map(|(_, value)| SecretString::from(value)));
        let resolved = |path: &PathBuf| world.fs.canonical(path).ok();
        let user = world.environment.home_dir();
        let given = world.environment.current_dir().ok();
        // Instructions stand in the directories up to the root of a repository, too.
        let root = directories(world.fs.as_ref(), &setting.cwd).last().copied();
        let below = root.and_then(|root| setting.cwd.strip_prefix(root).ok());
        let below = below.filter(|below| *below != Path::new(""));
        let cwd =
            below.map_or_else(|| PathBuf::from(PROJECT), |below| Path::new(PROJECT).join(below));
        let cwd = cwd.to_string_lossy().into_owned();
        let places = [
            (root.map(Path::to_owned), PROJECT),
            (Some(setting.cwd.clone()), &cwd),
            (given, &cwd),
            (resolved(&setting.home), HOME),
            (Some(setting.home.clone()), HOME),
            (user.as_ref().and_then(resolved), USER),
            (user, USER),
        ];
        let places = places.into_iter().filter_map(|(path, place)| Some((path?, place)));
        Self { cwd: cwd.clone(), ..Self::of(secrets, places) }
    }

    pub(super) fn of<'p>(
        secrets: Secrets,
        places: impl Iterator<Item = (PathBuf, &'p str)>,
    ) -> Self {
        // The root of the disk stands for itself.
        let named = places.filter(|(path, _)| path.parent().is_some());
        let mut places: Vec<_> = named
            .map(|(path, place)| (path.to_string_lossy().into_owned(), place.to_owned()))
            .collect();
        places.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
        places.dedup();
        Self { secrets, places, cwd: PROJECT.to_owned(), learnt_left: LEARNT_MAX }
    }

    /// Hides these, too, from now on.
    pub(super) fn learn(&mut self, secrets: &[SecretString]) {
        if !secrets.is_empty() {
            self.secrets = self.secrets.and(secrets.iter().cloned());
        }
    }

    /// Hides the keys of others that stand in a text by names which say so, from now on.
    pub(super) fn learn_from(&mut self, text: &str) {
        let mut told = keys::told_in(text);
        told.retain(|key| self.secrets.hide(key.expose_secret()) == key.expose_secret());
        told.truncate(self.learnt_left);
        self.learnt_left -= told.len();
        self.learn(&told);
    }

    /// Whether a key stands in bytes that are no text, in which it cannot be hidden.
    pub(super) fn has_key(&self, bytes: &[u8]) -> bool {
        let text = String::from_utf8_lossy(bytes);
        self.keys(&text) != text
    }

    /// Without keys, wherever they are.
    pub(super) fn keys(&self, text: &str) -> String {
        keys::hide(text, self.secrets.found(text))
    }

    pub(super) fn text(&self, text: &str) -> String {
        let mut text = self.keys(text);
        for (path, place) in &self.places {
            text = replaced(&text, path, place);
        }
        text
    }

    /// Texts that are one text to whoever reads them, in pieces. Where a secret lies across them they
    /// become one.
    pub(super) fn pieces(&self, pieces: &[String]) -> Vec<String> {
        let apart: Vec<String> = pieces.iter().map(|piece| self.text(piece)).collect();
        let whole = self.text(&pieces.concat());
        if apart.concat() == whole { apart } else { vec![whole] }
    }

    pub(super) fn path(&self, path: &Path) -> String {
        self.text(&path.to_string_lossy())
    }

    pub(super) fn value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.text(text).into(),
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::Object(members) => Value::Object(self.members(members)),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }

    pub(super) fn members(&self, members: &Map<String, Value>) -> Map<String, Value> {
        let hide = |(name, value): (&String, &Value)| (self.text(name), self.value(value));
        members.iter().map(hide).collect()
    }

    /// Whether a directory lies around the server's own, and so is no part of the scenario.
    pub(super) fn is_around(&self, path: &Path) -> bool {
        self.places.iter().any(|(place, _)| Path::new(place).starts_with(path))
    }
}

/// Puts `place` where `path` stands as a whole path or the beginning of one.
fn replaced(text: &str, path: &str, place: &str) -> String {
    let mut written = String::with_capacity(text.len());
    let mut from = 0;
    for (at, _) in text.match_indices(path) {
        let before = text[..at].chars().next_back();
        let mut after = text[at + path.len()..].chars();
        let in_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
        let goes_on = match after.next() {
            Some('.') => after.next().is_some_and(in_name),
            next => next.is_some_and(in_name),
        };
        let is_inner = before.is_some_and(|c| in_name(c) || c == '.');
        if at >= from && !goes_on && !is_inner {
            written.push_str(&text[from..at]);
            written.push_str(place);
            from = at + path.len();
        }
    }
    written.push_str(&text[from..]);
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden() -> Hidden {
        let secrets = Secrets::default().and([SecretString::from("sk-canary-0123456789")]);
        let places =
            [("/home/me", USER), ("/home/me/work", PROJECT), ("/home/me/.nexus3", HOME), ("/", "")];
        Hidden::of(secrets, places.map(|(path, place)| (path.into(), place)).into_iter())
    }

    #[test]
    fn places_of_this_machine_become_those_of_a_scenario() {
        let hidden = hidden();
        let text =
            "read /home/me/work/a.txt, '/home/me/work'. /home/me/workshop /home/me/.nexus3/x";
        assert_eq!(
            hidden.text(text),
            "read /project/a.txt, '/project'. /home/nexus/workshop /home/nexus/.nexus3/x"
        );
        assert_eq!(
            hidden.text("/x/home/me/work /home/me/work.d"),
            "/x/home/me/work /home/nexus/work.d"
        );
        assert_eq!(hidden.path(Path::new("/etc/hosts")), "/etc/hosts");
        assert!(
            hidden.is_around(Path::new("/home")) && !hidden.is_around(Path::new("/home/me/work/a"))
        );
    }

    #[test]
    fn a_secret_is_hidden_in_names_and_across_pieces() {
        let hidden = hidden();
        let pieces = ["It is sk-can", "ary-0123456789", "."].map(str::to_owned);
        assert_eq!(hidden.pieces(&pieces), ["It is [redacted]."]);
        let plain = ["In /home/", "you"].map(str::to_owned);
        assert_eq!(hidden.pieces(&plain), plain);
        let value = serde_json::json!({ "sk-canary-0123456789": ["a sk-canary-0123456789"] });
        assert_eq!(hidden.value(&value), serde_json::json!({ "[redacted]": ["a [redacted]"] }));
    }

    #[test]
    fn a_key_of_somebody_else_is_hidden_everywhere_once_it_is_told() {
        let mut hidden = hidden();
        assert_eq!(hidden.text("hunter2hunter2"), "hunter2hunter2");
        hidden.learn_from("DB_PASSWORD=hunter2hunter2");
        assert_eq!(hidden.text("It is hunter2hunter2."), "It is [redacted].");
        assert_eq!(hidden.text("sk-ant-api03-abcdefgh0123"), "[redacted]");
    }
}
