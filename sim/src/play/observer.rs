//! Whose eyes `on = "event:…"` sees with: a host of its own that reads the global stream from its first
//! event on, over restarts by its cursor, on a link that takes no time and that no fault touches.
//! It is there only in runs that wait for an event, and stands in no transcript.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nexus3::client::{ClientError, EventStream, NexusClient};
use nexus3::event::{Event, Seq};
use nexus3::provider::script::After;
use nexus3::world::Net;
use secrecy::SecretString;
use tokio::time::sleep;

use super::OBSERVER;
use super::observed::{Observation, Observed, Opened, StreamEnd, StreamId};
use crate::hosts::TICK;
use crate::scenario::{EventTrigger, Pace};

/// By type and agent.
type Counts = BTreeMap<(&'static str, Option<String>), u64>;

/// How often each event was heard, and which steps have ended. Cloning shares it.
#[derive(Clone, Debug, Default)]
pub struct Heard {
    /// Held for one look at a time, as the next; nothing is awaited under them.
    counts: Arc<Mutex<Counts>>,
    /// By their names.
    steps: Arc<Mutex<BTreeSet<String>>>,
}

impl Heard {
    /// Whether the event has come that a step or fault waits for.
    pub fn has(&self, trigger: &EventTrigger) -> bool {
        let EventTrigger { event, agent, nth } = trigger;
        let counts = self.counts();
        let meant = counts.iter().filter(|((name, of), _)| {
            name == event && (agent.is_none() || agent.as_deref() == of.as_deref())
        });
        meant.map(|(_, count)| count).sum::<u64>() >= *nth
    }

    pub fn step_ended(&self, name: &str) {
        self.steps().insert(name.to_owned());
    }

    /// Whether all has happened that an answer comes after.
    pub fn has_all(&self, after: &After) -> bool {
        let After { step, event, agent, nth } = after;
        let event = event.as_ref().map(|event| EventTrigger {
            event: event.clone(),
            agent: agent.clone(),
            nth: nth.unwrap_or(1),
        });
        step.as_ref().is_none_or(|step| self.steps().contains(step))
            && event.is_none_or(|event| self.has(&event))
    }

    fn steps(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, event: &Event) {
        let agent = event.agent_id.as_ref().map(ToString::to_string);
        *self.counts().entry((event.what.name(), agent)).or_default() += 1;
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How to come in where a server is up.
#[derive(Clone, Debug)]
pub struct Door {
    /// Which start of the server it is.
    pub server_start: u64,
    pub token: Option<SecretString>,
}

#[derive(Clone)]
pub struct Observer {
    pub net: Arc<dyn Net>,
    pub address: SocketAddr,
    /// `None` as long as the server is down.
    pub door: Arc<dyn Fn() -> Option<Door> + Send + Sync>,
    pub observed: Observed,
    pub heard: Heard,
}

impl std::fmt::Debug for Observer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Observer").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Observer {
    /// Reads until its host ends.
    pub async fn live(self) {
        let mut cursor = Some(0);
        for number in 0.. {
            let Door { server_start, token } = loop {
                if let Some(door) = (self.door)() {
                    break door;
                }
                sleep(TICK).await;
            };
            let net = Arc::clone(&self.net);
            let client = NexusClient::new(net, self.address, token).named("observer");
            match client.open_events(None, cursor).await {
                Ok(stream) => self.read(stream, (number, server_start), &mut cursor).await,
                // A server that forgot what it told: `events` says so, and what comes is heard.
                Err(ClientError::Refused { .. }) => cursor = None,
                Err(_) => {}
            }
            sleep(TICK).await;
        }
    }

    async fn read(
        &self,
        mut stream: EventStream,
        (number, server_start): (u64, u64),
        cursor: &mut Option<Seq>,
    ) {
        let id = StreamId { who: OBSERVER.to_owned(), number };
        let (agent, after, pace) = (None, *cursor, Pace::AtOnce);
        let opened = Opened { stream: id.clone(), server_start, agent, after, pace };
        self.observed.add(Observation::StreamOpened(opened));
        let end = loop {
            match stream.next().await {
                Some(Ok(event)) => {
                    self.heard.add(&event);
                    *cursor = event.seq.or(*cursor);
                    let (stream, event) = (id.clone(), Box::new(event));
                    self.observed.add(Observation::Event { stream, event });
                }
                Some(Err(ClientError::Timeout { .. })) => break StreamEnd::Silent,
                Some(Err(_)) => break StreamEnd::Broken,
                None => break StreamEnd::ByServer,
            }
        };
        self.observed.add(Observation::StreamEnded { stream: id, end });
    }
}

#[cfg(test)]
mod tests {
    use nexus3::event::What;
    use nexus3::id::AgentId;

    use super::*;

    #[test]
    fn an_event_is_waited_for_by_type_agent_and_count() {
        let heard = Heard::default();
        let tell = |agent: &str| {
            let agent = AgentId::parse(agent).unwrap();
            let at = "2026-01-01T00:00:00Z".parse().unwrap();
            heard.add(&Event::new(&agent, at, What::TurnQueued { position: 0 }));
        };
        let has = |event: &str, agent: Option<&str>, nth| {
            let (event, agent) = (event.to_owned(), agent.map(str::to_owned));
            heard.has(&EventTrigger { event, agent, nth })
        };
        assert!(!has("turn_queued", None, 1));
        tell("a");
        tell("b");
        assert!(has("turn_queued", None, 2) && !has("turn_queued", None, 3));
        assert!(has("turn_queued", Some("a"), 1) && !has("turn_queued", Some("a"), 2));
        assert!(!has("turn_started", None, 1) && !has("turn_queued", Some("c"), 1));
    }
}
