//! What comes before every conversation of an agent: its system prompt, and the tools it is shown.
//! It does not change; an agent that is given another prompt or other tools gets another preamble.

use std::path::PathBuf;
use std::sync::Arc;

use super::tokens::{Count, Encoding};
use crate::message::ToolDefinition;

#[derive(Debug)]
pub struct Preamble {
    pub system: Arc<str>,
    /// The nearest of the files it was made from.
    pub path: Option<PathBuf>,
    pub tools: Arc<[ToolDefinition]>,
    /// No less than its tokens.
    pub bytes: u64,
    system_tokens: Count,
    tools_tokens: Count,
}

impl Preamble {
    pub fn new(system: Arc<str>, path: Option<PathBuf>, tools: Arc<[ToolDefinition]>) -> Self {
        let texts = tools
            .iter()
            .map(|tool| tool.name.len() + tool.description.len() + tool.parameters.text().len());
        let bytes = (system.len() + texts.sum::<usize>()) as u64;
        let (system_tokens, tools_tokens) = (Count::default(), Count::default());
        Self { system, path, tools, bytes, system_tokens, tools_tokens }
    }

    /// Whether nobody has to count any more.
    pub fn is_counted(&self, encoding: Encoding) -> bool {
        self.system_tokens.get(encoding).is_some() && self.tools_tokens.get(encoding).is_some()
    }

    pub fn system_tokens(&self, encoding: Encoding) -> u64 {
        self.system_tokens.get_or_count(encoding, || encoding.text(&self.system))
    }

    pub fn tools_tokens(&self, encoding: Encoding) -> u64 {
        self.tools_tokens
            .get_or_count(encoding, || self.tools.iter().map(|tool| encoding.tool(tool)).sum())
    }

    pub fn tokens(&self, encoding: Encoding) -> u64 {
        self.system_tokens(encoding) + self.tools_tokens(encoding)
    }
}

/// By what an agent can be given anew.
impl PartialEq for Preamble {
    fn eq(&self, other: &Self) -> bool {
        let names = |preamble: &Self| {
            preamble.tools.iter().map(|tool| tool.name.clone()).collect::<Vec<_>>()
        };
        self.system == other.system && self.path == other.path && names(self) == names(other)
    }
}

impl Eq for Preamble {}
