//! `rpc watch` and `trace`: events as they happen, for people, or as lines of JSON for programs.

use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::pin::pin;
use std::time::Duration;

use clap::Args;
use http::StatusCode;
use tokio::time::{Instant, timeout};

use super::Failed;
use super::connection::{Connection, Flags, failed};
use super::output::{self, Reader};
use super::view::{Colours, View};
use crate::client::{ClientError, Events};
use crate::event::{Event, Seq, What};
use crate::id::AgentId;
use crate::world::World;

/// A server that is away for this long does not come back.
const AWAY_MAX: Duration = Duration::from_mins(1);
/// Kept events come without a pause; who reads only those waits no longer than this for the last.
const QUIET_MAX: Duration = Duration::from_secs(2);

/// Shows what an agent does, or all of them, until it is interrupted
///
/// A lost server is tried again for a minute, and what was missed is shown.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    nexus3 rpc watch\n  \
    nexus3 rpc watch scout --after 0\n  \
    nexus3 rpc watch --json | head -3")]
pub struct Watch {
    /// Its id [default: everybody]
    agent: Option<AgentId>,
    /// Begins after this event: 0 shows all that is kept [default: with what happens now]
    #[arg(long, value_name = "SEQ")]
    after: Option<Seq>,
}

/// Shows what an agent and its children did
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  nexus3 trace scout\n  nexus3 trace scout --follow")]
pub struct Trace {
    #[command(flatten)]
    server: Flags,
    /// Its id
    agent: AgentId,
    /// Goes on with what happens, until it is interrupted
    #[arg(long)]
    follow: bool,
}

impl Watch {
    pub async fn run(self, connection: &Connection) -> Result<(), Failed> {
        let events = connection.client.events(self.agent.as_ref(), self.after);
        Watching::new(connection, events, Whom::All, None).run().await
    }
}

impl Trace {
    pub async fn run(self, world: &World) -> Result<(), Failed> {
        let connection = self.server.connect(world)?;
        let client = &connection.client;
        let newest = connection.answered(client.newest_event().await).await?;
        let agents = connection.answered(client.list_agents().await).await?.agents;
        let until = (!self.follow).then_some(newest);
        let (first, called) = match first(&connection, &self.agent).await? {
            Some(found) => found,
            // Nothing of it is kept.
            None if agents.iter().any(|agent| agent.agent_id == self.agent) => {
                (newest + 1, self.agent.clone())
            }
            None => return Err(connection.no_agent(&self.agent).await),
        };
        if until.is_some_and(|until| until < first) {
            return Ok(());
        }
        let mut members = BTreeSet::from([called]);
        // Events tell who was created by whom, unless they are kept no more. Agents stand in order of
        // creation, a child after its parent; temporary ids may have been others' before.
        let named = agents.iter().filter(|agent| !agent.is_temp);
        for agent in named {
            let parent = agent.parent_agent_id.as_ref();
            if parent.is_some_and(|parent| *parent == self.agent || members.contains(parent)) {
                members.insert(agent.agent_id.clone());
            }
        }
        let events = client.events(None, Some(first.saturating_sub(1)));
        let family = Whom::Family { root: self.agent, members };
        Watching::new(&connection, events, family, until).run().await
    }
}

/// The first event of an agent that is kept, and what the agent was called then.
async fn first(connection: &Connection, agent: &AgentId) -> Result<Option<(Seq, AgentId)>, Failed> {
    let mut events = connection.client.events(Some(agent), Some(0));
    loop {
        let event = timeout(QUIET_MAX, events.next()).await.unwrap_or(None);
        match event.transpose() {
            Ok(Some(Event { seq: Some(seq), agent_id: Some(called), .. })) => {
                return Ok(Some((seq, called)));
            }
            // What is live, or tells of a gap.
            Ok(Some(_)) => {}
            // Its stream is refused where nothing of it was ever there.
            Ok(None) | Err(ClientError::Refused { status: StatusCode::NOT_FOUND, .. }) => {
                return Ok(None);
            }
            Err(error) => return Err(failed(error)),
        }
    }
}

