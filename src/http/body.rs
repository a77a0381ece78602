//! Request bodies: read within their bounds, or thrown away so that the client sees its answer.

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::EXPECT;
use http_body::Body;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::{Instant, timeout, timeout_at};

use super::reply::Refusal;
use crate::limits::{BODY_BYTES_MAX, DRAIN_BYTES_MAX, DRAIN_MAX};

/// Reads a whole body. One that is too long is drained for a moment before it is refused.
pub async fn read(mut body: Incoming, until: Instant) -> Result<Bytes, Refusal> {
    match timeout_at(until, collect(&mut body)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(Trouble::TooLong)) => {
            let _ = throw_away(body).await;
            Err(Refusal::body_too_large())
        }
        Ok(Err(Trouble::Broken)) => Err(Refusal::body_broken()),
        Err(_) => Err(Refusal::too_slow()),
    }
}

/// Whether a body that nobody wants was read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drained {
    Whole,
    /// The connection cannot be used for another request.
    InPart,
}

/// Throws a body away, within bounds: a socket that is closed with unread bytes in it loses the
/// answer too.
pub async fn drain(body: Incoming, headers: &HeaderMap) -> Drained {
    if body.is_end_stream() {
        return Drained::Whole;
    }
    if headers.contains_key(EXPECT) {
        // This client asked first and has sent nothing; reading would tell it to go on.
        return Drained::InPart;
    }
    throw_away(body).await
}

async fn throw_away(mut body: Incoming) -> Drained {
    let all = async {
        let mut bytes = 0;
        while let Some(frame) = body.frame().await {
            bytes += frame.ok()?.data_ref().map_or(0, Bytes::len);
            if bytes > DRAIN_BYTES_MAX {
                return None;
            }
        }
        Some(())
    };
    match timeout(DRAIN_MAX, all).await {
        Ok(Some(())) => Drained::Whole,
        Ok(None) | Err(_) => Drained::InPart,
    }
}

enum Trouble {
    TooLong,
    /// Its chunks are none, or it ended before its declared length.
    Broken,
}

async fn collect(body: &mut Incoming) -> Result<Bytes, Trouble> {
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| Trouble::Broken)?.into_data() else {
            continue;
        };
        if first.len() + rest.len() + data.len() > BODY_BYTES_MAX {
            return Err(Trouble::TooLong);
        }
        // Nearly every body comes in one piece, which then need not be copied.
        if first.is_empty() {
            first = data;
        } else {
            rest.extend_from_slice(&data);
        }
    }
    if rest.is_empty() {
        return Ok(first);
    }
    let mut whole = BytesMut::from(first);
    whole.unsplit(rest);
    Ok(whole.freeze())
}
