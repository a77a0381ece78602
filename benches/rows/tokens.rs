//! Counting tokens: each message once, however long the conversation before it is.

use std::fmt::Write as _;
use std::time::Instant;

use serde_json::json;
use tiktoken_rs::o200k_base_singleton;

use super::{create_agents, destroy_agents, path};
use crate::Bench;
use crate::child::Target;
use crate::load::{Connection, rpc, timed};
use crate::measure::{Bound, Row, Unit, alternate};
use crate::yardstick::Yardstick;

/// So little that all of them together surely fit into a window: what may not fit is counted in its turn.
const TEXT_BYTES: usize = 16 * 1024;
/// Texts that were counted before the one that is measured: counted anew, they would cost as many times.
const TEXTS_BEFORE: usize = 4;

pub(crate) async fn counting(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let what = "token counting: 16 KiB more, 64 KiB before";
    let (yardstick, most) = ("tiktoken on the new text", 1.5);
    if bench.stand_in {
        return Ok(vec![Row::not_yet(what, yardstick, "≤ 1.5×", "no yardstick counts")]);
    }
    let mock = Yardstick::mock(1).start()?;
    let server = bench.server(mock.port, &Yardstick::bare(200)).await?;
    let figures = alternate(
        bench,
        async || counted(&server).await,
        async || {
            let text = text(TEXTS_BEFORE);
            let started = Instant::now();
            let tokens = o200k_base_singleton().encode_ordinary(&text).len();
            assert!(tokens > 0, "a text has tokens");
            Ok(started.elapsed().as_secs_f64())
        },
    )
    .await?;
    Ok(vec![Row::new(what, yardstick, Unit::Seconds, &figures, Bound::RatioAtMost(most))])
}

/// How long it takes to count a conversation of which all but the newest text is counted.
async fn counted(server: &Target) -> anyhow::Result<f64> {
    let ids = create_agents(server, 1).await?;
    let agent = path(&ids[0]);
    let mut connection = Connection::open(server).await?;
    let count = rpc(server, &agent, "get_tokens", &json!({}));
    let mut seconds = 0.0;
    for number in 0..=TEXTS_BEFORE {
        let content = text(number);
        connection.call(&rpc(server, &agent, "send", &json!({"content": content}))).await?;
        seconds = timed(&mut connection, &count).await?;
    }
    destroy_agents(server, &ids).await?;
    Ok(seconds)
}

/// A text that no other is like.
fn text(number: usize) -> String {
    let mut text = String::with_capacity(TEXT_BYTES + 64);
    let mut line = 0;
    while text.len() < TEXT_BYTES {
        line += 1;
        let (apples, pears) = (line * 7 + number, line * line);
        writeln!(text, "Line {line}: {apples} apples are no {pears} pears.")
            .expect("a string takes everything");
    }
    text
}
