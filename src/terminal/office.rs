//! Where commands are run that are not the terminal's own, and what it keeps is kept.

use super::commands::{Command, Takes};
use super::interrupt::Interrupt;
use super::line::Tone;
use crate::id::AgentId;
use crate::world::BoxFuture;

/// Who runs commands that are not the terminal's own, and knows what they can be completed with.
pub trait Office: Send + Sync {
    fn run(
        &self,
        command: &'static Command,
        words: Vec<String>,
        agent: Option<AgentId>,
        interrupt: Interrupt,
    ) -> BoxFuture<'static, Told>;
    /// What begins like this word; a path is one of that directory.
    fn known(
        &self,
        takes: Takes,
        word: String,
        within: Option<String>,
    ) -> BoxFuture<'static, Vec<String>>;
    /// What was typed before, from the oldest.
    fn recall(&self) -> BoxFuture<'static, Vec<String>>;
    /// Keeps what was typed; the error says why it cannot.
    fn remember(&self, typed: Vec<String>) -> BoxFuture<'static, Result<(), String>>;
    /// Where agents are created to work.
    fn directory(&self) -> Option<String>;
}

/// What a command has to say.
#[derive(Debug)]
pub struct Told {
    pub text: String,
    pub how: Tone,
}
