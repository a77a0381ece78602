//! What the terminal asks of a server, each as one call or a few, and what that means for the core.

use http::StatusCode;
use tokio::time::sleep;

use super::commands::Takes;
use super::core::{Attach, Attached, Input};
use super::line::Tone;
use super::office::Office;
use crate::choice::Choice;
use crate::client::{ClientError, NexusClient};
use crate::event::Seq;
use crate::id::{AgentId, ConfirmId, RequestId};
use crate::limits::terminal::{
    ATTACH_ATTEMPTS_MAX, MESSAGES_ON_ATTACH, SEND_ATTEMPTS_MAX, SURVEY_AGENTS_MAX,
};
use crate::limits::{CLIENT_ASK_AFTER_LOSS, MESSAGES_PAGE_MAX};
use crate::message::Message;
use crate::rpc::method::{
    AgentEntry, AgentStatus, AgentSummary, ConfirmParams, CreateAgentParams, GetMessagesParams,
    ListSessionsParams, NumberedMessage, SendParams, TokenSummary,
};

/// A message on its way.
pub struct Sent {
    pub agent: AgentId,
    pub content: String,
    pub number: u64,
    pub request: RequestId,
}

fn bad(error: &ClientError) -> Input {
    Input::Ran { number: None, text: format!("✗ {error}"), how: Tone::Bad }
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
        let unknown = match &error {
            ClientError::Protocol { .. } | ClientError::Timeout { .. } => true,
            // One that has died may have taken it before, and comes back.
            ClientError::NoServer { .. } => attempt > 1,
            ClientError::Refused { .. } | ClientError::Rpc { .. } | ClientError::Unnamed => false,
        };
        if !unknown {
            return Some(Input::NotSent { number, error: error.to_string() });
        }
        if attempt == SEND_ATTEMPTS_MAX {
            let error = format!("{error}; look whether it arrived before you send it again");
            return Some(Input::NotSent { number, error });
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
            Err(error) => return Input::NotAttached { agent, error: error.to_string() },
        }
    }
    let attached = match how {
        Attach::After { seq, seen } => back(client, &agent, seq, seen).await,
        Attach::IfThere | Attach::Bring => look(client, &agent).await,
    };
    match attached {
        Ok(attached) => Input::Attached(Box::new(attached)),
        Err(ClientError::Refused { status: StatusCode::NOT_FOUND, .. }) => {
            Input::NotThere { agent, restorable: false }
        }
        Err(error) => Input::NotAttached { agent, error: error.to_string() },
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

/// What was said last, and the event after which everything is still to come. What is told of a message
/// comes with it or after it, so there must be as many before that event as there are after it: else it
/// is looked at again, and at last those that came meanwhile are left out rather than shown twice.
async fn look(client: &NexusClient, agent: &AgentId) -> Result<Attached, ClientError> {
    let mut attempt = 1;
    loop {
        // The first request brings an agent back, which is an event.
        let before = client.get_context(agent).await?.message_count;
        let cursor = client.newest_event().await?;
        let count = u64::try_from(before).unwrap_or(u64::MAX);
        let offset = count.saturating_sub(MESSAGES_ON_ATTACH);
        let params = GetMessagesParams { offset: Some(offset), limit: Some(MESSAGES_ON_ATTACH) };
        let mut told = client.get_messages(agent, &params).await?;
        if told.total == before || attempt == ATTACH_ATTEMPTS_MAX {
            told.messages.retain(|message| message.index < count);
            let seen = seen(client, agent, offset, &told.messages).await?;
            return Ok(Attached {
                seen,
                agent: agent.clone(),
                cursor,
                total: before,
                messages: told.messages,
                missed: told.total.saturating_sub(before),
                summary: summary(client, agent).await?,
                confirmations: client.list_confirmations(agent).await?.confirmations,
            });
        }
        attempt += 1;
    }
}

/// Characters that the last turn has said in these messages, which begin at an offset, and in those
/// before them as far as they are its own.
async fn seen(
    client: &NexusClient,
    agent: &AgentId,
    offset: u64,
    messages: &[NumberedMessage],
) -> Result<usize, ClientError> {
    let (mut seen, begins) = said_last(messages);
    if offset > 0 && !begins {
        let limit = offset.min(MESSAGES_PAGE_MAX);
        let earlier = GetMessagesParams { offset: Some(offset - limit), limit: Some(limit) };
        seen += said_last(&client.get_messages(agent, &earlier).await?.messages).0;
    }
    Ok(seen)
}

/// The characters of answers since the last question, and whether there is one.
fn said_last(messages: &[NumberedMessage]) -> (usize, bool) {
    let mut said = 0;
    for numbered in messages.iter().rev() {
        match &*numbered.message {
            Message::User { .. } => return (said, true),
            Message::Assistant { content, .. } => said += content.chars().count(),
            Message::Tool { .. } => {}
        }
    }
    (said, false)
}

/// The same for who was here before: all that was missed is told by events, also those of a server that
/// is away just now.
async fn back(
    client: &NexusClient,
    agent: &AgentId,
    cursor: Seq,
    seen: usize,
) -> Result<Attached, ClientError> {
    let found = async {
        let total = client.get_context(agent).await?.message_count;
        let confirmations = client.list_confirmations(agent).await?.confirmations;
        Ok((total, summary(client, agent).await?, confirmations))
    };
    let (total, summary, confirmations) = match found.await {
        Ok(found) => found,
        Err(
            ClientError::NoServer { .. }
            | ClientError::Timeout { .. }
            | ClientError::Protocol { .. },
        ) => (0, None, Vec::new()),
        Err(
            error @ (ClientError::Refused { .. } | ClientError::Rpc { .. } | ClientError::Unnamed),
        ) => return Err(error),
    };
    let (agent, messages) = (agent.clone(), Vec::new());
    Ok(Attached { agent, cursor, messages, total, missed: 0, seen, summary, confirmations })
}

/// What waits for an answer anywhere. The event comes first: what is asked after it is told as well.
pub async fn survey(client: &NexusClient) -> Input {
    let surveyed = async {
        let cursor = client.newest_event().await?;
        let agents = client.list_agents().await?.agents;
        let waits = |entry: &&AgentEntry| entry.status == AgentStatus::WaitingConfirmation;
        let mut waiting = Vec::new();
        for entry in agents.iter().filter(waits).take(SURVEY_AGENTS_MAX) {
            // One that is gone meanwhile waits for nothing.
            let asked = client.list_confirmations(&entry.agent_id).await.ok();
            let asked = asked.into_iter().flat_map(|asked| asked.confirmations);
            waiting.extend(asked.map(|asked| (entry.agent_id.clone(), asked)));
        }
        Ok::<_, ClientError>((cursor, waiting))
    };
    match surveyed.await {
        Ok((cursor, waiting)) => Input::Surveyed { cursor, waiting },
        // It is tried again with the next agent; that the server is away is told by others.
        Err(_) => Input::Unwatched(None),
    }
}

pub async fn create(client: &NexusClient, agent: AgentId, cwd: Option<String>) -> Input {
    let params = CreateAgentParams {
        agent_id: Some(agent.to_string()),
        cwd,
        ..CreateAgentParams::default()
    };
    match client.create_agent(&params).await {
        Ok(created) => attach(client, created.agent_id, Attach::Bring).await,
        Err(error) => Input::NotAttached { agent, error: error.to_string() },
    }
}

/// What a word can be completed to.
pub async fn known(
    client: &NexusClient,
    office: &dyn Office,
    takes: Takes,
    word: String,
    within: Option<String>,
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
            office.known(takes, word, within).await
        }
    }
}
