//! The task of one MCP server: connects, learns which tools there are, and begins anew when the
//! connection is lost. It alone changes what is known of its server; everybody else reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::ear::{Ear, End};
use super::offered::{Offer, Offered};
use super::session::Session;
use super::tail::Tail;
use super::{Ground, Origin, Owner, View, WorkplaceNumber, http, stdio, tool};
use crate::config::McpServer;
use crate::limits::{
    MCP_ERROR_CHARS_MAX, MCP_MESSAGE_BYTES_MAX, MCP_RETRY_FIRST, MCP_RETRY_MAX, MCP_START_MAX,
    MCP_STEADY_AFTER, MCP_UNASKED_PER_SECOND_MAX,
};
use crate::message::ToolDefinition;
use crate::reach::redirect::NoRedirect;
use crate::tool::Tool;
use crate::world::{Chance, Exit, HttpFault, Use};

/// How a server is, by the words of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Connecting,
    Connected,
    /// It will be tried again.
    Failed,
    /// Somebody disconnected it.
    Disconnected,
}

/// Why a connection is no more, or never was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Lost {
    #[error("its program cannot be started: {reason}")]
    NotStarted { reason: String },
    #[error("its program {}", ended(*.0))]
    Ended(Exit),
    #[error("it closed the connection")]
    Closed,
    #[error("it did not say what it offers within {} seconds", MCP_START_MAX.as_secs())]
    Late,
    #[error("it sent a message of more than {MCP_MESSAGE_BYTES_MAX} bytes")]
    TooLong,
    #[error(
        "it sent more than {MCP_UNASKED_PER_SECOND_MAX} messages in a second that nobody asked for"
    )]
    Flood,
    #[error("it does not take what it is sent")]
    Deaf,
    #[error("it does not speak the protocol as we do: {said}")]
    Unspoken { said: String },
    #[error("{}{}", .0, allowed(*.0))]
    Unreachable(HttpFault),
    #[error("it answers with HTTP {status}{}", hint(*status))]
    Status { status: u16 },
    #[error("it sends requests elsewhere {0}")]
    Moved(NoRedirect),
    #[error("it no longer knows our session")]
    SessionOver,
}

/// How an attempt ended.
pub(super) enum Why {
    Stopped,
    Lost(Lost),
}

/// How a conversation with a server is begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opening {
    /// As the current revision has it, else as the earlier ones do.
    Newest,
    /// As the earlier ones do: some servers hang up on what they do not know.
    Earlier,
}

/// Whom a server tells that it offers something else, and who hears what is said with it.
pub(super) struct Told {
    pub(super) generation: Arc<AtomicU64>,
    pub(super) ear: Option<Arc<dyn Ear>>,
}

enum State {
    Connecting {
        /// What went wrong the time before.
        after: Option<Lost>,
    },
    Connected(Arc<Session>),
    Failed(Lost),
    Disconnected,
}

/// One server, for its task and for those who use it.
pub(super) struct Server {
    pub(super) name: String,
    pub(super) config: McpServer,
    pub(super) owner: Owner,
    pub(super) origin: Origin,
    pub(super) tail: Tail,
    /// What went wrong last on the way to it: the library does not pass that on.
    pub(super) trouble: ArcSwapOption<Lost>,
    pub(super) stop: CancellationToken,
    /// The configured one of its name, which was disconnected before.
    pub(super) instead_of: Option<Arc<Server>>,
    told: Told,
    state: ArcSwap<State>,
    offered: ArcSwap<Offered>,
    /// Its state is another one.
    changed: Notify,
    /// Somebody does not want to wait for the next attempt.
    hurry: Notify,
    is_hurried: AtomicBool,
    gone: CancellationToken,
}

impl Server {
    pub(super) fn new(
        name: &str,
        config: McpServer,
        (owner, origin): (Owner, Origin),
        told: Told,
    ) -> Self {
        Self {
            name: name.to_owned(),
            config,
            owner,
            origin,
            tail: Tail::default(),
            trouble: ArcSwapOption::empty(),
            stop: CancellationToken::new(),
            instead_of: None,
            told,
            state: ArcSwap::from_pointee(State::Connecting { after: None }),
            offered: ArcSwap::default(),
            changed: Notify::new(),
            hurry: Notify::new(),
            is_hurried: AtomicBool::new(false),
            gone: CancellationToken::new(),
        }
    }

