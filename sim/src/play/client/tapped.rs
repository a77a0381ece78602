//! What somebody at a terminal answers to confirmations, seen on the way to the server. What goes
//! through is neither changed nor delayed.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use nexus3::world::{BoxFuture, Listener, Net, Stream};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::play::observed::{Observation, Observed};

/// No answer to a confirmation is as long.
const REQUEST_BYTES_MAX: usize = 16 * 1024;

pub struct Tapped {
    pub inner: Arc<dyn Net>,
    pub observed: Observed,
}

impl Net for Tapped {
    fn bind(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Listener>>> {
        self.inner.bind(address)
    }

    fn connect(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Stream>>> {
        Box::pin(async move {
            let stream = self.inner.connect(address).await?;
            let tap = Tap { stream, observed: self.observed.clone(), written: Vec::new() };
            Ok(Box::new(tap) as Box<dyn Stream>)
        })
    }

    fn handles_max(&self) -> usize {
        self.inner.handles_max()
    }
}

/// A connection, on which there is one request.
struct Tap {
    stream: Box<dyn Stream>,
    observed: Observed,
    written: Vec<u8>,
}

impl AsyncWrite for Tap {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, bytes);
        if let Poll::Ready(Ok(count)) = polled
            && self.written.len() < REQUEST_BYTES_MAX
        {
            self.written.extend_from_slice(&bytes[..count]);
        }
        polled
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl AsyncRead for Tap {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        if let Some((agent, confirm_id)) = decision(&self.written) {
            self.observed.add(Observation::Decided { agent, confirm_id });
        }
    }
}

/// Whom a request answers, and which question, if it is one that does.
fn decision(request: &[u8]) -> Option<(String, String)> {
    let request = std::str::from_utf8(request).ok()?;
    let (head, body) = request.split_once("\r\n\r\n")?;
    let agent = head.strip_prefix("POST /agent/")?.split_once(' ')?.0;
    let call: Value = serde_json::from_str(body).ok()?;
    let id = call["params"]["confirm_id"].as_str().filter(|_| call["method"] == "confirm")?;
    Some((agent.to_owned(), id.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_is_seen_with_whom_it_is_for() {
        let request = |path: &str, method: &str| {
            let body = format!(r#"{{"method":"{method}","params":{{"confirm_id":"c1"}}}}"#);
            decision(format!("POST {path} HTTP/1.1\r\nhost: x\r\n\r\n{body}").as_bytes())
        };
        let seen = Some(("scout".to_owned(), "c1".to_owned()));
        assert_eq!(request("/agent/scout", "confirm"), seen);
        assert_eq!(request("/agent/scout", "send"), None);
        assert_eq!(request("/rpc", "confirm"), None);
    }
}
