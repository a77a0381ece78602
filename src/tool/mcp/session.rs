//! One conversation with a server, over whatever transport: begins it, lists the tools, lists them
//! again when they change, and tells calls how far they are.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ClientRequest, Implementation, ListToolsRequest,
    PaginatedRequestParams, ProgressNotificationParam, ProgressToken, ProtocolVersion,
    SubscriptionFilter,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, NotificationContext, RunningService, ServiceError,
    Subscription, serve_client_with_lifecycle,
};
use rmcp::transport::Transport;
use rmcp::{ClientHandler, Peer, RoleClient};
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::connection::{Lost, Opening, Server, Why};
use super::http;
use super::offered::{Listing, Offered, Page};
use super::watched::{Rate, Watch, Watched};
use crate::limits::{
    MCP_CLOSE_MAX, MCP_ERROR_CHARS_MAX, MCP_LIST_MAX, MCP_LISTS_PER_SECOND_MAX,
    MCP_PROGRESS_WAITING_MAX, MCP_RETRY_FIRST, MCP_RETRY_MAX, MCP_START_MAX, MCP_TOOL_PAGES_MAX,
};
use crate::world::HttpFault;

type Running = RunningService<RoleClient, Listener>;

/// A conversation that calls can be made in.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) peer: Peer<RoleClient>,
    /// Cancelled once there will be no answers any more.
    pub(super) ended: CancellationToken,
    pub(super) routes: Arc<Routes>,
    doubts: Doubts,
}

/// Where those say so who find that a conversation is no use any more.
pub(super) type Doubts = mpsc::Sender<Lost>;

impl Session {
    pub(super) fn doubt(&self, why: Lost) {
        // One that somebody doubts already is given up for the reason that was first.
        let _ = self.doubts.try_send(why);
    }
}

/// Where news of running calls go.
#[derive(Debug, Default)]
pub(super) struct Routes(ArcSwap<BTreeMap<String, mpsc::Sender<ProgressNotificationParam>>>);

/// Hears how far a call is, until it is dropped.
pub(super) struct Route {
    routes: Arc<Routes>,
    token: String,
    pub(super) heard: mpsc::Receiver<ProgressNotificationParam>,
}

impl Routes {
    pub(super) fn open(self: &Arc<Self>, token: &ProgressToken) -> Route {
        let (sender, heard) = mpsc::channel(MCP_PROGRESS_WAITING_MAX);
        let token = key(token);
        self.0.rcu(|routes| {
            let mut routes = BTreeMap::clone(routes);
            routes.insert(token.clone(), sender.clone());
            routes
        });
        Route { routes: Arc::clone(self), token, heard }
    }

    fn tell(&self, news: ProgressNotificationParam) {
        if let Some(route) = self.0.load().get(&key(&news.progress_token)) {
            // A server that tells more than is heard is not waited for.
            let _ = route.try_send(news);
        }
    }
}

impl Drop for Route {
    fn drop(&mut self) {
        self.routes.0.rcu(|routes| {
            let mut routes = BTreeMap::clone(routes);
            routes.remove(&self.token);
            routes
        });
    }
}

fn key(token: &ProgressToken) -> String {
    token.0.to_string()
}

/// Hears what a server says without being asked.
#[derive(Clone, Debug, Default)]
pub(super) struct Listener {
    /// Its tools may be others.
    pub(super) changed: Arc<Notify>,
    routes: Arc<Routes>,
}

impl ClientHandler for Listener {
    async fn on_progress(
        &self,
        news: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.routes.tell(news);
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    fn get_info(&self) -> ClientConfig {
        // It is told nothing that it could ask us for: agents give no answers to servers.
        let us = Implementation::new("nexus3", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), us)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }
}

/// What a conversation is made of besides its transport, which may have a part in it.
pub(super) struct Ears {
    pub(super) listener: Listener,
    pub(super) doubts: Doubts,
    doubted: mpsc::Receiver<Lost>,
}

