//! A server in the background, for commands that are of no use without one. It logs to its home, and
//! stops by itself once nobody has used it for a while.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use tokio::time::{Instant, sleep};

use super::connection::Connection;
use super::{Failed, output, waiting};
use crate::client::{ClientError, Detection, NexusClient};
use crate::home::Home;
use crate::world::{Access, BoxFuture, World};

const IDLE_SECONDS: &str = "1800";
const START_MAX: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(25);
/// What the server says before it has its log, and what keeps it from starting.
const LOG: &str = "logs/background.log";
const LOG_BYTES_MAX: u64 = 64 * 1024;

#[derive(Debug, Args)]
pub struct Start {
    /// Starts no server where none runs
    #[arg(long)]
    no_start: bool,
}

impl Start {
    /// Calls the server, on one that is started for it where none runs.
    pub async fn call<T>(
        &self,
        connection: &Connection,
        call: impl for<'a> Fn(&'a NexusClient) -> BoxFuture<'a, Result<T, ClientError>>,
    ) -> Result<T, Failed> {
        match call(&connection.client).await {
            Err(ClientError::NoServer { .. }) if !self.no_start => {
                waiting::shown("starting a server", start(connection)).await?;
                let connection = connection.again()?;
                connection.answered(call(&connection.client).await).await
            }
            answer => connection.answered(answer).await,
        }
    }
}

async fn start(connection: &Connection) -> anyhow::Result<()> {
    let port = connection.client.address().port();
    let log = prepare(&connection.world, &connection.home)?;
    let mut child = spawn(connection, port, log).context("cannot start a server")?;
    let begun = Instant::now();
    loop {
        let over = child.try_wait()?;
        // Whoever was faster has started one just as good.
        if connection.client.detect().await == Detection::NexusServer {
            if over.is_none() {
                let minutes = "it stops after 30 minutes without use";
                output::note(format_args!("started a server on port {port}; {minutes}"));
            }
            return Ok(());
        }
        if over.is_some() || begun.elapsed() > START_MAX {
            let said = said(&connection.world, &connection.home);
            anyhow::bail!("the server that was started for this did not come up\n{said}");
        }
        sleep(LOOK_EVERY).await;
    }
}

/// The file that it writes to until it has its own log.
fn prepare(world: &World, home: &Path) -> anyhow::Result<File> {
    let dir = Home::prepare(world.fs.as_ref(), home)?;
    let path = home.join(LOG);
    // One that is there already will do.
    let _ = dir.make_dir(Path::new("logs"), 0o700);
    let file = OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(&path);
    file.with_context(|| format!("cannot write {}", path.display()))
}

fn spawn(connection: &Connection, port: u16, log: File) -> std::io::Result<Child> {
    let program: PathBuf = std::env::current_exe()?;
    Command::new(program)
        .args(["serve", "--port", &port.to_string(), "--idle-timeout", IDLE_SECONDS, "--home"])
        .arg(&connection.home)
        .env("NEXUS3_SERVER__HOST", connection.client.address().ip().to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        // An interrupt on this terminal is not meant for it.
        .process_group(0)
        .spawn()
}

fn said(world: &World, home: &Path) -> String {
    let file = world.fs.dir(home).and_then(|dir| dir.open(Path::new(LOG), Access::Read));
    let bytes = file.and_then(|file| file.read_all(LOG_BYTES_MAX)).unwrap_or_default();
    output::plain(String::from_utf8_lossy(&bytes).trim_end())
}
