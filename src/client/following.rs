//! Events over lost connections: a stream that comes back with the cursor of the last durable event it
//! has told, so that none is missed and none comes twice, and whose running text is spliced.

use std::time::Duration;

use futures_util::stream::{self, Stream};
use tokio::time::sleep;

use super::splice::Splice;
use super::{ClientError, EventStream, NexusClient};
use crate::event::{Event, Seq, What};
use crate::id::AgentId;
use crate::limits::{CLIENT_REOPEN_AFTER, CLIENT_REOPEN_AFTER_MAX};

/// The events of an agent, or of all. Dropping it closes its connection.
#[derive(Debug)]
pub struct Events {
    client: NexusClient,
    /// By the id that it has now.
    agent: Option<AgentId>,
    cursor: Option<Seq>,
    state: State,
    splice: Splice,
    /// Attempts since the last event.
    attempts: u32,
    /// Whether the agent was gone by the last event; its id may have another life after that.
    gone: bool,
    opened: bool,
    wanted: Option<&'static [&'static str]>,
}

#[derive(Debug)]
enum State {
    Closed,
    Open(Box<EventStream>),
    /// The server has said its last, or will not tell.
    Over,
}

impl NexusClient {
    /// Follows an agent, or everything: what is kept after a cursor, then what happens. Nothing is
    /// asked before the first [`Events::next`].
    pub fn events(&self, agent: Option<&AgentId>, after: Option<Seq>) -> Events {
        Events {
            client: self.clone(),
            agent: agent.cloned(),
            cursor: after,
            state: State::Closed,
            splice: Splice::default(),
            attempts: 0,
            gone: false,
            opened: false,
            wanted: None,
        }
    }
}

impl Events {
    /// Passes over all events but those of these types, before they are even read: whoever listens to
    /// everybody need not pay for what everybody says. The cursor stays at the last one of them.
    #[must_use]
    pub fn only(mut self, types: &'static [&'static str]) -> Self {
        self.wanted = Some(types);
        self
    }

    /// The next event. An error tells that the stream was lost or could not be opened: whoever asks
    /// again has it opened again, after a while that grows. `None` once nothing will follow: the server
    /// stops, the agent is gone, or the request was refused for good.
    /// Snapshots come as the piece of text that was not told yet. Dropping the wait loses nothing.
    pub async fn next(&mut self) -> Option<Result<Event, ClientError>> {
        loop {
            match &mut self.state {
                State::Over => return None,
                State::Closed => {
                    if let Err(error) = self.reopen().await {
                        return Some(Err(error));
                    }
                }
                State::Open(stream) => match stream.next().await {
                    Some(Ok(event)) => {
                        self.heard(&event);
                        if let Some(event) = self.splice.on(event) {
                            return Some(Ok(event));
                        }
                    }
                    Some(Err(error)) => {
                        self.state = State::Closed;
                        return Some(Err(error));
                    }
                    None => self.ended(),
                },
            }
        }
    }

    /// The same for those who work with streams.
    pub fn into_stream(self) -> impl Stream<Item = Result<Event, ClientError>> {
        stream::unfold(self, async |mut events| {
            let event = events.next().await?;
            Some((event, events))
        })
    }

    /// The last durable event that was told.
    pub fn cursor(&self) -> Option<Seq> {
        self.cursor
    }

    /// Whether there was a stream: an error is then a loss.
    pub fn has_opened(&self) -> bool {
        self.opened
    }

    async fn reopen(&mut self) -> Result<(), ClientError> {
        if self.attempts > 0 {
            sleep(pause(self.attempts)).await;
        }
        self.attempts = self.attempts.saturating_add(1);
        match self.client.open_events(self.agent.as_ref(), self.cursor).await {
            Ok(mut stream) => {
                stream.want(self.wanted);
                self.state = State::Open(Box::new(stream));
                self.opened = true;
                Ok(())
            }
            Err(error) => {
                if is_final(&error) {
                    self.state = State::Over;
                }
                Err(error)
            }
        }
    }

    fn heard(&mut self, event: &Event) {
        self.attempts = 0;
        self.cursor = event.seq.or(self.cursor);
        let own = self.agent.is_some() && self.agent == event.agent_id;
        self.gone = matches!(event.what, What::AgentDestroyed { .. }) && own;
        if let What::AgentUpdated { previous_agent_id: Some(previous), .. } = &event.what
            && self.agent.as_ref() == Some(previous)
        {
            self.agent.clone_from(&event.agent_id);
        }
        if matches!(event.what, What::ServerStopping {}) {
            self.state = State::Over;
        }
    }

    /// The server closed the stream. It does so to readers that are slow, who come back.
    fn ended(&mut self) {
        // Nothing is left of an agent whose stream ends before its first event.
        let empty = self.agent.is_some() && self.attempts > 0;
        self.state = if self.gone || empty { State::Over } else { State::Closed };
    }
}

fn pause(attempts: u32) -> Duration {
    let doublings = attempts.saturating_sub(1).min(16);
    (CLIENT_REOPEN_AFTER * (1 << doublings)).min(CLIENT_REOPEN_AFTER_MAX)
}

/// Whether asking again would give the same.
fn is_final(error: &ClientError) -> bool {
    match error {
        ClientError::Refused { status, .. } => status.is_client_error(),
        ClientError::NoServer { .. }
        | ClientError::Timeout { .. }
        | ClientError::Protocol { .. }
        | ClientError::Rpc { .. }
        | ClientError::Unnamed => false,
    }
}

#[cfg(test)]
#[path = "following_tests.rs"]
mod tests;
