//! What a budget does not allow, in words for whoever asked.

use std::fmt;

use super::super::{Reason, Refusal};

/// Why something is beyond a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Exceeded {
    #[error("{} is reached: {whose} may have {most} {limit}", limit.name())]
    Reached { limit: Limit, most: u64, whose: Whose },
    #[error("deadline_s is over: the time of {whose} has passed")]
    Over { whose: Whose },
    #[error("{} of {asked} is more than what is left: {whose} may have {rest} more {limit}", limit.name())]
    MoreThanRest { limit: Limit, asked: u64, rest: u64, whose: Whose },
    #[error("deadline_s is longer than what is left: {whose} may work for {rest_s} more seconds")]
    LongerThanRest { rest_s: u64, whose: Whose },
}

impl Exceeded {
    /// The same, as told to a child.
    #[must_use]
    pub fn of_child(mut self) -> Self {
        let (Self::Reached { whose, .. }
        | Self::Over { whose }
        | Self::MoreThanRest { whose, .. }
        | Self::LongerThanRest { whose, .. }) = &mut self;
        *whose = whose.of_child();
        self
    }
}

/// What is limited by a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    Agents,
    Turns,
    Tokens,
}

/// Whose budget it is, as seen from the agent in question. Others may have gone, or be none of its
/// business, so they are not named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    Own,
    Parent,
    Above,
}

impl Whose {
    /// The same budget, as seen from a child.
    #[must_use]
    pub fn of_child(self) -> Self {
        match self {
            Self::Own => Self::Parent,
            Self::Parent | Self::Above => Self::Above,
        }
    }
}

impl Limit {
    pub fn name(self) -> &'static str {
        match self {
            Self::Agents => "max_agents",
            Self::Turns => "max_turns",
            Self::Tokens => "max_tokens",
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Agents => "agents at a time",
            Self::Turns => "turns in all",
            Self::Tokens => "tokens in all",
        })
    }
}

impl fmt::Display for Whose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Own => "this agent and those below it",
            Self::Parent => "its parent and those below that",
            Self::Above => "an agent above it and those below that",
        })
    }
}

impl From<Exceeded> for Refusal {
    fn from(exceeded: Exceeded) -> Self {
        Self { reason: Reason::Limit, message: exceeded.to_string() }
    }
}
