//! A server that a test plays: it says what it does with each request, in the order they come. All of it
//! is in memory, so that under a paused clock time passes only when nobody has anything to do.

use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::{InProcess, NexusClient};
use crate::world::{Net, Stream};

pub enum Play {
    Result(Value),
    Error(Value),
    Status(u16),
    /// Never answers, and keeps the connection.
    Silence,
    /// Closes the connection without an answer.
    Break,
    /// A stream of these records, then its end.
    Stream(Vec<String>),
    /// A stream of these records, which then stays open.
    OpenStream(Vec<String>),
}

pub struct Stage {
    pub client: NexusClient,
    /// What was asked: the first line of each request, and its body.
    pub asked: mpsc::UnboundedReceiver<(String, Value)>,
    _playing: JoinSet<()>,
}

impl Stage {
    /// Plays these; later requests meet a closed connection.
    pub async fn of(plays: Vec<Play>) -> Self {
        let net = Arc::new(InProcess::new());
        let address: SocketAddr = "127.0.0.1:1".parse().unwrap();
        let mut listener = net.bind(address).await.unwrap();
        let (tell, asked) = mpsc::unbounded_channel();
        let mut playing = JoinSet::new();
        playing.spawn(async move {
            let (mut plays, mut kept) = (plays.into_iter(), Vec::new());
            loop {
                let mut stream = listener.accept().await.unwrap();
                let Some(request) = read(stream.as_mut()).await else { continue };
                tell.send(request).unwrap();
                let play = plays.next().unwrap_or(Play::Break);
                if let Some(bytes) = answer(&play) {
                    stream.write_all(bytes.as_bytes()).await.unwrap();
                }
                match play {
                    Play::Silence | Play::OpenStream(_) => kept.push(stream),
                    Play::Result(_)
                    | Play::Error(_)
                    | Play::Status(_)
                    | Play::Break
                    | Play::Stream(_) => {}
                }
            }
        });
        Self { client: NexusClient::new(net, address, None), asked, _playing: playing }
    }

    /// What has been asked so far: the methods of calls, the paths of streams.
    pub fn asked(&mut self) -> Vec<String> {
        let mut asked = Vec::new();
        while let Ok((line, body)) = self.asked.try_recv() {
            asked.push(body["method"].as_str().map_or(line, str::to_owned));
        }
        asked
    }
}

async fn read(stream: &mut dyn Stream) -> Option<(String, Value)> {
    let mut bytes = Vec::new();
    let mut piece = vec![0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                let path = head.split(' ').nth(1).unwrap().to_owned();
                return Some((path, serde_json::from_str(body).unwrap_or_default()));
            }
        }
        match stream.read(&mut piece).await.unwrap() {
            0 => return None,
            count => bytes.extend_from_slice(&piece[..count]),
        }
    }
}

fn answer(play: &Play) -> Option<String> {
    let whole = |status: u16, body: &Value| {
        let body = body.to_string();
        format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n{body}", body.len())
    };
    let stream = |records: &[String]| {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";
        let chunk = |text: &String| format!("{:x}\r\n{text}\r\n", text.len());
        let chunks: String = records.iter().map(chunk).collect();
        format!("{head}transfer-encoding: chunked\r\n\r\n{chunks}")
    };
    match play {
        Play::Result(result) => Some(whole(200, &json!({"result": result}))),
        Play::Error(error) => Some(whole(200, &json!({"error": error}))),
        Play::Status(status) => {
            let error = json!({"error": {"code": -32600, "message": status.to_string()}});
            Some(whole(*status, &error))
        }
        Play::Silence | Play::Break => None,
        Play::Stream(records) => Some(stream(records) + "0\r\n\r\n"),
        Play::OpenStream(records) => Some(stream(records)),
    }
}
