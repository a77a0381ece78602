//! What the terminal does: keys, events and answers in, lines to print and things to do out. Pure: it
//! never waits, reads a clock or writes; `drive` does that for it. Its state is shown by `foot`.

mod asking;
mod complete;
mod elsewhere;
mod events;
mod foot;
mod place;
mod said;
mod turn;
mod typed;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use self::asking::{Asked, Question};
use self::elsewhere::Elsewhere;
pub use self::elsewhere::WANTED;
use self::place::Left;
use self::turn::Turn;
use super::editor::Editor;
use super::key::Key;
use super::line::{Line, Tone};
use super::menu::Menu;
pub use super::screen::Foot;
use crate::choice::Choice;
use crate::event::{Event, Seq};
use crate::id::{AgentId, ConfirmId, RequestId};
use crate::limits::terminal::{LEAVE_WITHIN, OWN_KEPT_MAX};
use crate::rpc::method::{AgentSummary, ConfirmationEntry, NumberedMessage};
use crate::terminal::commands::{Command, Takes};

/// How much is shown of what agents do besides talking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Feed {
    /// Each call with the beginning of its result.
    Full,
    /// A line for each call.
    #[default]
    Short,
    /// Only what goes on now.
    Off,
}

/// What came.
#[derive(Debug)]
pub enum Input {
    Key(Key),
    Paste(String),
    Resized {
        columns: u16,
        rows: u16,
    },
    /// Time has passed.
    Tick,
    /// Of the agent that is followed.
    Event(Box<Event>),
    /// Of any agent: what has to be known of those that are not followed.
    Elsewhere(Box<Event>),
    /// What waits for an answer anywhere, and the event after which everything is still to come.
    Surveyed {
        cursor: Seq,
        waiting: Vec<(AgentId, ConfirmationEntry)>,
    },
    /// Nothing is told of other agents (any more).
    Unwatched(Option<String>),
    /// What was typed before, from the oldest.
    Recalled(Vec<String>),
    /// What was typed is kept, or cannot be.
    Kept(Option<String>),
    Attached(Box<Attached>),
    /// It is not there, and may be brought back.
    NotThere {
        agent: AgentId,
        restorable: bool,
    },
    /// The server is away; asked for again and again.
    Lost(String),
    /// It is there again.
    Back,
    /// It cannot be followed.
    NotAttached {
        agent: AgentId,
        error: String,
    },
    /// Nothing more will be told of the agent.
    StreamOver(Option<String>),
    /// A message got its name.
    Named {
        number: u64,
        request: RequestId,
    },
    /// A message was not taken.
    NotSent {
        number: u64,
        error: String,
    },
    /// An answer to a confirmation was not taken.
    NotConfirmed {
        confirm_id: ConfirmId,
        error: String,
    },
    /// What a command has to say.
    Ran {
        /// Which command; none for what else failed.
        number: Option<u64>,
        text: String,
        how: Tone,
    },
    Refreshed(Box<AgentSummary>),
    Candidates {
        before: String,
        from: usize,
        found: Vec<String>,
    },
    /// Somebody ends this program.
    Stop,
}

/// An agent that is followed from now on.
#[derive(Debug)]
pub struct Attached {
    pub agent: AgentId,
    /// The last event before.
    pub cursor: Seq,
    /// What was said last, and how much there is in all.
    pub messages: Vec<NumberedMessage>,
    pub total: usize,
    /// How many came while it was looked, and may not be shown.
    pub missed: usize,
    /// Characters that the last turn has said in those messages: its text is told from its beginning.
    pub seen: usize,
    pub summary: Option<AgentSummary>,
    pub confirmations: Vec<ConfirmationEntry>,
}

/// What to do.
#[derive(Debug, PartialEq)]
pub enum Effect {
    /// These lines are finished; they stay.
    Print(Vec<Line>),
    /// Follow an agent, and no longer the one before.
    Attach {
        agent: AgentId,
        how: Attach,
    },
    /// Follow nobody.
    Leave,
    /// Look what waits for an answer anywhere, and hear of all that will.
    Survey,
    /// Keep what was typed, for another time.
    Remember(String),
    Create(AgentId),
    Send {
        agent: AgentId,
        content: String,
        number: u64,
    },
    Cancel {
        agent: AgentId,
        request: Option<RequestId>,
    },
    Confirm {
        agent: AgentId,
        confirm_id: ConfirmId,
        decision: Choice,
    },
    Run {
        command: &'static Command,
        words: Vec<String>,
        agent: Option<AgentId>,
        number: u64,
    },
    /// Tell a command that runs to stop.
    Interrupt(u64),
    Refresh(AgentId),
    Complete {
        takes: Takes,
        before: String,
        from: usize,
        word: String,
        /// Where relative paths begin.
        within: Option<String>,
    },
    ClearScreen,
    Quit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attach {
    /// Only if it is there.
    IfThere,
    /// Also where it has to be brought back first.
    Bring,
    /// After this event, and so many characters of a turn: what was missed since is shown.
    After { seq: Seq, seen: usize },
}

/// How the server is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    Up,
    Lost,
}

