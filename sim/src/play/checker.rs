//! The eyes of the invariants: a host of its own that asks the server what a client could ask, once
//! the steps are over. It belongs to no scenario and stands in no transcript.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nexus3::client::{ClientError, NexusClient};
use nexus3::id::{AgentId, RequestId};
use nexus3::limits::STORAGE_RETRY_AFTER;
use nexus3::message::Message;
use nexus3::rpc::method::{AgentEntry, GetMessagesParams, GetRequestResult};
use secrecy::SecretString;
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::machine::Sockets;

/// How long, in virtual time, a server may take to come to rest once nothing disturbs it.
const REST_MAX: Duration = Duration::from_hours(2);
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Whoever works longer than this is looked after less often: it may be for ever.
const LONG_WORK: Duration = Duration::from_mins(1);
const LOOK_EVERY_LONG: Duration = Duration::from_secs(30);
const PAGE: u64 = 2000;

#[derive(Debug, Default)]
pub struct Desk {
    /// Held for one look at a time; nothing is awaited under it.
    state: Mutex<State>,
    news: Notify,
}

#[derive(Debug, Default)]
struct State {
    order: Option<Order>,
    survey: Option<Survey>,
}

#[derive(Debug)]
pub struct Order {
    pub server: SocketAddr,
    pub token: Option<SecretString>,
    pub requests: Vec<(AgentId, RequestId)>,
    pub debts: Debts,
}

/// Whether agents that have nothing left to do may still owe something to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Debts {
    No,
    /// The disk failed in this run: they try again after a while.
    Some,
}

pub type Conversation = Vec<Arc<Message>>;

/// What the server says of itself at rest.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    pub agents: Vec<AgentEntry>,
    /// `None` for a request the server does not know.
    pub requests: BTreeMap<(AgentId, RequestId), Option<GetRequestResult>>,
    pub conversations: BTreeMap<AgentId, Conversation>,
    /// The same while agents may still have owed something to the disk.
    pub conversations_before: BTreeMap<AgentId, Conversation>,
    /// What keeps it from rest, or from answering.
    pub trouble: Option<String>,
}

impl Desk {
    pub fn survey(&self, order: Order) {
        self.state().order = Some(order);
        self.news.notify_one();
    }

    pub fn take_survey(&self) -> Option<Survey> {
        self.state().survey.take()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub async fn live(desk: Arc<Desk>, net: Sockets) {
    loop {
        let news = desk.news.notified();
        let order = desk.state().order.take();
        match order {
            None => news.await,
            Some(Order { server, token, requests, debts }) => {
                let client =
                    NexusClient::new(Arc::new(net.clone()), server, token).named("checker");
                let survey = survey(&client, requests, debts).await;
                desk.state().survey = Some(survey);
            }
        }
    }
}

async fn survey(client: &NexusClient, requests: Vec<(AgentId, RequestId)>, debts: Debts) -> Survey {
    let mut survey = Survey::default();
    if let Err(trouble) = look(client, requests, debts, &mut survey).await {
        survey.trouble = Some(trouble);
    }
    survey
}

async fn look(
    client: &NexusClient,
    requests: Vec<(AgentId, RequestId)>,
    debts: Debts,
    survey: &mut Survey,
) -> Result<(), String> {
    survey.agents = at_rest(client).await?;
    match debts {
        Debts::No => {}
        Debts::Some => {
            survey.conversations_before = conversations(client, &survey.agents).await?;
            sleep(STORAGE_RETRY_AFTER).await;
            survey.agents = at_rest(client).await?;
        }
    }
    for (agent, request) in requests {
        let known = match client.get_request(&agent, request.clone()).await {
            Ok(known) => Some(known),
            // The agent is gone, or the server was started again since.
            Err(ClientError::Refused { .. } | ClientError::Rpc { .. }) => None,
            Err(error) => return Err(error.to_string()),
        };
        survey.requests.insert((agent, request), known);
    }
    survey.conversations = conversations(client, &survey.agents).await?;
    Ok(())
}

/// Waits until no agent has anything left to do.
async fn at_rest(client: &NexusClient) -> Result<Vec<AgentEntry>, String> {
    let mut waited = Duration::ZERO;
    loop {
        let agents = client.list_agents().await.map_err(|error| error.to_string())?.agents;
        let busy =
            agents.iter().find(|agent| agent.active_request_id.is_some() || agent.queued > 0);
        match busy {
            None => return Ok(agents),
            Some(busy) if waited >= REST_MAX => {
                return Err(format!("{} does not come to rest", busy.agent_id));
            }
            Some(_) => {
                let pause = if waited < LONG_WORK { LOOK_EVERY } else { LOOK_EVERY_LONG };
                sleep(pause).await;
                waited += pause;
            }
        }
    }
}

async fn conversations(
    client: &NexusClient,
    agents: &[AgentEntry],
) -> Result<BTreeMap<AgentId, Conversation>, String> {
    let mut conversations = BTreeMap::new();
    for entry in agents {
        let conversation = conversation(client, &entry.agent_id).await?;
        conversations.insert(entry.agent_id.clone(), conversation);
    }
    Ok(conversations)
}

async fn conversation(client: &NexusClient, agent: &AgentId) -> Result<Conversation, String> {
    let mut messages = Vec::new();
    loop {
        let params = GetMessagesParams { offset: Some(messages.len() as u64), limit: Some(PAGE) };
        let page = client.get_messages(agent, &params).await.map_err(|error| error.to_string())?;
        messages.extend(page.messages.into_iter().map(|numbered| numbered.message));
        if messages.len() >= page.total {
            return Ok(messages);
        }
    }
}
