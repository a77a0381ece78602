//! The server's way out to its models, watched: when an exchange begins for an agent, and when it is
//! over. What goes through it is neither changed nor delayed.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::Stream;
use http::Request;
use nexus3::provider::script::AGENT_HEADER;
use nexus3::world::{BoxFuture, Http, HttpBody, HttpError, HttpResponse, HttpTerms};

use super::observed::{Observation, Observed, Question};
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
            let body = Box::pin(Answer { body: response.body, _exchange: exchange });
            Ok(HttpResponse { body, ..response })
        })
    }
}

/// An exchange that is open as long as this is held.
struct Exchange {
    agent: String,
    observed: Observed,
    transcript: Transcript,
}

impl Exchange {
    fn begin(agent: &str, body: &Bytes, watched: &Watched) -> Self {
        let Watched { server_start, observed, transcript, .. } = watched;
        let (agent, body) = (agent.to_owned(), body.clone());
        let question = Question { server_start: *server_start, agent: agent.clone(), body };
        observed.add(Observation::AskBegan(question));
        transcript.happened(now(), SERVER, || Happening::AskBegan { agent: agent.clone() });
        Self { agent, observed: observed.clone(), transcript: transcript.clone() }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let agent = || self.agent.clone();
        self.observed.add(Observation::AskEnded { agent: agent() });
        self.transcript.happened(now(), SERVER, || Happening::AskEnded { agent: agent() });
    }
}

struct Answer {
    body: HttpBody,
    _exchange: Option<Exchange>,
}

impl Stream for Answer {
    type Item = Result<Bytes, HttpError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.body.as_mut().poll_next(cx)
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
        assert!(matches!(taken.as_slice(), [Observation::AskEnded { agent }] if agent == "scout"));
        drop(http.send(request()));
        assert!(observed.take().is_empty(), "what was never sent is no exchange");
    }
}
