//! MCP servers: programs that others wrote and hosts that others run, as tools of our agents.
//!
//! Each server has a task of its own ([`connection`]) which starts it or reaches it, speaks the protocol
//! through rmcp over our seams ([`stdio`], [`http`]), learns which tools it has, learns it again
//! when they change, and begins anew, later and later, when the connection is lost. Nothing is started
//! beside that task that it does not own: when it is told to stop, the program with all that it
//! started is gone before the task is. So one server holds up neither another nor an agent.
//!
//! What a server offers lies in a list that only its task replaces ([`Servers`]); an agent takes what
//! is there when it asks its model. A server that was lost keeps its tools: a call of one says what
//! is wrong with the server, which helps a model more than a tool that does not exist. A call
//! ([`call`]) waits for its answer, for the connection's end and for nobody wanting it any more, which
//! the server is told. Whatever a server says is bounded and only ever text for a model.
//!
//! Who may call what is decided in `policy`, as for all tools: never sandboxed agents; trusted ones
//! once somebody confirms it. A server may be one agent's own: then only that one sees its tools, and
//! it ends with it.

mod arguments; // what a call is given
mod call; // one call of one tool
mod connection; // the task of a server
mod ear; // who hears what is said
mod events; // an answer over HTTP in pieces
mod http; // over the http seam
mod offered; // what a server has
mod result; // what a call gave, as text
mod session; // a conversation, over any transport
mod stdio; // over the programs seam
mod tail; // what a program said last
mod tool; // as a tool of ours
mod watched; // what is seen while messages pass

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use tokio_util::task::TaskTracker;

pub use connection::Status;
use connection::{Server, Told};
pub use ear::{Ear, End};
use tool::tool;

use super::Tool;
use super::programs;
use crate::config::{McpConfigError, McpServer, check_name};
use crate::limits::MCP_SERVERS_MAX;
use crate::message::ToolDefinition;
use crate::reach::Reach;
use crate::world::{Chance, Http, HttpTerms, Programs, World};

/// What stands before the name of every tool of an MCP server.
pub const PREFIX: &str = "mcp__";

/// Whose a server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    Everybody,
    /// The agent with this workplace.
    Agent(WorkplaceNumber),
}

/// How an agent's workplace is known to the MCP servers: some may be its own.
#[derive(Clone, Debug)]
pub struct Guest {
    servers: Arc<Servers>,
    number: WorkplaceNumber,
}

impl Guest {
    pub(super) fn of(servers: &Arc<Servers>) -> Self {
        let number = WorkplaceNumber(servers.workplaces.fetch_add(1, Ordering::Relaxed));
        Self { servers: Arc::clone(servers), number }
    }

    pub fn number(&self) -> WorkplaceNumber {
        self.number
    }

    /// What it is offered.
    pub(super) fn tools(&self) -> Vec<(ToolDefinition, Arc<dyn Tool>)> {
        self.servers.tools(self.number)
    }

    pub(super) fn find(&self, name: &str) -> Option<(ToolDefinition, Arc<dyn Tool>)> {
        self.servers.find(name, self.number)
    }

    /// Ends what is its own.
    pub(super) async fn leave(&self) {
        self.servers.leave(self.number).await;
    }
}

/// No two workplaces of a server have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkplaceNumber(u64);

/// Where a server comes from, and so whether it is known when it is not connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    Configuration,
    Call,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum McpError {
    #[error("there is no MCP server `{name}`")]
    Unknown { name: String },
    #[error("there is an MCP server `{name}` already")]
    Exists { name: String },
    #[error(
        "the MCP server `{name}` is not this agent's own: connect to it under another name, with a `config`"
    )]
    NotItsOwn { name: String },
    #[error("there are {MCP_SERVERS_MAX} MCP servers already")]
    TooMany,
    #[error("the server is stopping")]
    Stopping,
    #[error("{0}")]
    Config(#[from] McpConfigError),
}

