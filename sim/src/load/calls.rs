//! The clients of a load: one for each agent, which creates it and then sends turn after turn, and one
//! that reads what all of them do. They check every answer and that what is told agrees with it, and
//! never call twice for one turn.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nexus3::client::NexusClient;
use nexus3::hub::{Scope, Start};
use nexus3::id::{AgentId, RequestId};
use nexus3::pool::Pool;
use nexus3::rpc::caller::{Caller, ClientName};
use nexus3::rpc::method::{CreateAgentParams, Method, SendParams, SendResult, call};
use nexus3::rpc::{Reply, Rpc, Target};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

use super::reading::{Feed, InProcess, Reader};
use super::{Carried, Load, LoadError, name};

/// How calls reach the agents.
#[derive(Clone, Debug)]
pub enum Door {
    Http(NexusClient),
    Direct { rpc: Arc<Rpc>, pool: Arc<Pool> },
}

/// Has every turn of a load, and returns what that came to. `elapsed` is the virtual time.
pub async fn drive(
    load: &Load,
    door: &Door,
    elapsed: impl Fn() -> Duration + Clone + Send + 'static,
) -> Result<Carried, LoadError> {
    let tally = Arc::new(Tally::default());
    let turns = u64::from(load.agents) * u64::from(load.turns);
    let reading = |problem| LoadError::Events { problem };
    // Before anything happens that it has to hear of.
    let feed = door.listen().await.map_err(reading)?;
    let reader = AbortOnDropHandle::new(tokio::spawn(Reader::default().read(feed, turns)));
    let mut clients = JoinSet::new();
    for number in 0..load.agents {
        let agent = AgentId::parse(&name(number)).expect("the names of agents are well formed");
        let text = load.chunks_for(number).concat();
        let client = Client { agent, text, door: door.clone(), tally: Arc::clone(&tally) };
        clients.spawn(client.live(load.turns, elapsed.clone()));
    }
    while let Some(ended) = clients.join_next().await {
        match ended {
            Ok(ended) => ended?,
            Err(error) => return Err(LoadError::Host { problem: error.to_string() }),
        }
    }
    let heard = reader.await.map_err(|error| LoadError::Host { problem: error.to_string() })?;
    let sum = tally.sum();
    assert_eq!(sum.turns, turns, "no turn is left out");
    if heard.map_err(reading)?.ended != sum.answered {
        return Err(reading("other turns have ended than were answered".to_owned()));
    }
    Ok(Carried {
        turns: sum.turns,
        calls: sum.turns + u64::from(load.agents),
        text_bytes: sum.text_bytes,
        virtual_time: elapsed(),
        digest: sum.digest,
    })
}

struct Client {
    agent: AgentId,
    /// What its model answers, always.
    text: String,
    door: Door,
    tally: Arc<Tally>,
}

impl Client {
    async fn live(self, turns: u32, elapsed: impl Fn() -> Duration) -> Result<(), LoadError> {
        let agent = || self.agent.as_str().to_owned();
        let created = self.door.create(&self.agent).await;
        created.map_err(|problem| LoadError::Create { agent: agent(), problem })?;
        for turn in 0..turns {
            let ended = self.turn(turn).await;
            let request =
                ended.map_err(|problem| LoadError::Turn { agent: agent(), turn, problem })?;
            self.tally.add(elapsed(), &self.agent, request, self.text.len());
        }
        Ok(())
    }

    /// Returns the request id of a turn that ended as it should.
    async fn turn(&self, turn: u32) -> Result<RequestId, String> {
        match self.door.send(&self.agent, format!("Turn {turn}")).await? {
            SendResult::Completed { content, request_id, .. } if content == self.text => {
                Ok(request_id)
            }
            SendResult::Completed { content, .. } => Err(format!("the text is {content:?}")),
            SendResult::Cancelled { .. } => Err("it was cancelled".to_owned()),
            SendResult::Accepted { .. } => Err("it was not waited for".to_owned()),
        }
    }
}

