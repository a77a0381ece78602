//! What answers at an address: one of our servers, something else, or nothing.

use http::{Request, StatusCode};
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use super::{ClientError, NexusClient};
use crate::limits::CLIENT_CONNECT_MAX;
use crate::rpc::wire::ErrorObject;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Detection {
    NoServer,
    NexusServer,
    OtherService,
    Timeout,
    Error,
}

impl Detection {
    pub fn name(self) -> &'static str {
        match self {
            Self::NoServer => "no_server",
            Self::NexusServer => "nexus_server",
            Self::OtherService => "other_service",
            Self::Timeout => "timeout",
            Self::Error => "error",
        }
    }
}

impl NexusClient {
    /// Asks `/healthz`, and where that says nothing, how `POST /` is refused without a token.
    pub async fn detect(&self) -> Detection {
        let nobody = Self { token: None, ..self.clone() };
        match timeout(CLIENT_CONNECT_MAX, nobody.look()).await {
            Ok(detection) => detection,
            Err(_) => Detection::Timeout,
        }
    }

    async fn look(&self) -> Detection {
        match self.exchange(Request::get("/healthz"), String::new()).await {
            Ok((StatusCode::OK, body)) if is_health(&body) => return Detection::NexusServer,
            Ok(_) => {}
            Err(ClientError::NoServer { source, .. }) => {
                return match source.kind() {
                    std::io::ErrorKind::ConnectionRefused => Detection::NoServer,
                    _ => Detection::Error,
                };
            }
            Err(ClientError::Timeout { .. }) => return Detection::Timeout,
            // It speaks, but no HTTP.
            Err(_) => return Detection::OtherService,
        }
        match self.exchange(Request::post("/"), String::new()).await {
            Ok((StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, body)) if is_refusal(&body) => {
                Detection::NexusServer
            }
            Ok(_) => Detection::OtherService,
            Err(_) => Detection::Error,
        }
    }
}

fn is_health(body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Health {
        service: String,
    }
    serde_json::from_slice::<Health>(body).is_ok_and(|health| health.service == "nexus3")
}

fn is_refusal(body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Refusal {
        jsonrpc: String,
        error: ErrorObject,
    }
    serde_json::from_slice::<Refusal>(body)
        .is_ok_and(|refusal| refusal.jsonrpc == "2.0" && refusal.error.code == -32600)
}
