//! An answer on its way: its head is there, its body comes in pieces.
//! It has a connection of its own, which lives and ends with it.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use futures_util::future::{Either, select};
use http::Request;
use http::response::Parts;
use http_body::Body;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, Connection, SendRequest};
use hyper_util::rt::TokioIo;

use crate::limits::CLIENT_ANSWER_BYTES_MAX;
use crate::world::Stream;

/// What moves the bytes of one exchange.
type Moving = Connection<TokioIo<Box<dyn Stream>>, Full<Bytes>>;

pub(super) struct Arriving {
    body: Incoming,
    /// Only moves bytes; how it ended shows in the body. `None` once it has.
    connection: Option<Pin<Box<Moving>>>,
    /// The connection takes it for the end when this is dropped.
    _sender: SendRequest<Full<Bytes>>,
}

/// Sends a request and waits for the head of its answer; says what went wrong.
pub(super) async fn send(
    stream: Box<dyn Stream>,
    request: Request<Full<Bytes>>,
) -> Result<(Parts, Arriving), String> {
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
    let connection = Box::pin(connection);
    let sent = Box::pin(sender.send_request(request));
    let (response, connection) = match select(sent, connection).await {
        Either::Left((response, connection)) => (response, Some(connection)),
        Either::Right((_, sent)) => (sent.await, None),
    };
    let (head, body) = response.map_err(|error| error.to_string())?.into_parts();
    Ok((head, Arriving { body, connection, _sender: sender }))
}

impl Arriving {
    /// The next piece of the body; `None` at its end. Dropping the wait loses nothing.
    pub(super) async fn next(&mut self) -> Option<Result<Bytes, String>> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, String>>> {
        if let Some(connection) = &mut self.connection
            && connection.as_mut().poll(cx).is_ready()
        {
            self.connection = None;
        }
        loop {
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                None => return Poll::Ready(None),
                Some(Err(error)) => return Poll::Ready(Some(Err(error.to_string()))),
                Some(Ok(frame)) => {
                    // Trailers say nothing to us.
                    if let Ok(bytes) = frame.into_data() {
                        return Poll::Ready(Some(Ok(bytes)));
                    }
                }
            }
        }
    }

    pub(super) async fn whole(mut self) -> Result<Bytes, String> {
        let mut whole = BytesMut::new();
        while let Some(bytes) = self.next().await {
            let bytes = bytes?;
            if whole.len() + bytes.len() > CLIENT_ANSWER_BYTES_MAX {
                return Err(format!("an answer of more than {CLIENT_ANSWER_BYTES_MAX} bytes"));
            }
            whole.extend_from_slice(&bytes);
        }
        Ok(whole.freeze())
    }
}
