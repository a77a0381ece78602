//! A server of its own for every test: the real machine, a port the machine chose, a home that is
//! thrown away. Its stop signal is the test's, so that tests in one process do not stop each other.

#[path = "../private_home/home.rs"]
mod home;

use std::net::SocketAddr;
use std::sync::Arc;

use nexus3::config::Config;
use nexus3::hub::{Hub, Scope, SubscribeError};
use nexus3::policy::ceiling::Yolo;
use nexus3::server::{Access, LogSettings, Resume, Server, Settings};
use nexus3::world::{BoxFuture, Signals, World, real};
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::client::{Client, Request};

pub struct Running {
    pub address: SocketAddr,
    pub token: String,
    pub hub: Arc<Hub>,
    world: World,
    stop: Arc<StopSignal>,
    serving: JoinHandle<()>,
    _home: TempDir,
}

/// Starts a server after `change` has had its way with the machine and the configuration.
pub async fn start_with(change: impl FnOnce(&mut World, &mut Config)) -> Running {
    let mut world = real::world().expect("the machine opens");
    let stop = Arc::new(StopSignal(Notify::new()));
    world.signals = Arc::clone(&stop) as Arc<dyn Signals>;
    let mut config = Config::default();
    config.server.port = 0;
    change(&mut world, &mut config);
    let home = home::private_home();
    let settings = Settings {
        config,
        home: home.path().join("home"),
        access: Access::TokenHolders,
        yolo: Yolo::Refused,
        resume: Resume::WhenAsked,
        logs: LogSettings::in_home(&home.path().join("home")),
        record: None,
    };
    let server = Server::bind(world.clone(), settings).await.expect("the server starts");
    let token = server.token().expect("it has a token").expose_secret().to_owned();
    let address = server.address();
    let hub = Arc::clone(server.hub());
    let serving = tokio::spawn(server.run());
    Running { address, token, hub, world, stop, serving, _home: home }
}

impl Running {
    pub async fn connect(&self) -> Client {
        let stream = self.world.net.connect(self.address).await.expect("the server listens");
        Client::over(stream)
    }

    /// A request that breaks no rule yet.
    pub fn request(&self, method: &str, path: &str) -> Request {
        Request::new(method, path)
            .header("Host", "localhost")
            .header("Authorization", format!("Bearer {}", self.token))
    }

    pub fn post(&self, path: &str, body: impl Into<Vec<u8>>) -> Request {
        self.request("POST", path).body(body)
    }

    /// Calls a method on a connection of its own; returns the whole JSON answer.
    pub async fn call(&self, path: &str, method: &str, params: Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let answer = self.connect().await.exchange(&self.post(path, body.to_string())).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    /// Asks the server to stop, as a signal would, and waits until it has.
    pub async fn stop(self) {
        self.stop.0.notify_one();
        self.serving.await.expect("the server ends without a panic");
        let room = self.hub.has_room(&Scope::Everything);
        assert_eq!(room, Err(SubscribeError::Stopping), "a stopped server opens no stream");
    }
}

struct StopSignal(Notify);

impl Signals for StopSignal {
    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.0.notified())
    }
}
