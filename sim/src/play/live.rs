//! A scenario's steps against a real server, in real time: the clients, their jobs and what is expected of
//! them are those of the simulation. Nothing is known of the server but what it answers, so faults are not
//! played and invariants are not checked.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use nexus3::client::{ClientError, NexusClient};
use nexus3::rpc::method::{AgentEntry, AgentStatus};
use nexus3::world::Net;
use secrecy::SecretString;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::client::{Client, Desk};
use super::director::Director;
use super::observed::{Answer, Observed};
use super::observer::{Door, Heard, Observer};
use super::stage::Stage;
use super::transcript::Transcript;
use crate::hosts::TICK;
use crate::scenario::{Action, EventTrigger, Files, Scenario, ServeFlag};

/// How long agents may take to come to rest after the last step.
const CALM_MAX: Duration = Duration::from_mins(1);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Puts files on the disk that a server works on.
pub type PutFiles = Box<dyn Fn(&Files) -> io::Result<()>>;

/// A server that is there, and the disk that it works on.
pub struct Place {
    pub net: Arc<dyn Net>,
    pub server: SocketAddr,
    pub token: Option<SecretString>,
    pub put: PutFiles,
}

/// What came of the steps.
#[derive(Debug)]
pub struct Conformed {
    pub transcript: String,
    /// What is not as the file says; empty where all is.
    pub failures: Vec<String>,
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Place").field("server", &self.server).finish_non_exhaustive()
    }
}

/// Plays the steps and compares. Agents that were there before are nobody's business. An error is that of
/// the first contact.
pub async fn conform(scenario: &Scenario, place: Place) -> Result<Conformed, ClientError> {
    let client = NexusClient::new(Arc::clone(&place.net), place.server, place.token.clone());
    let before: BTreeSet<String> = ids(&client.list_agents().await?.agents);
    let mut live = Live::open(scenario, place);
    let mut director = Director::new(scenario);
    let mut failures = Vec::new();
    while !director.is_done() {
        director.advance(&mut live);
        // The invariants have no use for it here.
        drop(live.observed.take());
        if live.elapsed() > scenario.limit.0 {
            let open = director.unfinished().join(", ");
            failures.push(format!("after {} these have not ended: {open}", scenario.limit));
            break;
        }
        sleep(TICK).await;
    }
    failures.splice(0..0, std::mem::take(&mut director.failures));
    failures.extend(unanswered(scenario, &director));
    match at_rest(&client).await {
        Ok(Rest::Found(agents)) => {
            let made: BTreeSet<String> = ids(&agents).difference(&before).cloned().collect();
            failures.extend(other_agents(scenario, &made));
        }
        Ok(Rest::Busy(who)) => failures.push(format!("still at work at the end: {who}")),
        Err(error) => failures.push(format!("the server is gone: {error}")),
    }
    Ok(Conformed { transcript: live.transcript.text(), failures })
}

/// Calls that no answer came to, though their client stayed.
fn unanswered(scenario: &Scenario, director: &Director<'_>) -> Vec<String> {
    let leaves = scenario.steps.iter().any(|step| step.action == Action::Disconnect);
    let silent = director.calls.iter().filter(|made| made.ended.is_some() && made.answer.is_none());
    let told = silent.map(|made| format!("{}: there was no answer", made.call.method));
    if leaves { Vec::new() } else { told.collect() }
}

fn other_agents(scenario: &Scenario, found: &BTreeSet<String>) -> Option<String> {
    let expected: BTreeSet<String> = scenario.expect.agents.as_ref()?.iter().cloned().collect();
    (expected != *found).then(|| format!("expected the agents {expected:?}, found {found:?}"))
}

enum Rest {
    Found(Vec<AgentEntry>),
    /// Who is not idle.
    Busy(String),
}

async fn at_rest(client: &NexusClient) -> Result<Rest, ClientError> {
    let start = Instant::now();
    loop {
        let agents = client.list_agents().await?.agents;
        let is_busy = |agent: &&AgentEntry| agent.status != AgentStatus::Idle || agent.queued > 0;
        let busy: Vec<&str> =
            agents.iter().filter(is_busy).map(|agent| agent.agent_id.as_str()).collect();
        if busy.is_empty() {
            return Ok(Rest::Found(agents));
        }
        if start.elapsed() > CALM_MAX {
            return Ok(Rest::Busy(busy.join(", ")));
        }
        sleep(LOOK_EVERY).await;
    }
}

fn ids(agents: &[AgentEntry]) -> BTreeSet<String> {
    agents.iter().map(|agent| agent.agent_id.to_string()).collect()
}

/// Real clients around a real server. They end with it.
struct Live {
    start: Instant,
    place: Place,
    desks: BTreeMap<String, Arc<Desk>>,
    heard: Heard,
    observed: Observed,
    transcript: Transcript,
    _tasks: JoinSet<()>,
}

impl Live {
    fn open(scenario: &Scenario, place: Place) -> Self {
        let start = Instant::now();
        let (observed, heard) = (Observed::default(), Heard::default());
        let (transcript, mut tasks) = (Transcript::default(), JoinSet::new());
        let mut desks = BTreeMap::new();
        for name in scenario.clients() {
            let desk = Arc::new(Desk::default());
            desks.insert(name.to_owned(), Arc::clone(&desk));
            let client = Client {
                name: name.to_owned(),
                desk,
                net: Arc::clone(&place.net),
                now: Arc::new(move || start.elapsed()),
                transcript: transcript.clone(),
                observed: observed.clone(),
            };
            tasks.spawn(client.live());
        }
        if scenario.waits_for_events() {
            let token = place.token.clone();
            let ears = Observer {
                net: Arc::clone(&place.net),
                address: place.server,
                door: Arc::new(move || Some(Door { server_start: 1, token: token.clone() })),
                observed: observed.clone(),
                heard: heard.clone(),
            };
            tasks.spawn(ears.live());
        }
        Self { start, place, desks, heard, observed, transcript, _tasks: tasks }
    }
}

impl Stage for Live {
    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    fn note(&self, who: &str, what: &str) {
        self.transcript.note(self.elapsed(), who, what);
    }

    fn desk(&self, client: &str) -> &Desk {
        &self.desks[client]
    }

    fn desks(&self) -> Vec<Arc<Desk>> {
        self.desks.values().cloned().collect()
    }

    fn server_address(&self) -> SocketAddr {
        self.place.server
    }

    fn token(&self) -> Option<SecretString> {
        self.place.token.clone()
    }

    fn mcp_root(&self) -> &str {
        crate::hosts::NOBODY
    }

    fn server_starts(&self) -> u64 {
        1
    }

    fn server_is_up(&self) -> bool {
        true
    }

    fn server_gave_up(&self) -> bool {
        false
    }

    fn has_heard(&self, trigger: &EventTrigger) -> bool {
        self.heard.has(trigger)
    }

    fn step_ended(&self, name: &str) {
        self.heard.step_ended(name);
    }

    fn ask_server_to_stop(&mut self) {
        unreachable!("files that stop their server are not played here");
    }

    fn start_server(&mut self, _: Option<&[ServeFlag]>) {
        unreachable!("files that start their server are not played here");
    }

    fn put_files(&mut self, files: &Files) -> io::Result<()> {
        (self.place.put)(files)
    }

    fn heard_answer(&self, _: Answer) {}
}
