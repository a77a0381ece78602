//! Outgoing HTTP by reqwest with rustls. Everything reqwest would do by itself (redirects, retries,
//! proxies, decompression, deadlines) is off: the callers decide, so that it is simulated too.

use std::cell::Cell;
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use futures_util::TryStreamExt;
use http::{Request, Uri};
use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::net::lookup_host;
use tokio::sync::OnceCell;
use tower_layer::Layer;
use tower_service::Service;

use super::blocking::Threads;
use crate::causes::told;
use crate::limits::{
    HTTP_IDLE_CONNECTION_MAX, HTTP_IDLE_CONNECTIONS_MAX, HTTP_KEEP_ALIVE_AFTER,
    HTTP_KEEP_ALIVE_EVERY, HTTP_KEEP_ALIVE_PROBES_MAX,
};
use crate::reach::{Forbidden, Reach, literal};
use crate::world::{
    Blocking, BoxFuture, Connection, Http, HttpError, HttpFault, HttpResponse, HttpTerms,
};

/// Each half is made at its first request: reading the machine's certificates takes longer than all
/// the rest of a start.
#[derive(Default)]
pub(super) struct Client {
    terms: HttpTerms,
    keeping: OnceCell<reqwest::Client>,
    fresh: OnceCell<reqwest::Client>,
    /// Where the last request went, as most of the next ones do: reading it anew takes longer than all
    /// else that is done with a request here.
    last: ArcSwapOption<(Uri, Url)>,
}

impl Client {
    fn request(&self, request: Request<Bytes>) -> Result<reqwest::Request, HttpError> {
        let (head, body) = request.into_parts();
        let mut request = reqwest::Request::new(head.method, self.url(&head.uri)?);
        *request.version_mut() = head.version;
        *request.headers_mut() = head.headers;
        *request.body_mut() = Some(body.into());
        Ok(request)
    }

    fn url(&self, uri: &Uri) -> Result<Url, HttpError> {
        let last = self.last.load();
        if let Some((_, url)) = last.as_deref().filter(|(of, _)| of == uri) {
            return Ok(url.clone());
        }
        let url = Url::parse(&uri.to_string())
            .map_err(|error| HttpError { fault: HttpFault::Request, detail: told(&error) })?;
        self.last.store(Some(Arc::new((uri.clone(), url.clone()))));
        Ok(url)
    }

    async fn client(&self, connection: Connection) -> &reqwest::Client {
        let (cell, idle_connections_max) = match connection {
            Connection::Kept => (&self.keeping, HTTP_IDLE_CONNECTIONS_MAX),
            Connection::Fresh => (&self.fresh, 0),
        };
        let terms = self.terms.clone();
        cell.get_or_init(|| async move {
            let threads: &dyn Blocking = &Threads;
            threads.call(move || build(&terms, idle_connections_max)).await
        })
        .await
    }
}

/// Reads the machine's certificates, which may hold its thread for a while.
fn build(terms: &HttpTerms, idle_connections_max: usize) -> reqwest::Client {
    // reqwest takes the process's default. Somebody who installed one before us chose it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let authorities = || {
        terms.authorities.certificates.iter().map(|certificate| {
            reqwest::Certificate::from_der(certificate).expect("authorities are parsed before")
        })
    };
    let plain = || plain(terms.reach).pool_max_idle_per_host(idle_connections_max);
    // A machine without root certificates still reaches models on plain HTTP, and those that an
    // authority of the terms vouches for: to all others, https is a failed connection.
    let client = plain().tls_certs_merge(authorities()).build();
    client
        .or_else(|_| plain().tls_certs_only(authorities()).build())
        .expect("a client without the machine's certificates can always be built")
}

fn plain(reach: Reach) -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .retry(reqwest::retry::never())
        .no_proxy()
        .tcp_nodelay(true)
        .pool_idle_timeout(HTTP_IDLE_CONNECTION_MAX)
        .tcp_keepalive(HTTP_KEEP_ALIVE_AFTER)
        .tcp_keepalive_interval(HTTP_KEEP_ALIVE_EVERY)
        .tcp_keepalive_retries(HTTP_KEEP_ALIVE_PROBES_MAX)
        .dns_resolver(Resolver { reach })
        .connector_layer(Dialling)
}

impl Http for Client {
    fn with(self: Arc<Self>, terms: &HttpTerms) -> Arc<dyn Http> {
        Arc::new(Self { terms: terms.clone(), ..Self::default() })
    }

    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<HttpResponse, HttpError>> {
        Box::pin(async move {
            let connection = Connection::of(&request);
            let request = self.request(request)?;
            // What is asked for an address is the URL that will be used: other spellings of an
            // address, such as one number, are plain ones there.
            if let Some(address) = request.url().host_str().and_then(literal) {
                self.terms.reach.check(address).map_err(forbidden)?;
            }
            let client = self.client(connection).await;
            let (response, dialled) = DIALLED
                .scope(Cell::new(Dialled::No), async {
                    let response = client.execute(request).await;
                    (response, DIALLED.with(Cell::get))
                })
                .await;
            let response = response.map_err(|error| before_the_answer(error, dialled))?;
            Ok(HttpResponse {
                status: response.status(),
                headers: response.headers().clone(),
                body: Box::pin(response.bytes_stream().map_err(within_the_answer)),
            })
        })
    }
}

