//! The text of a scenario as a tree that knows where everything stands, and the problems found in
//! it. It knows no key; the readers do.

use std::cell::RefCell;

use nexus3::config::words::{quoted, shorten, shown_key};
use nexus3::config::{Problem, position};
use serde_json::{Number, Value};
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

/// Problems of one file that are told in one go.
const PROBLEMS_MAX: usize = 100;

/// Collects the problems of one file. Many places hold it at once and only add to it.
#[derive(Debug)]
pub(super) struct Problems<'t> {
    file: &'t str,
    text: &'t str,
    /// Where each line but the first begins.
    lines: Vec<usize>,
    found: RefCell<Vec<(usize, String, String)>>,
}

impl<'t> Problems<'t> {
    pub(super) fn new(file: &'t str, text: &'t str) -> Self {
        let lines = text.match_indices('\n').map(|(at, _)| at + 1).collect();
        Self { file, text, lines, found: RefCell::default() }
    }

    /// The file.
    pub(super) fn text(&self) -> &'t str {
        self.text
    }

    pub(super) fn add(&self, offset: usize, message: String, hint: String) {
        self.found.borrow_mut().push((offset, message, hint));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.borrow().is_empty()
    }

    /// The problems in the order of the text, the first of them if there are very many.
    pub(super) fn told(self) -> Vec<Problem> {
        let Self { file, text, found, .. } = self;
        let mut found = found.into_inner();
        found.sort_by_key(|(offset, ..)| *offset);
        found.truncate(PROBLEMS_MAX);
        let told = |(offset, message, hint)| {
            let position = Some(position(text, offset));
            Problem { source: file.to_owned(), position, message, hint }
        };
        found.into_iter().map(told).collect()
    }
}

/// The whole text as one table. None, with the problems added, where it is no TOML.
pub(super) fn parse<'t>(problems: &Problems<'t>) -> Option<Spanned<DeValue<'t>>> {
    let (table, errors) = DeTable::parse_recoverable(problems.text);
    for error in &errors {
        let offset = error.span().map_or(0, |span| span.start);
        let words = error.message().lines().next().unwrap_or_default();
        let hint = "see https://toml.io for how values are written";
        problems.add(offset, format!("this is not TOML: {words}"), hint.to_owned());
    }
    let span = table.span();
    errors.is_empty().then(|| Spanned::new(span, DeValue::Table(table.into_inner())))
}

/// One value and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Place<'a> {
    path: String,
    key_at: usize,
    value: &'a Spanned<DeValue<'a>>,
    problems: &'a Problems<'a>,
}

impl<'a> Place<'a> {
    pub(super) fn root(value: &'a Spanned<DeValue<'a>>, problems: &'a Problems<'a>) -> Self {
        Self { path: String::new(), key_at: 0, value, problems }
    }

    /// The member of a table; None where there is no such key or this is no table.
    pub(super) fn get(&self, key: &str) -> Option<Self> {
        let (name, value) = self.value.get_ref().as_table()?.get_key_value(key)?;
        Some(self.member(name, value))
    }

    /// The members of a table in the order of the file; none where this is no table.
    pub(super) fn members(&self) -> Vec<(&'a str, Self)> {
        let table = self.value.get_ref().as_table();
        let member = |(name, value): (&'a Spanned<DeString<'a>>, _)| {
            (name.get_ref().as_ref(), self.member(name, value))
        };
        table.into_iter().flatten().map(member).collect()
    }

    fn member(&self, name: &Spanned<DeString<'_>>, value: &'a Spanned<DeValue<'a>>) -> Self {
        let dot = if self.path.is_empty() { "" } else { "." };
        let path = format!("{}{dot}{}", self.path, shown_key(name.get_ref()));
        Self { path, key_at: name.span().start, value, problems: self.problems }
    }

