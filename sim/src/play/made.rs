//! What clients did, and what they were told: kept for the invariants. Data only.

use std::time::Duration;

use nexus3::id::{AgentId, RequestId};
use nexus3::rpc::wire::ErrorObject;
use serde_json::Value;

use crate::scenario::Call;

/// A send that a client made, for the invariants.
#[derive(Clone, Debug)]
pub struct Sending {
    pub agent: AgentId,
    pub request: RequestId,
    /// Which start of the server took it.
    pub server_start: u64,
    /// When its client made it, and when it learned of the outcome.
    pub made: Duration,
    pub told: Duration,
    pub outcome: Told,
}

/// A call that a client made, for the invariants.
#[derive(Clone, Debug)]
pub struct Made {
    pub call: Call,
    /// Which start of the server was called.
    pub server_start: u64,
    pub at: Duration,
    /// None as long as its client waits.
    pub ended: Option<Duration>,
    /// None for a call that was not answered.
    pub answer: Option<Result<Value, ErrorObject>>,
}

/// What the caller of a send was told.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    Result(Value),
    Error(ErrorObject),
    /// It did not wait for the turn.
    Accepted,
    /// Its connection was cut, or it left.
    Nothing,
}

/// The agent that a call may have ended which nobody answered: another may have come from its session.
pub fn maybe_ended(call: &Call) -> Option<&str> {
    let params = call.params.as_ref()?;
    let is_it = match call.method.as_str() {
        "destroy_agent" => true,
        "load_session" => params.get("overwrite") == Some(&Value::Bool(true)),
        _ => false,
    };
    let id = params.get("agent_id").or_else(|| params.get("session_name"))?;
    id.as_str().filter(|_| is_it)
}

/// The id that an agent may have given up for another.
pub fn renamed(call: &Call) -> Option<&str> {
    let named = |name: &str| call.params.as_ref()?.get(name)?.as_str();
    match call.method.as_str() {
        "save_session" => named("agent_id").filter(|id| id.starts_with('.')),
        "rename_session" => named("old_name"),
        _ => None,
    }
}
