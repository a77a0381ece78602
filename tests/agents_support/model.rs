//! A model under a test's control: an HTTP server for chat completions that says nothing by itself.
//! Every request it gets becomes a [`ModelCall`], and the test releases its answer piece by piece.

use std::net::Ipv4Addr;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use super::progress::{CALL_NUMBER, Progress};

/// The request header in which the server names the agent that asks.
pub const AGENT: &str = "x-agent";

/// What every answer reports as its usage.
pub const USAGE: (u64, u64) = (7, 3);

pub struct Model {
    pub base_url: String,
    calls: mpsc::UnboundedReceiver<ModelCall>,
    /// Calls that came while the test waited for one of another agent.
    early: Vec<ModelCall>,
}

pub struct ModelCall {
    pub agent: String,
    /// The body of the request.
    pub request: Value,
    number: u64,
    stream: BufReader<TcpStream>,
    progress: Arc<Progress>,
    answering: bool,
    body_bytes: usize,
}

impl Model {
    pub async fn start(progress: Arc<Progress>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port is free");
        let address = listener.local_addr().expect("it has an address");
        let (calls_to, calls) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            for number in 0.. {
                let (stream, _) = listener.accept().await.expect("the server connects");
                let (calls_to, progress) = (calls_to.clone(), Arc::clone(&progress));
                tokio::spawn(async move {
                    // A request that its turn gave up half-way is none.
                    if let Ok(call) = ModelCall::read(stream, number, progress).await {
                        let _ = calls_to.send(call);
                    }
                });
            }
        });
        Self { base_url: format!("http://{address}/v1"), calls, early: Vec::new() }
    }

    /// Waits until this agent asks.
    pub async fn asked_by(&mut self, agent: &str) -> ModelCall {
        if let Some(at) = self.early.iter().position(|call| call.agent == agent) {
            return self.early.remove(at);
        }
        loop {
            let call = self.calls.recv().await.expect("the model listens as long as its test");
            if call.agent == agent {
                return call;
            }
            self.early.push(call);
        }
    }
}

impl ModelCall {
    async fn read(
        stream: TcpStream,
        number: u64,
        progress: Arc<Progress>,
    ) -> std::io::Result<Self> {
        let mut stream = BufReader::new(stream);
        let (mut agent, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).await?;
            let Some((name, value)) = line.trim_end().split_once(": ") else {
                if line.trim().is_empty() {
                    break;
                }
                continue;
            };
            match name.to_ascii_lowercase().as_str() {
                AGENT => value.clone_into(&mut agent),
                "content-length" => length = value.parse().expect("a length is a number"),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await?;
        let request = serde_json::from_slice(&body).expect("the request is JSON");
        Ok(Self { agent, request, number, stream, progress, answering: false, body_bytes: 0 })
    }

    /// Sends some text, and returns once the agent's turn has taken it.
    pub async fn says(&mut self, text: &str) {
        self.chunk(&json!({"choices": [{"delta": {"content": text}}]})).await;
        self.progress.reached(self.number, self.body_bytes).await;
    }

    /// Ends the answer in order.
    pub async fn stops(self) {
        self.finishes("stop").await;
    }

    pub async fn finishes(mut self, reason: &str) {
        let (prompt, completion) = USAGE;
        let usage = json!({"prompt_tokens": prompt, "completion_tokens": completion});
        let last = json!({"choices": [{"delta": {}, "finish_reason": reason}], "usage": usage});
        self.chunk(&last).await;
        self.write("data: [DONE]\n\n").await;
    }

    /// Says everything at once and ends.
    pub async fn answers(mut self, text: &str) {
        self.chunk(&json!({"choices": [{"delta": {"content": text}}]})).await;
        self.stops().await;
    }

    /// Asks for tools, each with an id, a name and its arguments as text, and ends the answer.
    pub async fn calls(mut self, calls: &[(&str, &str, &str)]) {
        for (index, (id, name, arguments)) in calls.iter().enumerate() {
            let function = json!({"name": name, "arguments": arguments});
            let call = json!({"index": index, "id": id, "function": function});
            self.chunk(&json!({"choices": [{"delta": {"tool_calls": [call]}}]})).await;
        }
        self.finishes("tool_calls").await;
    }

    /// Answers with an error status.
    pub async fn refuses(mut self, status: u16, message: &str) {
        let body = json!({"error": {"message": message}}).to_string();
        let length = body.len();
        self.write(&format!(
            "HTTP/1.1 {status} No\r\nconnection: close\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n{body}"
        ))
        .await;
    }

    /// Waits until the server gives up on this answer.
    pub async fn dropped(mut self) {
        let mut rest = Vec::new();
        // An end of file or a reset: either way nobody reads any more.
        let _ = self.stream.read_to_end(&mut rest).await;
        assert_eq!(rest, b"", "a request has one body");
    }

    async fn chunk(&mut self, chunk: &Value) {
        if !self.answering {
            self.answering = true;
            let number = self.number;
            self.write(&format!(
                "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\n\
                 {CALL_NUMBER}: {number}\r\n\r\n"
            ))
            .await;
        }
        let record = format!("data: {chunk}\n\n");
        self.body_bytes += record.len();
        self.write(&record).await;
    }

    async fn write(&mut self, text: &str) {
        // A turn that was cancelled meanwhile has closed its connection.
        let _ = self.stream.write_all(text.as_bytes()).await;
        let _ = self.stream.flush().await;
    }
}
