//! A client of a scenario: a host of its own that plays the calls it is given, each with the real
//! client library, and tells how each went.

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nexus3::client::{ClientError, NexusClient};
use nexus3::id::AgentId;
use nexus3::rpc::wire::ErrorObject;
use nexus3::world::Net;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::transcript::{Transcript, shortened, shown};
use crate::hosts::now;
use crate::machine::TurmoilNet;
use crate::scenario::{Call, Raw, Token};

/// How long raw bytes wait for an answer that does not come.
const RAW_ANSWER_MAX: Duration = Duration::from_mins(2);
const RAW_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The header that makes a call an agent's.
const AS_AGENT: &str = "x-nexus-agent";

/// Where the director leaves jobs for a client, and finds how they ended.
#[derive(Debug, Default)]
pub struct Desk {
    /// Held for one look at a time; nothing is awaited under it.
    state: Mutex<State>,
    news: Notify,
}

#[derive(Debug, Default)]
struct State {
    orders: VecDeque<Order>,
    open: BTreeSet<JobId>,
    done: Vec<(JobId, Done)>,
}

pub type JobId = u64;

#[derive(Debug)]
enum Order {
    Play(Box<Job>),
    Disconnect,
}

#[derive(Clone, Debug)]
pub struct Job {
    pub id: JobId,
    /// What the transcript calls it.
    pub label: String,
    pub server: SocketAddr,
    pub token: Option<SecretString>,
    pub work: Work,
}

#[derive(Clone, Debug)]
pub enum Work {
    Call(Call),
    Raw(Raw),
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Done {
    Answered {
        status: u16,
        answer: Result<Value, ErrorObject>,
    },
    RawAnswer {
        status: Option<u16>,
        body: String,
    },
    /// The connection broke or nobody answered in time.
    Unanswered,
    /// The client closed its connections.
    Disconnected,
}

impl Desk {
    pub fn play(&self, job: Job) {
        let mut state = self.state();
        state.open.insert(job.id);
        state.orders.push_back(Order::Play(Box::new(job)));
        self.news.notify_one();
    }

    /// Closes all connections; the job ends when that is done, with all others.
    pub fn disconnect(&self, job: JobId) {
        let mut state = self.state();
        state.open.insert(job);
        state.orders.push_back(Order::Disconnect);
        self.news.notify_one();
    }

    /// The client's host has died, with everything it was doing.
    pub fn lost(&self) {
        let mut state = self.state();
        state.orders.clear();
        state.close_all();
    }

    pub fn take_done(&self) -> Vec<(JobId, Done)> {
        std::mem::take(&mut self.state().done)
    }

    async fn next(&self) -> Order {
        loop {
            let news = self.news.notified();
            if let Some(order) = self.state().orders.pop_front() {
                return order;
            }
            news.await;
        }
    }

    fn finish(&self, id: JobId, done: Done) {
        let mut state = self.state();
        if state.open.remove(&id) {
            state.done.push((id, done));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn close_all(&mut self) {
        for id in std::mem::take(&mut self.open) {
            self.done.push((id, Done::Disconnected));
        }
    }
}

/// Plays a client until its host ends.
pub async fn live(name: String, desk: Arc<Desk>, net: TurmoilNet, transcript: Transcript) {
    let mut jobs = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            Some(ended) = jobs.join_next() => assert!(
                !ended.is_err_and(|error: tokio::task::JoinError| error.is_panic()),
                "a client's job does not panic"
            ),
            order = desk.next() => match order {
                Order::Play(job) => {
                    let player =
                        Player { name: name.clone(), net: net.clone(), transcript: transcript.clone() };
                    let desk = Arc::clone(&desk);
                    jobs.spawn(async move {
                        let id = job.id;
                        let done = player.play(&job).await;
                        desk.finish(id, done);
                    });
                }
                Order::Disconnect => {
                    jobs.shutdown().await;
                    transcript.note(now(), &name, "closes its connections");
                    desk.state().close_all();
                }
            },
        }
    }
}

struct Player {
    name: String,
    net: TurmoilNet,
    transcript: Transcript,
}

impl Player {
    async fn play(&self, job: &Job) -> Done {
        match job.work.clone() {
            Work::Call(call) => self.call(job, call).await,
            Work::Raw(raw) => self.raw(job, &raw).await,
        }
    }

