//! A server inside the command, for those that need one and find none. Nobody else can reach it.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::connection::{Connection, Flags};
use super::serve::Person;
use super::{Failed, config, serve};
use crate::client::{Detection, InProcess, NexusClient};
use crate::config::Flag;
use crate::home::Home;
use crate::policy::ceiling::Yolo;
use crate::server::{Access, LogSettings, Resume, Server, Settings};
use crate::world::{BoxFuture, Signals, World};

/// How long it may take to stop.
const STOP_MAX: Duration = Duration::from_secs(15);

/// Does something on the server that runs, or else on one inside this command.
pub async fn anywhere<T>(
    world: &World,
    flags: &Flags,
    work: impl AsyncFnOnce(&Connection) -> Result<T, Failed>,
) -> Result<T, Failed> {
    let connection = flags.connect(world)?;
    match connection.client.detect().await {
        Detection::NoServer => {
            let inside = Inside::start(world, &connection).await?;
            let done = work(&inside.connection).await;
            inside.stop().await;
            done
        }
        // Whatever is wrong with it shows with the first call.
        Detection::NexusServer
        | Detection::OtherService
        | Detection::Timeout
        | Detection::Error => work(&connection).await,
    }
}

/// A server on the port that was asked for, which ends with this program. Others can use it meanwhile.
pub struct Open {
    pub connection: Connection,
    serving: JoinHandle<()>,
}

impl Open {
    pub async fn start(world: &World, wanted: &Connection) -> Result<Self, Failed> {
        let home = wanted.home.clone();
        Home::prepare(world.fs.as_ref(), &home)?;
        let port = Flag {
            name: "--port",
            keys: &["server", "port"],
            value: wanted.client.address().port().to_string(),
        };
        let loaded = config::load(world, &home, None, vec![port])?;
        config::tell(&loaded.notices);
        let logs = LogSettings::in_home(&home);
        serve::log(&logs.dir, loaded.config.server.log_level, Person::Elsewhere)?;
        let settings = Settings {
            config: loaded.config,
            logs,
            home,
            access: Access::TokenHolders,
            yolo: Yolo::Allowed,
            resume: Resume::WhenAsked,
            record: None,
        };
        let theirs = World { signals: Arc::new(Unheard), ..world.clone() };
        let server = Server::bind(theirs, settings).await?;
        let serving = tokio::spawn(server.run());
        Ok(Self { connection: wanted.again()?, serving })
    }

    /// Returns once the server has stopped, because somebody asked it to.
    pub async fn stopped(&mut self) {
        // One that panicked has told so.
        let _ = (&mut self.serving).await;
    }

    /// Lets it close what it has open.
    pub async fn stop(mut self) {
        let asked = self.connection.client.shutdown_server().await;
        if asked.is_ok() {
            let _ = timeout(STOP_MAX, self.stopped()).await;
        }
    }
}

struct Inside {
    connection: Connection,
    serving: JoinHandle<()>,
}

impl Inside {
    async fn start(world: &World, wanted: &Connection) -> Result<Self, Failed> {
        let home = wanted.home.clone();
        Home::prepare(world.fs.as_ref(), &home)?;
        let loaded = config::load(world, &home, None, Vec::new())?;
        config::tell(&loaded.notices);
        let net = Arc::new(InProcess::new());
        // The interrupts are for us, and nobody else can reach it, so nobody needs a token.
        let theirs = World { net: net.clone(), signals: Arc::new(Unheard), ..world.clone() };
        let settings = Settings {
            config: loaded.config,
            logs: LogSettings::in_home(&home),
            home,
            access: Access::Everybody,
            yolo: Yolo::Refused,
            resume: Resume::WhenAsked,
            record: None,
        };
        let server = Server::bind(theirs, settings).await?;
        let client = NexusClient::new(net, server.address(), None);
        let client = client.drawing_from(Arc::clone(&world.chance)).named("cli");
        let serving = tokio::spawn(server.run());
        Ok(Self { connection: wanted.with(client), serving })
    }

    /// Lets it close what it has open.
    async fn stop(self) {
        let asked = self.connection.client.shutdown_server().await;
        if asked.is_ok() {
            // A server that panicked has told so.
            let _ = timeout(STOP_MAX, self.serving).await;
        }
    }
}

/// Signals that never come.
pub struct Unheard;

impl Signals for Unheard {
    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}
