//! Between a face (keys and a screen), a server and the core: waits for what comes, and does what the
//! core says. It decides nothing but the order in which it listens: keys first, so that no flood of
//! events delays them, then the screen, then the rest.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;

use tokio::task::{AbortHandle, Id, JoinSet};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::calls;
use super::commands::{Command, Order};
use super::core::{Attach, Core, Effect, Input};
use super::follow::{Following, Heard};
use super::interrupt::Interrupt;
use super::line::Line;
use super::office::{Office, Told};
use super::room::{at_once_max, refused};
use super::screen::Foot;
use crate::client::NexusClient;
use crate::id::AgentId;
use crate::limits::terminal::{
    EVENTS_AT_ONCE_MAX, FINISHED_PENDING_MAX, FRAME_EVERY, HISTORY_WAITING_MAX, LEAVING_MAX,
    TICK_EVERY,
};
use crate::world::BoxFuture;

/// Somebody who types and looks.
pub trait Face: Send {
    /// The next key, paste or change of size; `None` once nobody is there any more. Dropping the wait
    /// loses nothing.
    fn next(&mut self) -> BoxFuture<'_, Option<Input>>;
    /// Shows lines that stay, and the foot below them.
    fn show(&mut self, finished: &[Line], foot: &Foot) -> io::Result<()>;
    fn clear(&mut self) -> io::Result<()>;
}

pub struct Terminal<'a, F> {
    core: Core,
    client: NexusClient,
    office: Arc<dyn Office>,
    face: &'a mut F,
    calls: JoinSet<Option<Input>>,
    /// It ends when another agent is wanted.
    attaching: Option<AbortHandle>,
    following: Option<Following>,
    /// What has to be known of all the others.
    watching: Option<Following>,
    /// Messages that wait for the one before them: they arrive in the order in which they were typed.
    messages: VecDeque<calls::Sent>,
    sending: Option<Id>,
    /// Answers and cancellations on their way, which are not given up when somebody leaves.
    acts: Vec<Id>,
    /// One look at an agent at a time; whom to look at next.
    refreshing: Option<Id>,
    stale: Option<AgentId>,
    /// Only what is typed now is completed.
    completing: Option<AbortHandle>,
    /// Commands that wait for the one that runs: each finds what those before it have done.
    commands: VecDeque<BoxFuture<'static, Input>>,
    running: Option<Id>,
    /// Commands that are not over, by number.
    interrupts: BTreeMap<u64, Interrupt>,
    /// What was typed and is to be kept; one call at a time keeps the order.
    typed: VecDeque<String>,
    keeping: bool,
    finished: Vec<Line>,
    /// When what has changed is shown at the latest.
    due: Option<Instant>,
    begun: Instant,
    left: bool,
}

impl<F> std::fmt::Debug for Terminal<'_, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Terminal").field("core", &self.core).finish_non_exhaustive()
    }
}

/// What woke us.
enum Woken {
    Face(Option<Input>),
    Frame,
    Answer(Option<Input>),
    Heard(Option<Heard>),
    Watched(Option<Heard>),
    Tick,
}

/// The next that is heard, where somebody is listened to.
async fn next(following: &mut Option<Following>) -> Option<Heard> {
    match following {
        Some(following) => following.next().await,
        None => std::future::pending().await,
    }
}

impl<'a, F: Face> Terminal<'a, F> {
    pub fn new(core: Core, client: NexusClient, office: Arc<dyn Office>, face: &'a mut F) -> Self {
        Self {
            core,
            client,
            office,
            face,
            calls: JoinSet::new(),
            attaching: None,
            following: None,
            watching: None,
            messages: VecDeque::new(),
            sending: None,
            acts: Vec::new(),
            refreshing: None,
            stale: None,
            completing: None,
            commands: VecDeque::new(),
            running: None,
            interrupts: BTreeMap::new(),
            typed: VecDeque::new(),
            keeping: false,
            finished: Vec::new(),
            due: None,
            begun: Instant::now(),
            left: false,
        }
    }

