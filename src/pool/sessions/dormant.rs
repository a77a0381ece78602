//! What agents that are only on disk would come back as: for those who write down what there was.

use crate::id::{AgentId, RequestId};
use crate::pool::Pool;
use crate::record::Earlier;
use crate::store::{AgentNumber, Exported, RequestRecord};

use super::snapshot::Upto;

impl Pool {
    /// Who is only on disk, in order of creation.
    pub fn dormant(&self) -> Vec<(AgentNumber, AgentId)> {
        let registry = self.registry();
        let ids = registry.dormant().into_iter();
        ids.filter_map(|id| Some((registry.dormant_number(&id)?, id))).collect()
    }

    /// The temporary agent of an earlier server that a terminal followed last, if it was one.
    pub async fn followed_last(&self) -> Option<(AgentNumber, AgentId)> {
        let number = self.shared.store.last_session().await.ok()??;
        let row = self.shared.store.session(number).await.ok()??;
        row.record.id.is_temp().then_some((number, row.record.id))
    }

    /// What an agent that is only on disk would come back as, without its limits; `None` where it could
    /// not.
    pub async fn dormant_agent(&self, number: AgentNumber, id: &AgentId) -> Option<Earlier> {
        let _desk = self.desk.at(id).await;
        let row = self.shared.store.session(number).await.ok()??;
        let (enabled_tools, ceiling) = (row.record.recipe.enabled_tools, row.record.recipe.ceiling);
        let requests = self.ended_requests(number).await;
        let is_saved = self.registry().exported(number) == Exported::Yes;
        let is_last = self.shared.store.last_session().await.ok()? == Some(number);
        if let Some(session) = self.newer_file(number, id).await.ok()? {
            // What was not a file's to give is gone with the row.
            let (enabled_tools, summary, budget) = (Vec::new(), None, None);
            return Some(Earlier {
                session,
                enabled_tools,
                ceiling,
                summary,
                budget,
                is_saved,
                is_last,
                requests,
            });
        }
        let session = self.session_on_record(number, Upto::Everything).await.ok()??;
        let summary = self.shared.store.summary(number).await.ok()?;
        Some(Earlier {
            session,
            enabled_tools,
            ceiling,
            summary,
            budget: None,
            is_saved,
            is_last,
            requests,
        })
    }

    /// What an agent was asked and has ended, as far as that is kept.
    async fn ended_requests(&self, number: AgentNumber) -> Vec<(RequestId, RequestRecord)> {
        let store = &self.shared.store;
        let loaded = store.load(number, 0).await.ok().flatten();
        let mut requests = Vec::new();
        for id in loaded.map(|loaded| loaded.requests).unwrap_or_default() {
            if let Ok(Some(request)) = store.request(number, &id).await {
                requests.push((id, request));
            }
        }
        requests
    }
}
