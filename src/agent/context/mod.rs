//! What a model is shown of a conversation: never more than it takes.
//! Pure, but it counts tokens, which holds its thread: all of it belongs into the blocking seam. It
//! never changes a conversation; `turn` and the actor do, with what is decided here.
//!
//! Every request to a model is built by [`Draft`] or [`summary`], and neither lets one out that is
//! over its budget.

mod fit; // which messages are shown
mod shorten; // texts that are too long
mod summary; // older messages as one text
#[cfg(test)]
#[path = "context_tests.rs"]
mod tests;

use std::sync::Arc;

pub use summary::{
    Automatic, Compacted, CompactionRules, MayCompact, NotCompacted, TASK as SUMMARY_TASK, When,
    message as summary_message,
};

use super::conversation::View;
use super::preamble::Preamble;
use super::tokens::{Encoding, available};
use crate::id::AgentId;
use crate::messages::Messages;
use crate::provider::{Fault, Model, ModelRequest, ProviderError};

/// An agent's next request before it is known what of it fits.
#[derive(Debug)]
pub struct Draft {
    pub agent: AgentId,
    pub model: Model,
    pub preamble: Arc<Preamble>,
    pub view: View,
}

/// No choice of messages fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TooLarge {
    #[error(
        "the system prompt and the tools alone have {preamble} tokens, and the model takes \
         {available}: shorten the prompt, take tools away, or choose a model with a larger window"
    )]
    Preamble { preamble: u64, available: u64 },
    #[error(
        "the newest messages do not fit beside the system prompt and the tools, which have \
         {preamble} of the {available} tokens that the model takes, however short they are cut"
    )]
    Newest { preamble: u64, available: u64 },
}

impl Draft {
    /// The request with as much of the conversation as fits.
    pub fn fitted(&self) -> Result<ModelRequest, TooLarge> {
        let (encoding, available) = (self.encoding(), available(&self.model));
        let preamble = self.preamble.tokens(encoding);
        let Some(room) = available.checked_sub(preamble).filter(|room| *room > 0) else {
            return Err(TooLarge::Preamble { preamble, available });
        };
        let entries: Vec<_> = self.view.all().cloned().collect();
        let messages = fit::fit(&entries, room, encoding);
        let messages = messages.ok_or(TooLarge::Newest { preamble, available })?;
        Ok(request((&self.agent, &self.model, &self.preamble), messages.into_iter().collect()))
    }

    fn encoding(&self) -> Encoding {
        Encoding::of(&self.model.id)
    }

    /// The tokens of everything.
    fn total(&self) -> u64 {
        let encoding = self.encoding();
        let messages = self.view.all().map(|entry| entry.tokens(encoding));
        self.preamble.tokens(encoding) + messages.sum::<u64>()
    }
}

/// The request with all messages, which are so many bytes, where it has at most so many tokens even if
/// every byte were one.
pub fn whole(
    of: (&AgentId, &Model, &Preamble),
    (messages, bytes): (&Messages, u64),
    tokens_max: u64,
) -> Option<ModelRequest> {
    let (_, model, preamble) = of;
    assert!(tokens_max <= available(model), "what is not counted fits in bytes");
    let fits = preamble.bytes.saturating_add(bytes) <= tokens_max;
    fits.then(|| request(of, messages.clone()))
}

fn request(
    (agent, model, preamble): (&AgentId, &Model, &Preamble),
    messages: Messages,
) -> ModelRequest {
    ModelRequest {
        agent: agent.clone(),
        model: model.id.to_string(),
        system: Arc::clone(&preamble.system),
        messages,
        tools: Arc::clone(&preamble.tools),
        output_tokens_max: model.output_tokens_max,
        reasoning: model.reasoning,
    }
}

/// What a provider would say, had it been asked.
impl From<TooLarge> for ProviderError {
    fn from(error: TooLarge) -> Self {
        Self {
            fault: Fault::Status,
            status: None,
            attempts: 0,
            retryable: false,
            message: error.to_string(),
        }
    }
}
