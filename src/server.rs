//! One server from start to stop: home, models, pool, port, token; then requests until it is asked
//! to end. The same for the real machine and for a simulated one.

use std::error::Error;
use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::activity::Activity;
use crate::config::Config;
use crate::event::Audience;
use crate::home::{self, Home, HomeError};
use crate::http::{self, Auth, Service};
use crate::hub::Hub;
use crate::limits::HANDLES_RESERVED;
use crate::logs::{Detail, Logs};
use crate::policy::PolicyError;
use crate::policy::budget::KeptBudget;
use crate::policy::ceiling::Yolo;
use crate::pool::{Ground, Pool, Records};
use crate::provider::{ModelError, Models, Watchers};
use crate::record::{Prepared, RecordError, Recorder, Setting};
use crate::rpc::Rpc;
use crate::store::{Closed, Opened, StoreError};
use crate::world::{Listener, World};

/// What a server is started with.
#[derive(Clone, Debug)]
pub struct Settings {
    pub config: Config,
    /// Our own directory, absolute.
    pub home: PathBuf,
    pub access: Access,
    pub yolo: Yolo,
    pub resume: Resume,
    pub logs: LogSettings,
    /// Where what happens is written as a scenario; an absolute path.
    pub record: Option<PathBuf>,
}

/// When agents come back that are only on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resume {
    /// With the first request to each.
    WhenAsked,
    /// All of them at the start.
    AtStart,
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
    Store(#[from] StoreError),
    #[error(transparent)]
    Models(#[from] ModelError),
    #[error(transparent)]
    Presets(#[from] PolicyError),
    #[error(transparent)]
    Record(#[from] RecordError),
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

/// Returns once nobody has used the server for so long; never where no time is given.
async fn idle(activity: &Activity, time: Option<Duration>) {
    let Some(time) = time else { return pending().await };
    activity.idle_for(time).await;
    tracing::info!("nobody has used the server for {} seconds", time.as_secs_f64());
}

/// The blocked paths as they were written and, since decisions are about resolved paths, as what
/// they lead to.
fn blocked(world: &World, config: &Config) -> Vec<PathBuf> {
    let written = &config.permissions.blocked_paths;
    let resolved = written.iter().filter_map(|path| world.fs.canonical(path).ok());
    written.iter().cloned().chain(resolved).collect()
}

/// Where agents live.
fn ground(world: &World, home: &Home, config: &Config, yolo: Yolo) -> Result<Ground, RunError> {
    let cwd = world.environment.current_dir().and_then(|cwd| world.fs.canonical(&cwd));
    Ok(Ground {
        home: world.fs.canonical(home.path()).unwrap_or_else(|_| home.path().to_owned()),
        cwd: cwd.map_err(|source| RunError::WorkingDirectory { source })?,
        blocked_paths: blocked(world, config),
        yolo,
    })
}

/// The world with a recorder that looks on, where one is wanted.
fn watched(
    world: World,
    record: Option<PathBuf>,
    home: &Path,
    logs: &Path,
) -> (World, Option<Prepared>) {
    let Some(path) = record else { return (world, None) };
    let prepared = Recorder::prepare(&world, path);
    (prepared.recorder.watch(world, home, logs), Some(prepared))
}

/// Has a recorder keep what the agents of an earlier server are when this one begins.
async fn keep_earlier(recorder: &Recorder, pool: &Pool, budgets: &[KeptBudget]) {
    let left = pool.followed_last().await;
    for (number, id) in pool.dormant().into_iter().chain(left) {
        let mut earlier = pool.dormant_agent(number, &id).await;
        if let Some(earlier) = &mut earlier {
            earlier.budget = budgets.iter().find(|budget| budget.agent == number).cloned();
        }
        recorder.earlier(&id, earlier);
    }
}

/// The flags of `serve` that a scenario needs to start the same server.
fn flags(settings: &Settings) -> Vec<&'static str> {
    let yolo = (settings.yolo == Yolo::Allowed).then_some("--allow-yolo");
    let access = (settings.access == Access::Everybody).then_some("--no-auth");
    let resume = (settings.resume == Resume::AtStart).then_some("--resume");
    yolo.into_iter().chain(access).chain(resume).collect()
}

/// Says what was found of the last server, and has a recorder hear all from here on. Returns what its
/// agents may use.
fn begin(records: &mut Records, recorder: Option<&Recorder>) -> Vec<KeptBudget> {
    tell(&records.opened);
    if let Some(recorder) = recorder {
        records.ear = Some(recorder.mcp_ear());
        recorder.begins(records.opened.last_seq);
    }
    records.opened.budgets.clone()
}

/// Says what was found of the last server.
fn tell(opened: &Opened) {
    if let Some(path) = &opened.set_aside {
        tracing::error!(
            "the database was damaged: it is now {}, and a new one was made",
            path.display()
        );
    }
    if opened.closed != Closed::default() {
        tracing::info!("closed what the last server left open: {}", opened.closed);
    }
}

/// A server that has its port and has written its token, but answers nobody yet.
pub struct Server {
    world: World,
    home: Home,
    pool: Arc<Pool>,
    logs: Logs,
    recorder: Option<Recorder>,
    service: Arc<Service>,
    listener: Box<dyn Listener>,
    address: SocketAddr,
    token: Option<(SecretString, PathBuf)>,
    notice: Option<String>,
    connections_max: usize,
    grace: Duration,
    idle_timeout: Option<Duration>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Server {
    /// Prepares everything; what is wrong with the settings or the machine is told here.
    pub async fn bind(world: World, settings: Settings) -> Result<Self, RunError> {
        let flags = flags(&settings);
        let Settings { config, home, access, yolo, resume, logs, record } = settings;
        let home = Home::open(world.fs.as_ref(), &home)?;
        let (world, prepared) = watched(world, record, home.path(), &logs.dir);
        let recorder = prepared.as_ref().map(|prepared| prepared.recorder.clone());
        let logs = Logs::start(&world, logs.dir, logs.detail);
        let ear = recorder.as_ref().map(Recorder::ear);
        let models = Models::watched(&world, &config, Watchers { traffic: logs.traffic(), ear })?;
        let notice = models.notice().map(str::to_owned);
        let ground = ground(&world, &home, &config, yolo)?;
        let secrets = models.secrets().clone();
        let setting = Setting::of(flags, &config, &models, (home.path(), &ground.cwd));
        let events = recorder.clone().map(|recorder| Arc::new(recorder) as Arc<dyn Audience>);
        let mut records =
            Records::open_before(&world, home.path(), &config, logs.clone(), events).await?;
        let budgets = begin(&mut records, recorder.as_ref());
        let pool = Pool::new(world.clone(), &config, models, ground, records)?;
        pool.tidy_sessions();
        if let Some(recorder) = &recorder {
            keep_earlier(recorder, &pool, &budgets).await;
        }
        if resume == Resume::AtStart {
            for (id, error) in pool.restore_all().await {
                tracing::warn!(agent = %id, error = &error as &dyn Error, "cannot be resumed");
            }
        }
        let wanted = SocketAddr::new(config.server.host, config.server.port);
        let bind = |source| RunError::Bind { address: wanted, source };
        let listener = world.net.bind(wanted).await.map_err(bind)?;
        let address = listener.local_addr().map_err(bind)?;
        // From here on nothing but the disk keeps it from starting.
        let token = match access {
            Access::Everybody => None,
            Access::TokenHolders => Some(home::new_token(world.chance.as_ref())),
        };
        if let Some(prepared) = prepared {
            prepared.begin(setting, &secrets.and(token.clone()))?;
        }
        home.sign(world.environment.process_id(), address.port())?;
        let token = match token {
            None => None,
            Some(token) => {
                let path = home.write_token(&world, address.port(), &token)?;
                Some((token, path))
            }
        };
        let rpc =
            Rpc::new(Arc::clone(&pool), Arc::clone(&world.chance), config.server.max_concurrent);
        let rpc = rpc.recorded_by(recorder.clone());
        let auth = token.as_ref().map_or(Auth::Off, |(token, _)| Auth::Token(token.clone()));
        let (hub, journal) = (Arc::clone(pool.hub()), Arc::new(pool.store().clone()));
        let activity = Arc::clone(pool.activity());
        let service = Service { rpc, auth, hub, activity, journal };
        let allowed = world.net.handles_max().saturating_sub(HANDLES_RESERVED).max(1);
        Ok(Self {
            home,
            pool,
            logs,
            recorder,
            service: Arc::new(service),
            listener,
            address,
            token,
            notice,
            connections_max: config.server.max_connections.min(allowed),
            grace: Duration::from_secs_f64(config.server.shutdown_grace),
            idle_timeout: config.server.idle_timeout.map(Duration::from_secs_f64),
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
        self.pool.hub()
    }

    /// What the operator should know about the models of this server.
    pub fn notice(&self) -> Option<&str> {
        self.notice.as_deref()
    }

    /// Answers until a signal or a caller asks for the end, or nobody is there; then everybody gets
    /// their answer.
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
            () = signals.stop() => self.recorder.iter().for_each(Recorder::stops),
            () = idle(self.pool.activity(), self.idle_timeout) => {}
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
        self.pool.finish_failed_renames().await;
        self.pool.wind_down(grace).await;
        self.pool.finish_exports().await;
        // Every stream has its last event before its connection is asked to end.
        self.pool.hub().stop();
        close.cancel();
        if !serving.is_finished() && serving.await.is_err() {
            tracing::error!("the accept loop died");
        }
        self.pool.store().close().await;
        self.logs.close().await;
        if let Some(recorder) = &self.recorder {
            recorder.close().await;
        }
        if self.token.is_some()
            && let Err(error) = self.home.remove_token(self.address.port())
        {
            tracing::warn!(%error, "the token file stays behind");
        }
        tracing::info!("stopped");
    }
}
