//! The processes that are measured, yardsticks and server alike. Each ends, and its home goes, when
//! its [`Target`] is dropped.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use serde_json::json;
use tempfile::TempDir;

use crate::Bench;
use crate::load::{Connection, get};
use crate::yardstick::{LISTENING, WORD, Yardstick};

const START_MAX: Duration = Duration::from_secs(20);
const TOKEN_MAX: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_micros(200);
const DEFAULT_PORT: u16 = 8765;
const NO_TOKEN: &str = "nxk_yardstick";

/// A directory for a program, removed with the last who needs it.
pub(crate) type Home = Arc<TempDir>;

/// A program that listens on loopback. Fields drop in this order: the process before its home.
#[derive(Debug)]
pub(crate) struct Target {
    process: Guard,
    home: Home,
    pub(crate) port: u16,
    pub(crate) token: String,
}

#[derive(Debug)]
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        // Both fail only when the process has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Bench {
    /// Starts the server with a model at `model_port`; in a run of yardsticks alone, `like`.
    pub(crate) async fn server(&self, model_port: u16, like: &Yardstick) -> anyhow::Result<Target> {
        Ok(self.server_timed(model_port, like).await?.0)
    }

    /// Starts the server in an empty home; also returns the seconds to its first answer.
    pub(crate) async fn server_timed(
        &self,
        model_port: u16,
        like: &Yardstick,
    ) -> anyhow::Result<(Target, f64)> {
        if self.stand_in {
            return like.start_timed().await;
        }
        Self::server_in(new_home()?, model_port).await
    }

    /// Starts the server in a home that may have been used before.
    pub(crate) async fn server_in(home: Home, model_port: u16) -> anyhow::Result<(Target, f64)> {
        let config = home.path().join("bench.json");
        let url = format!("http://127.0.0.1:{model_port}/v1");
        let providers =
            json!({"mock": {"type": "vllm", "base_url": url, "models": {"m": {"id": "m"}}}});
        std::fs::write(&config, json!({"providers": providers}).to_string())?;
        let port = free_port()?;
        let started = Instant::now();
        let process = Guard(spawn_server(home.path(), &config, port)?);
        let mut target = Target { process, home, port, token: NO_TOKEN.to_owned() };
        let seconds = target.first_answer(started).await?;
        target.token = target.written_token().await?;
        Ok((target, seconds))
    }
}

impl Yardstick {
    pub(crate) fn start(&self) -> anyhow::Result<Target> {
        let home = new_home()?;
        let mut process = Guard(spawn_yardstick(self, home.path(), 0)?);
        let stdout = process.0.stdout.take().expect("stdout is piped");
        let port = first_line(stdout)
            .strip_prefix(LISTENING)
            .and_then(|port| port.trim().parse().ok())
            .with_context(|| format!("the yardstick {self:?} did not start"))?;
        Ok(Target { process, home, port, token: NO_TOKEN.to_owned() })
    }

    /// Starts a yardstick on a port chosen beforehand and waits for it as for the server.
    pub(crate) async fn start_timed(&self) -> anyhow::Result<(Target, f64)> {
        let home = new_home()?;
        let port = free_port()?;
        let started = Instant::now();
        let process = Guard(spawn_yardstick(self, home.path(), port)?);
        let mut target = Target { process, home, port, token: NO_TOKEN.to_owned() };
        let seconds = target.first_answer(started).await?;
        Ok((target, seconds))
    }
}

impl Target {
    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// Ends the program at once and leaves what it had on disk.
    pub(crate) fn kill(self) -> Home {
        self.home
    }

    /// Whether this server keeps a database, so that its answers are durable.
    pub(crate) fn has_store(&self) -> bool {
        self.database().exists()
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.home().join("nexus3.db")
    }

    /// What the process has had written to disks so far, in bytes.
    pub(crate) fn written_bytes(&self) -> anyhow::Result<f64> {
        let io = std::fs::read_to_string(format!("/proc/{}/io", self.process.0.id()))?;
        let bytes = io.lines().find_map(|line| line.strip_prefix("write_bytes:"));
        Ok(bytes.context("no write_bytes in the process's account")?.trim().parse()?)
    }

