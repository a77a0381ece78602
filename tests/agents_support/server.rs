//! A whole server inside a test: the real machine, a home and a port of its own.

#[path = "../private_home/home.rs"]
mod home;

use std::net::SocketAddr;
use std::path::PathBuf;

use nexus3::client::NexusClient;
use nexus3::config::Config;
use nexus3::policy::ceiling::Yolo;
use nexus3::server::{Access, LogSettings, Resume, Server, Settings};
use nexus3::world::World;
use tempfile::TempDir;
use tokio::task::JoinHandle;

pub struct Running {
    /// With all rights; it calls itself `test`.
    pub client: NexusClient,
    pub address: SocketAddr,
    pub home: TempDir,
    pub token_path: PathBuf,
    serving: JoinHandle<()>,
}

impl Running {
    /// Starts on a free port. `world` may be the machine with some of its seams watched.
    pub async fn start(world: World, config: Config, yolo: Yolo) -> Self {
        Self::start_in(home::private_home(), world, config, yolo).await
    }

    pub async fn start_in(home: TempDir, world: World, config: Config, yolo: Yolo) -> Self {
        let settings = settings(&home, config, yolo);
        let server = Server::bind(world.clone(), settings).await.expect("the server starts");
        let address = server.address();
        let client = NexusClient::on(&world, address, server.token().cloned());
        let token_path = server.token_path().expect("there is a token").to_owned();
        let serving = tokio::spawn(server.run());
        Self { client: client.named("test"), address, home, token_path, serving }
    }

    /// Waits for its end; gives its home back, which lives on.
    pub async fn stopped(self) -> TempDir {
        self.serving.await.expect("the server ends in order");
        self.home
    }
}

pub fn settings(home: &TempDir, mut config: Config, yolo: Yolo) -> Settings {
    config.server.port = 0;
    let home = home.path().to_owned();
    let logs = LogSettings::in_home(&home);
    let (access, resume) = (Access::TokenHolders, Resume::WhenAsked);
    Settings { config, home, access, yolo, resume, logs, record: None }
}
