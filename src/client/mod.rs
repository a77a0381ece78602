//! The client library: every method of the server and its events, typed, over any world's network.
//! It speaks plain HTTP to loopback and opens a connection per call. Only two things are tried again:
//! a `send` whose answer does not come, by its request id, and a lost stream of events, by its cursor.
//!
//! The network is the trait [`Net`]: sockets of the machine, the simulation's, or [`InProcess`], which
//! leads to a server in the same process, past every check that a socket leads past.

mod address;
mod arriving;
mod detect;
mod events;
mod following;
mod in_process;
mod mcp;
mod methods;
mod sending;
mod sessions;
mod splice;
#[cfg(test)]
mod stage_tests;
mod token;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::response::Parts;
use http::{HeaderName, HeaderValue, Request, StatusCode};
use http_body_util::Full;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;

pub use address::local_address;
use arriving::Arriving;
pub use detect::Detection;
pub use events::EventStream;
pub use following::Events;
pub use in_process::InProcess;
pub use token::{TokenError, find_token};

use crate::id::AgentId;
use crate::limits::{CLIENT_CALL_MAX, CLIENT_CONNECT_MAX, TIMEOUT_SECONDS_MAX};
use crate::rpc::method::{Call, Method, Scope};
use crate::rpc::wire::ErrorObject;
use crate::world::{Chance, Net, World};

type Renewal = dyn Fn() -> Option<SecretString> + Send + Sync;

#[derive(Clone)]
pub struct NexusClient {
    net: Arc<dyn Net>,
    address: SocketAddr,
    token: Option<SecretString>,
    name: String,
    /// Where request ids come from.
    chance: Option<Arc<dyn Chance>>,
    /// Finds the token of a server that was started again.
    renewal: Option<Arc<Renewal>>,
    /// What every request says besides: later ones replace earlier ones of the same name.
    headers: Vec<(String, String)>,
}

impl std::fmt::Debug for NexusClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NexusClient").field("address", &self.address).finish_non_exhaustive()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("no server answers at {address}")]
    NoServer {
        address: SocketAddr,
        #[source]
        source: std::io::Error,
    },
    #[error("the server at {address} did not answer in time")]
    Timeout { address: SocketAddr },
    /// The connection broke, or what came back is not what a NEXUS3 server sends.
    #[error("the exchange with {address} failed: {what}")]
    Protocol { address: SocketAddr, what: String },
    /// The server refused the request with this HTTP status.
    #[error("{}", error.message)]
    Refused { status: StatusCode, error: ErrorObject },
    #[error("{}", error.message)]
    Rpc { error: ErrorObject },
    /// A message can only be asked for again by its name.
    #[error("a send needs a request id: name it, or give the client something to draw one from")]
    Unnamed,
}

impl ClientError {
    /// Whether the token was missing or wrong.
    pub fn is_authentication(&self) -> bool {
        match self {
            Self::Refused { status, error } => {
                *status == StatusCode::UNAUTHORIZED || error.message == "Invalid API key"
            }
            Self::NoServer { .. }
            | Self::Timeout { .. }
            | Self::Protocol { .. }
            | Self::Rpc { .. }
            | Self::Unnamed => false,
        }
    }
}

impl NexusClient {
    /// A client of the server at `address` in this world.
    pub fn on(world: &World, address: SocketAddr, token: Option<SecretString>) -> Self {
        Self::new(Arc::clone(&world.net), address, token).drawing_from(Arc::clone(&world.chance))
    }

    /// A client that names no message by itself.
    pub fn new(net: Arc<dyn Net>, address: SocketAddr, token: Option<SecretString>) -> Self {
        let name = "client".to_owned();
        Self { net, address, token, name, chance: None, renewal: None, headers: Vec::new() }
    }

    /// Draws the ids of messages that have none.
    #[must_use]
    pub fn drawing_from(mut self, chance: Arc<dyn Chance>) -> Self {
        self.chance = Some(chance);
        self
    }

    /// Looks for the token again where it is refused: every start of a server has another.
    #[must_use]
    pub fn renewing(
        mut self,
        find: impl Fn() -> Option<SecretString> + Send + Sync + 'static,
    ) -> Self {
        self.renewal = Some(Arc::new(find));
        self
    }

    /// Where its server is.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Names this client in messages and logs.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// Calls in the name of an agent, with no more than its rights.
    #[must_use]
    pub fn acting_as(self, agent: &AgentId) -> Self {
        self.with_header("x-nexus-agent", agent.as_str())
    }

    /// Adds a header to every request, or replaces the one the client would send.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Calls any method by its type. `agent` is needed for agents' methods, and only for them.
    pub async fn call<C: Call>(
        &self,
        agent: Option<&AgentId>,
        params: &C::Params,
    ) -> Result<C::Result, ClientError> {
        assert_eq!(
            agent.is_some(),
            C::METHOD.scope() == Scope::Agent,
            "agents' methods need an agent"
        );
        let params = serde_json::to_value(params).expect("params have only string keys");
        let result = self.call_by_name(agent, C::METHOD.name(), params).await?;
        serde_json::from_value(result)
            .map_err(|error| self.protocol(format!("unexpected result: {error}")))
    }

