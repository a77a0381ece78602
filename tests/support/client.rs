//! A client that is as rude as a test wants it to be: it writes any bytes in any pieces and reads
//! answers as they stand on the wire. It gives up a wait only to fail instead of hanging.

use std::time::Duration;

use nexus3::world::Stream;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

/// Far above every limit of the server: whoever waits this long waits for ever.
const HANGS: Duration = Duration::from_mins(2);
const HEAD_END: &[u8] = b"\r\n\r\n";

pub struct Client {
    stream: Box<dyn Stream>,
    /// What came and was not taken yet.
    pub received: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub status: u16,
    /// Names in lower case, in the order they came.
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Client {
    pub fn over(stream: Box<dyn Stream>) -> Self {
        Self { stream, received: Vec::new() }
    }

    pub async fn write(&mut self, bytes: &[u8]) {
        self.try_write(bytes).await.expect("the server takes the bytes");
    }

    /// Writes to a server that may have hung up already.
    pub async fn try_write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let written = timeout(HANGS, self.stream.write_all(bytes)).await;
        written.expect("the server reads")
    }

    /// Says that nothing more will come.
    pub async fn finish(&mut self) {
        // A server that has hung up already needs no telling.
        let _ = self.stream.shutdown().await;
    }

    pub async fn exchange(&mut self, request: &Request) -> Answer {
        self.write(&request.bytes()).await;
        self.read().await
    }

    /// Reads one answer.
    pub async fn read(&mut self) -> Answer {
        self.try_read().await.expect("the server answers")
    }

    /// Reads one answer; `None` if the connection ends before it.
    pub async fn try_read(&mut self) -> Option<Answer> {
        let head_end = loop {
            if let Some(at) = find(&self.received, HEAD_END) {
                break at + HEAD_END.len();
            }
            self.read_more().await?;
        };
        let head = String::from_utf8(self.received[..head_end].to_vec()).expect("heads are ASCII");
        let mut answer = parse_head(&head);
        let length = answer
            .header("content-length")
            .map_or(0, |length| length.parse().expect("a length is a number"));
        while self.received.len() < head_end + length {
            self.read_more().await?;
        }
        let rest = self.received.split_off(head_end + length);
        let body = self.received.split_off(head_end);
        self.received = rest;
        answer.body = String::from_utf8(body).expect("answers are text");
        Some(answer)
    }

    /// Reads what is left until the server closes the connection.
    pub async fn read_to_end(&mut self) -> Vec<u8> {
        while self.read_more().await.is_some() {}
        std::mem::take(&mut self.received)
    }

    /// Reads some bytes, as many as are there.
    pub async fn read_more(&mut self) -> Option<usize> {
        let mut piece = vec![0; 16 * 1024];
        let read = timeout(HANGS, self.stream.read(&mut piece)).await.expect("the server acts");
        // A connection that is reset has ended too.
        let count = read.unwrap_or(0);
        self.received.extend_from_slice(&piece[..count]);
        (count > 0).then_some(count)
    }
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("the body is JSON")
    }

    /// The status and the whole body, to compare at once.
    pub fn told(&self) -> (u16, Value) {
        (self.status, self.json())
    }
}

/// A request as it will stand on the wire.
#[derive(Clone, Debug)]
pub struct Request {
    line: String,
    headers: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
}

impl Request {
    pub fn new(method: &str, path: &str) -> Self {
        Self { line: format!("{method} {path} HTTP/1.1"), headers: Vec::new(), body: Vec::new() }
    }

    /// Adds a header, beside others of the same name.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.headers.push((name.to_owned(), value.as_ref().to_vec()));
        self
    }

    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self
    }

    /// Puts a header in the place of all others of its name.
    #[must_use]
    pub fn with(self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.without(name).header(name, value)
    }

    /// Sets the body and declares its length.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        let length = self.body.len().to_string();
        self.with("Content-Length", length)
    }

    pub fn head(&self) -> Vec<u8> {
        let mut bytes = format!("{}\r\n", self.line).into_bytes();
        for (name, value) in &self.headers {
            bytes.extend_from_slice(name.as_bytes());
            bytes.extend_from_slice(b": ");
            bytes.extend_from_slice(value);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"\r\n");
        bytes
    }

    pub fn bytes(&self) -> Vec<u8> {
        [self.head(), self.body.clone()].concat()
    }
}

fn parse_head(head: &str) -> Answer {
    let mut lines = head.trim_end().split("\r\n");
    let line = lines.next().expect("a head has a first line");
    let status = line.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5));
    let headers = lines.map(|line| {
        let (name, value) = line.split_once(':').expect("a header has a colon");
        (name.to_ascii_lowercase(), value.trim().to_owned())
    });
    Answer {
        status: status.and_then(|status| status.parse().ok()).expect("answers have a status"),
        headers: headers.collect(),
        body: String::new(),
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}