/// What is told of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    pub name: String,
    pub transport: &'static str,
    pub status: Status,
    /// As models know them.
    pub tools: Vec<String>,
    /// What of it models are not offered, and why.
    pub refused: Vec<String>,
    pub error: Option<String>,
    /// The last lines that its program wrote to its error output.
    pub stderr: Vec<String>,
    pub owner: Owner,
}

/// All that connections need of the machine.
struct Ground {
    programs: Arc<dyn Programs>,
    http: Arc<dyn Http>,
    chance: Arc<dyn Chance>,
    /// What a program learns of ours.
    environment: Vec<(OsString, OsString)>,
    /// Where programs run that name no directory.
    cwd: PathBuf,
}

/// The MCP servers of one server of ours.
pub struct Servers {
    ground: Arc<Ground>,
    /// Replaced as a whole by whoever connects and disconnects; what is in a server changes by itself.
    known: ArcSwap<BTreeMap<String, Arc<Server>>>,
    /// Grows whenever somebody may have to be shown other tools.
    generation: Arc<AtomicU64>,
    workplaces: AtomicU64,
    running: TaskTracker,
    ear: Option<Arc<dyn Ear>>,
}

impl std::fmt::Debug for Servers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.known.load().keys()).finish()
    }
}

impl Servers {
    pub fn new(world: &World, reach: Reach, cwd: PathBuf, ear: Option<Arc<dyn Ear>>) -> Self {
        let programs = ear.as_ref().map(|ear| ear.programs());
        let ground = Ground {
            programs: programs.unwrap_or_else(|| Arc::clone(&world.programs)),
            http: Arc::clone(&world.http).with(&HttpTerms { reach, ..HttpTerms::default() }),
            chance: Arc::clone(&world.chance),
            environment: programs::environment(world.environment.as_ref()),
            cwd,
        };
        Self {
            ground: Arc::new(ground),
            known: ArcSwap::default(),
            generation: Arc::default(),
            workplaces: AtomicU64::new(0),
            running: TaskTracker::new(),
            ear,
        }
    }

    /// Begins to connect to all servers of the configuration, and waits for none.
    pub fn start(&self, configured: &BTreeMap<String, McpServer>) {
        for (name, config) in configured {
            let whose = (Owner::Everybody, Origin::Configuration);
            // Nobody else has connected to anything yet.
            let _ = self.launch(name, config.clone(), whose, None);
        }
    }

    /// Connects to a server and waits for how that ends, or for the attempt that is on its way. One
    /// that cannot be connected to is forgotten, unless it is configured.
    pub async fn connect(
        &self,
        name: &str,
        config: Option<McpServer>,
        owner: Owner,
    ) -> Result<View, McpError> {
        check_name(name)?;
        if self.running.is_closed() {
            return Err(McpError::Stopping);
        }
        let known = self.known.load().get(name).cloned();
        let server = match (known, config) {
            (Some(known), Some(_)) if known.status() != Status::Disconnected => {
                return Err(McpError::Exists { name: name.to_owned() });
            }
            (Some(known), None) if owner != Owner::Everybody && known.owner != owner => {
                return Err(McpError::NotItsOwn { name: name.to_owned() });
            }
            (Some(known), None) if known.status() == Status::Disconnected => {
                let whose = (known.owner, known.origin);
                self.launch(name, known.config.clone(), whose, Some(&known))?
            }
            (Some(known), None) => {
                known.try_now();
                known
            }
            (None, None) => return Err(McpError::Unknown { name: name.to_owned() }),
            (None, Some(_)) if self.known.load().len() >= MCP_SERVERS_MAX => {
                return Err(McpError::TooMany);
            }
            (known, Some(config)) => {
                self.launch(name, config, (owner, Origin::Call), known.as_ref())?
            }
        };
        server.attempted().await;
        let view = server.view();
        if view.status != Status::Connected && server.origin == Origin::Call {
            self.forget(&server).await;
        }
        Ok(view)
    }

    /// Ends a connection and waits until nothing of it is left.
    pub async fn disconnect(&self, name: &str) -> Result<(), McpError> {
        let known = self.known.load().get(name).cloned();
        let server = known.ok_or_else(|| McpError::Unknown { name: name.to_owned() })?;
        match server.origin {
            Origin::Call => self.forget(&server).await,
            Origin::Configuration => server.stop().await,
        }
        Ok(())
    }

