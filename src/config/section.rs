//! Reads one object of a configuration key by key: types, ranges, keys that nobody knows.
//! Every fault becomes a problem at its place and reading goes on with a default, so that one run
//! tells all. It knows no key of its own.

use std::fmt::Display;
use std::ops::RangeInclusive;

use super::problem::Problems;
use super::tree::{At, Object, Tree, Value};
use super::words::{meant, nearest, shown, shown_key, unsupported};
use crate::limits;

/// An object whose keys are fixed. It remembers what was asked for and refuses the rest at the end.
#[derive(Debug)]
pub(super) struct Section<'a> {
    path: String,
    at: At,
    fields: Vec<Field<'a>>,
    known: Vec<&'static str>,
    problems: &'a Problems<'a>,
}

/// One value and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Field<'a> {
    /// The key itself.
    pub(super) name: &'a str,
    path: String,
    tree: &'a Tree,
    /// What to do when the value does not fit.
    hint: String,
    problems: &'a Problems<'a>,
}

/// Whether a time may be none at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Zero {
    Allowed,
    Refused,
}

impl<'a> Section<'a> {
    /// All of it.
    pub(super) fn root(tree: &'a Tree, problems: &'a Problems<'a>) -> Option<Self> {
        let hint = "write the keys between { and }".to_owned();
        Field { name: "", path: "the configuration".to_owned(), tree, hint, problems }
            .object()
            .map(|object| Self::new(String::new(), tree.at, object, problems))
    }

    fn new(path: String, at: At, object: &'a Object, problems: &'a Problems<'a>) -> Self {
        Self { fields: members(&path, object, problems), path, at, known: Vec::new(), problems }
    }

