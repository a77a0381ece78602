//! What a budget does not allow, in words for whoever asked.

use std::fmt;

use super::super::{Reason, Refusal};
use crate::id::AgentId;

/// Why something is beyond a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Exceeded {
    #[error("{}", self.said_of(whose))]
    Reached { limit: Limit, most: u64, whose: Whose },
    #[error("{}", self.said_of(whose))]
    Over { whose: Whose },
    #[error("{}", self.said_of(whose))]
    MoreThanRest { limit: Limit, asked: u64, rest: u64, whose: Whose },
    #[error("{}", self.said_of(whose))]
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

    /// In words for the model of an agent that wanted something of `agent`: what is reached, and what is
    /// left to do.
    pub fn to_model(&self, agent: &AgentId, reader: Reader) -> String {
        let (Self::Reached { whose, .. }
        | Self::Over { whose }
        | Self::MoreThanRest { whose, .. }
        | Self::LongerThanRest { whose, .. }) = self;
        format!("{}. {}", self.said_of(&whose.to_reader(agent, reader)), self.advice())
    }

    fn said_of(&self, whose: &dyn fmt::Display) -> String {
        match self {
            Self::Reached { limit, most, .. } => {
                let most = limit.amount(*most, "");
                format!("{} is reached: {whose} may have {most}", limit.name())
            }
            Self::Over { .. } => {
                format!("deadline_s is over: the time of {whose} has passed")
            }
            Self::MoreThanRest { limit, asked, rest, .. } => {
                let (name, rest) = (limit.name(), limit.amount(*rest, "more "));
                format!("{name} of {asked} is more than what is left: {whose} may have {rest}")
            }
            Self::LongerThanRest { rest_s, .. } => {
                format!(
                    "deadline_s is longer than what is left: {whose} may work for {rest_s} more seconds"
                )
            }
        }
    }

    fn advice(&self) -> &'static str {
        match self {
            Self::Reached { limit: Limit::Agents, .. } => {
                "Destroy one that you no longer need, or do without another."
            }
            // What was used does not come back.
            Self::Reached { limit: Limit::Turns | Limit::Tokens, .. } | Self::Over { .. } => {
                "None of them takes on more work: end your turn with what you have."
            }
            Self::MoreThanRest { .. } | Self::LongerThanRest { .. } => "Ask for less.",
        }
    }
}

/// Who is told, as seen from the agent in question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    ItsParent,
    Another,
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

    fn to_reader(self, agent: &AgentId, reader: Reader) -> String {
        match (self, reader) {
            (Self::Own, _) => format!("{agent} and those below it"),
            (Self::Parent, Reader::ItsParent) => "you and those below you".to_owned(),
            (Self::Parent, Reader::Another) => {
                format!("the parent of {agent} and those below that")
            }
            (Self::Above, Reader::ItsParent) => {
                "an agent above you and those below that".to_owned()
            }
            (Self::Above, Reader::Another) => {
                format!("an agent above {agent} and those below that")
            }
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

    fn amount(self, number: u64, more: &str) -> String {
        let (one, over) = match self {
            Self::Agents => ("agent", "at a time"),
            Self::Turns => ("turn", "in all"),
            Self::Tokens => ("token", "in all"),
        };
        let plural = if number == 1 { "" } else { "s" };
        format!("{number} {more}{one}{plural} {over}")
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
