//! What models answer, told piece by piece to whoever wants to keep it: each attempt by itself, in the
//! words of a turn and not of a wire. Where nobody listens, nothing of this exists.

use std::time::Duration;

use bytes::Bytes;
use http::Request;

use super::{ModelEvent, ProviderError};
use crate::id::AgentId;

/// Who hears what passes between agents and their models. It must not wait. Nothing is hidden from it:
/// keeping secrets is its own business.
pub trait Ear: Send + Sync {
    /// An attempt begins: this is sent for `agent`.
    fn asks(&self, agent: &AgentId, sent: &Request<Bytes>) -> Box<dyn Hearing>;
}

/// Hears one attempt. Dropped before its end, nobody wanted the rest of it.
pub trait Hearing: Send {
    /// The head of an answer has come.
    fn opened(&mut self);
    fn event(&mut self, event: &ModelEvent);
    /// It went wrong; the provider may have said why, and asked for a pause.
    fn broke(&mut self, error: &ProviderError, said: Option<&str>, asked_for: Option<Duration>);
    /// It never reached the provider, and is made again at once.
    fn unsent(&mut self);
    /// The answer came whole.
    fn ended(&mut self);
}
