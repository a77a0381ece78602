//! The methods about what an agent may do.

use std::path::PathBuf;

use serde_json::Value;

use super::Call;
use super::code::Code;
use super::method::{
    ExplainPermissionParams, ExplainPermissionResult, GetPermissionsResult, NoParams, SetCwdParams,
    SetCwdResult, SetPermissionsParams, SetPermissionsResult,
};
use super::wire::ErrorObject;
use crate::agent::{AgentHandle, Gone};
use crate::policy::{Permissions, PolicyView};
use crate::pool::{ChangeError, NewPermissions};

impl Call<'_> {
    pub(super) fn get_permissions(&self, agent: &AgentHandle, _: NoParams) -> GetPermissionsResult {
        self.told_permissions(agent, &agent.permissions())
    }

    pub(super) async fn set_permissions(
        &self,
        agent: &AgentHandle,
        params: SetPermissionsParams,
    ) -> Result<SetPermissionsResult, ErrorObject> {
        let new = NewPermissions {
            preset: params.preset,
            disable_tools: params.disable_tools.unwrap_or_default(),
            enable_tools: params.enable_tools.unwrap_or_default(),
        };
        let set = self.rpc.pool.set_permissions(agent, new).await;
        let set = set.map_err(|error| self.not_changed(agent, &error))?;
        let permissions = self.told_permissions(agent, &set);
        Ok(SetPermissionsResult { updated: true, permissions })
    }

    pub(super) async fn set_cwd(
        &self,
        agent: &AgentHandle,
        params: SetCwdParams,
    ) -> Result<SetCwdResult, ErrorObject> {
        let set = self.rpc.pool.set_cwd(agent, PathBuf::from(params.cwd)).await;
        let set = set.map_err(|error| self.not_changed(agent, &error))?;
        Ok(SetCwdResult { cwd: set.grant().cwd.display().to_string() })
    }

    pub(super) async fn explain_permission(
        &self,
        agent: &AgentHandle,
        params: ExplainPermissionParams,
    ) -> Result<ExplainPermissionResult, ErrorObject> {
        let arguments = params.arguments.map(Value::Object);
        let decision = agent.explain(&params.tool, arguments).await;
        let decision = decision.map_err(|Gone| self.gone(agent))?;
        Ok(ExplainPermissionResult {
            decision: decision.verdict,
            rule: decision.rule,
            reason: decision.reason,
        })
    }

    fn told_permissions(
        &self,
        agent: &AgentHandle,
        permissions: &Permissions,
    ) -> GetPermissionsResult {
        let (facts, rights) = (agent.facts(), permissions.rights());
        GetPermissionsResult {
            permission_level: permissions.level(),
            preset: permissions.grant().preset.name.clone(),
            description: permissions.grant().preset.description.clone(),
            disabled_tools: rights.disabled_tools.clone(),
            policy: PolicyView::of(permissions),
            session_allowances: rights.allowances.clone(),
            depth: facts.depth,
            parent_agent_id: self.rpc.pool.parent(&agent.id()),
        }
    }

    fn not_changed(&self, agent: &AgentHandle, error: &ChangeError) -> ErrorObject {
        match error {
            ChangeError::Refused(refused) => Code::of_create(refused),
            ChangeError::Gone => self.gone(agent),
        }
    }
}
