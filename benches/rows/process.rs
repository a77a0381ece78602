//! Whole processes: a server's start, and the command-line client.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::Context as _;
use rusqlite::Connection;

use crate::Bench;
use crate::child::Target;
use crate::measure::{Bound, Row, Unit, alternate};
use crate::yardstick::Yardstick;

const STAND_IN_SCHEMA: &str = "CREATE TABLE agent (id TEXT PRIMARY KEY, state TEXT NOT NULL);
CREATE TABLE event (seq INTEGER PRIMARY KEY, agent TEXT NOT NULL, content TEXT NOT NULL);
CREATE INDEX event_agent ON event (agent, seq)";

pub(crate) async fn start(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let mock = Yardstick::mock(1).start()?;
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let file = home.path().join("schema.sql");
    std::fs::write(&file, STAND_IN_SCHEMA)?;
    let probe = bench.server(mock.port, &Yardstick::bare_with_schema(file.clone())).await?;
    let durable = probe.has_store();
    let database = probe.database();
    // A server that runs has its database for itself.
    let probed = probe.kill();
    let yardstick = if durable {
        std::fs::write(&file, schema_of(&database)?)?;
        Yardstick::bare_with_schema(file)
    } else {
        Yardstick::bare(200)
    };
    drop(probed);
    let figures = alternate(
        bench,
        async || Ok(bench.server_timed(mock.port, &yardstick).await?.1),
        async || Ok(yardstick.start_timed().await?.1),
    )
    .await?;
    let bound = Bound::RatioAtMost(2.0);
    let what = "start to first answer, empty home";
    Ok(vec![if durable {
        Row::new(what, "bare + same schema", Unit::Seconds, &figures, bound)
    } else {
        let what = format!("{what}, no store yet");
        Row::new(what, "bare", Unit::Seconds, &figures, bound)
    }])
}

/// The one target that is printed and not measured, so that nobody forgets it.
pub(crate) fn cold_build() -> Row {
    let reason = "needs a clean target directory: timed by hand";
    Row::not_yet("cold release build of the server", "–", "≤ 5 min on 2 cores", reason)
}

/// The statements that make a database like this one.
fn schema_of(database: &Path) -> anyhow::Result<String> {
    let connection = Connection::open(database)?;
    let mut query = connection.prepare(
        "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'",
    )?;
    let statements: Vec<String> =
        query.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    Ok(statements.join(";\n"))
}

/// The command-line client against `curl`, each as a process of its own.
pub(crate) async fn rpc_list(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let (what, target) = ("nexus3 rpc list", "≤ 1.0×");
    let mock = Yardstick::mock(1).start()?;
    let server = bench.server(mock.port, &Yardstick::bare(200)).await?;
    if seconds(&mut curl(&server)).is_err() {
        return Ok(vec![Row::not_yet(what, "curl", target, "curl does not run here")]);
    }
    let client = || {
        if bench.stand_in { curl(&server) } else { rpc_list_command(&server) }
    };
    if seconds(&mut client()).is_err() {
        return Ok(vec![Row::not_yet(what, "curl", target, "the client does not run")]);
    }
    let figures =
        alternate(bench, async || seconds(&mut client()), async || seconds(&mut curl(&server)))
            .await?;
    let bound = Bound::RatioAtMost(1.0);
    Ok(vec![Row::new(what, "curl", Unit::Seconds, &figures, bound)])
}

fn rpc_list_command(server: &Target) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nexus3"));
    command
        .args(["rpc", "list", "--port", &server.port.to_string(), "--home"])
        .arg(server.home())
        .current_dir(server.home());
    command
}

fn curl(server: &Target) -> Command {
    let mut command = Command::new("curl");
    command
        .args(["--silent", "--fail", "--noproxy", "*", "--max-time", "10"])
        .args(["--header", &format!("Authorization: Bearer {}", server.token)])
        .args(["--header", "Content-Type: application/json"])
        .args(["--data", r#"{"jsonrpc":"2.0","id":1,"method":"list_agents","params":{}}"#])
        .arg(format!("http://127.0.0.1:{}/", server.port));
    command
}

/// How long a program takes from its start to its end; an error where it fails.
fn seconds(command: &mut Command) -> anyhow::Result<f64> {
    let started = Instant::now();
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .context("cannot start the program")?;
    anyhow::ensure!(status.success(), "the program failed: {status}");
    Ok(started.elapsed().as_secs_f64())
}