    /// The elements of a list; none where this is no list.
    pub(super) fn items(&self) -> Vec<Self> {
        let item = |(index, value): (usize, &'a Spanned<DeValue<'a>>)| Self {
            path: format!("{}[{index}]", self.path),
            key_at: value.span().start,
            value,
            problems: self.problems,
        };
        let items = self.value.get_ref().as_array();
        items.into_iter().flat_map(|items| items.iter()).enumerate().map(item).collect()
    }

    /// The elements of the list that a member is; none where it is left out.
    pub(super) fn items_of(&self, key: &str) -> Vec<Self> {
        self.get(key).map(|list| list.items()).unwrap_or_default()
    }

    pub(super) fn text(&self) -> Option<&'a str> {
        self.value.get_ref().as_str()
    }

    pub(super) fn value(&self) -> &'a DeValue<'a> {
        self.value.get_ref()
    }

    pub(super) fn offset(&self) -> usize {
        self.value.span().start
    }

    pub(super) fn key_offset(&self) -> usize {
        self.key_at
    }

    pub(super) fn line(&self) -> usize {
        1 + self.problems.lines.partition_point(|begin| *begin <= self.offset())
    }

    /// Adds a problem at the value.
    pub(super) fn refuse(&self, message: &str, hint: &str) {
        self.problems.add(self.offset(), self.named(message), hint.to_owned());
    }

    /// Adds a problem at the key.
    pub(super) fn refuse_key(&self, message: &str, hint: &str) {
        self.problems.add(self.key_at, self.named(message), hint.to_owned());
    }

    /// Adds a problem at the value of a key, or here where it is left out.
    pub(super) fn refuse_at(&self, key: &str, message: &str, hint: &str) {
        match self.get(key) {
            Some(place) => place.refuse(message, hint),
            None => self.refuse(&format!("{key}: {message}"), hint),
        }
    }

    fn named(&self, message: &str) -> String {
        let Self { path, .. } = self;
        if path.is_empty() { message.to_owned() } else { format!("{path}: {message}") }
    }

    pub(super) fn shown(&self) -> String {
        match self.value.get_ref() {
            DeValue::String(text) => format!("a string {}", quoted(text)),
            DeValue::Integer(number) => shorten(&number.to_string()),
            DeValue::Float(number) => shorten(number.as_str()),
            DeValue::Boolean(flag) => flag.to_string(),
            DeValue::Datetime(date) => format!("a date {date}"),
            DeValue::Array(_) => "a list".to_owned(),
            DeValue::Table(_) => "a table".to_owned(),
        }
    }

    /// The same as JSON, which has no dates and no endless numbers; those become null and a problem.
    pub(super) fn json(&self) -> Value {
        match self.value.get_ref() {
            DeValue::String(text) => text.as_ref().into(),
            DeValue::Boolean(flag) => (*flag).into(),
            DeValue::Integer(number) => {
                let (digits, radix) = (number.as_str(), number.radix());
                let signed = i64::from_str_radix(digits, radix).map(Value::from);
                let number =
                    signed.or_else(|_| u64::from_str_radix(digits, radix).map(Value::from));
                number.unwrap_or_else(|_| {
                    self.no_json("this number is too large", "use at most 64 bits")
                })
            }
            DeValue::Float(number) => {
                let number = number.as_str().parse().ok().and_then(Number::from_f64);
                let refused = "no key of a scenario takes this number";
                number.map_or_else(|| self.no_json(refused, "use a finite number"), Value::Number)
            }
            DeValue::Datetime(_) => {
                self.no_json("no key of a scenario takes a date", "write it between quotes")
            }
            DeValue::Array(_) => self.items().iter().map(Place::json).collect(),
            DeValue::Table(_) => {
                let member = |(name, place): &(&str, Place<'_>)| ((*name).to_owned(), place.json());
                Value::Object(self.members().iter().map(member).collect())
            }
        }
    }

    fn no_json(&self, message: &str, hint: &str) -> Value {
        self.refuse(message, hint);
        Value::Null
    }
}