    /// Talks to an agent, and whoever else is asked for, until the person leaves.
    pub async fn run(mut self, agent: AgentId, how: Attach) -> io::Result<()> {
        let recalled = self.office.recall();
        self.calls.spawn(async move { Some(Input::Recalled(recalled.await)) });
        let effects = self.core.begin(agent, how);
        self.perform(effects)?;
        self.paint()?;
        while !self.left {
            match self.woken().await {
                Woken::Face(Some(input)) => {
                    self.input(input)?;
                    // What was typed is seen at once.
                    self.paint()?;
                }
                Woken::Face(None) => break,
                Woken::Frame => self.paint()?,
                Woken::Answer(input) => {
                    self.go_on();
                    input.map_or(Ok(()), |input| self.input(input))?;
                }
                Woken::Heard(heard) => self.heard(heard)?,
                Woken::Watched(heard) => self.watched(heard)?,
                Woken::Tick => self.input(Input::Tick)?,
            }
            if self.finished.len() > FINISHED_PENDING_MAX {
                self.paint()?;
            }
        }
        self.paint()?;
        // Somebody who leaves does not wait long for a disk or a server.
        let _ = timeout(LEAVING_MAX, self.settled()).await;
        Ok(())
    }

    async fn woken(&mut self) -> Woken {
        let due = self.due.unwrap_or(self.begun);
        let events = next(&mut self.following);
        let others = next(&mut self.watching);
        tokio::select! {
            biased;
            input = self.face.next() => Woken::Face(input),
            () = sleep_until(due), if self.due.is_some() => Woken::Frame,
            Some(ended) = self.calls.join_next_with_id() => {
                let (id, answer) = match ended {
                    Ok((id, answer)) => (id, answer),
                    Err(error) => (error.id(), None),
                };
                self.ended(id);
                Woken::Answer(answer)
            }
            heard = events => Woken::Heard(heard),
            heard = others => Woken::Watched(heard),
            () = sleep(TICK_EVERY), if self.core.is_moving() => Woken::Tick,
        }
    }

    fn input(&mut self, input: Input) -> io::Result<()> {
        let attached = match &input {
            Input::Attached(attached) => Some((attached.agent.clone(), attached.cursor)),
            Input::Surveyed { cursor, .. } => {
                self.watching = Some(Following::everybody(self.client.clone(), *cursor));
                None
            }
            Input::Kept(_) => {
                self.keeping = false;
                None
            }
            Input::Ran { number: Some(number), .. } => {
                self.interrupts.remove(number);
                None
            }
            _ => None,
        };
        let effects = self.core.on(self.begun.elapsed(), input);
        self.perform(effects)?;
        if let Some((agent, cursor)) = attached
            && self.core.agent() == Some(&agent)
        {
            self.following = Some(Following::start(self.client.clone(), agent, cursor));
        }
        self.keep();
        self.due.get_or_insert_with(|| Instant::now() + FRAME_EVERY);
        Ok(())
    }

    /// Takes what was heard, and a bounded number of what else is there.
    fn heard(&mut self, first: Option<Heard>) -> io::Result<()> {
        let mut heard = VecDeque::from([first]);
        while let Some(following) = &mut self.following
            && heard.len() < EVENTS_AT_ONCE_MAX
            && let Some(more) = following.at_hand()
        {
            heard.push_back(Some(more));
        }
        for heard in heard {
            // What is left is of an agent that is not followed any more.
            if self.following.is_none() {
                break;
            }
            let input = match heard {
                Some(Heard::Event(event)) => Input::Event(event),
                Some(Heard::Lost(why)) => Input::Lost(why),
                Some(Heard::Back) => Input::Back,
                Some(Heard::Over(why)) => {
                    self.following = None;
                    Input::StreamOver(why)
                }
                None => {
                    self.following = None;
                    continue;
                }
            };
            self.input(input)?;
        }
        // However much is said here, what others ask for is heard.
        match self.watching.as_mut().and_then(Following::at_hand) {
            Some(heard) => self.watched(Some(heard)),
            None => Ok(()),
        }
    }

