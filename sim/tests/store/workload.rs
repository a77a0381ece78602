//! Several agents that commit at the same time until they are done or the disk fails, and what must
//! be found of them afterwards: every acknowledged commit whole, of one more all or nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use nexus3::event::Seq;
use nexus3::hub::Scope;
use nexus3::limits::MESSAGES_LOADED_MAX;
use nexus3::message::Message;
use nexus3::store::{AgentNumber, Closed, Opened, Options, Standing, Store, Write};
use nexus3::world::World;

use super::support::{
    Heard, agent_id, completed, created, event, open, put, queued, request_id, started, user,
};

const AGENTS: u64 = 3;
const TURNS: u64 = 2;

/// How many commits of each agent were acknowledged.
#[derive(Debug)]
pub struct Acknowledged(BTreeMap<AgentNumber, AtomicUsize>);

/// What there is of an agent.
#[derive(Clone, Debug, Default, PartialEq)]
struct State {
    exists: bool,
    messages: Vec<Arc<Message>>,
    requests: BTreeMap<String, String>,
    events: Vec<String>,
}

fn name(agent: AgentNumber) -> String {
    format!("agent{agent}")
}

fn request(turn: u64) -> String {
    format!("r{turn}")
}

/// The commits of an agent's life.
fn steps(agent: AgentNumber, text: &str) -> Vec<Vec<Write>> {
    let mut steps = vec![vec![created(agent, &name(agent))]];
    for turn in 0..TURNS {
        let id = request(turn);
        let said = |what: &str| user(&format!("{what} of {agent} in turn {turn}: {text}"));
        let standing = Standing { last_iteration_count: 1, ..Standing::default() };
        steps.push(vec![queued(agent, &id)]);
        steps.push(vec![started(agent, &id), put(agent, 2 * turn, said("question"))]);
        steps.push(vec![
            put(agent, 2 * turn + 1, said("answer")),
            completed(agent, &id),
            Write::Standing { agent, standing },
        ]);
    }
    for (number, step) in steps.iter_mut().enumerate() {
        step.push(event(&name(agent), number));
    }
    steps
}

/// What the first `count` commits leave, and the next start makes of it.
fn expected(agent: AgentNumber, text: &str, count: usize) -> State {
    let mut state = State::default();
    for write in steps(agent, text).into_iter().take(count).flatten() {
        match write {
            Write::AgentCreated { .. } => state.exists = true,
            Write::Message { message, .. } => state.messages.push(message),
            Write::RequestQueued { id, .. } => {
                state.requests.insert(id.to_string(), "queued".into());
            }
            Write::RequestStarted { id, .. } => {
                state.requests.insert(id.to_string(), "running".into());
            }
            Write::RequestEnded { id, status, .. } => {
                state.requests.insert(id.to_string(), status.into());
            }
            Write::Event(event) => state.events.push(label(&event.json())),
            Write::Standing { .. } => {}
            other => unreachable!("not part of the workload: {other:?}"),
        }
    }
    for (id, status) in &mut state.requests {
        if status == "queued" || status == "running" {
            *status = "interrupted".into();
            state.events.push(format!("turn_interrupted {id}"));
        }
    }
    state
}

/// Which event it is.
fn label(json: &str) -> String {
    let event: serde_json::Value = serde_json::from_str(json).expect("events are JSON");
    let which = event.get("position").or(event.get("request_id")).expect("it has one of them");
    format!("{} {}", event["type"].as_str().unwrap_or_default(), plain(which))
}