impl Ears {
    pub(super) fn new() -> Self {
        let (doubts, doubted) = mpsc::channel(1);
        Self { listener: Listener::default(), doubts, doubted }
    }
}

/// Speaks with a server until it is lost or nobody wants it any more.
pub(super) async fn talk<T>(server: &Arc<Server>, transport: T, opening: Opening, ears: Ears) -> Why
where
    T: Transport<RoleClient> + 'static,
{
    let Ears { listener, doubts, mut doubted } = ears;
    let watch = Arc::new(Watch::default());
    let transport = Watched::new(transport, &watch, server);
    let opened = begin(server, listener.clone(), transport, opening);
    let begun = tokio::select! {
        biased;
        () = server.stop.cancelled() => return Why::Stopped,
        begun = timeout(MCP_START_MAX, opened) => begun,
    };
    let (mut running, offered) = match begun {
        Err(_) => return Why::Lost(Lost::Late),
        // Whoever ended it knows why.
        Ok(Err(lost)) => return Why::Lost(doubted.try_recv().unwrap_or(watch.because(lost))),
        Ok(Ok(begun)) => begun,
    };
    let session = Session {
        peer: running.peer().clone(),
        ended: CancellationToken::new(),
        routes: Arc::clone(&listener.routes),
        doubts,
    };
    server.connected(&Arc::new(session), offered);
    let mut news = News::of(&running);
    let mut lists = Rate::of(MCP_LISTS_PER_SECOND_MAX);
    let why = loop {
        tokio::select! {
            biased;
            () = server.stop.cancelled() => break Why::Stopped,
            () = watch.over.cancelled() => break Why::Lost(watch.because(Lost::Closed)),
            Some(lost) = doubted.recv() => break Why::Lost(lost),
            () = listener.changed.notified() => {}
            () = news.next(running.peer()) => {}
        }
        let pause = lists.pause();
        let listing = async {
            if let Some(pause) = pause {
                sleep_until(pause).await;
            }
            timeout(MCP_LIST_MAX, list(server, running.peer())).await
        };
        let listed = tokio::select! {
            biased;
            () = server.stop.cancelled() => break Why::Stopped,
            listed = listing => listed,
        };
        match listed {
            Ok(Ok(offered)) => server.offer(offered),
            Ok(Err(lost @ (Lost::SessionOver | Lost::Unreachable(HttpFault::Connect)))) => {
                break Why::Lost(lost);
            }
            // It has what it had: a server that is really lost shows that otherwise.
            Ok(Err(_)) | Err(_) => {
                tracing::warn!(
                    server = server.name,
                    "the MCP server does not list its tools again"
                );
            }
        }
    };
    // What it does not finish in this time ends with its transport.
    let _ = running.close_with_timeout(MCP_CLOSE_MAX).await;
    why
}

async fn begin<T>(
    server: &Server,
    listener: Listener,
    transport: Watched<T>,
    opening: Opening,
) -> Result<(Running, Offered), Lost>
where
    T: Transport<RoleClient> + 'static,
{
    let lifecycle = match opening {
        Opening::Earlier => ClientLifecycleMode::Initialize,
        Opening::Newest => ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::LATEST],
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        },
    };
    let running = serve_client_with_lifecycle(listener, transport, lifecycle).await;
    let running = running.map_err(|error| unspoken(server, &error))?;
    let offered = list(server, running.peer()).await?;
    Ok((running, offered))
}

