//! The server's way out to its models, watched: when an exchange begins for an agent, when it is over, and
//! whether words came of it. What goes through it is neither changed nor delayed.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::Stream;
use http::Request;
use nexus3::provider::script::AGENT_HEADER;
use nexus3::world::{BoxFuture, Http, HttpBody, HttpError, HttpResponse, HttpTerms};
use serde_json::Value;

use super::observed::{Observation, Observed, Question, Said};
use super::story::Happening;
use super::transcript::Transcript;
use crate::hosts::now;
use crate::scenario::SERVER;

pub struct Watched {
    inner: Arc<dyn Http>,
    /// Which start of the server it is that asks.
    server_start: u64,
    observed: Observed,
    transcript: Transcript,
}

impl Watched {
    pub fn new(
        inner: Arc<dyn Http>,
        server_start: u64,
        observed: Observed,
        transcript: Transcript,
    ) -> Self {
        Self { inner, server_start, observed, transcript }
    }
}

impl Http for Watched {
    fn with(self: Arc<Self>, terms: &HttpTerms) -> Arc<dyn Http> {
        let inner = Arc::clone(&self.inner).with(terms);
        let (observed, transcript) = (self.observed.clone(), self.transcript.clone());
        Arc::new(Self { inner, server_start: self.server_start, observed, transcript })
    }

    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<HttpResponse, HttpError>> {
        Box::pin(async move {
            let agent = request.headers().get(AGENT_HEADER).and_then(|value| value.to_str().ok());
            let exchange = agent.map(|agent| Exchange::begin(agent, request.body(), self));
            let response = self.inner.send(request).await?;
            let body = Box::pin(Answer { body: response.body, exchange });
            Ok(HttpResponse { body, ..response })
        })
    }
}

/// An exchange that is open as long as this is held.
struct Exchange {
    agent: String,
    observed: Observed,
    transcript: Transcript,
    said: Said,
    /// The end of the answer that is no whole record yet; nothing once words were found.
    record: Vec<u8>,
}

impl Exchange {
    fn begin(agent: &str, body: &Bytes, watched: &Watched) -> Self {
        let Watched { server_start, observed, transcript, .. } = watched;
        let (agent, body) = (agent.to_owned(), body.clone());
        let question = Question { server_start: *server_start, agent: agent.clone(), body };
        observed.add(Observation::AskBegan(question));
        transcript.happened(now(), SERVER, || Happening::AskBegan { agent: agent.clone() });
        let (observed, transcript) = (observed.clone(), transcript.clone());
        Self { agent, observed, transcript, said: Said::Nothing, record: Vec::new() }
    }

    /// Hears a piece of the answer. Records end with an empty line.
    fn hear(&mut self, piece: &[u8]) {
        for byte in piece.iter().filter(|byte| **byte != b'\r') {
            if self.said == Said::Words {
                return;
            }
            self.record.push(*byte);
            if self.record.ends_with(b"\n\n") {
                let record = std::mem::take(&mut self.record);
                let mut data = record.split(|byte| *byte == b'\n');
                if data.any(|line| line.strip_prefix(b"data:").is_some_and(has_words)) {
                    self.said = Said::Words;
                }
            }
        }
    }
}

/// Whether a record of either wire has text for a reader.
fn has_words(data: &[u8]) -> bool {
    let Ok(data) = serde_json::from_slice::<Value>(data) else { return false };
    let texts = [&data["choices"][0]["delta"]["content"], &data["delta"]["text"]];
    texts.iter().any(|text| text.as_str().is_some_and(|text| !text.trim().is_empty()))
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let agent = || self.agent.clone();
        let said = self.said;
        self.observed.add(Observation::AskEnded { agent: agent(), said });
        self.transcript.happened(now(), SERVER, || Happening::AskEnded { agent: agent() });
    }
}

struct Answer {
    body: HttpBody,
    exchange: Option<Exchange>,
}

impl Stream for Answer {
    type Item = Result<Bytes, HttpError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let polled = self.body.as_mut().poll_next(cx);
        if let (Poll::Ready(Some(Ok(piece))), Some(exchange)) = (&polled, &mut self.exchange) {
            exchange.hear(piece);
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, StatusCode};

    use super::*;

    /// Answers everything with an empty body.
    struct Empty;

    impl Http for Empty {
        fn with(self: Arc<Self>, _: &HttpTerms) -> Arc<dyn Http> {
            self
        }

        fn send(&self, _: Request<Bytes>) -> BoxFuture<'_, Result<HttpResponse, HttpError>> {
            let body = Box::pin(futures_util::stream::empty());
            let response = HttpResponse { status: StatusCode::OK, headers: HeaderMap::new(), body };
            Box::pin(std::future::ready(Ok(response)))
        }
    }

    #[tokio::test]
    async fn an_exchange_is_open_until_nobody_holds_its_answer() {
        let observed = Observed::default();
        let http = Watched::new(Arc::new(Empty), 3, observed.clone(), Transcript::default());
        let request =
            || Request::builder().header(AGENT_HEADER, "scout").body(Bytes::new()).unwrap();
        let response = http.send(request()).await.unwrap();
        let taken = observed.take();
        let [Observation::AskBegan(question)] = taken.as_slice() else { panic!("{taken:?}") };
        assert_eq!((question.agent.as_str(), question.server_start), ("scout", 3));
        drop(response);
        let taken = observed.take();
        let [Observation::AskEnded { agent, said }] = taken.as_slice() else { panic!("{taken:?}") };
        assert_eq!((agent.as_str(), *said), ("scout", Said::Nothing));
        drop(http.send(request()));
        assert!(observed.take().is_empty(), "what was never sent is no exchange");
    }

    #[test]
    fn words_count_once_their_record_is_whole() {
        let said = |pieces: &[&str]| {
            let watched =
                Watched::new(Arc::new(Empty), 1, Observed::default(), Transcript::default());
            let mut exchange = Exchange::begin("scout", &Bytes::new(), &watched);
            for piece in pieces {
                exchange.hear(piece.as_bytes());
            }
            exchange.said
        };
        let chat = r#"data: {"choices":[{"delta":{"content":"One"}}]}"#;
        assert_eq!(said(&[chat, "\r\n", "\r\n"]), Said::Words);
        assert_eq!(said(&[chat, "\n"]), Said::Nothing);
        let empty = r#"data: {"choices":[{"delta":{"content":"","role":"assistant"}}]}"#;
        assert_eq!(said(&[empty, "\n\n"]), Said::Nothing);
        let block =
            r#"data: {"type":"content_block_delta","delta":{"type":"text_delta","text":"x"}}"#;
        assert_eq!(said(&["event: content_block_delta\n", block, "\n\n"]), Said::Words);
    }
}
