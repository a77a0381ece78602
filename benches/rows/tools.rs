//! Turns in which a tool runs.

use serde_json::json;

use super::{destroy_agents, new_id, path, send_request};
use crate::Bench;
use crate::child::Target;
use crate::load::{Connection, Request, rpc, wait_p50};
use crate::measure::{Bound, Row, Unit, alternate};
use crate::yardstick::Yardstick;

/// What the model answers with a call of `read_file`.
const ASK: &str = "Read the file.";
const FILE: &str = "word.txt";

/// A turn with a tool asks its model twice: it is held against two turns without.
pub(crate) async fn turn(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let (what, yardstick, most) = ("tool turn (read_file)", "2 × send", 1.3);
    if bench.stand_in {
        let missing = "no yardstick has tools";
        return Ok(vec![Row::not_yet(what, yardstick, "≤ 1.3×", missing)]);
    }
    let mock = Yardstick::calling_mock(ASK, FILE).start()?;
    let server = bench.server(mock.port, &Yardstick::bare(200)).await?;
    let cwd = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    std::fs::write(cwd.path().join(FILE), "A word.\n")?;
    let cwd = cwd.path().canonicalize()?.display().to_string();
    let with_tool = |id: &str| rpc(&server, &path(id), "send", &json!({"content": ASK}));
    let figures = alternate(
        bench,
        async || turn_p50(&server, &cwd, bench.calls, with_tool).await,
        async || {
            Ok(2.0 * turn_p50(&server, &cwd, bench.calls, |id| send_request(&server, id)).await?)
        },
    )
    .await?;
    Ok(vec![Row::new(what, yardstick, Unit::Seconds, &figures, Bound::RatioAtMost(most))])
}

/// The median turn of a new agent.
async fn turn_p50(
    server: &Target,
    cwd: &str,
    calls: usize,
    request: impl Fn(&str) -> Request,
) -> anyhow::Result<f64> {
    let id = new_id();
    let mut connection = Connection::open(server).await?;
    let params = json!({"agent_id": id, "cwd": cwd});
    connection.call(&rpc(server, "/", "create_agent", &params)).await?;
    let wait = wait_p50(&mut connection, &request(&id), calls).await?;
    destroy_agents(server, &[id]).await?;
    Ok(wait)
}
