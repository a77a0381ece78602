//! Agents that were there before: a database as an earlier server would have left it, written by the
//! store's own code on a disk beside, before anything of the run has begun. So none of it counts as
//! something that the run did.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nexus3::agent::outcome;
use nexus3::event::{Audience, Committed, iso};
use nexus3::home::DATABASE;
use nexus3::id::{AgentId, RequestId};
use nexus3::message::Usage;
use nexus3::policy::budget::{Bounds, KeptBudget, Presence, Used};
use nexus3::provider::script::Time;
use nexus3::store::{
    AgentNumber, AgentRecord, Exported, Kept, Options, Recipe, Standing, Store, StoreError, Sync,
    Write,
};
use nexus3::world::{Clock, World};

use crate::disk::{Disk, Item, View};
use crate::machine::{Acting, HOME, Machine, Raised, VirtualClock};
use crate::pipes::Pipes;
use crate::scenario::{EarlierAgent, EarlierLimits};

#[derive(Debug, thiserror::Error)]
pub enum EarlierError {
    #[error("the agents that were there before cannot be written down")]
    Store(#[from] StoreError),
    #[error("the agents that were there before cannot be written down")]
    Disk(#[from] io::Error),
}

/// Puts the database of these agents on a disk; nothing where there are none.
pub fn put(disk: &Disk, agents: &[EarlierAgent], seed: u64) -> Result<(), EarlierError> {
    if agents.is_empty() {
        return Ok(());
    }
    let clock = VirtualClock::new(|| Duration::ZERO);
    let beside = {
        let clock = clock.clone();
        Disk::new(move || clock.now())
    };
    beside.put(Path::new(HOME), Item::Dir { mode: 0o700 })?;
    let machine = Machine {
        net: Arc::new(Pipes::new()),
        clock,
        disk: beside.clone(),
        programs: Arc::new(Acting::new(Arc::new(beside.clone()), |_, _| None)),
        signals: Arc::new(Raised::default()),
        vars: [].into(),
    };
    let world = machine.world(seed);
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_time().start_paused(true).build()?.block_on(write(&world, agents))?;
    for (path, item) in beside.tree(View::Now) {
        if path.starts_with(HOME) {
            disk.put(&path, item)?;
        }
    }
    Ok(())
}

struct Nobody;

impl Audience for Nobody {
    fn publish(&self, _: &[Committed]) {}
}

async fn write(world: &World, agents: &[EarlierAgent]) -> Result<(), StoreError> {
    let options = Options {
        path: PathBuf::from(HOME).join(DATABASE),
        sync: Sync::Full,
        kept: Kept { per_agent: 1, days: 1 },
        interrupted: outcome::interrupted(),
    };
    let store = Store::open(world, options, Arc::new(Nobody)).await?.store;
    for index in 0..agents.len() {
        store.commit(writes(world, agents, index)).await?;
    }
    store.close().await;
    Ok(())
}

/// Numbers follow the order of creation.
fn number(index: usize) -> AgentNumber {
    index as AgentNumber + 1
}

fn writes(world: &World, agents: &[EarlierAgent], index: usize) -> Vec<Write> {
    let (agent, of) = (&agents[index], number(index));
    let record = Box::new(record(world, agents, agent));
    let mut writes = vec![Write::AgentCreated { number: of, record }];
    if let Some(budget) = budget(world, agents, index) {
        writes.push(Write::BudgetOpened(Box::new(budget)));
        let used = Used { turns: agent.used.turns, tokens: agent.used.tokens };
        writes.push(Write::Spent { agent: of, used });
    }
    writes.extend((0..).zip(agent.messages()).map(|(index, message)| Write::Message {
        agent: of,
        index,
        message: Arc::new(message),
    }));
    for request in &agent.requests {
        let id = RequestId::parse(&request.id).expect("ids were checked when they were read");
        let content = request.content.as_str().into();
        writes.push(Write::RequestQueued { agent: of, id: id.clone(), content });
        let (status, outcome) = (request.status.name(), request.outcome_json.clone());
        writes.push(Write::RequestEnded { agent: of, id, status, outcome });
    }
    if let Some(summary) = &agent.summary {
        let (upto, summary) = (summary.upto, Arc::from(summary.text.as_str()));
        writes.push(Write::Summary { agent: of, upto, summary });
    }
    let told =
        agent.tokens.map(|told| Usage { input_tokens: told.input, output_tokens: told.output });
    let standing = Standing { token_usage: told.unwrap_or_default(), ..Standing::default() };
    writes.push(Write::Standing { agent: of, standing });
    if agent.saved {
        writes.push(Write::Exported { agent: of, exported: Exported::Yes });
    }
    if agent.last {
        writes.push(Write::LastSession { agent: of });
    }
    writes
}

fn record(world: &World, agents: &[EarlierAgent], agent: &EarlierAgent) -> AgentRecord {
    let id = |id: &str| AgentId::parse(id).expect("ids were checked when they were read");
    let above = above(agents, agent);
    let first = above.last().unwrap_or(&agent);
    let depth = first.depth + u32::try_from(above.len()).expect("there are few agents");
    AgentRecord {
        id: id(&agent.id),
        parent: agent.parent.as_deref().map(id),
        depth,
        created_at: iso(world.clock.now()),
        recipe: Recipe {
            preset: agent.preset.clone(),
            model: agent.model.clone(),
            cwd: agent.cwd.clone(),
            write_paths: agent.write_paths.clone(),
            disabled_tools: agent.disabled_tools.clone(),
            enabled_tools: agent.enabled_tools.clone(),
            system_prompt: agent.system_prompt.as_str().into(),
            system_prompt_path: agent.system_prompt_path.clone(),
            root: agent.root.clone(),
            session_allowances: Some(agent.allowances.clone()),
            ceiling: agent.ceiling(),
        },
    }
}

/// Whom it is below, the nearest first.
fn above<'a>(agents: &'a [EarlierAgent], agent: &'a EarlierAgent) -> Vec<&'a EarlierAgent> {
    let parent = |agent: &&'a EarlierAgent| {
        let parent = agent.parent.as_ref()?;
        agents.iter().find(|other| other.id == *parent)
    };
    std::iter::successors(parent(&agent), parent).collect()
}

/// An agent has one if it or somebody above it has limits.
fn budget(world: &World, agents: &[EarlierAgent], index: usize) -> Option<KeptBudget> {
    let agent = &agents[index];
    let above = above(agents, agent);
    let is_limited = |agent: &&EarlierAgent| agent.limits.is_some();
    if !std::iter::once(agent).chain(above.iter().copied()).any(|agent| is_limited(&agent)) {
        return None;
    }
    let parent =
        agents.iter().position(|other| above.first().is_some_and(|near| near.id == other.id));
    let limited_parent = above.iter().any(is_limited).then_some(parent).flatten();
    let EarlierLimits { max_agents, max_turns, max_tokens, deadline } =
        agent.limits.unwrap_or_default();
    let ends = |time: Time| world.clock.now().checked_add(time.0).ok();
    Some(KeptBudget {
        agent: number(index),
        parent: limited_parent.map(number),
        bounds: Bounds { max_agents, max_turns, max_tokens, deadline: deadline.and_then(ends) },
        own: Used::default(),
        gone: Used::default(),
        presence: Presence::Here,
    })
}
