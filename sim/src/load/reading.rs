//! The reader of a load: it hears everything that the agents do and holds the server to it. What it
//! finds is an error of the load, as a wrong answer is.

use std::collections::{BTreeMap, VecDeque};

use nexus3::client::EventStream;
use nexus3::event::{Event, Seq, What};
use nexus3::hub::Subscription;
use nexus3::id::{AgentId, RequestId};
use nexus3::limits::CLIENT_ANSWER_BYTES_MAX;
use nexus3::sse::{Record, SseParser};

/// Where events come from.
#[derive(Debug)]
pub enum Feed {
    Http(Box<EventStream>),
    Direct(Box<InProcess>),
}

/// What a server would write to a stream, read without one.
pub struct InProcess {
    subscription: Subscription,
    parser: SseParser,
    records: VecDeque<Record>,
}

impl std::fmt::Debug for InProcess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InProcess").finish_non_exhaustive()
    }
}

impl InProcess {
    pub fn new(subscription: Subscription) -> Self {
        let parser = SseParser::new(CLIENT_ANSWER_BYTES_MAX);
        Self { subscription, parser, records: VecDeque::new() }
    }

    async fn next(&mut self) -> Result<Event, String> {
        loop {
            if let Some(record) = self.records.pop_front() {
                return Event::read(&record.data).map_err(|error| error.to_string());
            }
            let frame = self.subscription.next().await.ok_or("the stream has ended")?;
            let mut records = Vec::new();
            self.parser.push(&frame, &mut records).map_err(|error| error.to_string())?;
            self.records.extend(records);
        }
    }
}

impl Feed {
    async fn next(&mut self) -> Result<Event, String> {
        match self {
            Self::Http(stream) => match stream.next().await {
                Some(event) => event.map_err(|error| error.to_string()),
                None => Err("the stream has ended".to_owned()),
            },
            Self::Direct(feed) => feed.next().await,
        }
    }
}

/// What was heard so far.
#[derive(Debug, Default)]
pub struct Reader {
    last: Option<Seq>,
    running: BTreeMap<AgentId, Running>,
    /// The turns that have ended, of each agent in their order.
    pub ended: BTreeMap<AgentId, Vec<RequestId>>,
    turns: u64,
}

/// A turn that has begun and not ended.
#[derive(Debug)]
struct Running {
    request: RequestId,
    /// Its text as far as it was told.
    text: String,
    chars: usize,
}

impl Reader {
    /// Reads until so many turns have ended.
    pub async fn read(mut self, mut feed: Feed, turns: u64) -> Result<Self, String> {
        while self.turns < turns {
            let event = feed.next().await?;
            self.hear(&event).map_err(|problem| format!("{problem}: {}", event.json()))?;
        }
        Ok(self)
    }

