//! The program, recording, in a project and a home of its own, with a model that answers from a script.

use std::fs::Permissions;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;

use nexus3::client::{EventStream, NexusClient, find_token};
use nexus3::event::{Event, What};
use nexus3::id::AgentId;
use nexus3::provider::script::Script;
use nexus3::rpc::method::CreateAgentParams;
use nexus3::world::{World, real};
use nexus3_sim::model::{Asked, ModelHost, Observer, Received, Scripted};
use nexus3_sim::scenario::{FileSpec, Scenario};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::home::private_home;

/// A key of the provider, which must be nowhere.
pub const KEY: &str = "sk-canary-7c1f0d5e2b";

pub struct Live {
    child: Child,
    pub client: NexusClient,
    pub address: SocketAddr,
    pub place: TempDir,
    pub home: TempDir,
    recording: PathBuf,
}

struct Unheard;

impl Observer for Unheard {
    fn asked(&self, _: &Asked, _: &Received<'_>) {}
}

/// A host for the model of a scenario, and the configuration that leads to it, with a key.
async fn model(scenario: &Scenario, world: &World) -> serde_json::Value {
    let script = Script::new(scenario.models.clone()).unwrap();
    let script = Arc::new(Scripted::new(script, scenario.aliases()));
    let address = SocketAddr::from(([127, 0, 0, 1], 0));
    let host =
        ModelHost::bind(world.net.as_ref(), address, script, Arc::new(Unheard)).await.unwrap();
    let url = format!("http://{}", host.local_addr().unwrap());
    tokio::spawn(host.run());
    let mut config = scenario.config_json(&url);
    let provider = config["providers"]["sim"].as_object_mut().unwrap();
    provider.remove("auth_method");
    provider.insert("api_key_env".to_owned(), "TEAM_KEY".into());
    config
}

/// The program with nothing of this environment.
pub fn serve(home: &TempDir, place: &TempDir, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nexus3"));
    command.env_clear().env("NEXUS3_HOME", home.path()).env("TEAM_KEY", KEY);
    command.env("PATH", "/usr/bin:/bin").current_dir(place.path());
    command.args(["serve", "--port", "0"]).args(arguments);
    command.stdin(Stdio::null());
    command
}

impl Live {
    /// Starts it in a project with the files of the scenario.
    pub async fn start(text: &str) -> Self {
        Self::start_as("", &[], text).await
    }

    /// The same, in a directory of the project.
    pub async fn start_in(folder: &str, text: &str) -> Self {
        Self::start_as(folder, &[], text).await
    }

    /// The same, with arguments.
    pub async fn start_with(arguments: &[&str], text: &str) -> Self {
        Self::start_as("", arguments, text).await
    }

    async fn start_as(folder: &str, arguments: &[&str], text: &str) -> Self {
        let scenario = Scenario::parse("team.toml", text).unwrap();
        let world = real::world().unwrap();
        let (home, place) = (private_home(), private_home());
        let config = model(&scenario, &world).await;
        std::fs::write(home.path().join("config.json"), config.to_string()).unwrap();
        for (path, file) in &scenario.files {
            let inside = path.strip_prefix("/project").unwrap();
            let path = place.path().join(inside);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, file.content().unwrap()).unwrap();
            let (FileSpec::Text { mode, .. } | FileSpec::Bytes { mode, .. }) = file else {
                continue;
            };
            if let Some(mode) = mode {
                std::fs::set_permissions(&path, Permissions::from_mode(*mode)).unwrap();
            }
        }
        Self::begin(&world, home, place, folder, arguments)
    }

    /// Starts it in a home and a project that are there.
    fn begin(
        world: &World,
        home: TempDir,
        place: TempDir,
        folder: &str,
        arguments: &[&str],
    ) -> Self {
        let names = ["recording.toml", "again.toml"].map(|name| home.path().join(name));
        let recording = names.into_iter().find(|path| !path.exists()).unwrap();
        let arguments = [&["--record", recording.to_str().unwrap()], arguments].concat();
        let mut command = serve(&home, &place, &arguments);
        command.current_dir(place.path().join(folder));
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut lines = String::new();
        // What it says of the server before comes first.
        let port = loop {
            assert!(said.read_line(&mut lines).unwrap() > 0, "it does not listen: {lines}");
            let port = lines.trim_end().rsplit_once(':').and_then(|(_, port)| port.parse().ok());
            if let Some(port) = port {
                break port;
            }
        };
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let token = find_token(world, home.path(), port, None).unwrap();
        let client = NexusClient::on(world, address, token).named("alice");
        Self { child, client, address, place, home, recording }
    }

    /// Stops it and starts it again where it was, with another recording.
    pub fn restart(mut self, arguments: &[&str]) -> Self {
        self.signal(Signal::TERM);
        let (home, place) = (private_home(), private_home());
        let home = std::mem::replace(&mut self.home, home);
        let place = std::mem::replace(&mut self.place, place);
        Self::begin(&real::world().unwrap(), home, place, "", arguments)
    }

    pub fn recording(&self) -> PathBuf {
        self.recording.clone()
    }

    pub fn text(&self) -> String {
        std::fs::read_to_string(self.recording()).unwrap()
    }

    pub async fn create(&self, id: &str, preset: &str, parent: Option<&AgentId>) -> AgentId {
        let params = CreateAgentParams {
            agent_id: Some(id.to_owned()),
            preset: Some(preset.to_owned()),
            parent_agent_id: parent.cloned(),
            ..CreateAgentParams::default()
        };
        self.client.create_agent(&params).await.unwrap().agent_id
    }

    /// Has it end, and waits until it has.
    pub fn end(mut self, signal: Signal) -> Ended {
        self.signal(signal);
        let text = self.text();
        Ended { text, place: self.place.path().canonicalize().unwrap() }
    }

    fn signal(&mut self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // It has ended already where a test went well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What is left of a session.
pub struct Ended {
    pub text: String,
    /// The project of the live server.
    pub place: PathBuf,
}

/// Reads a stream up to an event of this kind, which comes last.
pub async fn until(stream: &mut EventStream, is_last: impl Fn(&What) -> bool) -> Vec<Event> {
    let mut events = Vec::new();
    loop {
        let event = stream.next().await.unwrap().unwrap();
        let last = is_last(&event.what);
        events.push(event);
        if last {
            return events;
        }
    }
}

pub fn output(command: &mut Command) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = command.output().unwrap();
    (status.code(), String::from_utf8(stderr).unwrap())
}