    pub(super) fn status(&self) -> Status {
        match self.state.load().as_ref() {
            State::Connecting { .. } => Status::Connecting,
            State::Connected(_) => Status::Connected,
            State::Failed(_) if self.is_hurried.load(Ordering::Acquire) => Status::Connecting,
            State::Failed(_) => Status::Failed,
            State::Disconnected => Status::Disconnected,
        }
    }

    /// What is configured under its name.
    pub(super) fn configured(self: &Arc<Self>) -> Option<Arc<Self>> {
        match self.origin {
            Origin::Configuration => Some(Arc::clone(self)),
            Origin::Call => self.instead_of.clone(),
        }
    }

    pub(super) fn is_for(&self, workplace: WorkplaceNumber) -> bool {
        match self.owner {
            Owner::Everybody => true,
            Owner::Agent(number) => number == workplace,
        }
    }

    /// The connection, or why there is none.
    pub(super) fn session(&self) -> Result<Arc<Session>, String> {
        match self.state.load().as_ref() {
            State::Connected(session) => Ok(Arc::clone(session)),
            State::Connecting { after: None } => Err("it is not connected yet".to_owned()),
            State::Connecting { after: Some(lost) } => {
                Err(format!("{}, and it is not connected again yet", self.shown(lost)))
            }
            State::Failed(lost) => Err(self.shown(lost)),
            State::Disconnected => Err("it was disconnected".to_owned()),
        }
    }

    /// What it offers, or offered when it was connected last.
    pub(super) fn tools(self: &Arc<Self>) -> Vec<(ToolDefinition, Arc<dyn Tool>)> {
        let offered = self.offered.load();
        let entry = |offer: &Offer| (offer.definition.clone(), tool(Arc::clone(self), offer));
        offered.tools.iter().map(entry).collect()
    }

    pub(super) fn view(&self) -> View {
        let offered = self.offered.load();
        let status = self.status();
        let error = match self.state.load().as_ref() {
            State::Failed(lost) | State::Connecting { after: Some(lost) } => Some(self.shown(lost)),
            State::Connecting { after: None } | State::Connected(_) | State::Disconnected => None,
        };
        View {
            name: self.name.clone(),
            transport: self.config.transport(),
            status,
            tools: offered.tools.iter().map(|offer| offer.definition.name.to_string()).collect(),
            refused: offered.refused.clone(),
            error,
            stderr: self.tail.lines(),
            owner: self.owner,
        }
    }

    /// Waits for the end of the attempt that is on its way, if one is.
    pub(super) async fn attempted(&self) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.status() != Status::Connecting {
                return;
            }
            changed.await;
        }
    }

    /// The connection that comes after another one, once it is there; why there is none where it will not
    /// come by itself.
    pub(super) async fn renewed(&self, before: &Arc<Session>) -> Result<Arc<Session>, String> {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            match self.state.load().as_ref() {
                State::Connected(session) if !Arc::ptr_eq(session, before) => {
                    return Ok(Arc::clone(session));
                }
                State::Disconnected => return Err("it was disconnected".to_owned()),
                State::Connected(_) | State::Connecting { .. } | State::Failed(_) => {}
            }
            changed.await;
        }
    }

    /// Has the next attempt made now.
    pub(super) fn try_now(&self) {
        if self.status() == Status::Failed {
            self.is_hurried.store(true, Ordering::Release);
            self.hurry.notify_one();
        }
    }

    /// Why nothing came back: what went wrong on the way, or else that it hung up.
    pub(super) fn because(&self) -> Lost {
        self.trouble.swap(None).map_or(Lost::Closed, |trouble| Lost::clone(&trouble))
    }

    pub(super) fn ear(&self) -> Option<&Arc<dyn Ear>> {
        self.told.ear.as_ref()
    }

    pub(super) fn ask_to_stop(&self) {
        self.stop.cancel();
    }

    /// Ends the connection and waits until nothing of it is left.
    pub(super) async fn stop(&self) {
        self.stop.cancel();
        self.gone.cancelled().await;
    }

    /// It is connected, and offers this.
    pub(super) fn connected(&self, session: &Arc<Session>, offered: Offered) {
        self.offer(offered);
        self.set(State::Connected(Arc::clone(session)));
    }

    pub(super) fn offer(&self, offered: Offered) {
        if **self.offered.load() != offered {
            for refused in &offered.refused {
                tracing::warn!(server = self.name, "an MCP tool is not offered: {refused}");
            }
            self.offered.store(Arc::new(offered));
            self.told.generation.fetch_add(1, Ordering::AcqRel);
        }
    }

    fn set(&self, state: State) {
        self.is_hurried.store(false, Ordering::Release);
        let before = self.state.swap(Arc::new(state));
        // Whoever waits for an answer finds in the state why none comes.
        if let State::Connected(session) = before.as_ref() {
            session.ended.cancel();
        }
        self.changed.notify_waiters();
    }

    /// Why it is not there, for others.
    pub(super) fn shown(&self, lost: &Lost) -> String {
        let text = self.config.hide(&lost.to_string());
        text.chars().take(MCP_ERROR_CHARS_MAX).collect()
    }
}

