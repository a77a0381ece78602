//! One server from start to stop: home, models, pool, port, token; then requests until it is asked
//! to end. The same for the real machine and for a simulated one.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::event::Seq;
use crate::home::{self, Home, HomeError};
use crate::http::{self, Auth, Service};
use crate::hub::{Hub, Journal, JournalError, Page, Scope};
use crate::limits::HANDLES_RESERVED;
use crate::logs::{Detail, Logs};
use crate::policy::PolicyError;
use crate::policy::ceiling::Yolo;
use crate::pool::{Ground, Pool};
use crate::provider::{ModelError, Models};
use crate::rpc::Rpc;
use crate::world::{BoxFuture, Listener, World};

/// What a server is started with.
#[derive(Clone, Debug)]
pub struct Settings {
    pub config: Config,
    /// Our own directory, absolute.
    pub home: PathBuf,
    pub access: Access,
    pub yolo: Yolo,
    pub logs: LogSettings,
}

/// Where the agents' logs go, and what is in them.
#[derive(Clone, Debug)]
pub struct LogSettings {
    /// Absolute.
    pub dir: PathBuf,
    pub detail: Detail,
}

impl LogSettings {
    /// Transcripts only, in their usual place.
    pub fn in_home(home: &Path) -> Self {
        Self { dir: home.join("logs"), detail: Detail::default() }
    }
}

/// Who may call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    TokenHolders,
    /// Everybody on this machine; for tests.
    Everybody,
}

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Home(#[from] HomeError),
    #[error(transparent)]
    Models(#[from] ModelError),
    #[error(transparent)]
    Presets(#[from] PolicyError),
    #[error("cannot tell the working directory")]
    WorkingDirectory {
        #[source]
        source: io::Error,
    },
    #[error("cannot listen on {address}")]
    Bind {
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
}

/// The blocked paths as they were written and, since decisions are about resolved paths, as what
/// they lead to.
fn blocked(world: &World, config: &Config) -> Vec<PathBuf> {
    let written = &config.permissions.blocked_paths;
    let resolved = written.iter().filter_map(|path| world.fs.canonical(path).ok());
    written.iter().cloned().chain(resolved).collect()
}

/// The journal of a server without storage: the store takes its place once there is one.
struct NothingKept;

impl Journal for NothingKept {
    fn page<'a>(&'a self, _: &'a Scope, _: Seq) -> BoxFuture<'a, Result<Page, JournalError>> {
        Box::pin(async { Ok(Page::default()) })
    }

    fn last_seq(&self) -> Seq {
        0
    }
}

/// A server that has its port and has written its token, but answers nobody yet.
pub struct Server {
    world: World,
    home: Home,
    pool: Arc<Pool>,
    logs: Logs,
    hub: Arc<Hub>,
    service: Arc<Service>,
    listener: Box<dyn Listener>,
    address: SocketAddr,
    token: Option<(SecretString, PathBuf)>,
    notice: Option<String>,
    connections_max: usize,
    grace: Duration,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Server {
    /// Prepares everything; what is wrong with the settings or the machine is told here.
    pub async fn bind(world: World, settings: Settings) -> Result<Self, RunError> {
        let Settings { config, home, access, yolo, logs } = settings;
        let home = Home::open(world.fs.as_ref(), &home)?;
        let logs = Logs::start(&world, logs.dir, logs.detail);
        let models = Models::new(&world, &config, logs.traffic())?;
        let notice = models.notice().map(str::to_owned);
        let cwd = world.environment.current_dir().and_then(|cwd| world.fs.canonical(&cwd));
        let ground = Ground {
            home: world.fs.canonical(home.path()).unwrap_or_else(|_| home.path().to_owned()),
            cwd: cwd.map_err(|source| RunError::WorkingDirectory { source })?,
            blocked_paths: blocked(&world, &config),
            yolo,
        };
        let pool = Arc::new(Pool::new(world.clone(), &config, models, ground, logs.clone())?);
        let wanted = SocketAddr::new(config.server.host, config.server.port);
        let bind = |source| RunError::Bind { address: wanted, source };
        let listener = world.net.bind(wanted).await.map_err(bind)?;
        let address = listener.local_addr().map_err(bind)?;
        home.sign(world.environment.process_id(), address.port())?;
        let token = match access {
            Access::Everybody => None,
            Access::TokenHolders => {
                let token = home::new_token(world.chance.as_ref());
                let path = home.write_token(&world, address.port(), &token)?;
                Some((token, path))
            }
        };
        let rpc = Rpc::new(
            Arc::clone(&pool),
            Arc::clone(&world.chance),
            config.server.max_concurrent,
            Duration::from_secs_f64(config.turn_timeout),
        );
        let hub = Hub::new(Arc::clone(&world.clock));
        let auth = token.as_ref().map_or(Auth::Off, |(token, _)| Auth::Token(token.clone()));
        let allowed = world.net.handles_max().saturating_sub(HANDLES_RESERVED).max(1);
        Ok(Self {
            home,
            pool,
            logs,
            service: Arc::new(Service {
                rpc,
                auth,
                hub: Arc::clone(&hub),
                journal: Arc::new(NothingKept),
            }),
            hub,
            listener,
            address,
            token,
            notice,
            connections_max: config.server.max_connections.min(allowed),
            grace: Duration::from_secs_f64(config.server.shutdown_grace),
            world,
        })
    }

    /// Where it listens, with the port the machine chose.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The token callers must show; `None` where everybody may call.
    pub fn token(&self) -> Option<&SecretString> {
        self.token.as_ref().map(|(token, _)| token)
    }

    pub fn token_path(&self) -> Option<&Path> {
        self.token.as_ref().map(|(_, path)| path.as_path())
    }

    /// Where events of this server are told.
    pub fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    /// What the operator should know about the models of this server.
    pub fn notice(&self) -> Option<&str> {
        self.notice.as_deref()
    }

    /// Answers until a signal or a caller asks for the end; then everybody gets their answer.
    pub async fn run(self) {
        let (version, pid) = (env!("CARGO_PKG_VERSION"), self.world.environment.process_id());
        tracing::info!(version, pid, address = %self.address, "listening");
        let close = CancellationToken::new();
        let serving = http::serve(self.listener, self.service, self.connections_max, close.clone());
        let serving = tokio::spawn(serving);
        let signals = &self.world.signals;
        let mut serving = serving;
        tokio::select! {
            biased;
            () = self.pool.stop_requested() => {}
            () = signals.stop() => {}
            // Nobody can reach a server without its accept loop.
            _ = &mut serving => {}
        }
        tracing::info!("stopping: running turns have {} seconds to end", self.grace.as_secs_f64());
        let grace = async {
            tokio::select! {
                // Whoever signals again does not want to wait.
                biased;
                () = signals.stop() => {}
                () = sleep(self.grace) => {}
            }
        };
        self.pool.wind_down(grace).await;
        // Every stream has its last event before its connection is asked to end.
        self.hub.stop();
        close.cancel();
        if !serving.is_finished() && serving.await.is_err() {
            tracing::error!("the accept loop died");
        }
        self.logs.close().await;
        if self.token.is_some()
            && let Err(error) = self.home.remove_token(self.address.port())
        {
            tracing::warn!(%error, "the token file stays behind");
        }
        tracing::info!("stopped");
    }
}
