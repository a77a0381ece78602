//! Tools about other agents: one file per tool; here is what they have in common. What is to be done
//! becomes an [`Act`], and the [`Team`] does it in the name of the agent that calls. The pool is the team
//! of a server: it stands above the tools, so they know it by this trait only.

mod cancel;
mod create;
mod destroy;
mod send;
mod shutdown;
mod status;

use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use arc_swap::ArcSwap;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::task::TaskTracker;

use super::decide::{self, Examined};
use super::error::Given;
use super::schema::{definition, typed};
use super::workplace::{Mandate, Site, Workplace};
use super::{Effect, Tool, ToolOutput, WITHDRAWN, Waits, Wanted};
use crate::id::{AgentId, RequestId};
use crate::message::ToolDefinition;
use crate::policy::budget::{Exceeded, Reader};
use crate::policy::{Decision, Leave, Level, Permissions, Permit, Reason, Refusal, Rule};
use crate::world::BoxFuture;

pub(super) use cancel::NexusCancel;
pub use create::CreateAgentParams;
pub(super) use destroy::NexusDestroy;
pub(super) use send::NexusSend;
pub(super) use shutdown::NexusShutdown;
pub(super) use status::NexusStatus;

/// What agents may ask of others.
pub trait Team: Send + Sync {
    /// Whether `from` may do this to whom it names; by who may do what only, not by what goes on.
    fn may(&self, from: &AgentId, act: &Act) -> Result<(), Refusal>;

    /// Whether `from` may give this to a child that works in `cwd`, which is without links; if not, in
    /// words for its model.
    fn may_give(&self, from: &AgentId, act: &Act, cwd: &Path) -> Result<(), String>;

    /// Whether the limits of agents leave enough for it; if not, in words for the model of `from`.
    fn has_left(&self, from: &AgentId, act: &Act) -> Result<(), String>;

    /// Does it in the name of `from`. Whoever no longer waits for the result cancels a turn that it
    /// waits for; `beside` is where that goes on, and what the agent waits for before it goes.
    fn act(
        self: Arc<Self>,
        from: AgentId,
        act: Act,
        beside: TaskTracker,
    ) -> BoxFuture<'static, ToolOutput>;
}

/// What an agent wants with others.
#[derive(Clone, Debug)]
pub enum Act {
    Create(Box<CreateAgentParams>),
    Send {
        to: AgentId,
        content: Arc<str>,
    },
    Status {
        of: AgentId,
    },
    /// One request, or everything that runs and waits.
    Cancel {
        of: AgentId,
        request: Option<RequestId>,
    },
    Destroy {
        id: AgentId,
    },
    Shutdown,
}

/// An agent's place in its team.
#[derive(Debug)]
pub struct Membership {
    /// A call takes the one that is here when it is made.
    id: ArcSwap<AgentId>,
    /// The team holds its agents, so they do not hold it.
    team: Weak<dyn Team>,
}

impl Membership {
    pub fn new(id: AgentId, team: Weak<dyn Team>) -> Self {
        Self { id: ArcSwap::from_pointee(id), team }
    }

    /// The agent is called otherwise from now on.
    pub(super) fn rename(&self, id: AgentId) {
        self.id.store(Arc::new(id));
    }

    fn may(&self, act: &Act) -> Result<(), Decision> {
        // Without a team there is nobody to do it either.
        let Some(team) = self.team.upgrade() else { return Ok(()) };
        let may = team.may(&self.id.load(), act);
        may.map_err(|refusal| Decision::deny(rule_of(refusal.reason), refused(&refusal)))
    }

    fn may_give(&self, act: &Act, cwd: &Path) -> Result<(), Decision> {
        let Some(team) = self.team.upgrade() else { return Ok(()) };
        team.may_give(&self.id.load(), act, cwd).map_err(|words| Decision::deny(Rule::Path, words))
    }

    fn has_left(&self, act: &Act) -> Result<(), Decision> {
        let Some(team) = self.team.upgrade() else { return Ok(()) };
        team.has_left(&self.id.load(), act).map_err(|words| Decision::deny(Rule::Limits, words))
    }

    async fn act(&self, act: Act, beside: TaskTracker) -> ToolOutput {
        match self.team.upgrade() {
            Some(team) => team.act(AgentId::clone(&self.id.load()), act, beside).await,
            None => Err("There are no other agents any more: the server is stopping.".to_owned()),
        }
    }
}

/// The rule that a refusal belongs to.
fn rule_of(reason: Reason) -> Rule {
    match reason {
        Reason::Owner | Reason::Policy | Reason::WouldDeadlock => Rule::Target,
        Reason::Ceiling | Reason::Depth | Reason::Yolo => Rule::Level,
        Reason::Limit => Rule::Limits,
    }
}

/// A refusal in words for a model: what is wrong, by which rule, and what to do instead.
pub fn refused(refusal: &Refusal) -> String {
    let advice = match refusal.reason {
        Reason::Ceiling | Reason::Yolo => {
            "Ask for less than you have yourself: a preset below yours, such as `sandboxed` or `worker`, \
             and places that you may use."
        }
        Reason::Depth => "Use the agents that there are, or do it yourself.",
        Reason::Owner => {
            "You create children of your own only, and manage only them and those below them."
        }
        Reason::Policy => "Do without it, or do it yourself.",
        Reason::Limit => "Ask for less, or end your turn with what you have.",
        Reason::WouldDeadlock => {
            "It waits for you: end your turn with what it needs instead of asking it."
        }
    };
    format!("Refused ({}): {}. {advice}", refusal.reason.name(), refusal.message)
}

