//! A provider's server for tests: it replays scripted answers, cut where the script says, and
//! keeps what it was asked. It knows nothing of the wire.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{HeaderMap, HeaderValue, Request, StatusCode, header};

use super::remote::Seams;
use crate::world::{BoxFuture, Chance, Http, HttpError, HttpFault, HttpResponse, HttpTerms, Use};

/// Chance that always falls on the largest number.
pub(super) struct Most;

impl Chance for Most {
    fn fill(&self, _: Use, bytes: &mut [u8]) {
        bytes.fill(u8::MAX);
    }
}

pub(super) fn seams(http: Arc<dyn Http>) -> Seams {
    Seams { http, chance: Arc::new(Most) }
}

pub(super) enum Script {
    Answer {
        status: u16,
        content_type: &'static str,
        body: Vec<Piece>,
    },
    Fault(HttpFault),
    /// The response head never comes.
    Silence,
}

#[derive(Clone)]
pub(super) enum Piece {
    Bytes(Vec<u8>),
    Fault(HttpFault),
    /// No byte comes any more, and the connection stays open.
    Silence,
}

#[derive(Default)]
pub(super) struct Replay {
    /// Guards plain data; nothing is awaited while it is held.
    scripts: Mutex<VecDeque<Script>>,
    asked: Mutex<Vec<Request<Bytes>>>,
}

impl Replay {
    pub(super) fn new(scripts: impl IntoIterator<Item = Script>) -> Arc<Self> {
        Arc::new(Self {
            scripts: Mutex::new(scripts.into_iter().collect()),
            asked: Mutex::default(),
        })
    }

    pub(super) fn asked(&self) -> Vec<Request<Bytes>> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

impl Http for Replay {
    fn with(self: Arc<Self>, _: &HttpTerms) -> Arc<dyn Http> {
        self
    }

    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<HttpResponse, HttpError>> {
        self.asked.lock().unwrap().push(request);
        let script = self.scripts.lock().unwrap().pop_front();
        Box::pin(async move {
            match script.expect("every request has a script") {
                Script::Answer { status, content_type, body } => {
                    let content_type = HeaderValue::from_static(content_type);
                    Ok(HttpResponse {
                        status: StatusCode::from_u16(status).unwrap(),
                        headers: HeaderMap::from_iter([(header::CONTENT_TYPE, content_type)]),
                        body: Box::pin(stream::iter(body).then(play)),
                    })
                }
                Script::Fault(fault) => Err(error(fault)),
                Script::Silence => std::future::pending().await,
            }
        })
    }
}

async fn play(piece: Piece) -> Result<Bytes, HttpError> {
    match piece {
        Piece::Bytes(bytes) => Ok(bytes.into()),
        Piece::Fault(fault) => Err(error(fault)),
        Piece::Silence => std::future::pending().await,
    }
}

fn error(fault: HttpFault) -> HttpError {
    HttpError { fault, detail: "scripted".to_owned() }
}
