//! Outgoing HTTP by reqwest with rustls. Everything reqwest would do by itself (redirects, retries,
//! proxies, decompression, deadlines) is off: the callers decide, so that it is simulated too.

use std::error::Error;
use std::sync::OnceLock;

use bytes::Bytes;
use futures_util::TryStreamExt;
use http::Request;

use crate::world::{BoxFuture, Http, HttpError, HttpFault, HttpResponse};

/// Made at the first request: reading the machine's certificates takes longer than all the rest of
/// a start.
#[derive(Default)]
pub(super) struct Client {
    client: OnceLock<reqwest::Client>,
}

impl Client {
    fn client(&self) -> &reqwest::Client {
        self.client.get_or_init(|| {
            // reqwest takes the process's default. Somebody who installed one before us chose it.
            let _ = rustls::crypto::ring::default_provider().install_default();
            // A machine without root certificates still reaches models on plain HTTP: it gets a
            // client that trusts nobody, for which https is a failed connection.
            let client = plain().build().or_else(|_| plain().tls_certs_only([]).build());
            client.expect("a client that trusts nobody can always be built")
        })
    }
}

fn plain() -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .retry(reqwest::retry::never())
        .no_proxy()
        .tcp_nodelay(true)
}

impl Http for Client {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<HttpResponse, HttpError>> {
        Box::pin(async move {
            let request = reqwest::Request::try_from(request).map_err(before_the_answer)?;
            let response = self.client().execute(request).await.map_err(before_the_answer)?;
            Ok(HttpResponse {
                status: response.status(),
                headers: response.headers().clone(),
                body: Box::pin(response.bytes_stream().map_err(within_the_answer)),
            })
        })
    }
}

fn before_the_answer(error: reqwest::Error) -> HttpError {
    let fault = if error.is_builder() {
        HttpFault::Request
    } else if error.is_connect() {
        HttpFault::Connect
    } else {
        HttpFault::Reset
    };
    classified(fault, error)
}

fn within_the_answer(error: reqwest::Error) -> HttpError {
    classified(HttpFault::Broken, error)
}

fn classified(fault: HttpFault, error: reqwest::Error) -> HttpError {
    // A URL can hold a key in its query, and details are logged.
    let error = error.without_url();
    let mut detail = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        detail.push_str(": ");
        detail.push_str(&error.to_string());
        cause = error.source();
    }
    HttpError { fault, detail }
}
