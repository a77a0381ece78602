//! Before a conversation: which agent it is with. The last session, a fresh agent, one that is there or
//! one that was saved; whoever said so on the command line is not asked.

use std::io;
use std::time::Duration;

use super::choose::{Size, choose};
use super::core::Attach;
use super::drive::Face;
use crate::client::{ClientError, NexusClient};
use crate::code::Code;
use crate::id::AgentId;
use crate::limits::SESSIONS_PAGE_MAX;
use crate::rpc::method::{
    AgentStatus, CreateAgentParams, ListSessionsParams, LoadSessionParams, ShowSessionParams,
};
use crate::session::LAST_SESSION;

/// What was wished for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    Ask,
    Agent(AgentId),
    Resume,
    Fresh,
    Session(String),
}

/// How a fresh agent begins.
#[derive(Clone, Debug, Default)]
pub struct Fresh {
    pub directory: Option<String>,
    pub system_prompt: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum LobbyError {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("cannot use the terminal")]
    Face(#[from] io::Error),
}

/// Whom to talk to, and how; `None` where somebody leaves.
pub async fn enter(
    client: &NexusClient,
    face: &mut impl Face,
    size: &mut Size,
    wish: Wish,
    fresh: &Fresh,
    now: Duration,
) -> Result<Option<(AgentId, Attach)>, LobbyError> {
    let wish = match wish {
        Wish::Ask => match ask(client, face, size, now).await? {
            Some(wish) => wish,
            None => return Ok(None),
        },
        wish => wish,
    };
    let there = match wish {
        Wish::Agent(agent) => return Ok(Some((agent, Attach::IfThere))),
        Wish::Resume => load(client, LAST_SESSION.to_owned()).await?,
        Wish::Session(name) => load(client, name).await?,
        Wish::Fresh | Wish::Ask => create(client, fresh).await?,
    };
    Ok(Some((there, Attach::Bring)))
}

async fn ask(
    client: &NexusClient,
    face: &mut impl Face,
    size: &mut Size,
    now: Duration,
) -> Result<Option<Wish>, LobbyError> {
    let agents = client.list_agents().await?.agents;
    let all =
        ListSessionsParams { limit: Some(SESSIONS_PAGE_MAX), ..ListSessionsParams::default() };
    let sessions = client.list_sessions(&all).await?.sessions;
    let last = ShowSessionParams { session_name: LAST_SESSION.to_owned() };
    let last = client.show_session(&last).await.ok();
    let mut choices = Vec::new();
    for entry in &agents {
        let status = match entry.status {
            AgentStatus::Idle => "idle",
            AgentStatus::Running => "running",
            AgentStatus::WaitingConfirmation => "waits for a confirmation",
        };
        let told = format!("{} ({status}, {})", entry.agent_id, messages(entry.message_count));
        choices.push((told, Wish::Agent(entry.agent_id.clone())));
    }
    // An agent that is there need not be loaded.
    let active = |name: &AgentId| agents.iter().any(|entry| entry.agent_id == *name);
    let last = last.filter(|last| !active(&last.agent_id));
    if let Some(last) = &last {
        let then = last.modified_at.as_duration().as_secs_f64();
        let (then, count) = (age(now, then), messages(last.messages.len()));
        choices.push((format!("resume {} ({then}, {count})", last.agent_id), Wish::Resume));
    }
    choices.push(("a fresh agent".to_owned(), Wish::Fresh));
    let is_last = |name: &AgentId| last.as_ref().is_some_and(|last| last.agent_id == *name);
    let others = |name: &AgentId| !active(name) && !is_last(name);
    for session in sessions.iter().filter(|session| others(&session.name)) {
        let count = messages(session.message_count);
        let told = format!("{} ({}, {count})", session.name, age(now, session.updated_at));
        choices.push((told, Wish::Session(session.name.to_string())));
    }
    if choices.len() == 1 {
        return Ok(Some(Wish::Fresh));
    }
    let items = choices.iter().map(|(told, _)| told.clone()).collect();
    let chosen = choose(face, size, "Whom do you want to talk to?", items).await?;
    Ok(chosen.map(|item| choices.swap_remove(item).1))
}

async fn create(client: &NexusClient, fresh: &Fresh) -> Result<AgentId, LobbyError> {
    let params = CreateAgentParams {
        agent_id: Some(".".to_owned()),
        cwd: fresh.directory.clone(),
        system_prompt: fresh.system_prompt.clone(),
        ..CreateAgentParams::default()
    };
    Ok(client.create_agent(&params).await?.agent_id)
}

/// Makes an agent from a session, unless it is there already.
async fn load(client: &NexusClient, session_name: String) -> Result<AgentId, LobbyError> {
    let params = LoadSessionParams {
        session_name: session_name.clone(),
        agent_id: None,
        preset: None,
        model: None,
        overwrite: None,
    };
    match client.load_session(&params).await {
        Ok(loaded) => Ok(loaded.agent_id),
        Err(ClientError::Rpc { error }) if error.code == Code::Conflict.number() => {
            Ok(client.show_session(&ShowSessionParams { session_name }).await?.agent_id)
        }
        Err(error) => Err(error.into()),
    }
}

fn messages(count: usize) -> String {
    if count == 1 { "1 message".to_owned() } else { format!("{count} messages") }
}

/// How long ago a time was, both since 1970.
fn age(now: Duration, then: f64) -> String {
    let seconds = (now.as_secs_f64() - then).max(0.0);
    let (unit, length) = match seconds {
        s if s < 60.0 => return "just now".to_owned(),
        s if s < 3600.0 => ("min", 60.0),
        s if s < 86_400.0 => ("h", 3600.0),
        _ => ("days", 86_400.0),
    };
    format!("{:.0} {unit} ago", (seconds / length).floor())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_told_in_what_people_count() {
        let now = Duration::from_secs(1_000_000);
        for (then, told) in [
            (1_000_000.0, "just now"),
            (1_000_100.0, "just now"),
            (999_700.0, "5 min ago"),
            (990_000.0, "2 h ago"),
            (500_000.0, "5 days ago"),
        ] {
            assert_eq!(age(now, then), told);
        }
    }
}