/// The same for what is beyond the limits of `agent` or of those above it.
pub fn beyond(exceeded: &Exceeded, agent: &AgentId, reader: Reader) -> String {
    format!("Refused ({}): {}", Reason::Limit.name(), exceeded.to_model(agent, reader))
}

/// The arguments of a tool about other agents.
pub(super) trait OnTeam: DeserializeOwned + JsonSchema + Send + 'static {
    const NAME: &'static str;
    const DESCRIPTION: &'static str;
    const PATHS: Wanted = &[];

    fn leave(permissions: &Permissions) -> Leave {
        managing(permissions)
    }

    /// Whether it can be of use at all to an agent whose level allows it.
    fn is_of_use(_permissions: &Permissions) -> bool {
        true
    }

    fn waits(_arguments: &Value) -> Waits {
        Waits::ForItself
    }

    fn act(self) -> Act;
}

/// Who has agents below it manages them.
fn managing(permissions: &Permissions) -> Leave {
    match permissions.level() {
        Level::Yolo | Level::Trusted => Leave::Free,
        Level::Sandboxed => Leave::Never,
    }
}

struct TeamTool<T>(PhantomData<fn() -> T>);

pub(super) fn tool<T: OnTeam>() -> Arc<dyn Tool> {
    Arc::new(TeamTool::<T>(PhantomData))
}

impl<T: OnTeam> Tool for TeamTool<T> {
    fn definition(&self) -> ToolDefinition {
        definition::<T>(T::NAME, T::DESCRIPTION)
    }

    fn leave(&self, _arguments: &Value, permissions: &Permissions) -> Leave {
        T::leave(permissions)
    }

    fn is_of_use(&self, permissions: &Permissions) -> bool {
        T::is_of_use(permissions)
    }

    fn waits(&self, arguments: &Value) -> Waits {
        T::waits(arguments)
    }

    fn target(&self, arguments: &Value, workplace: &Workplace) -> Result<(), Decision> {
        let arguments = typed::<T>(T::NAME, arguments.clone());
        let arguments = arguments.map_err(|problem| Decision::deny(Rule::Schema, problem))?;
        workplace.membership().may(&arguments.act())
    }

    fn examine(
        &self,
        arguments: Value,
        workplace: &Arc<Workplace>,
    ) -> BoxFuture<'static, Result<Examined, Decision>> {
        let act = typed::<T>(T::NAME, arguments.clone()).map(T::act);
        let paths = (!T::PATHS.is_empty()).then(|| {
            workplace.run(T::NAME, Effect::None, Permit::Nothing, move |site| {
                let examined = decide::paths(site, T::NAME, T::PATHS, &arguments)?;
                Ok::<_, Decision>((examined, first(site, T::PATHS, &arguments)))
            })
        });
        let workplace = Arc::clone(workplace);
        Box::pin(async move {
            let (examined, cwd) = match paths {
                Some(paths) => paths.await?,
                None => (Examined::of_call(), None),
            };
            let act = act.map_err(|problem| Decision::deny(Rule::Schema, problem))?;
            if let Some(cwd) = cwd {
                workplace.membership().may_give(&act, &cwd)?;
            }
            workplace.membership().has_left(&act)?;
            Ok(examined)
        })
    }

    fn run(
        &self,
        arguments: Value,
        workplace: &Arc<Workplace>,
        _: Permit,
    ) -> BoxFuture<'static, ToolOutput> {
        let examined = self.examine(arguments.clone(), workplace);
        let workplace = Arc::clone(workplace);
        let mandate = workplace.mandate();
        if !mandate.has(T::NAME) {
            // It was taken from the agent after the call was decided on.
            return Box::pin(std::future::ready(Err(WITHDRAWN.to_owned())));
        }
        Box::pin(async move {
            examined.await.map_err(|decision| decision.reason)?;
            let act = typed::<T>(T::NAME, arguments)?.act();
            let acting = workplace.membership().act(act.clone(), workplace.running().clone());
            tokio::select! {
                biased;
                output = acting => output,
                () = forbidden::<T>(&workplace, mandate, &act) => Err(WITHDRAWN.to_owned()),
            }
        })
    }
}

/// Where the first of the paths leads; nowhere where there is nothing, of which the tool itself tells.
fn first(site: &Site, wanted: Wanted, arguments: &Value) -> Option<PathBuf> {
    let (argument, wants) = wanted.first()?;
    let given = Given::new(arguments[*argument].as_str().unwrap_or("."));
    site.examine(&given, *wants).ok().map(|(_, path)| path)
}

/// Ends once so much was taken from the agent that it may not do this any more.
async fn forbidden<T: OnTeam>(workplace: &Workplace, mut mandate: Arc<Mandate>, act: &Act) {
    loop {
        mandate.withdrawn().cancelled().await;
        mandate = workplace.mandate();
        if !mandate.has(T::NAME) || workplace.membership().may(act).is_err() {
            return;
        }
    }
}
