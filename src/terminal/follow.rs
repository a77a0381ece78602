//! The events of one agent, or what has to be known of all, on a task of its own that ends with this: it
//! comes back by its cursor however often the server goes.

use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::sleep;

use super::core::WANTED;
use crate::client::{ClientError, Detection, Events, NexusClient};
use crate::event::{Event, Seq, What};
use crate::id::AgentId;
use crate::limits::CLIENT_REOPEN_AFTER;
use crate::limits::terminal::{EVENTS_AT_ONCE_MAX, TEXT_AT_ONCE_BYTES_MAX};

#[derive(Debug)]
pub enum Heard {
    Event(Box<Event>),
    Lost(String),
    Back,
    /// The last; perhaps with a reason.
    Over(Option<String>),
}

#[derive(Debug)]
pub struct Following {
    heard: mpsc::Receiver<Heard>,
    task: AbortHandle,
}

impl Drop for Following {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Following {
    /// Follows an agent.
    pub fn start(client: NexusClient, agent: AgentId, after: Seq) -> Self {
        Self::begin(client, Whom::Agent(agent), after)
    }

    /// Follows everybody, but hears only what [`WANTED`] names.
    pub fn everybody(client: NexusClient, after: Seq) -> Self {
        Self::begin(client, Whom::Everybody, after)
    }

    fn begin(client: NexusClient, whom: Whom, after: Seq) -> Self {
        let (sender, heard) = mpsc::channel(EVENTS_AT_ONCE_MAX);
        let events = whom.events(&client, after);
        let follower = Follower { client, whom, events, after, sender };
        Self { heard, task: tokio::spawn(follower.run()).abort_handle() }
    }

    pub async fn next(&mut self) -> Option<Heard> {
        self.heard.recv().await
    }

    /// The next, if it has come already.
    pub fn at_hand(&mut self) -> Option<Heard> {
        self.heard.try_recv().ok()
    }
}

enum Whom {
    /// By the id that it has now.
    Agent(AgentId),
    Everybody,
}

impl Whom {
    fn events(&self, client: &NexusClient, after: Seq) -> Events {
        match self {
            Self::Agent(agent) => client.events(Some(agent), Some(after)),
            Self::Everybody => client.events(None, Some(after)).only(WANTED),
        }
    }
}

struct Follower {
    client: NexusClient,
    whom: Whom,
    events: Events,
    after: Seq,
    sender: mpsc::Sender<Heard>,
}

/// Nobody listens any more.
struct Unheard;

impl Follower {
    async fn run(mut self) {
        // Whoever listened is gone; nothing is left to do.
        let _ = self.tell_all().await;
    }

    async fn tell_all(&mut self) -> Result<(), Unheard> {
        let mut why = None;
        loop {
            match self.events.next().await {
                Some(Ok(event)) => {
                    // Who refused before has thought better of it.
                    why = None;
                    let stops = matches!(event.what, What::ServerStopping {});
                    self.heard(&event);
                    for piece in pieces(event) {
                        self.tell(Heard::Event(Box::new(piece))).await?;
                    }
                    if stops {
                        self.wait_for_server().await?;
                        self.events = self.whom.events(&self.client, self.after);
                    }
                }
                Some(Err(ClientError::Refused { error, .. })) => why = Some(error.message),
                Some(Err(error)) => {
                    self.tell(Heard::Lost(told(&error).to_owned())).await?;
                    self.wait_for_server().await?;
                }
                None => return self.tell(Heard::Over(why)).await,
            }
        }
    }

    async fn tell(&mut self, heard: Heard) -> Result<(), Unheard> {
        self.sender.send(heard).await.map_err(|_| Unheard)
    }

    fn heard(&mut self, event: &Event) {
        self.after = event.seq.unwrap_or(self.after);
        if let What::AgentUpdated { previous_agent_id: Some(previous), .. } = &event.what
            && let Whom::Agent(followed) = &mut self.whom
            && previous == followed
            && let Some(agent) = &event.agent_id
        {
            followed.clone_from(agent);
        }
    }

    async fn wait_for_server(&mut self) -> Result<(), Unheard> {
        loop {
            sleep(CLIENT_REOPEN_AFTER).await;
            if self.client.detect().await == Detection::NexusServer {
                return self.tell(Heard::Back).await;
            }
        }
    }
}

/// A reader that fell behind gets much text at once; in pieces it keeps nobody from typing.
fn pieces(event: Event) -> Vec<Event> {
    let What::ContentChunk { text, offset } = &event.what else {
        return vec![event];
    };
    let (mut pieces, mut rest, mut offset) = (Vec::new(), text.as_str(), *offset);
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(TEXT_AT_ONCE_BYTES_MAX));
        let what = What::ContentChunk { text: piece.to_owned(), offset };
        pieces.push(Event { what, ..event.clone() });
        offset += piece.chars().count();
        rest = after;
    }
    pieces
}

/// Why a stream was lost, in words of our own.
fn told(error: &ClientError) -> &'static str {
    match error {
        ClientError::NoServer { .. } => "nobody answers",
        ClientError::Timeout { .. } => "it is silent for too long",
        ClientError::Protocol { .. } => "the connection broke",
        ClientError::Refused { .. } | ClientError::Rpc { .. } => "it refuses",
        ClientError::Unnamed => "a message has no name",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn much_text_comes_in_pieces_that_make_the_same() {
        let agent = AgentId::parse("scout").unwrap();
        let at = "2026-01-01T00:00:00Z".parse().unwrap();
        let text = "grüße ".repeat(TEXT_AT_ONCE_BYTES_MAX);
        let chunk = What::ContentChunk { text: text.clone(), offset: 7 };
        let (mut said, mut next) = (String::new(), 7);
        for piece in pieces(Event::new(&agent, at, chunk)) {
            let What::ContentChunk { text, offset } = piece.what else { panic!("it is text") };
            assert!(offset == next && text.len() <= TEXT_AT_ONCE_BYTES_MAX);
            next += text.chars().count();
            said.push_str(&text);
        }
        assert_eq!(said, text);
    }
}