    /// An error says what does not hold.
    fn hear(&mut self, event: &Event) -> Result<(), &'static str> {
        if let Some(seq) = event.seq {
            if self.last.is_some_and(|last| last >= seq) {
                return Err("the numbers of durable events do not increase");
            }
            self.last = Some(seq);
        }
        let (Some(agent), Some(request)) = (&event.agent_id, &event.request_id) else {
            return Ok(());
        };
        match &event.what {
            What::TurnStarted { .. } => {
                let running = Running { request: request.clone(), text: String::new(), chars: 0 };
                let before = self.running.insert(agent.clone(), running);
                before.map_or(Ok(()), |_| Err("a turn starts while another one runs"))
            }
            What::ContentChunk { text, offset } => {
                let running = self.running(agent, request)?;
                if running.chars != *offset {
                    return Err("a chunk does not follow the text before it");
                }
                running.text.push_str(text);
                running.chars += text.chars().count();
                Ok(())
            }
            What::TurnSnapshot { text, .. } => {
                let running = self.running(agent, request)?;
                if !text.starts_with(&running.text) {
                    return Err("a snapshot has another text than its chunks");
                }
                running.text.clone_from(text);
                running.chars = text.chars().count();
                Ok(())
            }
            What::TurnCompleted { content, .. } => {
                // The last chunks of one that falls behind are told by the end of the turn.
                if !content.starts_with(&self.running(agent, request)?.text) {
                    return Err("a turn ends with another text than its chunks");
                }
                self.running.remove(agent);
                self.ended.entry(agent.clone()).or_default().push(request.clone());
                self.turns += 1;
                Ok(())
            }
            What::TurnCancelled(_) | What::TurnFailed(_) | What::TurnInterrupted(_) => {
                Err("a turn does not end well")
            }
            What::TurnQueued { .. } => Ok(()),
            What::AgentCreated { .. }
            | What::AgentDestroyed { .. }
            | What::AgentRestored { .. }
            | What::AgentUpdated { .. }
            | What::BatchStarted(_)
            | What::BatchHalted(_)
            | What::BatchCompleted(_)
            | What::ToolStarted { .. }
            | What::ToolCompleted { .. }
            | What::ProviderRetry { .. }
            | What::Compacted { .. }
            | What::ConfirmationRequested { .. }
            | What::ConfirmationResolved { .. }
            | What::ThinkingStarted {}
            | What::ThinkingEnded { .. }
            | What::ToolDetected { .. }
            | What::ToolProgress { .. }
            | What::StreamGap { .. }
            | What::ServerStopping {} => Err("a load has nothing like this"),
        }
    }

    fn running(
        &mut self,
        agent: &AgentId,
        request: &RequestId,
    ) -> Result<&mut Running, &'static str> {
        let running = self.running.get_mut(agent).filter(|running| running.request == *request);
        running.ok_or("a turn that does not run is told of")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::Timestamp;
    use nexus3::message::Usage;

    use super::*;

    fn event(seq: Option<Seq>, what: What) -> Event {
        let event = Event::new(&AgentId::parse("a").unwrap(), Timestamp::UNIX_EPOCH, what);
        Event { request_id: Some(RequestId::parse("r").unwrap()), seq, ..event }
    }

    fn started(seq: Seq) -> Event {
        let (content, source) = ("go".into(), "client".to_owned());
        event(Some(seq), What::TurnStarted { content, source, source_agent_id: None })
    }

    fn chunk(offset: usize, text: &str) -> Event {
        event(None, What::ContentChunk { text: text.to_owned(), offset })
    }

    fn completed(seq: Seq, text: &str) -> Event {
        let (content, finish_reason) = (Arc::from(text), "stop".to_owned());
        let usage = Usage::default();
        event(Some(seq), What::TurnCompleted { content, halted: false, finish_reason, usage })
    }

    fn heard(events: &[Event]) -> Result<u64, &'static str> {
        let mut reader = Reader::default();
        for event in events {
            reader.hear(event)?;
        }
        Ok(reader.turns)
    }

    #[test]
    fn a_turn_is_told_from_its_start_to_its_end() {
        let whole = [started(1), chunk(0, "é"), chunk(1, "b"), completed(2, "éb")];
        assert_eq!(heard(&whole), Ok(1));
        let turn = [started(1), completed(2, ""), started(3), completed(4, "")];
        assert_eq!(heard(&turn), Ok(2));
    }

    #[test]
    fn what_does_not_hold_is_told() {
        let order = "the numbers of durable events do not increase";
        assert_eq!(heard(&[started(1), completed(1, "")]), Err(order));
        assert_eq!(heard(&[started(1), started(2)]), Err("a turn starts while another one runs"));
        assert_eq!(heard(&[chunk(0, "a")]), Err("a turn that does not run is told of"));
        let gap = "a chunk does not follow the text before it";
        assert_eq!(heard(&[started(1), chunk(0, "a"), chunk(2, "b")]), Err(gap));
        let other = "a turn ends with another text than its chunks";
        assert_eq!(heard(&[started(1), chunk(0, "a"), completed(2, "b")]), Err(other));
    }
}