#[derive(Debug)]
pub struct Core {
    columns: u16,
    rows: u16,
    now: Duration,
    feed: Feed,
    link: Link,
    /// Whom messages go to; `None` while nobody is followed.
    agent: Option<AgentId>,
    /// Who is being attached to.
    wanted: Option<AgentId>,
    /// Where `/over` goes back to.
    whispering_from: Option<Left>,
    /// Where to be again if who is wanted cannot be had, and where that would go back to.
    before: Option<(Left, Option<Left>)>,
    summary: Option<AgentSummary>,
    /// The last event of the agent.
    seq: Seq,
    turn: Option<Turn>,
    /// Characters that are shown of the text of a turn whose beginning was not told.
    seen: usize,
    /// The turn that ran when the server was lost: its end may never be told.
    doubted: Option<RequestId>,
    /// Messages that were typed here and did not begin yet, by number.
    sending: BTreeMap<u64, Sending>,
    next_number: u64,
    /// Commands that take their time, by number.
    commands: BTreeMap<u64, Waiting>,
    /// Turns that were asked for here, from the oldest.
    own: VecDeque<RequestId>,
    elsewhere: Elsewhere,
    asked: VecDeque<Asked>,
    question: Option<(Question, Menu)>,
    editor: Editor,
    /// When something was typed last that was no answer.
    typed: Duration,
    candidates: Vec<String>,
    hint: Option<String>,
    /// Whether it was told that what is typed cannot be kept.
    unkept: bool,
    /// When Ctrl-C was pressed for the first time.
    leaving: Option<Duration>,
    /// Whether anything was printed, so that what follows keeps a distance.
    printed: bool,
    effects: Vec<Effect>,
}

#[derive(Debug)]
struct Sending {
    agent: AgentId,
    content: String,
    request: Option<RequestId>,
}

/// A command that takes as long as a model does.
#[derive(Debug)]
struct Waiting {
    typed: String,
    since: Duration,
    by: Ends,
}

/// What ends a command before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    Escape,
    Nothing,
}

impl Core {
    pub fn new(columns: u16, rows: u16, feed: Feed) -> Self {
        Self {
            columns,
            rows,
            now: Duration::ZERO,
            feed,
            link: Link::Up,
            agent: None,
            wanted: None,
            whispering_from: None,
            before: None,
            summary: None,
            seq: 0,
            turn: None,
            seen: 0,
            doubted: None,
            sending: BTreeMap::new(),
            next_number: 1,
            commands: BTreeMap::new(),
            own: VecDeque::new(),
            elsewhere: Elsewhere::default(),
            asked: VecDeque::new(),
            question: None,
            editor: Editor::default(),
            typed: Duration::ZERO,
            candidates: Vec::new(),
            hint: None,
            unkept: false,
            leaving: None,
            printed: false,
            effects: Vec::new(),
        }
    }

    /// Begins with an agent.
    pub fn begin(&mut self, agent: AgentId, how: Attach) -> Vec<Effect> {
        self.attach(agent, how);
        std::mem::take(&mut self.effects)
    }

