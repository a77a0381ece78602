//! The JSON-RPC envelope: bytes to requests, answers to bytes.
//! Pure. It knows no method; duplicate keys and depth are judged here because only the parser sees
//! them.

use std::fmt;

use serde::Serialize;
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value};

use super::code::Code;
pub use crate::code::ErrorObject;
use crate::limits::BATCH_ENTRIES_MAX;

/// What a body holds. An entry that is no request carries its own error.
#[derive(Debug, PartialEq)]
pub enum Body {
    One(Entry),
    Batch(Vec<Entry>),
}

pub type Entry = Result<Request, Invalid>;

#[derive(Debug, PartialEq)]
pub struct Request {
    pub id: Id,
    pub method: String,
    pub params: Params,
}

#[derive(Debug, PartialEq)]
pub enum Params {
    Named(Map<String, Value>),
    Positional,
}

impl Params {
    pub fn named(&self) -> Option<&Map<String, Value>> {
        match self {
            Self::Named(params) => Some(params),
            Self::Positional => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Id {
    /// A notification's, and that of an answer to what has no readable id.
    Null,
    Text(String),
    Integer(Number),
}

/// A JSON value that is no request, with the id where it can be read.
#[derive(Debug, PartialEq)]
pub struct Invalid {
    id: Id,
    why: String,
}

impl Invalid {
    pub fn answer(self) -> String {
        let message = format!("Invalid request: {}", self.why);
        answer(&self.id, &Err(ErrorObject::new(Code::InvalidRequest, message)))
    }
}

/// Writes one answer, with the members in the order of the contract.
pub fn answer(id: &Id, outcome: &Result<Box<RawValue>, ErrorObject>) -> String {
    let (name, content) = match outcome {
        Ok(result) => ("result", result.get().to_owned()),
        Err(error) => ("error", to_text(error)),
    };
    format!(r#"{{"jsonrpc":"2.0","id":{},"{name}":{content}}}"#, to_text(id))
}

fn to_text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("ids and errors have only string keys")
}

/// Reads a body. An error here is about the whole of it.
pub fn parse(bytes: &[u8]) -> Result<Body, ErrorObject> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let parsed = Top.deserialize(&mut reader).and_then(|top| reader.end().map(|()| top));
    let top = parsed.map_err(|error| {
        let message = format!("Parse error at line {}, column {}", error.line(), error.column());
        ErrorObject::new(Code::Parse, message)
    })?;
    match top {
        Parsed::One(value) => Ok(Body::One(request(value))),
        Parsed::Batch { total: 0, .. } => {
            Err(ErrorObject::new(Code::InvalidRequest, "Invalid request: the batch is empty"))
        }
        Parsed::Batch { total, .. } if total > BATCH_ENTRIES_MAX => {
            let message = format!(
                "Invalid request: the batch has {total} entries, at most {BATCH_ENTRIES_MAX} are allowed"
            );
            Err(ErrorObject::new(Code::InvalidRequest, message))
        }
        Parsed::Batch { entries, .. } => {
            Ok(Body::Batch(entries.into_iter().map(request).collect()))
        }
    }
}

fn request(Judged { value, duplicate }: Judged) -> Entry {
    let Value::Object(mut members) = value else {
        return invalid(Id::Null, "it is no JSON object".to_owned());
    };
    let id = read_id(members.swap_remove("id").unwrap_or_default());
    if let Some(key) = duplicate {
        return invalid(
            id.unwrap_or(Id::Null),
            format!("the key {key:?} stands twice in one object"),
        );
    }
    let Some(id) = id else {
        return invalid(Id::Null, "`id` must be a string or a 64-bit integer".to_owned());
    };
    if members.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return invalid(id, "`jsonrpc` must be \"2.0\"".to_owned());
    }
    let method = match members.swap_remove("method") {
        Some(Value::String(method)) if !method.is_empty() => method,
        _ => return invalid(id, "`method` must be a non-empty string".to_owned()),
    };
    let params = match members.swap_remove("params") {
        None | Some(Value::Null) => Params::Named(Map::new()),
        Some(Value::Object(params)) => Params::Named(params),
        Some(Value::Array(_)) => Params::Positional,
        Some(_) => return invalid(id, "`params` must be an object".to_owned()),
    };
    Ok(Request { id, method, params })
}

fn invalid(id: Id, why: String) -> Entry {
    Err(Invalid { id, why })
}

fn read_id(value: Value) -> Option<Id> {
    match value {
        Value::Null => Some(Id::Null),
        Value::String(text) => Some(Id::Text(text)),
        Value::Number(number) if number.is_i64() || number.is_u64() => Some(Id::Integer(number)),
        _ => None,
    }
}

/// A value, and a key that stands twice in one of its objects.
struct Judged {
    value: Value,
    duplicate: Option<String>,
}

enum Parsed {
    One(Judged),
    /// Entries beyond the bound are counted, not kept.
    Batch {
        entries: Vec<Judged>,
        total: usize,
    },
}

/// Reads the outermost value, so that each entry of a batch is judged by itself.
struct Top;

impl<'de> DeserializeSeed<'de> for Top {
    type Value = Parsed;

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<Parsed, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Top {
    type Value = Parsed;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Parsed, A::Error> {
        let (mut entries, mut total) = (Vec::new(), 0);
        let mut duplicate = None;
        while let Some(value) = items.next_element_seed(Strict { duplicate: &mut duplicate })? {
            total += 1;
            let judged = Judged { value, duplicate: duplicate.take() };
            if total <= BATCH_ENTRIES_MAX {
                entries.push(judged);
            }
        }
        Ok(Parsed::Batch { entries, total })
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Parsed, A::Error> {
        let mut duplicate = None;
        let value = Strict { duplicate: &mut duplicate }.visit_map(members)?;
        Ok(Parsed::One(Judged { value, duplicate }))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Parsed, E> {
        Ok(Parsed::scalar())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Parsed, E> {
        Ok(Parsed::scalar())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Parsed, E> {
        Ok(Parsed::scalar())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Parsed, E> {
        Ok(Parsed::scalar())
    }

    fn visit_str<E>(self, _: &str) -> Result<Parsed, E> {
        Ok(Parsed::scalar())
    }

    fn visit_unit<E>(self) -> Result<Parsed, E> {
        Ok(Parsed::scalar())
    }
}

impl Parsed {
    /// Valid JSON, but no request whatever it is.
    fn scalar() -> Self {
        Self::One(Judged { value: Value::Null, duplicate: None })
    }
}

/// Reads any value and remembers the first duplicate key instead of failing on it: what follows
/// may be no JSON at all, and that is the graver fault.
struct Strict<'a> {
    duplicate: &'a mut Option<String>,
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = items.next_element_seed(Strict { duplicate: self.duplicate })? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            let value = members.next_value_seed(Strict { duplicate: self.duplicate })?;
            if let Some(first) = object.get_mut(&key) {
                // Which of the two is meant cannot be known: an id that stands twice is none.
                *first = Value::Null;
                self.duplicate.get_or_insert(key);
            } else {
                object.insert(key, value);
            }
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
