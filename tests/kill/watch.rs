//! A reader of all events that outlives the servers: it comes back with the cursor of the last
//! durable event it saw, and must see each once.

use nexus3::client::{EventStream, NexusClient};
use nexus3::event::{Event, Seq};
use nexus3::id::AgentId;

#[derive(Default)]
pub struct Watcher {
    seen: Vec<Event>,
}

impl Watcher {
    pub fn len(&self) -> usize {
        self.seen.len()
    }

    pub fn seen(&self) -> &[Event] {
        &self.seen
    }

    /// Reads until the stream breaks with its server.
    pub async fn follow(&mut self, client: NexusClient) {
        let Ok(mut stream) = client.open_events(None, Some(self.cursor())).await else {
            return;
        };
        while let Some(Ok(event)) = stream.next().await {
            self.take(event);
        }
    }

    /// Comes back and reads until this agent was created.
    pub async fn until_created(&mut self, client: &NexusClient, agent: &AgentId) {
        let cursor = self.cursor();
        let mut stream = open(client, cursor).await;
        for event in durable_until_created(&mut stream, agent).await {
            self.take(event);
        }
    }

    fn cursor(&self) -> Seq {
        self.seen.last().and_then(|event| event.seq).unwrap_or(0)
    }

    fn take(&mut self, event: Event) {
        if let Some(seq) = event.seq {
            assert!(seq > self.cursor(), "{seq} comes after {}: {event:?}", self.cursor());
            self.seen.push(event);
        }
    }
}

/// Everything that is kept, up to the creation of an agent.
pub async fn kept_until_created(client: &NexusClient, agent: &AgentId) -> Vec<Event> {
    let mut stream = open(client, 0).await;
    durable_until_created(&mut stream, agent).await
}

async fn open(client: &NexusClient, after: Seq) -> EventStream {
    client
        .open_events(None, Some(after))
        .await
        .expect("the stream opens with a cursor that was seen")
}

async fn durable_until_created(stream: &mut EventStream, agent: &AgentId) -> Vec<Event> {
    let mut events = Vec::new();
    loop {
        let event = stream.next().await.expect("the server lives").expect("the stream is whole");
        let is_last =
            event.what.name() == "agent_created" && event.agent_id.as_ref() == Some(agent);
        if event.seq.is_some() {
            events.push(event);
        }
        if is_last {
            return events;
        }
    }
}
