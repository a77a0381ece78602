//! A client that confirms: it looks now and then for a call that waits, as a person at a screen does,
//! and answers the first that it is meant for. What it looks at stands in no transcript.

use std::time::Duration;

use nexus3::client::{ClientError, NexusClient};
use nexus3::id::AgentId;
use nexus3::rpc::method::{AgentStatus, ConfirmationEntry};
use serde_json::{Map, Value};
use tokio::time::sleep;

use crate::scenario::{Call, Confirm};

const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long no agent may have anything to do before nothing is expected to come any more.
const IDLE_MAX: Duration = Duration::from_secs(5);

/// The call that answers the next confirmation that is meant, once there is one; `None` where all agents
/// have come to rest without.
pub async fn answer(client: &NexusClient, confirm: &Confirm) -> Option<Call> {
    let mut idle = Duration::ZERO;
    while idle < IDLE_MAX {
        match look(client, confirm).await {
            Ok(Look::Waits(agent, entry)) => {
                sleep(confirm.delay.map_or(Duration::ZERO, |delay| delay.0)).await;
                return Some(call(confirm, &agent, &entry));
            }
            Ok(Look::Idle) => idle += LOOK_EVERY,
            // The server may be away, and come back.
            Ok(Look::Busy) | Err(_) => idle = Duration::ZERO,
        }
        sleep(LOOK_EVERY).await;
    }
    None
}

enum Look {
    Waits(AgentId, Box<ConfirmationEntry>),
    /// Something may come.
    Busy,
    Idle,
}

async fn look(client: &NexusClient, confirm: &Confirm) -> Result<Look, ClientError> {
    let agents = client.list_agents().await?.agents;
    let is_meant = |id: &AgentId| confirm.agent.as_deref().is_none_or(|meant| id.as_str() == meant);
    let waiting = agents.iter().filter(|agent| agent.status == AgentStatus::WaitingConfirmation);
    for agent in waiting.filter(|agent| is_meant(&agent.agent_id)) {
        let pending = client.list_confirmations(&agent.agent_id).await?.confirmations;
        let found = pending.into_iter().find(|entry| entry.tool.name == confirm.tool);
        if let Some(entry) = found {
            return Ok(Look::Waits(agent.agent_id.clone(), Box::new(entry)));
        }
    }
    let is_busy = |status: AgentStatus| match status {
        AgentStatus::Idle => false,
        AgentStatus::Running | AgentStatus::WaitingConfirmation => true,
    };
    let busy = agents.iter().any(|agent| is_busy(agent.status) || agent.queued > 0);
    Ok(if busy { Look::Busy } else { Look::Idle })
}

fn call(confirm: &Confirm, agent: &AgentId, entry: &ConfirmationEntry) -> Call {
    let params = Map::from_iter([
        ("confirm_id".to_owned(), Value::from(entry.confirm_id.as_str())),
        ("decision".to_owned(), Value::from(confirm.decision.as_str())),
    ]);
    Call {
        method: "confirm".to_owned(),
        agent: Some(agent.to_string()),
        params: Some(params),
        headers: confirm.headers.clone(),
        token: confirm.token.clone(),
        expect: confirm.expect.clone(),
        expect_http: None,
        save: std::collections::BTreeMap::new(),
    }
}