    /// A key with a default.
    pub(super) fn value<T: Display>(
        &mut self,
        key: &'static str,
        default: T,
        read: impl FnOnce(&Field<'a>) -> Option<T>,
    ) -> T {
        let hint = format!("leave `{key}` out for the default, {default}");
        self.field(key, hint).and_then(|field| read(&field)).unwrap_or(default)
    }

    /// A key that may be left out or null.
    pub(super) fn optional<T>(
        &mut self,
        key: &'static str,
        hint: &str,
        read: impl FnOnce(&Field<'a>) -> Option<T>,
    ) -> Option<T> {
        read(&self.given(key, hint)?)
    }

    pub(super) fn required<T>(
        &mut self,
        key: &'static str,
        hint: &str,
        read: impl FnOnce(&Field<'a>) -> Option<T>,
    ) -> Option<T> {
        let field = self.field(key, hint.to_owned());
        if field.is_none() {
            let message = format!("{}: `{key}` is missing", self.path);
            self.problems.add(self.at, message, hint.to_owned());
        }
        read(&field?)
    }

    /// The value of a key as it is given.
    pub(super) fn field(&mut self, key: &'static str, hint: String) -> Option<Field<'a>> {
        self.known.push(key);
        let field = self.fields.iter().find(|field| field.name == key)?;
        Some(Field { hint, ..field.clone() })
    }

    /// The value of a key, unless it is null.
    pub(super) fn given(&mut self, key: &'static str, hint: &str) -> Option<Field<'a>> {
        self.field(key, hint.to_owned()).filter(|field| !matches!(field.tree.value, Value::Null))
    }

    /// Refuses every key that was not asked for; those of the contract in `later` by name.
    pub(super) fn finish(mut self, later: &[&str]) {
        self.known.sort_unstable();
        self.known.dedup();
        for field in &self.fields {
            if self.known.contains(&field.name) {
                continue;
            }
            let (message, hint) = if later.contains(&field.name) {
                unsupported(&field.path)
            } else {
                let message = format!("{}: unknown key", field.path);
                (message, nearest(field.name, &self.known, "known keys here"))
            };
            self.problems.add(field.tree.key_at, message, hint);
        }
    }
}

impl<'a> Field<'a> {
    pub(super) fn with_hint(&self, hint: &str) -> Self {
        Self { hint: hint.to_owned(), ..self.clone() }
    }

    /// Adds a problem at the value.
    pub(super) fn refuse(&self, message: &str, hint: &str) {
        let message = format!("{}: {message}", self.path);
        self.problems.add(self.tree.at, message, hint.to_owned());
    }

    /// Adds a problem at the key.
    pub(super) fn refuse_key(&self, message: &str, hint: &str) {
        let message = format!("{}: {message}", self.path);
        self.problems.add(self.tree.key_at, message, hint.to_owned());
    }

    fn expected<T>(&self, expected: &str) -> Option<T> {
        let found = shown(&self.tree.value);
        self.refuse(&format!("expected {expected}, found {found}"), &self.hint);
        None
    }

    pub(super) fn text(&self) -> Option<&'a str> {
        match &self.tree.value {
            Value::Text(text) if text.is_empty() => self.expected("a string that is not empty"),
            Value::Text(text) => Some(text),
            _ => self.expected("a string"),
        }
    }

    pub(super) fn flag(&self) -> Option<bool> {
        match &self.tree.value {
            Value::Flag(flag) => Some(*flag),
            _ => self.expected("true or false"),
        }
    }

    pub(super) fn whole<T: TryFrom<u64>>(&self, range: RangeInclusive<u64>) -> Option<T> {
        let number = match &self.tree.value {
            Value::Number(number) => whole(number),
            _ => None,
        };
        if let Some(number) = number.filter(|number| range.contains(number)) {
            let fits = T::try_from(number).ok();
            return Some(fits.expect("the range lies within the type"));
        }
        let (start, end) = range.into_inner();
        self.expected(&format!("a whole number from {start} to {end}"))
    }

    pub(super) fn seconds(&self, zero: Zero) -> Option<f64> {
        let number = match &self.tree.value {
            Value::Number(number) => number.parse::<f64>().ok(),
            _ => None,
        };
        let max = limits::TIMEOUT_SECONDS_MAX;
        let fits = |number: &f64| match zero {
            Zero::Allowed => (0.0..=max).contains(number),
            Zero::Refused => *number > 0.0 && *number <= max,
        };
        let least = match zero {
            Zero::Allowed => "from 0",
            Zero::Refused => "above 0",
        };
        match number.filter(fits) {
            Some(number) => Some(number),
            None => self.expected(&format!("a number of seconds {least}, at most {max}")),
        }
    }

    /// A part of something, from none of it to all.
    pub(super) fn share(&self) -> Option<f64> {
        let number = match &self.tree.value {
            Value::Number(number) => number.parse::<f64>().ok(),
            _ => None,
        };
        match number.filter(|number| (0.0..=1.0).contains(number)) {
            Some(number) => Some(number),
            None => self.expected("a number from 0 to 1"),
        }
    }

    /// One of a few words; those of the contract in `later` are refused by name.
    pub(super) fn choice<T: Copy>(&self, words: &[(&'static str, T)], later: &[&str]) -> Option<T> {
        let text = match &self.tree.value {
            Value::Text(text) => text.as_str(),
            _ => "",
        };
        if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
            return Some(*value);
        }
        let names: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        if later.contains(&text) {
            let (message, _) = unsupported(text);
            self.refuse(&message, &format!("use one of {}", names.join(", ")));
            return None;
        }
        let hint = meant(text, &names).map(|word| format!("did you mean \"{word}\"?"));
        self.with_hint(hint.as_ref().unwrap_or(&self.hint))
            .expected(&format!("one of {}", names.join(", ")))
    }

    fn object(&self) -> Option<&'a Object> {
        match &self.tree.value {
            Value::Object(object) => Some(object),
            _ => self.expected("an object"),
        }
    }

    pub(super) fn section(&self) -> Option<Section<'a>> {
        let object = self.object()?;
        Some(Section::new(self.path.clone(), self.tree.at, object, self.problems))
    }

    /// The members of an object whose keys are names that people choose.
    pub(super) fn entries(&self) -> Option<Vec<Field<'a>>> {
        let entries = members(&self.path, self.object()?, self.problems);
        for entry in entries.iter().filter(|entry| entry.name.is_empty()) {
            entry.refuse_key("a name cannot be empty", "choose a name");
        }
        Some(entries)
    }

    pub(super) fn list(&self) -> Option<Vec<Field<'a>>> {
        let Value::List(list) = &self.tree.value else {
            return self.expected("a list");
        };
        let element = |(index, tree): (usize, &'a Tree)| {
            let path = format!("{}[{index}]", self.path);
            let (hint, problems) = (self.hint.clone(), self.problems);
            Field { name: self.name, path, tree, hint, problems }
        };
        Some(list.iter().enumerate().map(element).collect())
    }
}

/// The members in their order; a key that a source has twice is refused at its second place.
fn members<'a>(path: &str, object: &'a Object, problems: &'a Problems<'a>) -> Vec<Field<'a>> {
    let dot = if path.is_empty() { "" } else { "." };
    for (key, at) in &object.twice {
        let message = format!("{path}{dot}{}: this key stands here twice", shown_key(key));
        problems.add(*at, message, "remove one of the two".to_owned());
    }
    let field = |(name, tree): (&'a String, &'a Tree)| {
        let path = format!("{path}{dot}{}", shown_key(name));
        Field { name, path, tree, hint: String::new(), problems }
    };
    object.members.iter().map(field).collect()
}

/// A whole number in any of JSON's spellings: `5`, `5.0`, `5e3`.
fn whole(text: &str) -> Option<u64> {
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    let number: f64 = text.parse().ok()?;
    let exact = number.fract() == 0.0 && (0.0..=EXACT_MAX).contains(&number);
    // Display of a float has no exponent, and no point where there is no fraction.
    exact.then(|| number.abs().to_string().parse().ok())?
}