    pub fn list(&self) -> Vec<View> {
        self.known.load().values().map(|server| server.view()).collect()
    }

    pub fn view(&self, name: &str) -> Result<View, McpError> {
        let known = self.known.load().get(name).map(|server| server.view());
        known.ok_or_else(|| McpError::Unknown { name: name.to_owned() })
    }

    /// Ends what belongs to a workplace whose agent goes.
    async fn leave(&self, number: WorkplaceNumber) {
        let known = self.known.load_full();
        for server in known.values().filter(|server| server.owner == Owner::Agent(number)) {
            self.forget(server).await;
        }
    }

    /// Ends all connections and waits until nothing of them is left.
    pub async fn close(&self) {
        self.running.close();
        for server in self.known.load().values() {
            server.ask_to_stop();
        }
        self.running.wait().await;
    }

    /// Changes whenever [`Self::tools`] may.
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// What a workplace is offered.
    fn tools(&self, of: WorkplaceNumber) -> Vec<(ToolDefinition, Arc<dyn Tool>)> {
        let known = self.known.load();
        let visible = known.values().filter(|server| server.is_for(of));
        visible.flat_map(Server::tools).collect()
    }

    /// The tool of this name that a workplace is offered.
    fn find(&self, name: &str, of: WorkplaceNumber) -> Option<(ToolDefinition, Arc<dyn Tool>)> {
        let rest = name.strip_prefix(PREFIX)?;
        // No name of a server has these in it.
        let (server, _) = rest.split_once("__")?;
        let known = self.known.load();
        let server = known.get(server).filter(|server| server.is_for(of))?;
        server.tools().into_iter().find(|(definition, _)| definition.name == name)
    }

    /// Begins to connect, in place of the one that was there `before`.
    fn launch(
        &self,
        name: &str,
        config: McpServer,
        (owner, origin): (Owner, Origin),
        before: Option<&Arc<Server>>,
    ) -> Result<Arc<Server>, McpError> {
        let told = Told { generation: Arc::clone(&self.generation), ear: self.ear.clone() };
        let mut server = Server::new(name, config, (owner, origin), told);
        server.instead_of = before.filter(|_| origin == Origin::Call).and_then(Server::configured);
        let server = Arc::new(server);
        let mut is_taken = false;
        self.known.rcu(|known| {
            let is_before = |there| before.is_some_and(|before| Arc::ptr_eq(before, there));
            // Somebody else may have been quicker.
            is_taken = known.get(name).is_some_and(|there| !is_before(there));
            let mut known = BTreeMap::clone(known);
            if !is_taken {
                known.insert(name.to_owned(), Arc::clone(&server));
            }
            known
        });
        if is_taken {
            return Err(McpError::Exists { name: name.to_owned() });
        }
        if self.running.is_closed() {
            // Those who stop all may have looked before it was there.
            server.ask_to_stop();
        }
        self.running.spawn(connection::supervise(Arc::clone(&server), Arc::clone(&self.ground)));
        Ok(server)
    }

    /// Ends a connection; what is configured under its name can be connected to again.
    async fn forget(&self, server: &Arc<Server>) {
        server.stop().await;
        self.known.rcu(|known| {
            let mut known = BTreeMap::clone(known);
            // Somebody else may have connected to another one of this name meanwhile.
            if known.get(&server.name).is_some_and(|known| Arc::ptr_eq(known, server)) {
                match &server.instead_of {
                    Some(configured) => {
                        known.insert(server.name.clone(), Arc::clone(configured));
                    }
                    None => drop(known.remove(&server.name)),
                }
            }
            known
        });
        self.generation.fetch_add(1, Ordering::AcqRel);
    }
}

/// Whether a name can only be that of a tool of an MCP server. These come and go, so that a name which
/// nobody offers now is no mistake.
pub fn is_outside(tool: &str) -> bool {
    tool.starts_with(PREFIX)
}
