//! The events of an answer over HTTP, within bounds: how long one may be, how long nothing may come, and
//! how soon the rest is asked for. They end with their conversation.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt};
use rmcp::transport::streamable_http_client::SseError;
use sse_stream::{Sse, SseStream};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::connection::Lost;
use super::http::Held;
use super::session::Doubts;
use super::watched::Rate;
use crate::limits::{
    MCP_HTTP_SILENCE_MAX, MCP_MESSAGE_BYTES_MAX, MCP_RETRY_FIRST, MCP_RETRY_MAX,
    MCP_UNASKED_PER_SECOND_MAX,
};
use crate::world::HttpBody;

/// What binds everything over HTTP to its conversation.
#[derive(Clone)]
pub(super) struct Ties {
    /// Cancelled once nobody wants anything of it any more.
    pub(super) over: CancellationToken,
    doubts: Doubts,
    /// As long as a connection may be open.
    _held: Held,
}

impl Ties {
    pub(super) fn new(doubts: Doubts, held: Held) -> Self {
        Self { over: CancellationToken::new(), doubts, _held: held }
    }

    pub(super) fn doubt(&self, why: Lost) {
        // One that somebody doubts already is given up for the reason that was first.
        let _ = self.doubts.try_send(why);
    }
}

/// The events of an answer. When they break off they end: the library asks for the rest after a pause,
/// which it would not make after an error. How long that is, a server may say only within bounds.
pub(super) fn events(body: HttpBody, ties: &Ties) -> BoxStream<'static, Result<Sse, SseError>> {
    let bounded = Bounded {
        body,
        since_end: 0,
        last: 0,
        rate: Rate::of(MCP_UNASKED_PER_SECOND_MAX),
        silence: Box::pin(silence()),
        over: Box::pin(ties.over.clone().cancelled_owned()),
        ties: ties.clone(),
    };
    let pauses = milliseconds(MCP_RETRY_FIRST)..=milliseconds(MCP_RETRY_MAX);
    let within = move |event: Result<Sse, SseError>| {
        event.map(|event| {
            let retry = event.retry.map(|asked| asked.clamp(*pauses.start(), *pauses.end()));
            Sse { retry, ..event }
        })
    };
    SseStream::from_bytes_stream(bounded).map(within).boxed()
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A stream of events that ends when nothing comes for long, and the whole conversation when one of them
/// is too long or there are far too many.
struct Bounded {
    body: HttpBody,
    /// Bytes of the event that has not ended yet.
    since_end: usize,
    /// The byte before, to find the empty line that ends an event.
    last: u8,
    /// Of events, also of those that are no messages.
    rate: Rate,
    silence: Pin<Box<tokio::time::Sleep>>,
    over: Pin<Box<WaitForCancellationFutureOwned>>,
    ties: Ties,
}

fn silence() -> tokio::time::Sleep {
    tokio::time::sleep(MCP_HTTP_SILENCE_MAX)
}

impl Stream for Bounded {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.over.as_mut().poll(context).is_ready() {
            return Poll::Ready(None);
        }
        let Poll::Ready(piece) = self.body.as_mut().poll_next(context) else {
            return self.silence.as_mut().poll(context).map(|()| None);
        };
        self.silence.set(silence());
        let Some(Ok(bytes)) = piece else { return Poll::Ready(None) };
        let mut is_flooded = false;
        for byte in &bytes {
            let is_end = *byte == b'\n' && self.last == b'\n';
            is_flooded |= is_end && self.rate.is_exceeded();
            self.since_end = if is_end { 0 } else { self.since_end + 1 };
            // The other byte that ends lines is as if it were not there.
            if *byte != b'\r' {
                self.last = *byte;
            }
        }
        if self.since_end > MCP_MESSAGE_BYTES_MAX || is_flooded {
            self.ties.doubt(if is_flooded { Lost::Flood } else { Lost::TooLong });
            return Poll::Ready(None);
        }
        Poll::Ready(Some(Ok(bytes)))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;
    use tokio::sync::mpsc;

    use super::*;

    /// The events of a body in pieces, and what the conversation is doubted for.
    async fn heard(pieces: Vec<Vec<u8>>) -> (Vec<Sse>, Option<Lost>) {
        let (doubts, mut doubted) = mpsc::channel(1);
        let (held, _released) = mpsc::channel(1);
        let ties = Ties::new(doubts, held);
        let body = stream::iter(pieces.into_iter().map(|piece| Ok(Bytes::from(piece))));
        let events: Vec<_> = events(Box::pin(body), &ties).collect().await;
        (events.into_iter().filter_map(Result::ok).collect(), doubted.try_recv().ok())
    }

    #[tokio::test]
    async fn a_server_cannot_have_us_ask_without_a_pause_or_never_again() {
        let text = b"retry: 0\ndata: a\n\nretry: 99999999999\ndata: b\n\ndata: c\n\n";
        let (events, doubt) = heard(vec![text.to_vec()]).await;
        let retries: Vec<_> = events.iter().map(|event| event.retry).collect();
        assert_eq!(retries, [Some(1000), Some(60_000), None]);
        assert_eq!(doubt, None);
    }

    #[tokio::test]
    async fn an_event_that_is_too_long_ends_the_conversation_and_many_short_ones_do_not() {
        let piece = vec![b'x'; MCP_MESSAGE_BYTES_MAX / 4];
        let (_, doubt) = heard(vec![piece.clone(); 5]).await;
        assert_eq!(doubt, Some(Lost::TooLong));
        let mut short = piece;
        short.extend_from_slice(b"\r\n\r\n");
        let (_, doubt) = heard(vec![short; 5]).await;
        assert_eq!(doubt, None);
    }

    #[tokio::test]
    async fn events_without_end_end_the_conversation_also_where_they_say_nothing() {
        for event in ["data: nonsense\n\n", ": ping\n\n", "\n\n"] {
            let (_, doubt) = heard(vec![event.as_bytes().repeat(2000)]).await;
            assert_eq!(doubt, Some(Lost::Flood), "{event:?}");
        }
    }
}