    /// Takes what was heard of others, and a bounded number of what else is there.
    fn watched(&mut self, first: Option<Heard>) -> io::Result<()> {
        let mut heard = VecDeque::from([first]);
        while let Some(watching) = &mut self.watching
            && heard.len() < EVENTS_AT_ONCE_MAX
            && let Some(more) = watching.at_hand()
        {
            heard.push_back(Some(more));
        }
        for heard in heard {
            let input = match heard {
                Some(Heard::Event(event)) => Input::Elsewhere(event),
                // Where an agent is followed, its stream tells that.
                Some(Heard::Lost(why)) if self.following.is_none() => Input::Lost(why),
                Some(Heard::Back) if self.following.is_none() => Input::Back,
                Some(Heard::Lost(_) | Heard::Back) => continue,
                Some(Heard::Over(why)) => {
                    self.watching = None;
                    Input::Unwatched(why)
                }
                None => {
                    self.watching = None;
                    continue;
                }
            };
            self.input(input)?;
        }
        Ok(())
    }

    /// A call has ended.
    fn ended(&mut self, id: Id) {
        for one in [&mut self.running, &mut self.sending, &mut self.refreshing] {
            *one = one.filter(|one| *one != id);
        }
        self.acts.retain(|act| *act != id);
    }

    /// Begins what has waited for calls that ended.
    fn go_on(&mut self) {
        self.run_next();
        self.send_next();
        self.refresh_next();
    }

    /// Looks at the agent once more, after the look that is being taken.
    fn refresh_next(&mut self) {
        if self.refreshing.is_none()
            && let Some(agent) = self.stale.take()
        {
            let client = self.client.clone();
            let look = self.calls.spawn(async move { calls::refresh(&client, &agent).await });
            self.refreshing = Some(look.id());
        }
    }

    /// Sends the next message, if the one before it has arrived.
    fn send_next(&mut self) {
        if self.sending.is_none()
            && let Some(sent) = self.messages.pop_front()
        {
            let client = self.client.clone();
            let sending = self.calls.spawn(async move { calls::send(&client, sent).await });
            self.sending = Some(sending.id());
        }
    }

    /// Runs the next command, if none runs.
    fn run_next(&mut self) {
        if self.running.is_none()
            && let Some(run) = self.commands.pop_front()
        {
            self.running = Some(self.calls.spawn(async move { Some(run.await) }).id());
        }
    }

    /// Keeps what was typed, after what is being kept.
    fn keep(&mut self) {
        if !self.keeping && !self.typed.is_empty() {
            self.keeping = true;
            let kept = self.office.remember(self.typed.drain(..).collect());
            self.calls.spawn(async move { Some(Input::Kept(kept.await.err())) });
        }
    }

    /// Returns once all that was typed is kept, sent and done.
    async fn settled(&mut self) {
        while (self.keeping
            || self.sending.is_some()
            || self.running.is_some()
            || !self.acts.is_empty())
            && let Some(ended) = self.calls.join_next_with_id().await
        {
            let id = match &ended {
                Ok((id, _)) => *id,
                Err(error) => error.id(),
            };
            self.ended(id);
            if let Ok((_, Some(Input::Kept(_)))) = ended {
                self.keeping = false;
                self.keep();
            }
            self.go_on();
        }
    }

    fn paint(&mut self) -> io::Result<()> {
        self.due = None;
        let finished = std::mem::take(&mut self.finished);
        self.face.show(&finished, &self.core.foot())
    }

