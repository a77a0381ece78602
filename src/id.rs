//! Names of things, parsed once at the rim and trusted inside.
//! Pure: new ids are drawn by whoever holds `world.chance`.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use crate::limits::{AGENT_ID_CHARS_MAX, CONFIRM_ID_HEX, REQUEST_ID_CHARS_MAX};

/// The name of an agent: at most 63 characters of `[A-Za-z0-9._-]` after an optional leading dot,
/// starting with a letter or digit, without `..`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema)]
#[schemars(with = "String")]
pub struct AgentId(Arc<str>);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    #[error(
        "Invalid agent id: {shown:?} (letters, digits, `.`, `_` and `-`, at most \
         {AGENT_ID_CHARS_MAX} of them, starting with a letter or digit after an optional dot, no `..`)"
    )]
    Agent { shown: String },
    #[error(
        "Invalid request id: {shown:?} (1 to {REQUEST_ID_CHARS_MAX} characters, none of them a \
         control character)"
    )]
    Request { shown: String },
    #[error("Invalid confirmation id: {shown:?} ({CONFIRM_ID_HEX} hexadecimal digits)")]
    Confirm { shown: String },
}

impl AgentId {
    pub fn parse(text: &str) -> Result<Self, IdError> {
        let stem = text.strip_prefix('.').unwrap_or(text);
        let well_formed = stem.len() <= AGENT_ID_CHARS_MAX
            && stem.starts_with(|c: char| c.is_ascii_alphanumeric())
            && stem.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
            && !stem.as_bytes().windows(2).any(|two| two == b"..");
        if well_formed {
            Ok(Self(text.into()))
        } else {
            Err(IdError::Agent { shown: shorten(text) })
        }
    }

    /// The numbered temporary id: `.1`, `.2`, …
    pub fn temp(number: u64) -> Self {
        Self(format!(".{number}").into())
    }

    pub fn is_temp(&self) -> bool {
        self.0.starts_with('.')
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The name of one turn of one agent, chosen by the caller or drawn by the server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema)]
#[schemars(with = "String")]
pub struct RequestId(Arc<str>);

impl RequestId {
    pub fn parse(text: &str) -> Result<Self, IdError> {
        let chars = if text.is_ascii() { text.len() } else { text.chars().count() };
        if chars == 0 || chars > REQUEST_ID_CHARS_MAX || text.chars().any(char::is_control) {
            return Err(IdError::Request { shown: shorten(text) });
        }
        Ok(Self(text.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The name of one confirmation, drawn by the server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema)]
#[schemars(with = "String")]
pub struct ConfirmId(Arc<str>);

impl ConfirmId {
    pub fn parse(text: &str) -> Result<Self, IdError> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if text.len() != CONFIRM_ID_HEX || !text.bytes().all(is_digit) {
            return Err(IdError::Confirm { shown: shorten(text) });
        }
        Ok(Self(text.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn shorten(text: &str) -> String {
    text.chars().take(80).collect()
}

/// A text that is parsed where it stands.
struct Text<T>(fn(&str) -> Result<T, IdError>);

impl<T> Visitor<'_> for Text<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.0)(text).map_err(E::custom)
    }
}

macro_rules! text_id {
    ($name:ident) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(Text(Self::parse))
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    };
}

impl std::str::FromStr for ConfirmId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        Self::parse(text)
    }
}

impl std::str::FromStr for AgentId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        Self::parse(text)
    }
}

text_id!(AgentId);
text_id!(RequestId);
text_id!(ConfirmId);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_ids_follow_the_rule() {
        let longest = "a".repeat(AGENT_ID_CHARS_MAX);
        for good in
            ["a", "0", ".1", ".quick", "a.b-c_d", "A9", "a.", &longest, &format!(".{longest}")]
        {
            assert_eq!(AgentId::parse(good).map(|id| id.to_string()).as_deref(), Ok(good));
        }
        let too_long = "a".repeat(AGENT_ID_CHARS_MAX + 1);
        for bad in
            ["", ".", "..", "..a", "a..b", "-a", "_a", "a b", "a/b", "é", "a\0", "%41", &too_long]
        {
            assert!(AgentId::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn request_ids_are_any_printable_text_of_bounded_length() {
        assert!(RequestId::parse("r 1/é").is_ok());
        for bad in ["", "a\nb", &"x".repeat(REQUEST_ID_CHARS_MAX + 1)] {
            assert!(RequestId::parse(bad).is_err(), "{bad:?}");
        }
    }
}