    /// Calls any method by its name, with params and result as JSON.
    pub async fn call_by_name(
        &self,
        agent: Option<&AgentId>,
        method: &str,
        params: Value,
    ) -> Result<Value, ClientError> {
        let path = agent.map_or_else(|| "/rpc".to_owned(), |agent| format!("/agent/{agent}"));
        let allowed = if waits_for_a_turn(method, &params) {
            // It ends by the server's own deadlines.
            Duration::from_secs_f64(TIMEOUT_SECONDS_MAX)
        } else {
            CLIENT_CALL_MAX
        };
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let exchange = self.exchange(Request::post(path), body.to_string());
        let (status, answer) = timeout(allowed, exchange).await.map_err(|_| self.timed_out())??;
        self.result(status, &answer)
    }

    fn result(&self, status: StatusCode, body: &[u8]) -> Result<Value, ClientError> {
        #[derive(Deserialize)]
        struct Answer {
            result: Option<Value>,
            error: Option<ErrorObject>,
        }
        let answer: Answer = serde_json::from_slice(body).map_err(|_| {
            self.protocol(format!("HTTP {} without a JSON-RPC answer", status.as_u16()))
        })?;
        match (answer.result, answer.error) {
            (_, Some(error)) if status == StatusCode::OK => Err(ClientError::Rpc { error }),
            (_, Some(error)) => Err(ClientError::Refused { status, error }),
            (Some(result), None) => Ok(result),
            (None, None) => Err(self.protocol("an answer without result and error".to_owned())),
        }
    }

    /// One request on a connection of its own; the whole answer.
    async fn exchange(
        &self,
        request: http::request::Builder,
        body: String,
    ) -> Result<(StatusCode, Bytes), ClientError> {
        let (head, arriving) = self.open(request, body).await?;
        let body = arriving.whole().await.map_err(|what| self.protocol(what))?;
        Ok((head.status, body))
    }

    /// One request on a connection of its own; the answer's head, and the rest as it comes.
    async fn open(
        &self,
        request: http::request::Builder,
        body: String,
    ) -> Result<(Parts, Arriving), ClientError> {
        let mut request = self.prepare(request, body)?;
        let (head, arriving) = Box::pin(self.open_once(request.clone())).await?;
        let refused = matches!(head.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        let renewed = self.renewal.as_ref().filter(|_| refused).and_then(|find| find());
        let same = |token: &SecretString| {
            self.token.as_ref().is_some_and(|used| used.expose_secret() == token.expose_secret())
        };
        match renewed.filter(|token| !same(token)).and_then(|token| bearer(&token)) {
            None => Ok((head, arriving)),
            Some(bearer) => {
                request.headers_mut().insert(AUTHORIZATION, bearer);
                Box::pin(self.open_once(request)).await
            }
        }
    }

    async fn open_once(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<(Parts, Arriving), ClientError> {
        let stream = timeout(CLIENT_CONNECT_MAX, self.net.connect(self.address))
            .await
            .map_err(|_| self.timed_out())?
            .map_err(|source| ClientError::NoServer { address: self.address, source })?;
        arriving::send(stream, request).await.map_err(|what| self.protocol(what))
    }

    fn prepare(
        &self,
        request: http::request::Builder,
        body: String,
    ) -> Result<Request<Full<Bytes>>, ClientError> {
        let mut request = request
            // Servers are local, whatever leads to them.
            .header(HOST, format!("localhost:{}", self.address.port()))
            .header(CONTENT_TYPE, "application/json")
            .header("x-nexus-client", &self.name);
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, format!("Bearer {}", token.expose_secret()));
        }
        let mut request = request
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| self.protocol(error.to_string()))?;
        for (name, value) in &self.headers {
            let header = name.parse::<HeaderName>().ok().zip(HeaderValue::from_str(value).ok());
            let (name, value) =
                header.ok_or_else(|| self.protocol(format!("{name} is no valid header")))?;
            request.headers_mut().insert(name, value);
        }
        Ok(request)
    }

    fn timed_out(&self) -> ClientError {
        ClientError::Timeout { address: self.address }
    }

    fn protocol(&self, what: String) -> ClientError {
        ClientError::Protocol { address: self.address, what }
    }
}

/// Whether a call is answered only after a turn.
fn waits_for_a_turn(method: &str, params: &Value) -> bool {
    let first_answer = || params["wait_for_initial_response"] == json!(true);
    method == Method::Send.name() || (method == Method::CreateAgent.name() && first_answer())
}

/// The header that shows a token; `None` where it has bytes that no header may have.
fn bearer(token: &SecretString) -> Option<HeaderValue> {
    HeaderValue::from_str(&format!("Bearer {}", token.expose_secret())).ok()
}