/// Whose events are shown.
enum Whom {
    All,
    /// An agent, by every life that its id had, and those below it.
    Family {
        root: AgentId,
        members: BTreeSet<AgentId>,
    },
}

struct Watching<'a> {
    connection: &'a Connection,
    events: Events,
    whom: Whom,
    /// The last event of those who do not follow.
    until: Option<Seq>,
    view: View,
    /// Since when the server is away.
    away: Option<Instant>,
}

/// Whatever ends it, the next line of the terminal is somebody else's.
impl Drop for Watching<'_> {
    fn drop(&mut self) {
        output::text(self.view.end_text());
    }
}

impl<'a> Watching<'a> {
    fn new(connection: &'a Connection, events: Events, whom: Whom, until: Option<Seq>) -> Self {
        let view = View::new(output::width(), colours(connection));
        Self { connection, events, whom, until, view, away: None }
    }

    async fn run(mut self) -> Result<(), Failed> {
        let mut gone = pin!(output::reader_gone());
        loop {
            let next = tokio::select! {
                biased;
                next = self.next() => next,
                () = &mut gone => break,
            };
            let event = match next {
                Some(Ok(event)) => event,
                Some(Err(error)) => {
                    self.missed(error).await?;
                    continue;
                }
                None => break,
            };
            self.away = None;
            let last = self.until.is_some_and(|until| event.seq.is_none_or(|seq| seq >= until));
            if self.whom.takes(&event) && self.show(&event) == Reader::Gone {
                break;
            }
            if last {
                break;
            }
        }
        Ok(())
    }

    async fn next(&mut self) -> Option<Result<Event, ClientError>> {
        match self.until {
            None => self.events.next().await,
            Some(_) => timeout(QUIET_MAX, self.events.next()).await.unwrap_or(None),
        }
    }

    fn show(&mut self, event: &Event) -> Reader {
        if self.connection.as_json() {
            return output::text(&(event.json() + "\n"));
        }
        match self.view.on(event) {
            nothing if nothing.is_empty() => Reader::There,
            text => output::text(&text),
        }
    }

    /// A server that was there may come back; one that never was is told at once.
    async fn missed(&mut self, error: ClientError) -> Result<(), Failed> {
        let began = self.away.is_none();
        let away = *self.away.get_or_insert_with(Instant::now);
        let refused = matches!(error, ClientError::Refused { .. });
        if refused || !self.events.has_opened() || away.elapsed() > AWAY_MAX {
            return self.connection.answered(Err(error)).await;
        }
        if began {
            output::note(format_args!("lost the server ({error}); trying again"));
        }
        Ok(())
    }
}

impl Whom {
    fn takes(&mut self, event: &Event) -> bool {
        let Self::Family { root, members: family } = self else {
            return true;
        };
        let Some(agent) = &event.agent_id else {
            return true;
        };
        if let What::AgentCreated { parent_agent_id: Some(parent) }
        | What::AgentRestored { parent_agent_id: Some(parent) } = &event.what
            && family.contains(parent)
        {
            family.insert(agent.clone());
        }
        // Its old id is free for others, as is a temporary one whose agent is gone.
        if let What::AgentUpdated { previous_agent_id: Some(previous), .. } = &event.what
            && family.remove(previous)
        {
            family.insert(agent.clone());
        }
        let gone = matches!(event.what, What::AgentDestroyed { .. }) && agent.is_temp();
        if gone && agent != root { family.remove(agent) } else { family.contains(agent) }
    }
}

fn colours(connection: &Connection) -> Colours {
    let refused = connection.world.environment.var("NO_COLOR").is_some_and(|no| !no.is_empty());
    if refused || !std::io::stdout().is_terminal() { Colours::Off } else { Colours::On }
}