    /// How many files, sockets and pipes the process has open.
    pub(crate) fn open_handles(&self) -> anyhow::Result<f64> {
        let handles = std::fs::read_dir(format!("/proc/{}/fd", self.process.0.id()))?;
        Ok(handles.count() as f64)
    }

    /// What the process holds in memory now, in bytes.
    pub(crate) fn resident_bytes(&self) -> anyhow::Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.0.id()))?;
        let kib: f64 = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .and_then(|rest| rest.trim().strip_suffix("kB"))
            .context("no VmRSS in the process's status")?
            .trim()
            .parse()?;
        Ok(kib * 1024.0)
    }

    fn token_file(&self) -> PathBuf {
        self.home().join(if self.port == DEFAULT_PORT {
            "rpc.token".to_owned()
        } else {
            format!("rpc-{}.token", self.port)
        })
    }

    /// The token, which the server may write only after its first answer.
    async fn written_token(&self) -> anyhow::Result<String> {
        let started = Instant::now();
        loop {
            match std::fs::read_to_string(self.token_file()) {
                Ok(token) if !token.trim().is_empty() => return Ok(token.trim().to_owned()),
                Ok(_) | Err(_) if started.elapsed() < TOKEN_MAX => {
                    tokio::time::sleep(POLL).await;
                }
                Ok(_) => bail!("the token file is empty"),
                Err(error) => return Err(error).context("the server wrote no token file"),
            }
        }
    }

    async fn first_answer(&mut self, started: Instant) -> anyhow::Result<f64> {
        let request = get(self, "/healthz");
        loop {
            if let Ok(mut connection) = Connection::open(self).await
                && let Ok((200, _)) = connection.exchange(&request).await
            {
                return Ok(started.elapsed().as_secs_f64());
            }
            if let Some(status) = self.process.0.try_wait()? {
                bail!("the program ended before it answered ({status}){}", self.last_words());
            }
            if started.elapsed() > START_MAX {
                bail!("no answer to /healthz in {START_MAX:?}{}", self.last_words());
            }
            tokio::time::sleep(POLL).await;
        }
    }

    fn last_words(&self) -> String {
        let text = std::fs::read_to_string(self.home().join("stderr")).unwrap_or_default();
        match text.lines().last() {
            Some(line) => format!(": {line}"),
            None => String::new(),
        }
    }
}

/// Homes lie below the target directory: a temporary directory may be in memory, where a commit
/// costs nothing.
fn new_home() -> anyhow::Result<Home> {
    std::fs::create_dir_all(env!("CARGO_TARGET_TMPDIR"))?;
    tempfile::Builder::new()
        .prefix("bench-")
        // A server refuses a home that others can enter.
        .permissions(Permissions::from_mode(0o700))
        .tempdir_in(env!("CARGO_TARGET_TMPDIR"))
        .map(Arc::new)
        .context("cannot make a home")
}

fn free_port() -> anyhow::Result<u16> {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0))?;
    Ok(listener.local_addr()?.port())
}

fn spawn_yardstick(yardstick: &Yardstick, home: &Path, port: u16) -> anyhow::Result<Child> {
    Command::new(std::env::current_exe()?)
        .arg(WORD)
        .args(yardstick.arguments())
        .arg("--home")
        .arg(home)
        .args(["--port", &port.to_string()])
        // The yardstick ends when this pipe closes, however the benchmark ends.
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start a yardstick")
}

fn spawn_server(home: &Path, config: &Path, port: u16) -> anyhow::Result<Child> {
    Command::new(env!("CARGO_BIN_EXE_nexus3"))
        .args(["serve", "--port", &port.to_string(), "--home"])
        .arg(home)
        .arg("--config")
        .arg(config)
        .current_dir(home)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", home)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(home.join("stderr"))?)
        .spawn()
        .context("cannot start the server")
}

/// The first line a child writes; empty where it ends without one.
fn first_line(stdout: std::process::ChildStdout) -> String {
    let mut line = String::new();
    let mut reader = std::io::BufReader::new(stdout);
    // An unreadable line is no port, and that is what the caller reports.
    let _ = std::io::BufRead::read_line(&mut reader, &mut line);
    line
}
