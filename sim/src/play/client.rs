//! A client of a scenario: a host of its own that plays the calls it is given, each with the real
//! client library, and tells how each went. Its event streams are played by `streams`.

mod raw;
mod tapped;
mod typing;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nexus3::client::{ClientError, NexusClient};
use nexus3::event::Seq;
use nexus3::id::AgentId;
use nexus3::rpc::wire::ErrorObject;
use nexus3::world::Net;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use tokio::sync::Notify;
use tokio::task::{JoinError, JoinSet};
use tokio::time::timeout;

use self::typing::Booth;
use super::confirming;
use super::observed::Observed;
use super::story::{Happening, How};
use super::streams::Streamer;
use super::transcript::{Transcript, shortened, shown};
use crate::scenario::{Call, Confirm, Pace, Raw, Token, Typing, Watch};

/// How long raw bytes wait for an answer that does not come.
const RAW_ANSWER_MAX: Duration = Duration::from_mins(2);
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
    open: BTreeMap<JobId, Kind>,
    done: Vec<(JobId, Done)>,
    /// The last event its streams saw.
    seq: Seq,
    /// Open streams that are read without a pause.
    reading: usize,
}

/// What ends a job from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Exchange,
    /// A stream that is being opened.
    Stream,
}

pub type JobId = u64;

#[derive(Debug)]
enum Order {
    Play(Box<Job>),
    Disconnect,
    Unwatch(JobId),
}

#[derive(Clone, Debug)]
pub struct Job {
    pub id: JobId,
    /// What the transcript calls it.
    pub label: String,
    /// Which start of the server is asked.
    pub server_start: u64,
    pub server: SocketAddr,
    pub token: Option<SecretString>,
    pub work: Work,
}

#[derive(Clone, Debug)]
pub enum Work {
    Call(Call),
    /// Waits for a confirmation and answers it.
    Confirm(Confirm),
    Raw(Raw),
    Watch(Watch),
    /// At a terminal.
    Type(Typing),
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
    /// A confirmation came, and this call answered it.
    Confirmed {
        call: Box<Call>,
        done: Box<Done>,
    },
    /// A stream is open.
    Streaming,
    /// The connection broke or nobody answered in time.
    Unanswered,
    /// The client closed its connections.
    Disconnected,
}

impl Desk {
    pub fn play(&self, job: Job) {
        let mut state = self.state();
        let kind = match job.work {
            Work::Call(_) | Work::Confirm(_) | Work::Raw(_) | Work::Type(_) => Kind::Exchange,
            Work::Watch(_) => Kind::Stream,
        };
        state.open.insert(job.id, kind);
        state.orders.push_back(Order::Play(Box::new(job)));
        self.news.notify_one();
    }

    /// Closes all connections; the job ends when that is done, with all others.
    pub fn disconnect(&self, job: JobId) {
        let mut state = self.state();
        state.open.insert(job, Kind::Exchange);
        state.orders.push_back(Order::Disconnect);
        self.news.notify_one();
    }

    /// Closes all streams; the job ends when that is done.
    pub fn unwatch(&self, job: JobId) {
        let mut state = self.state();
        state.open.insert(job, Kind::Exchange);
        state.orders.push_back(Order::Unwatch(job));
        self.news.notify_one();
    }

    /// The last event its streams saw, 0 before the first.
    pub fn seq(&self) -> Seq {
        self.state().seq
    }

    pub fn saw(&self, seq: Seq) {
        self.state().seq = seq;
    }

    /// Whether a stream is open that is read without a pause.
    pub fn is_reading(&self) -> bool {
        self.state().reading > 0
    }

    pub fn stream_opened(&self, pace: Pace) {
        self.state().reading += usize::from(pace == Pace::AtOnce);
    }

