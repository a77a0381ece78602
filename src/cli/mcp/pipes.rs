//! Stdin and stdout as a transport: a line is a message. The two are read and written on threads of
//! their own, since they may be anything, which then end with the program.

use std::io::{self, BufRead, Read, Write};
use std::thread;

use rmcp::model::RequestId;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::{ErrorData, RoleServer};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::limits::{MCP_MESSAGE_BYTES_MAX, MCP_MESSAGES_WAITING_MAX};

type Given = RxJsonRpcMessage<RoleServer>;
type Taken = TxJsonRpcMessage<RoleServer>;

pub(super) struct Pipes {
    from_host: mpsc::Receiver<Given>,
    to_host: Option<mpsc::Sender<Taken>>,
    /// Written out once all of it is.
    written: mpsc::Receiver<()>,
    /// Cancelled once the host says nothing any more.
    gone: CancellationToken,
}

pub(super) fn open(gone: CancellationToken) -> Pipes {
    let (to_us, from_host) = mpsc::channel(MCP_MESSAGES_WAITING_MAX);
    let (to_host, mut from_us) = mpsc::channel::<Taken>(MCP_MESSAGES_WAITING_MAX);
    let (done, written) = mpsc::channel(1);
    // Weak, so that this thread, which cannot be ended, keeps nobody waiting for the last word.
    let refusals = to_host.downgrade();
    thread::spawn(move || {
        read(io::stdin().lock(), |said| match said {
            Said::Message(message) => to_us.blocking_send(*message).is_ok(),
            Said::Unusable(refusal) => match refusals.upgrade() {
                Some(to_host) => to_host.blocking_send(*refusal).is_ok(),
                None => false,
            },
        });
    });
    thread::spawn(move || {
        // Held until all is written.
        let _done = done;
        while let Some(message) = from_us.blocking_recv() {
            let mut line = serde_json::to_vec(&message).expect("messages have only string keys");
            line.push(b'\n');
            let mut out = io::stdout().lock();
            if out.write_all(&line).and_then(|()| out.flush()).is_err() {
                break;
            }
        }
    });
    Pipes { from_host, to_host: Some(to_host), written, gone }
}

/// What a line is.
enum Said {
    Message(Box<Given>),
    /// No message of the protocol, with the answer to it.
    Unusable(Box<Taken>),
}

/// Reads lines until there are no more, or nobody `takes` them.
fn read(mut pipe: impl BufRead, mut takes: impl FnMut(Said) -> bool) {
    loop {
        let mut line = Vec::new();
        // One byte more shows that a line is too long.
        let most = u64::try_from(MCP_MESSAGE_BYTES_MAX).unwrap_or(u64::MAX) + 1;
        match pipe.by_ref().take(most).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let said = if line.len() > MCP_MESSAGE_BYTES_MAX {
            if line.last() != Some(&b'\n') && pipe.skip_until(b'\n').is_err() {
                return;
            }
            let problem = format!("a message has at most {MCP_MESSAGE_BYTES_MAX} bytes");
            Said::unusable(ErrorData::invalid_request(problem, None), None)
        } else if line.trim_ascii().is_empty() {
            continue;
        } else {
            Said::of(&line)
        };
        if !takes(said) {
            return;
        }
    }
}

impl Said {
    fn of(line: &[u8]) -> Self {
        let Ok(value) = serde_json::from_slice::<Value>(line) else {
            return Self::unusable(ErrorData::parse_error("the line is no JSON", None), None);
        };
        let id = match &value["id"] {
            Value::String(id) => Some(RequestId::String(id.as_str().into())),
            id => id.as_i64().map(RequestId::Number),
        };
        let Ok(message) = serde_json::from_value(value) else {
            let problem = "the line is no message of JSON-RPC 2.0";
            return Self::unusable(ErrorData::invalid_request(problem, None), id);
        };
        Self::Message(Box::new(message))
    }

    fn unusable(error: ErrorData, id: Option<RequestId>) -> Self {
        Self::Unusable(Box::new(Taken::error(error, id)))
    }
}

impl Transport<RoleServer> for Pipes {
    type Error = io::Error;

    fn send(&mut self, message: Taken) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let to_host = self.to_host.clone();
        async move {
            let broken = || io::Error::from(io::ErrorKind::BrokenPipe);
            to_host.ok_or_else(broken)?.send(message).await.map_err(|_| broken())
        }
    }

    async fn receive(&mut self) -> Option<Given> {
        let message = tokio::select! {
            biased;
            message = self.from_host.recv() => message,
            // Nobody hears what we say.
            _ = self.written.recv() => None,
        };
        if message.is_none() {
            self.gone.cancel();
        }
        message
    }

    async fn close(&mut self) -> io::Result<()> {
        self.to_host = None;
        self.written.recv().await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What is said back to lines, and how many messages are among them.
    fn heard(lines: &[u8]) -> (Vec<Value>, usize) {
        let (mut refusals, mut messages) = (Vec::new(), 0);
        read(lines, |said| {
            match said {
                Said::Message(_) => messages += 1,
                Said::Unusable(refusal) => refusals.push(serde_json::to_value(refusal).unwrap()),
            }
            true
        });
        (refusals, messages)
    }

    #[test]
    fn what_is_no_message_is_answered_and_the_next_one_read() {
        let lines = b"nonsense\n\n[]\n{\"id\": 7}\n{\"jsonrpc\": \"2.0\", \"method\": \"ping\", \"id\": 1}\n";
        let error = |code: i64, message: &str| json!({"code": code, "message": message});
        let unknown = "the line is no message of JSON-RPC 2.0";
        let refusals = vec![
            json!({"jsonrpc": "2.0", "error": error(-32700, "the line is no JSON")}),
            json!({"jsonrpc": "2.0", "error": error(-32600, unknown)}),
            json!({"jsonrpc": "2.0", "id": 7, "error": error(-32600, unknown)}),
        ];
        assert_eq!(heard(lines), (refusals, 1));
    }

    #[test]
    fn a_message_that_is_too_long_is_refused_and_not_kept() {
        let mut lines = vec![b'x'; 2 * MCP_MESSAGE_BYTES_MAX];
        lines.extend_from_slice(b"\n{\"jsonrpc\": \"2.0\", \"method\": \"ping\", \"id\": 1}\n");
        let (refusals, messages) = heard(&lines);
        assert_eq!((refusals.len(), messages), (1, 1));
        assert_eq!(refusals[0]["error"]["code"], -32600);
    }
}
