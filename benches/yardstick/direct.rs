//! `direct`: the streamed model call alone, which no server can do without.
//! As a process it answers lines of `BODY_BYTES CALLS` with the median wait in microseconds.

use std::time::Instant;

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use futures_util::StreamExt as _;
use serde::Deserialize;
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use super::{Yardstick, http};
use crate::measure::Spread;

#[derive(Debug)]
pub(crate) struct Model {
    client: reqwest::Client,
    url: String,
}

#[derive(Deserialize)]
struct Chunk {
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    delta: Delta,
}

#[derive(Deserialize)]
struct Delta {
    content: Option<String>,
}

impl Model {
    pub(crate) fn new(port: u16) -> anyhow::Result<Self> {
        // Nothing here speaks TLS, but the client insists on a provider; a second one is no error.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Ok(Self {
            client: reqwest::Client::builder().no_proxy().tls_certs_only([]).build()?,
            url: format!("http://127.0.0.1:{port}/v1/chat/completions"),
        })
    }

    /// Asks the model and gives every piece of its answer to `on_text`.
    pub(crate) async fn call(
        &self,
        body: Bytes,
        mut on_text: impl FnMut(&str),
    ) -> anyhow::Result<()> {
        let request =
            self.client.post(&self.url).header("content-type", "application/json").body(body);
        let answer = request.send().await?.error_for_status()?;
        let mut pieces = answer.bytes_stream();
        let mut waiting = Vec::new();
        while let Some(piece) = pieces.next().await {
            waiting.extend_from_slice(&piece?);
            let mut taken = 0;
            while let Some(length) = waiting[taken..].iter().position(|&byte| byte == b'\n') {
                let line = &waiting[taken..taken + length];
                taken += length + 1;
                if let Some(text) = text_of(line)? {
                    on_text(&text);
                }
            }
            waiting.drain(..taken);
        }
        ensure!(waiting.is_empty(), "the model's answer ends within a line");
        Ok(())
    }
}

fn text_of(line: &[u8]) -> anyhow::Result<Option<String>> {
    let Some(data) = line.strip_prefix(b"data: ") else {
        return Ok(None);
    };
    if data == b"[DONE]" {
        return Ok(None);
    }
    let chunk: Chunk = serde_json::from_slice(data)?;
    Ok(chunk.choices.into_iter().find_map(|choice| choice.delta.content))
}

/// A request to the model of about `bytes` bytes.
pub(crate) fn request_body(bytes: usize) -> Bytes {
    let make = |content: String| {
        let messages = json!([{"role": "user", "content": content}]);
        json!({"model": "m", "stream": true, "messages": messages}).to_string()
    };
    let rest = bytes.saturating_sub(make(String::new()).len());
    make("x".repeat(rest)).into()
}

pub(crate) async fn run(yardstick: &Yardstick) -> anyhow::Result<()> {
    let model = Model::new(yardstick.model)?;
    let listener = http::listen(yardstick.port).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        answer_lines(&model, stream).await?;
    }
}

async fn answer_lines(model: &Model, mut stream: TcpStream) -> anyhow::Result<()> {
    let (reader, mut writer) = stream.split();
    let mut lines = BufReader::new(reader).lines();
    while let Some(line) = lines.next_line().await? {
        let (bytes, calls) = line.split_once(' ').context("two numbers make a line")?;
        let body = request_body(bytes.parse()?);
        let mut waits = Vec::new();
        for _ in 0..calls.parse()? {
            let started = Instant::now();
            model.call(body.clone(), |_| ()).await?;
            waits.push(started.elapsed().as_secs_f64());
        }
        let micros = Spread::of(waits).median * 1e6;
        writer.write_all(format!("{micros}\n").as_bytes()).await?;
    }
    Ok(())
}