    /// Takes what came at a time, counted from the start, and says what to do.
    pub fn on(&mut self, now: Duration, input: Input) -> Vec<Effect> {
        self.now = now;
        match input {
            Input::Key(key) => self.key(key),
            Input::Paste(text) => {
                (self.leaving, self.typed) = (None, self.now);
                self.hint = None;
                self.forget_passing();
                self.question.iter_mut().for_each(|(_, menu)| menu.choose_none());
                self.candidates.clear();
                // Most terminals paste a line's end as Enter would type it.
                self.editor.insert(&text.replace("\r\n", "\n").replace('\r', "\n"));
            }
            Input::Resized { columns, rows } => {
                (self.columns, self.rows) = (columns, rows);
                let width = self.width();
                self.turn.iter_mut().for_each(|turn| turn.text.resize(width));
            }
            Input::Tick => {}
            Input::Event(event) => self.event(&event),
            Input::Elsewhere(event) => self.elsewhere(&event),
            Input::Surveyed { waiting, .. } => self.surveyed(waiting),
            Input::Unwatched(why) => self.unwatched(why),
            Input::Recalled(typed) => self.editor.recall_all(typed),
            Input::Kept(error) => self.kept(error),
            Input::Attached(attached) => self.attached(*attached),
            Input::NotThere { agent, restorable } => self.offer(agent, restorable),
            Input::Lost(why) => self.lost(&why),
            Input::Back => {
                if self.link == Link::Lost {
                    self.link = Link::Up;
                    self.doubted = self.turn.as_ref().map(|turn| turn.request.clone());
                    self.note(Tone::Good, "the server is there again");
                    self.effects.extend(self.agent.clone().map(Effect::Refresh));
                    self.survey();
                }
            }
            Input::NotAttached { agent, error } => self.not_attached(&agent, &error),
            Input::StreamOver(why) => self.stream_over(why),
            Input::Named { number, request } => {
                if let Some(sending) = self.sending.get_mut(&number) {
                    sending.request = Some(request.clone());
                    if self.own.len() == OWN_KEPT_MAX {
                        self.own.pop_front();
                    }
                    self.own.push_back(request);
                }
            }
            Input::NotSent { number, error } => self.not_sent(number, &error),
            Input::NotConfirmed { confirm_id, error } => self.not_confirmed(&confirm_id, &error),
            Input::Ran { number, text, how } => {
                number.and_then(|number| self.commands.remove(&number));
                self.told(how, &text);
            }
            Input::Refreshed(summary) => self.refreshed(*summary),
            Input::Candidates { before, from, found } => self.candidates(&before, from, found),
            Input::Stop => self.quit(),
        }
        if self.leaving.is_some_and(|since| self.now.saturating_sub(since) > LEAVE_WITHIN) {
            self.leaving = None;
            self.hint = None;
        }
        self.ask_next();
        std::mem::take(&mut self.effects)
    }

    /// Whether what is shown changes with time alone.
    pub fn is_moving(&self) -> bool {
        let goes_on = self.activity().is_some() || !self.commands.is_empty();
        goes_on || self.leaving.is_some() || self.question_is_young()
    }

    /// The turn that goes on, as far as anybody can know.
    fn activity(&self) -> Option<&Turn> {
        self.turn.as_ref().filter(|_| self.link == Link::Up)
    }

    /// Whom messages go to.
    pub fn agent(&self) -> Option<&AgentId> {
        self.agent.as_ref()
    }

    pub(super) fn print(&mut self, lines: Vec<Line>) {
        if !lines.is_empty() {
            self.printed = true;
            self.effects.push(Effect::Print(lines));
        }
    }

    /// One line of the terminal's own.
    fn note(&mut self, tone: Tone, text: &str) {
        let indent = text.len() - text.trim_start_matches(' ').len();
        self.print(vec![Line::of(tone, text).hanging(indent + 2)]);
    }

    fn error(&mut self, text: &str) {
        self.note(Tone::Bad, &format!("✗ {text}"));
    }

    /// What others have to say, in their lines.
    fn told(&mut self, tone: Tone, text: &str) {
        let lines = text.trim_end().lines().map(|line| Line::of(tone, line).hanging(2));
        self.print(lines.collect());
    }

    fn refreshed(&mut self, summary: AgentSummary) {
        if self.agent.as_ref() != Some(&summary.entry.agent_id) {
            return;
        }
        let doubted = self.doubted.take();
        let shown = self.turn.as_ref().map(|turn| &turn.request);
        if doubted.is_some()
            && shown == doubted.as_ref()
            && summary.entry.active_request_id != doubted
        {
            self.end_turn();
        }
        self.summary = Some(summary);
    }

    fn lost(&mut self, why: &str) {
        if self.link == Link::Up {
            self.link = Link::Lost;
            self.pause_text();
            self.note(Tone::Bad, &format!("lost the server ({why}); trying again"));
        }
    }

    /// What was said so far is not taken away with the screen.
    fn quit(&mut self) {
        self.pause_text();
        self.effects.push(Effect::Quit);
    }

    /// Shows what was said so far, because something else is shown next.
    fn pause_text(&mut self) {
        if let Some(turn) = &mut self.turn {
            let said = turn.text.pause();
            self.print(said);
        }
    }

    /// The turn that was shown is over, whatever became of it: nothing of it moves any more.
    fn end_turn(&mut self) {
        if let Some(mut turn) = self.turn.take() {
            let rest = turn.text.finish();
            self.print(rest);
        }
    }
}

#[cfg(test)]
#[path = "core_tests.rs"]
mod tests;