fn plain(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// One life: opens, lets all agents commit, and closes, as far as the disk lets it.
pub async fn live(
    world: World,
    options: Options,
    text: &str,
    acknowledged: &Arc<Acknowledged>,
    heard: &Arc<Heard>,
) {
    let Ok(Opened { store, .. }) = open(&world, options, heard).await else {
        return;
    };
    let agents: Vec<_> = (1..=AGENTS)
        .map(|agent| {
            let (store, acknowledged) = (store.clone(), Arc::clone(acknowledged));
            let steps = steps(agent, text);
            tokio::spawn(async move {
                for step in steps {
                    if store.commit(step).await.is_err() {
                        break;
                    }
                    acknowledged.0[&agent].fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for agent in agents {
        agent.await.expect("an agent ends");
    }
    store.close().await;
}

impl Acknowledged {
    pub fn none() -> Arc<Self> {
        Arc::new(Self((1..=AGENTS).map(|agent| (agent, AtomicUsize::new(0))).collect()))
    }

    pub fn all(&self) -> bool {
        (1..=AGENTS).all(|agent| self.of(agent) == steps(agent, "").len())
    }

    fn of(&self, agent: AgentNumber) -> usize {
        self.0[&agent].load(Ordering::Relaxed)
    }
}

/// What is wrong at the next two starts, if anything.
pub async fn violation(
    world: &World,
    options: &Options,
    text: &str,
    acknowledged: &Acknowledged,
    earlier: &Heard,
) -> Option<String> {
    let heard = Heard::new();
    let opened = match open(world, options.clone(), &heard).await {
        Ok(opened) => opened,
        Err(error) => return Some(format!("it does not open: {error:?}")),
    };
    if let Some(path) = opened.set_aside {
        return Some(format!("it was set aside at {}", path.display()));
    }
    let store = opened.store;
    for agent in 1..=AGENTS {
        let found = state(&store, agent).await;
        let count = acknowledged.of(agent);
        if ![count, count + 1].map(|count| expected(agent, text, count)).contains(&found) {
            return Some(format!("agent {agent} after {count} commits: {found:?}"));
        }
    }
    let kept = everything(&store).await;
    for published in earlier.events().iter().chain(&heard.events()) {
        if kept.get(&published.seq).map(String::as_str) != Some(&*published.json) {
            return Some(format!("{} was published and is not kept", published.json));
        }
    }
    let highest = kept.keys().next_back().copied().unwrap_or(0);
    if highest != opened.last_seq || highest != kept.len() as u64 {
        return Some(format!("{} events up to {highest}, not {}", kept.len(), opened.last_seq));
    }
    if let Err(error) = store.commit(vec![event("later", 0)]).await {
        return Some(format!("it cannot go on: {error:?}"));
    }
    store.close().await;
    started_again(world, options, highest + 1).await
}

/// What is wrong if the same is opened once more after a clean stop.
async fn started_again(world: &World, options: &Options, last_seq: Seq) -> Option<String> {
    let heard = Heard::new();
    let opened = match open(world, options.clone(), &heard).await {
        Ok(opened) => opened,
        Err(error) => return Some(format!("it does not open again: {error:?}")),
    };
    opened.store.close().await;
    if (opened.closed, heard.seqs(), opened.last_seq) != (Closed::default(), vec![], last_seq) {
        return Some(format!("something was closed twice: {:?}", opened.closed));
    }
    None
}

async fn state(store: &Store, agent: AgentNumber) -> State {
    let loaded = store.load(agent, MESSAGES_LOADED_MAX).await.expect("read");
    let mut state = State { exists: loaded.is_some(), ..State::default() };
    state.messages = loaded.map(|loaded| loaded.messages).unwrap_or_default();
    for id in (0..TURNS).map(request) {
        if let Some(found) = store.request(agent, &request_id(&id)).await.expect("read") {
            state.requests.insert(id, found.status);
        }
    }
    let page = store.events(&Scope::Agent(agent_id(&name(agent))), 0).await.expect("read");
    assert!(!page.more, "there are few events");
    state.events = page.events.iter().map(|event| label(&event.json)).collect();
    state
}

async fn everything(store: &Store) -> BTreeMap<Seq, String> {
    let page = store.events(&Scope::Everything, 0).await.expect("read");
    assert!(!page.more && page.gap.is_none(), "there are few events");
    page.events.iter().map(|event| (event.seq, event.json.to_string())).collect()
}
