//! What the terminal asks of a server, each as one call or a few, and what that means for the core.

use http::StatusCode;
use tokio::time::sleep;

use super::commands::Takes;
use super::core::{Attach, Attached, Input};
use super::drive::Office;
use super::line::Tone;
use crate::choice::Choice;
use crate::client::{ClientError, NexusClient};
use crate::event::Seq;
use crate::id::{AgentId, ConfirmId, RequestId};
use crate::limits::CLIENT_ASK_AFTER_LOSS;
use crate::limits::terminal::{ATTACH_ATTEMPTS_MAX, MESSAGES_ON_ATTACH, SEND_ATTEMPTS_MAX};
use crate::rpc::method::{
    AgentSummary, ConfirmParams, CreateAgentParams, GetMessagesParams, ListSessionsParams,
    SendParams, TokenSummary,
};

/// A message on its way.
pub struct Sent {
    pub agent: AgentId,
    pub content: String,
    pub number: u64,
    pub request: RequestId,
}

fn bad(error: &ClientError) -> Input {
    Input::Ran { text: format!("✗ {error}"), how: Tone::Bad }
}

/// Sends a message. What becomes of it is told by events; by its name it is taken once, however often
/// it is sent.
pub async fn send(client: &NexusClient, sent: Sent) -> Option<Input> {
    let Sent { agent, content, number, request } = sent;
    let params = SendParams {
        content,
        request_id: Some(request),
        wait: Some(false),
        ..SendParams::default()
    };
    let mut attempt = 1;
    loop {
        let error = client.send(&agent, &params).await.err()?;
        let unknown = matches!(error, ClientError::Protocol { .. } | ClientError::Timeout { .. });
        if !unknown || attempt == SEND_ATTEMPTS_MAX {
            return Some(Input::NotSent { number, error: error.to_string() });
        }
        attempt += 1;
        sleep(CLIENT_ASK_AFTER_LOSS).await;
    }
}

pub async fn cancel(
    client: &NexusClient,
    agent: &AgentId,
    request: Option<RequestId>,
) -> Option<Input> {
    let error = client.cancel(agent, request).await.err()?;
    Some(bad(&error))
}

pub async fn confirm(
    client: &NexusClient,
    agent: &AgentId,
    confirm_id: ConfirmId,
    decision: Choice,
) -> Option<Input> {
    let params =
        ConfirmParams { confirm_id: confirm_id.clone(), decision: decision.name().to_owned() };
    // Another answer that was faster is told by its event.
    let error = client.confirm(agent, &params).await.err()?;
    Some(Input::NotConfirmed { confirm_id, error: error.to_string() })
}

pub async fn refresh(client: &NexusClient, agent: &AgentId) -> Option<Input> {
    summary(client, agent).await.ok().flatten().map(|summary| Input::Refreshed(Box::new(summary)))
}

async fn summary(
    client: &NexusClient,
    agent: &AgentId,
) -> Result<Option<AgentSummary>, ClientError> {
    // Of one agent: to count the tokens of all would take the server long.
    let listed = client.list_agents().await?.agents;
    let Some(entry) = listed.into_iter().find(|entry| entry.agent_id == *agent) else {
        return Ok(None);
    };
    let tokens = client.get_tokens(agent).await.ok();
    let tokens = tokens.map(|told| TokenSummary { total: told.total, budget: told.budget });
    Ok(Some(AgentSummary { entry, tokens, context: None }))
}

/// Finds an agent, and what was said to it last.
pub async fn attach(client: &NexusClient, agent: AgentId, how: Attach) -> Input {
    if how == Attach::IfThere {
        match is_there(client, &agent).await {
            Ok(Presence::There) => {}
            Ok(Presence::Stored) => return Input::NotThere { agent, restorable: true },
            Ok(Presence::Nowhere) => return Input::NotThere { agent, restorable: false },
            Err(error) => return Input::StreamOver(Some(error.to_string())),
        }
    }
    let attached = match how {
        Attach::After(cursor) => back(client, &agent, cursor).await,
        Attach::IfThere | Attach::Bring => look(client, &agent).await,
    };
    match attached {
        Ok(attached) => Input::Attached(Box::new(attached)),
        Err(ClientError::Refused { status: StatusCode::NOT_FOUND, .. }) => {
            Input::NotThere { agent, restorable: false }
        }
        Err(error) => Input::StreamOver(Some(error.to_string())),
    }
}