    fn note(&self, job: &Job, what: &str) {
        self.transcript.note(now(), &self.name, &format!("{}{what}", job.label));
    }

    async fn call(&self, job: &Job, call: Call) -> Done {
        let params = Value::Object(call.params.unwrap_or_default());
        let on = call.agent.as_ref().map(|agent| format!(" {agent}")).unwrap_or_default();
        let token = match call.token {
            Token::Server => "",
            Token::Text(_) => " with another token",
            Token::Without => " without a token",
        };
        let whose = call.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(AS_AGENT));
        let whose = whose.map(|(_, agent)| format!(" as {agent}")).unwrap_or_default();
        self.note(job, &format!("→ {}{on}{whose} {}{token}", call.method, shown(&params)));
        let mut client =
            NexusClient::new(Arc::new(self.net.clone()), job.server, job.token.clone())
                .named(&self.name);
        for (name, value) in &call.headers {
            client = client.with_header(name, value);
        }
        let agent = match call.agent.as_deref().map(AgentId::parse).transpose() {
            Ok(agent) => agent,
            Err(error) => {
                self.note(job, &format!("✗ {error}"));
                return Done::Unanswered;
            }
        };
        let answer = client.call_by_name(agent.as_ref(), &call.method, params).await;
        let done = match answer {
            Ok(result) => Done::Answered { status: 200, answer: Ok(result) },
            Err(ClientError::Rpc { error }) => Done::Answered { status: 200, answer: Err(error) },
            Err(ClientError::Refused { status, error }) => {
                Done::Answered { status: status.as_u16(), answer: Err(error) }
            }
            Err(
                ClientError::NoServer { .. }
                | ClientError::Timeout { .. }
                | ClientError::Protocol { .. },
            ) => Done::Unanswered,
        };
        self.note(job, &told(&done));
        done
    }

    async fn raw(&self, job: &Job, raw: &Raw) -> Done {
        // The token is another one with every seed, and a secret.
        let bytes = match &job.token {
            Some(token) => raw.bytes.replace(token.expose_secret(), "${token}"),
            None => raw.bytes.clone(),
        };
        self.note(job, &format!("→ raw {}", shown(&bytes)));
        let done = match timeout(RAW_ANSWER_MAX, exchange(&self.net, job.server, &raw.bytes)).await
        {
            Ok(Ok(answer)) => read_raw(&answer),
            Ok(Err(_)) | Err(_) => Done::Unanswered,
        };
        self.note(job, &told(&done));
        done
    }
}

fn told(done: &Done) -> String {
    match done {
        Done::Answered { answer: Ok(result), .. } => format!("← {}", shown(result)),
        Done::Answered { status, answer: Err(error) } => {
            let http = if *status == 200 { String::new() } else { format!("HTTP {status} ") };
            let data = error.data.as_ref().map(|data| format!(" {}", shown(data)));
            let data = data.unwrap_or_default();
            format!("← {http}error {} {:?}{data}", error.code, error.message)
        }
        Done::RawAnswer { status: Some(status), body } => {
            let line = format!("← HTTP {status} {}", shortened(body.trim_end()));
            line.trim_end().to_owned()
        }
        Done::RawAnswer { status: None, .. } => "← closed without an answer".to_owned(),
        Done::Unanswered => "✗ no answer".to_owned(),
        Done::Disconnected => "✗ disconnected".to_owned(),
    }
}

/// Sends bytes as they are and reads one answer, or what there is until the end.
async fn exchange(net: &TurmoilNet, server: SocketAddr, bytes: &str) -> std::io::Result<Vec<u8>> {
    let mut stream = net.connect(server).await?;
    stream.write_all(bytes.as_bytes()).await?;
    let mut answer = Vec::new();
    let mut piece = vec![0; 16 * 1024];
    while !is_whole(&answer) && answer.len() < RAW_BYTES_MAX {
        match stream.read(&mut piece).await {
            Ok(0) | Err(_) => break,
            Ok(count) => answer.extend_from_slice(&piece[..count]),
        }
    }
    Ok(answer)
}

/// Whether a head and as many bytes as it announces are there.
fn is_whole(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    // An answer without a length (204, 304) is its head.
    body.len() >= length.unwrap_or(0)
}

fn read_raw(answer: &[u8]) -> Done {
    let text = String::from_utf8_lossy(answer);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text.as_ref(), ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    Done::RawAnswer { status, body: body.to_owned() }
}
