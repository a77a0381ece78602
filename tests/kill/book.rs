//! What the clients asked for and what they were told, over all lives of the server.
//! Each agent belongs to one client, which has one call under way at a time: at a kill only the
//! last call of each client is in doubt.

use std::collections::BTreeMap;
use std::fmt;

use nexus3::id::{AgentId, RequestId};
use nexus3::rpc::method::{GetRequestResult, RequestStatus, SendResult};

#[derive(Default)]
pub struct Book {
    pub agents: BTreeMap<AgentId, Agent>,
    /// These are gone: destroyed, or temporary ones of a server that died.
    pub gone: Vec<AgentId>,
    /// How many of them were looked for after a restart.
    pub gone_checked: usize,
    pub names: u64,
    pub acknowledged: u64,
    pub in_doubt: u64,
}

pub struct Agent {
    pub owner: u64,
    pub existence: Existence,
    /// In the order in which they were sent.
    pub requests: Vec<Request>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existence {
    CreateAsked,
    Acknowledged,
    DestroyAsked,
}

pub struct Request {
    pub id: RequestId,
    pub content: String,
    pub told: Told,
}

/// The last thing a client was told of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    /// Nothing: the answer did not come.
    Nothing,
    Accepted,
    /// That it is over, but not how.
    Over,
    Ended(Ended),
}

/// How a request ended: for ever the same.
#[derive(Clone, Debug, PartialEq)]
pub enum Ended {
    Completed { content: String },
    Cancelled,
    Interrupted,
}

impl Ended {
    pub fn of_send(result: &SendResult) -> Option<Self> {
        match result {
            SendResult::Completed { content, .. } => {
                Some(Self::Completed { content: content.clone() })
            }
            SendResult::Cancelled { .. } => Some(Self::Cancelled),
            SendResult::Accepted { .. } => None,
        }
    }

    pub fn of_record(record: &GetRequestResult) -> Self {
        match (record.status, &record.result) {
            (RequestStatus::Completed, Some(SendResult::Completed { content, .. })) => {
                Self::Completed { content: content.clone() }
            }
            (RequestStatus::Cancelled, Some(SendResult::Cancelled { .. })) => Self::Cancelled,
            (RequestStatus::Interrupted, None) => Self::Interrupted,
            other => panic!("a request of a dead server has ended: {other:?}, {:?}", record.error),
        }
    }
}

impl Book {
    /// A name that was never used.
    pub fn name(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names)
    }

    /// Temporary agents do not survive their server.
    pub fn forget_temps(&mut self) {
        self.gone.extend(self.agents.keys().filter(|id| id.is_temp()).cloned());
        self.agents.retain(|id, _| !id.is_temp());
    }

    pub fn request(&mut self, agent: &AgentId, id: &RequestId) -> &mut Request {
        let agent = self.agents.get_mut(agent).expect("the agent is in the book");
        agent.requests.iter_mut().find(|request| request.id == *id).expect("it was noted before")
    }
}

impl fmt::Display for Book {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { agents, gone, acknowledged, in_doubt, .. } = self;
        let requests: usize = agents.values().map(|agent| agent.requests.len()).sum();
        write!(
            f,
            "{acknowledged} acknowledged, {in_doubt} in doubt; {} agents with {requests} requests \
             are left, {} are gone",
            agents.len(),
            gone.len()
        )
    }
}