enum Presence {
    There,
    Stored,
    Nowhere,
}

async fn is_there(client: &NexusClient, agent: &AgentId) -> Result<Presence, ClientError> {
    let agents = client.list_agents().await?.agents;
    if agents.iter().any(|entry| entry.agent_id == *agent) {
        return Ok(Presence::There);
    }
    let sessions = client.list_sessions(&ListSessionsParams::default()).await?.sessions;
    let stored = sessions.iter().any(|session| session.name == *agent);
    Ok(if stored { Presence::Stored } else { Presence::Nowhere })
}

/// What was said last, and the event after which everything is still to come. Looked at again where
/// something happened meanwhile.
async fn look(client: &NexusClient, agent: &AgentId) -> Result<Attached, ClientError> {
    let mut attempt = 1;
    loop {
        // The first request brings an agent back, which is an event.
        let context = client.get_context(agent).await?;
        let cursor = client.newest_event().await?;
        let total = u64::try_from(context.message_count).unwrap_or(u64::MAX);
        let offset = total.saturating_sub(MESSAGES_ON_ATTACH);
        let params = GetMessagesParams { offset: Some(offset), limit: Some(MESSAGES_ON_ATTACH) };
        let told = client.get_messages(agent, &params).await?;
        let attached = Attached {
            agent: agent.clone(),
            cursor,
            total: told.total,
            messages: told.messages,
            summary: summary(client, agent).await?,
            confirmations: client.list_confirmations(agent).await?.confirmations,
        };
        if attempt == ATTACH_ATTEMPTS_MAX || client.newest_event().await? == cursor {
            return Ok(attached);
        }
        attempt += 1;
    }
}

/// The same for who was here before: all that was missed is told by events.
async fn back(client: &NexusClient, agent: &AgentId, cursor: Seq) -> Result<Attached, ClientError> {
    let total = client.get_context(agent).await?.message_count;
    Ok(Attached {
        agent: agent.clone(),
        cursor,
        messages: Vec::new(),
        total,
        summary: summary(client, agent).await?,
        confirmations: client.list_confirmations(agent).await?.confirmations,
    })
}

pub async fn create(client: &NexusClient, agent: AgentId, cwd: Option<String>) -> Input {
    let params = CreateAgentParams {
        agent_id: Some(agent.to_string()),
        cwd,
        ..CreateAgentParams::default()
    };
    match client.create_agent(&params).await {
        Ok(created) => attach(client, created.agent_id, Attach::Bring).await,
        Err(error) => Input::StreamOver(Some(error.to_string())),
    }
}

/// What a word can be completed to.
pub async fn known(
    client: &NexusClient,
    office: &dyn Office,
    takes: Takes,
    word: String,
) -> Vec<String> {
    let begins = |name: &String| name.starts_with(&word);
    match takes {
        Takes::Agent => {
            let agents = client.list_agents().await.map(|listed| listed.agents);
            let agents = agents.unwrap_or_default();
            agents.iter().map(|entry| entry.agent_id.to_string()).filter(begins).collect()
        }
        Takes::Session => {
            let sessions = client.list_sessions(&ListSessionsParams::default()).await;
            let sessions = sessions.map(|listed| listed.sessions).unwrap_or_default();
            sessions.iter().map(|session| session.name.to_string()).filter(begins).collect()
        }
        Takes::Nothing | Takes::Model | Takes::Preset | Takes::Path | Takes::Command => {
            office.known(takes, word).await
        }
    }
}
