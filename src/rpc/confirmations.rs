//! The methods about confirmations, with their params and results.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Call;
use super::code::Code;
use super::method::NoParams;
use super::params::invalid;
use super::wire::ErrorObject;
use crate::agent::{AgentHandle, Answered, ConfirmError, Decided, Gone, Pending, outcome};
use crate::choice::Choice;
use crate::event::AskedTool;
use crate::id::{ConfirmId, RequestId};

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ConfirmParams {
    pub confirm_id: ConfirmId,
    /// One of its `options`.
    pub decision: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfirmResult {
    /// False where it was decided before.
    pub accepted: bool,
    /// The one that was taken.
    pub decision: Choice,
    /// A client's name, or `server`.
    pub resolved_by: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ListConfirmationsResult {
    /// Oldest first.
    pub confirmations: Vec<ConfirmationEntry>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConfirmationEntry {
    pub confirm_id: ConfirmId,
    pub request_id: RequestId,
    pub tool: AskedTool,
    /// What the call uses, without links; the program of one that starts something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Where it works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    pub options: Vec<Choice>,
    /// ISO 8601, UTC.
    pub expires_at: Arc<str>,
}

impl Call<'_> {
    pub(super) async fn confirm(
        &self,
        agent: &AgentHandle,
        params: ConfirmParams,
    ) -> Result<ConfirmResult, ErrorObject> {
        let ConfirmParams { confirm_id, decision } = params;
        let client = self.caller.client.as_str().to_owned();
        let answer = Decided { confirm_id: confirm_id.clone(), decision, client };
        let answered = self.rpc.pool.confirm(agent, answer).await;
        let Answered { accepted, decision, resolved_by } =
            answered.map_err(|error| match error {
                ConfirmError::Unknown => invalid(format!("Confirmation not found: {confirm_id}")),
                ConfirmError::NotOffered { .. } => {
                    invalid(format!("Invalid parameter decision: {error}"))
                }
                ConfirmError::Busy => ErrorObject::new(Code::Overloaded, error.to_string()),
                ConfirmError::Storage => outcome::storage(),
                ConfirmError::Gone => self.gone(agent),
            })?;
        Ok(ConfirmResult { accepted, decision, resolved_by })
    }

    pub(super) async fn list_confirmations(
        &self,
        agent: &AgentHandle,
        _: NoParams,
    ) -> Result<ListConfirmationsResult, ErrorObject> {
        let pending = agent.confirmations().await.map_err(|Gone| self.gone(agent))?;
        let entry = |pending: Pending| ConfirmationEntry {
            confirm_id: pending.confirm_id,
            request_id: pending.request_id,
            tool: pending.tool,
            target: pending.target,
            cwd: Some(pending.cwd),
            options: pending.options.to_vec(),
            expires_at: pending.expires_at,
        };
        Ok(ListConfirmationsResult { confirmations: pending.into_iter().map(entry).collect() })
    }
}
