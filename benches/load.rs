//! The load: keep-alive connections that write one request and read one answer at a time.
//! Plain sockets, not an HTTP library: the client's cost would weigh on both sides of a ratio and
//! hide the difference between them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::child::Target;

/// How every answer to our calls begins when the call went well; the protocol fixes the order.
pub(crate) const RESULT_PREFIX: &[u8] = br#"{"jsonrpc":"2.0","id":1,"result":"#;
const METHOD_NOT_FOUND: i64 = -32601;
const CALL_MAX: Duration = Duration::from_secs(20);
/// A reader that takes less at a time costs more than what is measured.
const DISCARD_BYTES: usize = 256 * 1024;
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The bytes of one HTTP request, made once and written many times.
pub(crate) type Request = Arc<[u8]>;

pub(crate) fn rpc(target: &Target, path: &str, method: &str, params: &Value) -> Request {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    let port = target.port;
    let token = &target.token;
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
    .into()
}

pub(crate) fn get(target: &Target, path: &str) -> Request {
    let port = target.port;
    let token = &target.token;
    format!(
        "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\r\n"
    )
    .into_bytes()
    .into()
}

#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    pub(crate) async fn open(target: &Target) -> anyhow::Result<Self> {
        Self::to_port(target.port).await
    }

    pub(crate) async fn to_port(port: u16) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::with_capacity(16 * 1024) })
    }

    /// Writes a request and reads its answer: the status and the body.
    pub(crate) async fn exchange(&mut self, request: &[u8]) -> anyhow::Result<(u16, &[u8])> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        let (status, head, length) = loop {
            self.fill().await?;
            if let Some(found) = parse_head(&self.buffer)? {
                break found;
            }
        };
        let end = head + length.context("the answer has no Content-Length")?;
        while self.buffer.len() < end {
            self.fill().await?;
        }
        ensure!(self.buffer.len() == end, "more bytes than the answer has");
        Ok((status, &self.buffer[head..end]))
    }

    /// Like `exchange`, for calls that must succeed. Returns the size of the answer's body.
    pub(crate) async fn call(&mut self, request: &[u8]) -> anyhow::Result<usize> {
        let (status, body) = self.exchange(request).await?;
        if status != 200 || !body.starts_with(RESULT_PREFIX) {
            let shown = body.get(..body.len().min(300)).unwrap_or_default();
            bail!("answer {status}: {}", String::from_utf8_lossy(shown));
        }
        Ok(body.len())
    }

    /// Writes a request whose answer nobody reads.
    pub(crate) async fn ask(&mut self, request: &[u8]) -> anyhow::Result<()> {
        Ok(self.stream.write_all(request).await?)
    }

    /// Asks for a stream and returns this connection once its head has come with a 200.
    pub(crate) async fn subscribe(mut self, request: &[u8]) -> anyhow::Result<Option<Self>> {
        self.stream.write_all(request).await?;
        loop {
            self.fill().await?;
            if let Some((status, head, _)) = parse_head(&self.buffer)? {
                self.buffer.drain(..head);
                return Ok((status == 200).then_some(self));
            }
        }
    }

    /// What has come of a stream and was not taken yet, waiting for some of it.
    pub(crate) async fn more(&mut self) -> anyhow::Result<Vec<u8>> {
        if self.buffer.is_empty() {
            self.fill().await?;
        }
        Ok(std::mem::take(&mut self.buffer))
    }

    /// Reads a stream to its end and keeps nothing of it.
    pub(crate) async fn discard(mut self) {
        self.buffer.reserve(DISCARD_BYTES);
        loop {
            self.buffer.clear();
            match self.stream.read_buf(&mut self.buffer).await {
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            }
        }
    }

    async fn fill(&mut self) -> anyhow::Result<()> {
        self.buffer.reserve(4096);
        let count = self.stream.read_buf(&mut self.buffer).await?;
        ensure!(count > 0, "the connection closed in the middle of an answer");
        ensure!(self.buffer.len() <= ANSWER_BYTES_MAX, "the answer is too long");
        Ok(())
    }
}

type Head = (u16, usize, Option<usize>);

/// The status, the length of the head and the declared length of the body, once all are there.
fn parse_head(bytes: &[u8]) -> anyhow::Result<Option<Head>> {
    let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = std::str::from_utf8(&bytes[..end])?;
    let mut lines = head.split("\r\n");
    let status =
        lines.next().and_then(|line| line.split(' ').nth(1)).context("no status line")?.parse()?;
    let mut length = None;
    for line in lines {
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = Some(value.trim().parse()?);
        }
    }
    Ok(Some((status, end + 4, length)))
}

/// A set of connections, each with the request it repeats.
#[derive(Debug)]
pub(crate) struct Clients {
    members: Vec<(Connection, Request)>,
}

impl Clients {
    /// `count` connections which share the requests out among them.
    pub(crate) async fn open(
        target: &Target,
        count: usize,
        requests: &[Request],
    ) -> anyhow::Result<Self> {
        let mut members = Vec::with_capacity(count);
        for index in 0..count {
            let request = Arc::clone(&requests[index % requests.len()]);
            members.push((Connection::open(target).await?, request));
        }
        Ok(Self { members })
    }

    /// Loads all connections for `slice` and returns the answers per second.
    pub(crate) async fn rate(&mut self, slice: Duration) -> anyhow::Result<f64> {
        let mut running = JoinSet::new();
        let started = Instant::now();
        for (mut connection, request) in self.members.drain(..) {
            running.spawn(async move {
                let mut calls = 0_u32;
                while started.elapsed() < slice {
                    connection.call(&request).await?;
                    calls += 1;
                }
                anyhow::Ok((connection, request, calls))
            });
        }
        let mut calls = 0;
        while let Some(done) =
            timeout(slice + CALL_MAX, running.join_next()).await.context("a call takes too long")?
        {
            let (connection, request, count) = done??;
            self.members.push((connection, request));
            calls += count;
        }
        Ok(f64::from(calls) / started.elapsed().as_secs_f64())
    }
}

/// The median wait for one answer, over `calls` calls one after the other.
pub(crate) async fn wait_p50(
    connection: &mut Connection,
    request: &[u8],
    calls: usize,
) -> anyhow::Result<f64> {
    let mut waits = Vec::with_capacity(calls);
    for _ in 0..calls {
        waits.push(timed(connection, request).await?);
    }
    Ok(crate::measure::Spread::of(waits).median)
}

/// How long one call takes, in seconds.
pub(crate) async fn timed(connection: &mut Connection, request: &[u8]) -> anyhow::Result<f64> {
    let started = Instant::now();
    timeout(CALL_MAX, connection.call(request)).await.context("a call takes too long")??;
    Ok(started.elapsed().as_secs_f64())
}

/// Whether the server knows a method, whatever it thinks of the params.
pub(crate) async fn knows(target: &Target, path: &str, method: &str) -> anyhow::Result<bool> {
    let request = rpc(target, path, method, &json!({}));
    let mut connection = Connection::open(target).await?;
    let (_, body) = connection.exchange(&request).await?;
    let answer: Value = serde_json::from_slice(body)?;
    Ok(answer["error"]["code"] != METHOD_NOT_FOUND)
}
