//! Gives an agent another model, one that exists and that its conversation fits, or another prompt.

use std::sync::Arc;

use super::Pool;
use crate::agent::{AgentHandle, Unanswered};
use crate::id::AgentId;
use crate::provider::{Model, ModelError};

#[derive(Debug, thiserror::Error)]
pub enum SetModelError {
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error(
        "the conversation does not fit the model {name}: it has {total} tokens, and the model takes \
         {available}; choose one with a larger window"
    )]
    DoesNotFit { name: String, total: u64, available: u64 },
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
}

impl Pool {
    /// Every request of the agent from the next one on goes to the model called `name`.
    pub async fn set_model(&self, agent: &AgentHandle, name: &str) -> Result<Model, SetModelError> {
        let model = self.models.resolve(Some(name))?;
        let too_long = agent.too_long_for(model.clone()).await;
        if let Some(tokens) = too_long.map_err(|_gone| Unanswered::Gone)? {
            return Err(SetModelError::DoesNotFit {
                name: model.name.to_string(),
                total: tokens.total(),
                available: tokens.available,
            });
        }
        agent.set_model(model.clone(), self.parent_of(agent)).await?;
        Ok(model)
    }

    /// Every request of the agent from the next one on begins with `prompt`.
    pub async fn set_system_prompt(
        &self,
        agent: &AgentHandle,
        prompt: Arc<str>,
    ) -> Result<(), Unanswered> {
        agent.set_prompt(prompt, self.parent_of(agent)).await
    }

    fn parent_of(&self, agent: &AgentHandle) -> Option<AgentId> {
        let parent = self.registry().parent_agent(agent.facts().number);
        parent.map(|parent| parent.id())
    }
}