/// Resolves names as the machine does, and leaves out what may not be reached. What it returns is
/// what is connected to: nobody resolves the name a second time.
struct Resolver {
    reach: Reach,
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let reach = self.reach;
        Box::pin(async move {
            // The port of the URL takes the place of this one.
            let found: Vec<_> = lookup_host((name.as_str(), 0)).await?.collect();
            Ok(Box::new(allowed(reach, found)?.into_iter()) as Addrs)
        })
    }
}

fn allowed(
    reach: Reach,
    found: Vec<SocketAddr>,
) -> Result<Vec<SocketAddr>, Box<dyn Error + Send + Sync>> {
    let mut refused = None;
    let mut allowed = Vec::new();
    for address in found {
        match reach.check(address.ip()) {
            Ok(()) => allowed.push(address),
            Err(forbidden) => refused = refused.or(Some(forbidden)),
        }
    }
    match refused {
        Some(forbidden) if allowed.is_empty() => Err(forbidden.into()),
        None if allowed.is_empty() => Err(io::Error::from(io::ErrorKind::NotFound).into()),
        Some(_) | None => Ok(allowed),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialled {
    No,
    Yes,
}

tokio::task_local! {
    /// Whether the request that is being sent in this task made a connection of its own.
    static DIALLED: Cell<Dialled>;
}

/// Notes the connections that are made. The pool makes them within the future of the request that
/// needs one, and finishes in a task of its own those that it no longer needs because another one
/// became free: a request that broke without a connection made in its own future used a kept one.
#[derive(Clone, Copy, Debug)]
struct Dialling;

impl<S> Layer<S> for Dialling {
    type Service = Dialler<S>;

    fn layer(&self, inner: S) -> Dialler<S> {
        Dialler { inner }
    }
}

#[derive(Clone, Debug)]
struct Dialler<S> {
    inner: S,
}

impl<S, R> Service<R> for Dialler<S>
where
    S: Service<R>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let dialling = self.inner.call(request);
        Box::pin(async move {
            let connection = dialling.await?;
            // Nobody asks where it is made in a task of its own.
            let _ = DIALLED.try_with(|dialled| dialled.set(Dialled::Yes));
            Ok(connection)
        })
    }
}

fn forbidden(forbidden: Forbidden) -> HttpError {
    HttpError { fault: HttpFault::Forbidden, detail: forbidden.to_string() }
}

fn before_the_answer(error: reqwest::Error, dialled: Dialled) -> HttpError {
    if let Some(cause) = cause::<Forbidden>(&error) {
        return forbidden(*cause);
    }
    let no_http = cause::<hyper::Error>(&error).is_some_and(hyper::Error::is_parse);
    let fault = if error.is_builder() {
        HttpFault::Request
    } else if error.is_connect() {
        HttpFault::Connect
    } else {
        match dialled {
            Dialled::No if !no_http => HttpFault::Stale,
            Dialled::No | Dialled::Yes => HttpFault::Reset,
        }
    };
    classified(fault, error)
}

fn within_the_answer(error: reqwest::Error) -> HttpError {
    classified(HttpFault::Broken, error)
}

fn classified(fault: HttpFault, error: reqwest::Error) -> HttpError {
    // A URL can hold a key in its query, and details are logged.
    let error = error.without_url();
    HttpError { fault, detail: told(&error) }
}

/// The first cause of a kind.
fn cause<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        cause = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_what_may_be_reached_alone() {
        let at = |address: &str| SocketAddr::new(address.parse().unwrap(), 0);
        let (public, private, metadata) = (at("8.8.8.8"), at("10.0.0.1"), at("169.254.169.254"));
        let judge = |reach, found: &[SocketAddr]| {
            allowed(reach, found.to_vec()).map_err(|error| cause::<Forbidden>(&*error).copied())
        };
        let all = [metadata, private, public];
        assert_eq!(judge(Reach::Public, &all), Ok(vec![public]));
        assert_eq!(judge(Reach::Private, &all), Ok(vec![private, public]));
        let refused = Forbidden::Metadata { address: metadata.ip() };
        assert_eq!(judge(Reach::Public, &all[..2]), Err(Some(refused)));
        assert_eq!(judge(Reach::Private, &all[..1]), Err(Some(refused)));
        assert_eq!(judge(Reach::Private, &[]), Err(None));
    }
}
