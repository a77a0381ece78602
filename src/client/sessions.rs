//! The methods about saved sessions, typed. Each is one call on a connection of its own.

use super::{ClientError, NexusClient};
use crate::rpc::method::{
    CloneSessionParams, CloneSessionResult, DeleteSessionParams, DeleteSessionResult,
    ListSessionsParams, ListSessionsResult, LoadSessionParams, LoadSessionResult,
    PruneSessionsParams, PruneSessionsResult, RenameSessionParams, RenameSessionResult,
    SaveSessionParams, SaveSessionResult, SessionFile, ShowSessionParams, call,
};

impl NexusClient {
    pub async fn list_sessions(
        &self,
        params: &ListSessionsParams,
    ) -> Result<ListSessionsResult, ClientError> {
        self.call::<call::ListSessions>(None, params).await
    }

    pub async fn show_session(
        &self,
        params: &ShowSessionParams,
    ) -> Result<SessionFile, ClientError> {
        self.call::<call::ShowSession>(None, params).await
    }

    pub async fn load_session(
        &self,
        params: &LoadSessionParams,
    ) -> Result<LoadSessionResult, ClientError> {
        self.call::<call::LoadSession>(None, params).await
    }

    pub async fn save_session(
        &self,
        params: &SaveSessionParams,
    ) -> Result<SaveSessionResult, ClientError> {
        self.call::<call::SaveSession>(None, params).await
    }

    pub async fn clone_session(
        &self,
        params: &CloneSessionParams,
    ) -> Result<CloneSessionResult, ClientError> {
        self.call::<call::CloneSession>(None, params).await
    }

    pub async fn rename_session(
        &self,
        params: &RenameSessionParams,
    ) -> Result<RenameSessionResult, ClientError> {
        self.call::<call::RenameSession>(None, params).await
    }

    pub async fn delete_session(
        &self,
        params: &DeleteSessionParams,
    ) -> Result<DeleteSessionResult, ClientError> {
        self.call::<call::DeleteSession>(None, params).await
    }

    pub async fn prune_sessions(
        &self,
        params: &PruneSessionsParams,
    ) -> Result<PruneSessionsResult, ClientError> {
        self.call::<call::PruneSessions>(None, params).await
    }
}