    pub fn stream_ended(&self, pace: Pace) {
        self.state().reading -= usize::from(pace == Pace::AtOnce);
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

    pub fn finish(&self, id: JobId, done: Done) {
        let mut state = self.state();
        if state.open.remove(&id).is_some() {
            state.done.push((id, done));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn close_all(&mut self) {
        for id in std::mem::take(&mut self.open).into_keys() {
            self.done.push((id, Done::Disconnected));
        }
    }

    fn close_streams(&mut self) {
        let opening = |(id, kind): (&JobId, &Kind)| (*kind == Kind::Stream).then_some(*id);
        let opening: Vec<JobId> = self.open.iter().filter_map(opening).collect();
        for id in opening {
            self.open.remove(&id);
            self.done.push((id, Done::Disconnected));
        }
    }
}

/// Tells how much time has passed since the start.
pub type Elapsed = Arc<dyn Fn() -> Duration + Send + Sync>;

/// A client and what is around it.
#[derive(Clone)]
pub struct Client {
    pub name: String,
    pub desk: Arc<Desk>,
    pub net: Arc<dyn Net>,
    pub now: Elapsed,
    pub transcript: Transcript,
    pub observed: Observed,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Client {
    /// Plays a client until its host ends.
    pub async fn live(self) {
        let (mut jobs, mut streams) = (JoinSet::new(), JoinSet::new());
        let mut booth = None;
        let machine = typing::machine(Arc::clone(&self.net), Arc::clone(&self.now));
        loop {
            tokio::select! {
                biased;
                Some(ended) = jobs.join_next() => assert_no_panic(&ended),
                Some(ended) = streams.join_next() => assert_no_panic(&ended),
                order = self.desk.next() => match order {
                    Order::Play(job) => {
                        if let Work::Type(typing) = &job.work {
                            self.sit_down(&machine, &job, typing, &mut booth, &mut streams);
                        }
                        self.start(*job, booth.as_ref(), &mut jobs, &mut streams);
                    }
                    Order::Disconnect => {
                        jobs.shutdown().await;
                        streams.shutdown().await;
                        let told = "closes its connections";
                        let left = || Happening::Left { told };
                        self.transcript.tell((self.now)(), &self.name, told, left);
                        self.desk.state().close_all();
                    }
                    Order::Unwatch(job) => {
                        streams.shutdown().await;
                        self.note("closes its streams");
                        self.desk.state().close_streams();
                        self.desk.finish(job, Done::Disconnected);
                    }
                },
            }
        }
    }

    fn start(
        &self,
        job: Job,
        booth: Option<&Booth>,
        jobs: &mut JoinSet<()>,
        streams: &mut JoinSet<()>,
    ) {
        let player = Player {
            name: self.name.clone(),
            net: Arc::clone(&self.net),
            now: Arc::clone(&self.now),
            transcript: self.transcript.clone(),
        };
        let desk = Arc::clone(&self.desk);
        match job.work.clone() {
            Work::Call(call) => {
                jobs.spawn(async move { desk.finish(job.id, player.call(&job, call).await) });
            }
            Work::Confirm(confirm) => {
                jobs.spawn(async move {
                    let done = player.confirm(&job, &confirm).await;
                    desk.finish(job.id, done);
                });
            }
            Work::Raw(raw) => {
                jobs.spawn(async move { desk.finish(job.id, player.raw(&job, &raw).await) });
            }
            Work::Watch(watch) => {
                let Player { name, net, now, transcript } = player;
                let observed = self.observed.clone();
                let streamer = Streamer { name, net, now, transcript, observed, desk };
                streams.spawn(async move { streamer.watch(&job, &watch).await });
            }
            Work::Type(typing) => match booth.cloned() {
                Some(booth) => {
                    let seat = self.seat();
                    jobs.spawn(async move { desk.finish(job.id, booth.play(seat, typing).await) });
                }
                None => desk.finish(job.id, Done::Unanswered),
            },
        }
    }

    fn note(&self, what: &str) {
        self.transcript.note((self.now)(), &self.name, what);
    }
}

fn assert_no_panic(ended: &Result<(), JoinError>) {
    let panicked = ended.as_ref().is_err_and(JoinError::is_panic);
    assert!(!panicked, "a client's job does not panic");
}

struct Player {
    name: String,
    net: Arc<dyn Net>,
    now: Elapsed,
    transcript: Transcript,
}

impl Player {
    fn note(&self, job: &Job, what: &str) {
        self.transcript.note((self.now)(), &self.name, &format!("{}{what}", job.label));
    }

    fn note_begin(&self, job: &Job, what: &str, called: impl FnOnce() -> Happening) {
        self.transcript.tell((self.now)(), &self.name, &format!("{}{what}", job.label), called);
    }

    fn note_end(&self, job: &Job, done: &Done) {
        let line = format!("{}{}", job.label, told(done));
        self.transcript.tell((self.now)(), &self.name, &line, || answered(job, done));
    }

    fn client(&self, job: &Job) -> NexusClient {
        NexusClient::new(Arc::clone(&self.net), job.server, job.token.clone()).named(&self.name)
    }

    async fn confirm(&self, job: &Job, confirm: &Confirm) -> Done {
        let Some(call) = confirming::answer(&self.client(job), confirm).await else {
            self.note(job, &format!("✗ no {} waits for a confirmation", confirm.tool));
            return Done::Unanswered;
        };
        let done = self.call(job, call.clone()).await;
        Done::Confirmed { call: Box::new(call), done: Box::new(done) }
    }

    async fn call(&self, job: &Job, call: Call) -> Done {
        let params = Value::Object(call.params.unwrap_or_default());
        let on = call.agent.as_ref().map(|agent| format!(" {agent}")).unwrap_or_default();
        let token = told_token(&call.token);
        let whose = acting_as(&call.headers);
        let line = format!("→ {}{on}{whose} {}{token}", call.method, shown(&params));
        self.note_begin(job, &line, || Happening::Called {
            job: job.id,
            name: format!("{}{whose}{token} {}", call.method, job.label),
            agent: call.agent.clone(),
            params: format!("{params:#}"),
        });
        let mut client = self.client(job);
        for (name, value) in &call.headers {
            client = client.with_header(name, value);
        }
        let agent = match call.agent.as_deref().map(AgentId::parse).transpose() {
            Ok(agent) => agent,
            Err(error) => {
                let line = format!("{}✗ {error}", job.label);
                let ended = || answered(job, &Done::Unanswered);
                self.transcript.tell((self.now)(), &self.name, &line, ended);
                return Done::Unanswered;
            }
        };
        let answer = client.call_by_name(agent.as_ref(), &call.method, params).await;
        let done = match answer {
            Ok(result) => Done::Answered { status: 200, answer: Ok(result) },
            Err(error) => failed(error),
        };
        self.note_end(job, &done);
        done
    }

    async fn raw(&self, job: &Job, sent: &Raw) -> Done {
        // The token is another one with every seed, and a secret.
        let bytes = match &job.token {
            Some(token) => sent.bytes.replace(token.expose_secret(), "${token}"),
            None => sent.bytes.clone(),
        };
        self.note_begin(job, &format!("→ raw {}", shown(&bytes)), || Happening::Called {
            job: job.id,
            name: format!("raw {}", job.label),
            agent: None,
            params: bytes.clone(),
        });
        let done = match timeout(
            RAW_ANSWER_MAX,
            raw::exchange(self.net.as_ref(), job.server, &sent.bytes),
        )
        .await
        {
            Ok(Ok(answer)) => raw::read_raw(&answer),
            Ok(Err(_)) | Err(_) => Done::Unanswered,
        };
        self.note_end(job, &done);
        done
    }
}

/// How a request ended that has no result.
pub fn failed(error: ClientError) -> Done {
    match error {
        ClientError::Rpc { error } => Done::Answered { status: 200, answer: Err(error) },
        ClientError::Refused { status, error } => {
            Done::Answered { status: status.as_u16(), answer: Err(error) }
        }
        ClientError::NoServer { .. }
        | ClientError::Timeout { .. }
        | ClientError::Protocol { .. }
        | ClientError::Unnamed => Done::Unanswered,
    }
}

pub fn told_token(token: &Token) -> &'static str {
    match token {
        Token::Server => "",
        Token::Text(_) => " with another token",
        Token::Without => " without a token",
    }
}

/// In whose name a request is made, where it is an agent's.
pub fn acting_as(headers: &BTreeMap<String, String>) -> String {
    let whose = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(AS_AGENT));
    whose.map(|(_, agent)| format!(" as {agent}")).unwrap_or_default()
}

pub fn told(done: &Done) -> String {
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
        Done::Confirmed { done, .. } => told(done),
        Done::Streaming => "← a stream".to_owned(),
        Done::Unanswered => "✗ no answer".to_owned(),
        Done::Disconnected => "✗ disconnected".to_owned(),
    }
}

/// The same as a value.
pub fn answered(job: &Job, done: &Done) -> Happening {
    let (how, text) = match done {
        Done::Answered { answer: Ok(result), .. } => (How::Good, format!("{result:#}")),
        Done::RawAnswer { status: Some(status), body } => {
            (How::Good, format!("HTTP {status}\n{body}"))
        }
        Done::Confirmed { done, .. } => return answered(job, done),
        Done::Streaming => (How::Good, "a stream".to_owned()),
        Done::Answered { answer: Err(_), .. }
        | Done::RawAnswer { status: None, .. }
        | Done::Unanswered
        | Done::Disconnected => (How::Bad, told(done)),
    };
    Happening::Answered { job: job.id, how, text }
}
