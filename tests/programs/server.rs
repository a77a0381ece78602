//! A server as a process of its own, with a home and a project.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use nexus3::client::{NexusClient, find_token};
use nexus3::id::AgentId;
use nexus3::world::real;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::home::private_home;

pub struct Server {
    child: Child,
    client: NexusClient,
    /// Holds `home` and `project`.
    base: TempDir,
}

impl Server {
    pub fn start() -> Self {
        let base = private_home();
        let [home, project] = ["home", "project"].map(|name| base.path().join(name));
        std::fs::create_dir(&project).expect("a directory is made");
        let mut child = Command::new(env!("CARGO_BIN_EXE_nexus3"))
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("SECRET", "not for programs")
            .env("LC_ALL", "C")
            .args(["serve", "--port", "0", "--allow-yolo", "--home"])
            .arg(&home)
            .current_dir(&project)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut stderr = BufReader::new(child.stderr.take().expect("stderr is a pipe"));
        let port = loop {
            let mut line = String::new();
            assert_ne!(stderr.read_line(&mut line).expect("it speaks UTF-8"), 0, "it starts");
            if let Some((_, port)) = line.trim_end().rsplit_once("listens on http://127.0.0.1:") {
                break port.parse().expect("a port is a number");
            }
        };
        // It never waits for a reader.
        std::thread::spawn(move || stderr.read_to_end(&mut Vec::new()));
        let world = real::world().expect("the machine opens");
        let token = find_token(&world, &home, port, None).expect("its token can be read");
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let client = NexusClient::on(&world, address, token);
        Self { child, client, base }
    }

    /// The directory of all that belongs to the server.
    pub fn base(&self) -> PathBuf {
        self.base.path().canonicalize().expect("it exists")
    }

    pub fn project(&self) -> PathBuf {
        self.base().join("project")
    }

    /// The only token there is.
    pub fn token(&self) -> String {
        let names = std::fs::read_dir(self.base().join("home")).expect("the home can be listed");
        let path = names
            .map(|entry| entry.expect("it can be listed").path())
            .find(|path| path.extension().is_some_and(|extension| extension == "token"));
        std::fs::read_to_string(path.expect("there is a token")).expect("it can be read")
    }

    pub async fn create(&self, agent: &str, preset: &str) -> AgentId {
        let params = json!({"agent_id": agent, "preset": preset, "cwd": self.project()});
        self.call(None, "create_agent", params).await;
        AgentId::parse(agent).expect("an id")
    }

    pub async fn call(&self, agent: Option<&AgentId>, method: &str, params: Value) -> Value {
        let called = self.client.call_by_name(agent, method, params).await;
        called.unwrap_or_else(|error| panic!("{method}: {error:?}"))
    }

    /// Sends `call TOOL ARGUMENTS` and gives what the model was told.
    pub async fn tool(&self, agent: &AgentId, tool: &str, arguments: Value) -> String {
        let content = format!("call {tool} {arguments}");
        self.call(Some(agent), "send", json!({"content": content})).await;
        let messages = self.call(Some(agent), "get_messages", json!({"limit": 2000})).await;
        let messages = messages["messages"].as_array().expect("messages").clone();
        let told = messages.iter().rev().find(|message| message["role"] == "tool");
        let told = told.unwrap_or_else(|| panic!("no tool was called: {messages:?}"));
        told["content"].as_str().expect("a text").to_owned()
    }

    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.expect("a process has a number"), signal).expect("it runs until now");
    }

    pub fn wait(&mut self) {
        self.child.wait().expect("it ends");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has ended already where its test ended it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
