//! One message and what becomes of it, also over a lost connection or a restart of the server. It has a
//! name, by which it can be asked for and said again: the server runs one turn for one name.

use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::{ClientError, NexusClient};
use crate::code::Code;
use crate::id::{AgentId, RequestId};
use crate::limits::{
    AUTO_AGENT_ID_HEX, AUTO_REQUEST_ID_HEX, CLIENT_ASK_AFTER, CLIENT_ASK_AFTER_LOSS,
    CLIENT_ASK_EVERY, CLIENT_CALL_MAX, TIMEOUT_SECONDS_MAX,
};
use crate::rpc::method::{GetRequestResult, RequestStatus, SendParams, SendResult, call};
use crate::world::Use;

/// What is known of a message for sure.
enum Known {
    Ended(Result<SendResult, ClientError>),
    /// The server never took it.
    Nothing,
}

impl NexusClient {
    /// Sends a message and waits for its turn, unless `wait` is false. A message without a request id
    /// gets one. Where no answer comes, the server is asked what became of it, and told again if it
    /// does not know.
    pub async fn send(
        &self,
        agent: &AgentId,
        params: &SendParams,
    ) -> Result<SendResult, ClientError> {
        let request_id = match &params.request_id {
            Some(request_id) => request_id.clone(),
            None => self.draw_request_id()?,
        };
        let params = SendParams { request_id: Some(request_id.clone()), ..params.clone() };
        if params.wait == Some(false) {
            return self.call::<call::Send>(Some(agent), &params).await;
        }
        let sending = async {
            loop {
                if let Known::Ended(outcome) = self.say(agent, &params, &request_id).await {
                    return outcome;
                }
            }
        };
        // The server ends the turn by then, so whoever still waits waits for nobody.
        let turn_max = params.timeout.unwrap_or(TIMEOUT_SECONDS_MAX).min(TIMEOUT_SECONDS_MAX);
        let turn_max = Duration::try_from_secs_f64(turn_max).unwrap_or_default();
        timeout(turn_max + CLIENT_CALL_MAX, sending).await.map_err(|_| self.timed_out())?
    }

    /// A request id as a server would draw it.
    pub fn draw_request_id(&self) -> Result<RequestId, ClientError> {
        let chance = self.chance.as_ref().ok_or(ClientError::Unnamed)?;
        let drawn = chance.hex(Use::RequestId, AUTO_REQUEST_ID_HEX);
        Ok(RequestId::parse(&drawn).expect("digits are a request id"))
    }

    /// An agent id as a server would draw it.
    pub fn draw_agent_id(&self) -> Result<AgentId, ClientError> {
        let chance = self.chance.as_ref().ok_or(ClientError::Unnamed)?;
        let drawn = chance.hex(Use::AgentId, AUTO_AGENT_ID_HEX);
        Ok(AgentId::parse(&drawn).expect("digits are an agent id"))
    }

    async fn say(&self, agent: &AgentId, params: &SendParams, id: &RequestId) -> Known {
        let answer = Box::pin(self.call::<call::Send>(Some(agent), params));
        let asked = Box::pin(self.ask(agent, id, CLIENT_ASK_AFTER));
        let answer = tokio::select! {
            // An answer that has come is better than one that was asked for.
            biased;
            answer = answer => answer,
            known = asked => return known,
        };
        match answer {
            // The connection broke. The server may have the message, and may be starting again.
            Err(ClientError::Protocol { .. }) => self.ask(agent, id, CLIENT_ASK_AFTER_LOSS).await,
            answer => Known::Ended(answer),
        }
    }

    /// Asks now and then what became of a message, until that is known.
    async fn ask(&self, agent: &AgentId, id: &RequestId, first: Duration) -> Known {
        sleep(first).await;
        loop {
            match self.get_request(agent, id.clone()).await {
                Ok(told) => {
                    if let Some(outcome) = self.outcome(told) {
                        return Known::Ended(outcome);
                    }
                }
                Err(ClientError::Rpc { error }) if error.code == Code::InvalidParams.number() => {
                    return Known::Nothing;
                }
                Err(error) if passes(&error) => {}
                Err(error) => return Known::Ended(Err(error)),
            }
            sleep(CLIENT_ASK_EVERY).await;
        }
    }

    fn outcome(&self, told: GetRequestResult) -> Option<Result<SendResult, ClientError>> {
        match (told.status, told.result, told.error) {
            (RequestStatus::Queued | RequestStatus::Running, _, _) => None,
            (_, Some(result), _) => Some(Ok(result)),
            (_, None, Some(error)) => Some(Err(ClientError::Rpc { error })),
            (_, None, None) => {
                Some(Err(self.protocol("a turn that ended without an outcome".to_owned())))
            }
        }
    }
}

/// Whether a server that answers like this may well answer otherwise later.
fn passes(error: &ClientError) -> bool {
    match error {
        ClientError::Timeout { .. } => true,
        ClientError::Refused { status, .. } => status.is_server_error(),
        ClientError::NoServer { .. }
        | ClientError::Protocol { .. }
        | ClientError::Rpc { .. }
        | ClientError::Unnamed => false,
    }
}

#[cfg(test)]
#[path = "sending_tests.rs"]
mod tests;
