//! How sessions are called: by the rule of agents' ids, without a dot in front. Pure.

use std::fmt;

use crate::id::{AgentId, IdError};

/// What follows the terminal is called this, and nothing else is.
pub const LAST_SESSION: &str = "last-session";

/// The name of a saved session, which is the id of the agent that it becomes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionName(AgentId);

/// What a caller can mean by the name of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Session {
    Named(SessionName),
    /// Of the agent whose stream a terminal opened last.
    Last,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("Invalid session name: {shown:?} (names follow the rule of agent ids)")]
    Malformed {
        shown: String,
        #[source]
        source: IdError,
    },
    #[error("Invalid session name: {id} (the names of sessions do not start with a dot)")]
    Temp { id: AgentId },
    #[error("Invalid session name: `{LAST_SESSION}` is reserved")]
    Reserved,
}

impl SessionName {
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let malformed = |source| NameError::Malformed { shown: shorten(text), source };
        Self::of(&AgentId::parse(text).map_err(malformed)?)
    }

    /// The name of an agent's own session.
    pub fn of(id: &AgentId) -> Result<Self, NameError> {
        if id.as_str() == LAST_SESSION {
            Err(NameError::Reserved)
        } else if id.is_temp() {
            Err(NameError::Temp { id: id.clone() })
        } else {
            Ok(Self(id.clone()))
        }
    }

    pub fn id(&self) -> &AgentId {
        &self.0
    }

    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl Session {
    pub fn parse(text: &str) -> Result<Self, NameError> {
        if text == LAST_SESSION {
            Ok(Self::Last)
        } else {
            SessionName::parse(text).map(Self::Named)
        }
    }

    pub fn as_str(&self) -> &str {
        match self {
            Self::Named(name) => name.as_str(),
            Self::Last => LAST_SESSION,
        }
    }
}

impl From<SessionName> for Session {
    fn from(name: SessionName) -> Self {
        Self::Named(name)
    }
}

impl fmt::Display for SessionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

fn shorten(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_rule_of_ids_without_a_dot_in_front() {
        assert_eq!(
            SessionName::parse("scout.v2").map(|name| name.to_string()),
            Ok("scout.v2".into())
        );
        let temp = AgentId::temp(1);
        assert_eq!(SessionName::parse(".1"), Err(NameError::Temp { id: temp }));
        assert_eq!(SessionName::parse(LAST_SESSION), Err(NameError::Reserved));
        for bad in ["", "a/b", "../x", "a..b", "x\0"] {
            assert!(matches!(SessionName::parse(bad), Err(NameError::Malformed { .. })), "{bad:?}");
        }
        assert_eq!(Session::parse(LAST_SESSION), Ok(Session::Last));
    }
}