impl Door {
    /// A reader of everything that happens from now on.
    async fn listen(&self) -> Result<Feed, String> {
        match self {
            Self::Http(client) => {
                let stream = client.open_events(None, None).await;
                stream.map(|stream| Feed::Http(Box::new(stream))).map_err(|error| error.to_string())
            }
            Self::Direct { pool, .. } => {
                let journal = Arc::new(pool.store().clone());
                let listening = pool.hub().subscribe(journal, Scope::Everything, Start::Now);
                let listening = listening.map_err(|error| error.to_string())?;
                Ok(Feed::Direct(Box::new(InProcess::new(listening))))
            }
        }
    }

    async fn create(&self, agent: &AgentId) -> Result<(), String> {
        let params = CreateAgentParams {
            agent_id: Some(agent.as_str().to_owned()),
            ..CreateAgentParams::default()
        };
        match self {
            Self::Http(client) => {
                client.create_agent(&params).await.map(|_| ()).map_err(|error| error.to_string())
            }
            Self::Direct { rpc, .. } => {
                let target = Target::Global;
                ask::<serde::de::IgnoredAny>(rpc, target, Method::CreateAgent, &params).await?;
                Ok(())
            }
        }
    }

    async fn send(&self, agent: &AgentId, content: String) -> Result<SendResult, String> {
        let params = SendParams { content, ..SendParams::default() };
        match self {
            Self::Http(client) => {
                let sent = client.call::<call::Send>(Some(agent), &params).await;
                sent.map_err(|error| error.to_string())
            }
            Self::Direct { rpc, .. } => {
                ask(rpc, Target::Agent(agent.as_str()), Method::Send, &params).await
            }
        }
    }
}

/// One JSON-RPC call without HTTP.
async fn ask<T: for<'a> Deserialize<'a>>(
    rpc: &Rpc,
    target: Target<'_>,
    method: Method,
    params: &impl Serialize,
) -> Result<T, String> {
    #[derive(Serialize)]
    struct Request<'a, P> {
        jsonrpc: &'static str,
        id: u32,
        method: &'a str,
        params: &'a P,
    }
    #[derive(Deserialize)]
    struct Answer<'a> {
        #[serde(borrow)]
        result: Option<&'a RawValue>,
    }
    let request = Request { jsonrpc: "2.0", id: 1, method: method.name(), params };
    let body = serde_json::to_vec(&request).expect("params have only string keys");
    let caller = Caller { agent: None, client: ClientName::default() };
    match rpc.answer(&caller, target, &body).await {
        Reply::Answer(answer) => {
            let read: Answer<'_> =
                serde_json::from_str(&answer).map_err(|error| error.to_string())?;
            let result = read.result.ok_or_else(|| answer.clone())?;
            serde_json::from_str(result.get()).map_err(|error| error.to_string())
        }
        refused @ (Reply::NoContent
        | Reply::NotJsonRpc(_)
        | Reply::NotFound(_)
        | Reply::Failed(_)
        | Reply::Busy(_)) => Err(format!("{refused:?}")),
    }
}

/// What all clients have done so far.
#[derive(Debug, Default)]
struct Tally {
    /// Held to add one turn; nothing is awaited under it.
    sum: Mutex<Sum>,
}

#[derive(Debug)]
struct Sum {
    turns: u64,
    text_bytes: u64,
    digest: u64,
    /// Each agent's turns in their order.
    answered: BTreeMap<AgentId, Vec<RequestId>>,
}

impl Default for Sum {
    fn default() -> Self {
        // The start of an FNV-1a hash.
        let digest = 0xcbf2_9ce4_8422_2325;
        Self { turns: 0, text_bytes: 0, digest, answered: BTreeMap::new() }
    }
}

impl Tally {
    fn sum(&self) -> MutexGuard<'_, Sum> {
        self.sum.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, at: Duration, agent: &AgentId, request: RequestId, text_bytes: usize) {
        let mut sum = self.sum();
        sum.turns += 1;
        sum.text_bytes += text_bytes as u64;
        let at = at.as_nanos().to_le_bytes();
        let names = agent.as_str().bytes().chain(request.as_str().bytes());
        for byte in at.iter().copied().chain(names) {
            sum.digest = (sum.digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        sum.answered.entry(agent.clone()).or_default().push(request);
    }
}