    fn perform(&mut self, effects: Vec<Effect>) -> io::Result<()> {
        for effect in effects {
            match effect {
                Effect::Print(lines) => self.finished.extend(lines),
                Effect::Attach { agent, how } => self.attach(agent, how),
                Effect::Leave => {
                    self.following = None;
                    self.attaching.take().inspect(AbortHandle::abort);
                }
                Effect::Remember(text) => {
                    if self.typed.len() == HISTORY_WAITING_MAX {
                        self.typed.pop_front();
                    }
                    self.typed.push_back(text);
                }
                Effect::Interrupt(number) => {
                    self.interrupts.get(&number).inspect(|running| running.send());
                }
                Effect::ClearScreen => self.face.clear()?,
                Effect::Quit => self.left = true,
                call => self.call(call),
            }
        }
        Ok(())
    }

    fn attach(&mut self, agent: AgentId, how: Attach) {
        self.following = None;
        self.attaching.take().inspect(AbortHandle::abort);
        let client = self.client.clone();
        let work = async move { Some(calls::attach(&client, agent, how).await) };
        self.attaching = Some(self.calls.spawn(work));
    }

    /// Asks the server. What comes of it comes as an input.
    fn call(&mut self, effect: Effect) {
        if self.calls.len() + self.commands.len() + self.messages.len() >= at_once_max(&effect) {
            self.calls.spawn(async move { Some(refused(effect)) });
            return;
        }
        let client = self.client.clone();
        match effect {
            Effect::Send { agent, content, number } => match client.draw_request_id() {
                Ok(request) => {
                    let named = Input::Named { number, request: request.clone() };
                    self.core.on(self.begun.elapsed(), named);
                    self.messages.push_back(calls::Sent { agent, content, number, request });
                    self.send_next();
                }
                Err(error) => {
                    let error = Input::NotSent { number, error: error.to_string() };
                    self.calls.spawn(async move { Some(error) });
                }
            },
            Effect::Cancel { agent, request } => {
                let work = async move { calls::cancel(&client, &agent, request).await };
                let act = self.calls.spawn(work);
                self.acts.push(act.id());
            }
            Effect::Confirm { agent, confirm_id, decision } => {
                let work =
                    async move { calls::confirm(&client, &agent, confirm_id, decision).await };
                let act = self.calls.spawn(work);
                self.acts.push(act.id());
            }
            Effect::Create(agent) => {
                let directory = self.office.directory();
                let work = async move { Some(calls::create(&client, agent, directory).await) };
                self.attaching = Some(self.calls.spawn(work));
            }
            Effect::Survey => {
                self.calls.spawn(async move { Some(calls::survey(&client).await) });
            }
            Effect::Refresh(agent) => {
                self.stale = Some(agent);
                self.refresh_next();
            }
            Effect::Run { command, words, agent, number } => {
                self.run_command(command, words, agent, number);
            }
            Effect::Complete { takes, before, from, word, within } => {
                let office = Arc::clone(&self.office);
                self.completing.take().inspect(AbortHandle::abort);
                let completing = self.calls.spawn(async move {
                    let found = calls::known(&client, office.as_ref(), takes, word, within).await;
                    Some(Input::Candidates { before, from, found })
                });
                self.completing = Some(completing);
            }
            Effect::Print(_)
            | Effect::Attach { .. }
            | Effect::Leave
            | Effect::Remember(_)
            | Effect::Interrupt(_)
            | Effect::ClearScreen
            | Effect::Quit => unreachable!("they ask the server nothing"),
        }
    }

    fn run_command(
        &mut self,
        command: &'static Command,
        words: Vec<String>,
        agent: Option<AgentId>,
        number: u64,
    ) {
        let interrupt = Interrupt::default();
        self.interrupts.insert(number, interrupt.clone());
        let told = self.office.run(command, words, agent, interrupt);
        let run = Box::pin(async move {
            let Told { text, how } = told.await;
            Input::Ran { number: Some(number), text, how }
        });
        match command.order {
            Order::Beside => drop(self.calls.spawn(async move { Some(run.await) })),
            Order::InTurn => {
                self.commands.push_back(run);
                self.run_next();
            }
        }
    }
}
