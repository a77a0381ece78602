//! Counts an agent's next request for whoever asks about it, and only what nobody has counted yet.

use std::sync::Arc;

use super::conversation::MessageTokens;
use super::preamble::Preamble;
use super::tokens::{Encoding, Tokens, available};
use crate::provider::Model;
use crate::world::Blocking;

/// What is to be counted: a snapshot of an agent's next request.
#[derive(Debug)]
pub struct Countable {
    pub model: Model,
    pub preamble: Arc<Preamble>,
    pub messages: MessageTokens,
}

/// Counts what has not been counted before; where there is no such thing, nobody waits.
pub async fn count(blocking: &dyn Blocking, what: Countable) -> Tokens {
    let encoding = Encoding::of(&what.model.id);
    if what.preamble.is_counted(encoding) && what.messages.uncounted.is_empty() {
        return what.count();
    }
    blocking.call(move || what.count()).await
}

impl Countable {
    /// Whether it fits even if every byte were a token.
    pub fn surely_fits(&self) -> bool {
        let messages = self.messages.counted.saturating_add(self.messages.uncounted_bytes);
        messages.saturating_add(self.preamble.bytes) <= available(&self.model)
    }

    fn count(&self) -> Tokens {
        let encoding = Encoding::of(&self.model.id);
        let uncounted = self.messages.uncounted.iter().map(|entry| entry.tokens(encoding));
        Tokens {
            system: self.preamble.system_tokens(encoding),
            tools: self.preamble.tools_tokens(encoding),
            messages: self.messages.counted + uncounted.sum::<u64>(),
            budget: self.model.context_window,
            available: available(&self.model),
        }
    }
}