/// All tools, page by page. Asked for by itself: the library would keep lists by a clock of its own.
async fn list(server: &Server, peer: &Peer<RoleClient>) -> Result<Offered, Lost> {
    let offers_tools = peer.peer_info().is_none_or(|info| info.capabilities.tools.is_some());
    if !offers_tools {
        return Ok(Offered::default());
    }
    let mut listing = Listing::new(&server.name, &server.config);
    let mut cursor = None;
    for _ in 0..MCP_TOOL_PAGES_MAX {
        let params = PaginatedRequestParams::default().with_cursor(cursor.clone());
        let request = ListToolsRequest::with_param(params);
        let answer = peer.send_request(ClientRequest::ListToolsRequest(request)).await;
        let page = match answer {
            Ok(answer) => Page::of(answer)
                .ok_or_else(|| Lost::Unspoken { said: "no list of tools".to_owned() })?,
            Err(ServiceError::McpError(error)) => {
                return Err(Lost::Unspoken { said: said(server, &error.message) });
            }
            Err(ServiceError::TransportSend(error)) => {
                return Err(http::trouble(&*error.error).unwrap_or_else(|| server.because()));
            }
            Err(_) => return Err(server.because()),
        };
        listing.add(&page);
        // Some say with an empty one that there is no more.
        let next = page.next.filter(|next| !next.is_empty());
        if next.is_none() || listing.is_full() {
            return Ok(listing.end());
        }
        if next == cursor {
            break;
        }
        cursor = next;
    }
    listing.break_off();
    Ok(listing.end())
}

/// News of a server that tells them only to those who ask for them, as the current revision has it. It is
/// asked again when it stops telling, later and later.
struct News {
    is_wanted: bool,
    open: Option<Subscription>,
    /// When it is asked again.
    at: Instant,
    failures: u32,
}

impl News {
    fn of(running: &Running) -> Self {
        let is_wanted = running.peer().peer_info().is_some_and(|info| {
            let tools = info.capabilities.tools.as_ref();
            let tells = tools.is_some_and(|tools| tools.list_changed == Some(true));
            tells && !info.protocol_version.has_initialize()
        });
        Self { is_wanted, open: None, at: Instant::now(), failures: 0 }
    }

    /// Returns when the tools may be others: at the next news, and when some may have been missed. May be
    /// dropped and called again.
    async fn next(&mut self, peer: &Peer<RoleClient>) {
        while self.is_wanted {
            if let Some(subscription) = &mut self.open {
                if matches!(subscription.next().await, Ok(Some(_))) {
                    self.failures = 0;
                    return;
                }
                self.open = None;
                self.later();
            }
            sleep_until(self.at).await;
            let filter = SubscriptionFilter::builder().tools_list_changed().build();
            match timeout(MCP_LIST_MAX, peer.listen(filter)).await {
                Ok(Ok(subscription)) => {
                    self.open = Some(subscription);
                    return;
                }
                // It says that it tells them, and does not.
                Ok(Err(ServiceError::McpError(_))) => self.is_wanted = false,
                Ok(Err(_)) | Err(_) => self.later(),
            }
        }
        std::future::pending::<()>().await;
    }

    fn later(&mut self) {
        let pause = MCP_RETRY_FIRST.saturating_mul(1 << self.failures.min(16)).min(MCP_RETRY_MAX);
        self.at = Instant::now() + pause;
        self.failures += 1;
    }
}

fn unspoken(server: &Server, error: &ClientInitializeError) -> Lost {
    let told = match error {
        ClientInitializeError::ConnectionClosed(_)
        | ClientInitializeError::TransportError { .. } => return server.because(),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => {
            return unspoken(server, fallback);
        }
        ClientInitializeError::JsonRpcError(error) => said(server, &error.message),
        ClientInitializeError::NoCompatibleProtocolVersion { .. } => {
            "it knows no revision that we know".to_owned()
        }
        // The library may know more of these some day.
        _ => "its first answer is none".to_owned(),
    };
    Lost::Unspoken { said: told }
}

/// What a server says, in our words.
fn said(server: &Server, words: &str) -> String {
    quoted(&server.config.hide(words))
}

/// Somebody else's words in ours: on one line, and not many.
pub(super) fn quoted(words: &str) -> String {
    let line: String = words.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(MCP_ERROR_CHARS_MAX).collect()
}