/// Keeps a server connected until it is told to stop.
pub(super) async fn supervise(server: Arc<Server>, ground: Arc<Ground>) {
    let _gone = server.gone.clone().drop_guard();
    let mut failures = 0;
    let mut opening = Opening::Newest;
    while !server.stop.is_cancelled() {
        let after = match server.state.load().as_ref() {
            State::Failed(lost) => Some(lost.clone()),
            State::Connecting { after } => after.clone(),
            State::Connected(_) | State::Disconnected => None,
        };
        server.set(State::Connecting { after });
        let began = Instant::now();
        if let Some(ear) = server.ear() {
            ear.begins(&server.name, &server.config, server.origin);
        }
        let why = match &server.config {
            McpServer::Stdio { .. } => stdio::live(&server, &ground, opening).await,
            McpServer::Http { .. } => http::live(&server, &ground, opening).await,
        };
        if let Some(ear) = server.ear() {
            let end = match &why {
                Why::Stopped => End::Ours,
                Why::Lost(lost) => End::of(lost),
            };
            ear.ended(&server.name, end);
        }
        let Why::Lost(lost) = why else { break };
        let was_connected = matches!(server.state.load().as_ref(), State::Connected(_));
        tracing::warn!(server = server.name, "an MCP server is lost: {}", server.shown(&lost));
        let is_over = lost == Lost::SessionOver;
        let hung_up = matches!(lost, Lost::Closed | Lost::Ended(_));
        if hung_up && !was_connected && failures == 0 && opening == Opening::Newest {
            // It may only know the earlier way: that is a part of the first attempt.
            opening = Opening::Earlier;
            continue;
        }
        server.set(State::Failed(lost));
        if was_connected && began.elapsed() >= MCP_STEADY_AFTER {
            failures = 0;
        }
        opening = match (was_connected, opening) {
            (true, opening) => opening,
            (false, Opening::Newest) => Opening::Earlier,
            (false, Opening::Earlier) => Opening::Newest,
        };
        if is_over && was_connected && began.elapsed() >= MCP_RETRY_FIRST {
            // It is there and wants nothing but another session: nobody has to wait for that.
            continue;
        }
        let pause = pause(ground.chance.as_ref(), failures);
        failures += 1;
        tokio::select! {
            biased;
            () = server.stop.cancelled() => {}
            () = server.hurry.notified() => {}
            () = sleep(pause) => {}
        }
    }
    server.set(State::Disconnected);
    server.offer(Offered::default());
}

/// Longer with each failure, and never the same for two servers that fell together.
fn pause(chance: &dyn Chance, failures: u32) -> Duration {
    let longest = MCP_RETRY_FIRST.saturating_mul(1 << failures.min(16)).min(MCP_RETRY_MAX);
    longest.mul_f64(0.5 + chance.fraction(Use::Jitter) / 2.0)
}

fn ended(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("ended with code {code}"),
        Exit::Signal(signal) => format!("was ended by signal {signal}"),
    }
}

/// What has to be known about an address that may not be reached.
fn allowed(fault: HttpFault) -> &'static str {
    match fault {
        HttpFault::Forbidden => {
            ": private ones need `network.allow_private`, and those of cloud metadata never may"
        }
        HttpFault::Connect
        | HttpFault::Reset
        | HttpFault::Stale
        | HttpFault::Broken
        | HttpFault::Request => "",
    }
}

fn hint(status: u16) -> &'static str {
    match status {
        301..=303 => ": it has moved, and its `url` must say where to",
        401 | 403 => ": its `headers` must say who asks",
        404 | 405 => ": it may speak the older HTTP+SSE transport, which is not supported",
        _ => "",
    }
}
