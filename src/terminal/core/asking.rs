//! Questions: what has to be confirmed, and what to do about an agent that is not there. Those of our
//! own turns, and of turns that ours wait for, are asked at once; others' only while nobody here is busy.

use std::time::Duration;

use serde_json::Value;

use super::{Attach, Core, Effect};
use crate::choice::Choice;
use crate::event::What;
use crate::id::{AgentId, ConfirmId, RequestId};
use crate::limits::terminal::{ASKED_MAX, QUESTION_GUARD};
use crate::rpc::method::ConfirmationEntry;
use crate::terminal::key::Key;
use crate::terminal::line::{Line, Tone, fitting};
use crate::terminal::menu::{Answer, Menu};

/// Of a call, where it is told of afterwards.
const CALL_CELLS_MAX: usize = 60;
/// Of its arguments, where it is asked about: more than a screen has.
const PARAMS_CELLS_MAX: usize = 32 * 1024;

/// A call that waits for an answer.
#[derive(Debug)]
pub struct Asked {
    pub agent: AgentId,
    pub confirm_id: ConfirmId,
    pub request: RequestId,
    pub tool: String,
    /// The call, as it is told of afterwards.
    pub call: String,
    params: Value,
    about: Vec<Line>,
    options: Vec<Choice>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    /// Somebody did not want to see it; it can be asked for.
    Aside,
    /// The server has not said yet what it makes of the answer.
    Answered,
}

#[derive(Debug)]
pub struct Question {
    about: About,
    since: Duration,
    asked: Why,
    /// Somebody wanted to pass it by Enter, and is told how it is answered.
    passed: bool,
}

/// Why a question is on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    /// Something here waits for it.
    Urgent,
    /// Nobody here was busy.
    Idle,
    /// Somebody wanted to see it.
    Called,
}

#[derive(Debug)]
enum About {
    Confirmation(ConfirmId),
    Agent { agent: AgentId, offers: Vec<Offer> },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Offer {
    Restore,
    Create,
    Leave,
}

impl Asked {
    pub fn of_event(agent: &AgentId, request: &RequestId, what: &What) -> Option<Self> {
        let What::ConfirmationRequested { confirm_id, tool, target, cwd, options, .. } = what
        else {
            return None;
        };
        Some(Self {
            agent: agent.clone(),
            confirm_id: confirm_id.clone(),
            request: request.clone(),
            tool: tool.name.clone(),
            call: call(&tool.name, target.as_deref()),
            params: tool.params.clone(),
            about: about(&tool.params, target.as_deref(), cwd.as_deref()),
            options: options.clone(),
            state: State::Waiting,
        })
    }

    pub fn of_entry(agent: &AgentId, entry: ConfirmationEntry) -> Self {
        Self {
            agent: agent.clone(),
            about: about(&entry.tool.params, entry.target.as_deref(), entry.cwd.as_deref()),
            call: call(&entry.tool.name, entry.target.as_deref()),
            confirm_id: entry.confirm_id,
            request: entry.request_id,
            tool: entry.tool.name,
            params: entry.tool.params,
            options: entry.options,
            state: State::Waiting,
        }
    }
}

/// A call in a few words: the tool, and what it is called on.
pub fn call(tool: &str, target: Option<&str>) -> String {
    let target = target.map(|target| format!(" {target}")).unwrap_or_default();
    Line::of(Tone::Plain, &format!("{tool}{target}")).cut(CALL_CELLS_MAX).text()
}

/// What whoever decides has to know, in few lines.
fn about(params: &Value, target: Option<&str>, cwd: Option<&str>) -> Vec<Line> {
    let fact = |name: &str, value: &str| {
        Line::of(Tone::Dim, &format!("  {name} ")).with(Tone::Plain, value).hanging(4)
    };
    let mut lines = Vec::new();
    lines.extend(target.map(|target| fact("on", target)));
    lines.extend(cwd.map(|cwd| fact("in", cwd)));
    // More than this no screen has room for, and it is drawn often.
    let params = params.to_string();
    lines.push(fact("with", fitting(&params, PARAMS_CELLS_MAX)));
    lines
}

/// The same with all of it: texts in their own lines, each marked, so that none can look like ours.
fn whole(params: &Value) -> Vec<Line> {
    let Value::Object(members) = params else {
        return vec![Line::of(Tone::Plain, &format!("  {params}")).hanging(4)];
    };
    let mut lines = Vec::new();
    for (name, value) in members {
        match value {
            Value::String(text) if text.contains('\n') => {
                lines.push(Line::of(Tone::Dim, &format!("  {name}")));
                lines
                    .extend(text.lines().map(|line| {
                        Line::of(Tone::Dim, "  │ ").with(Tone::Plain, line).hanging(4)
                    }));
            }
            value => {
                let line = Line::of(Tone::Dim, &format!("  {name} "));
                lines.push(line.with(Tone::Plain, &value.to_string()).hanging(4));
            }
        }
    }
    lines
}

impl Core {
    /// Takes a question that an event tells of.
    pub(super) fn asks_by(&mut self, agent: Option<&AgentId>, request: &RequestId, what: &What) {
        if let Some(asked) = agent.and_then(|agent| Asked::of_event(agent, request, what)) {
            self.asks(asked);
        }
    }

    /// Takes a question, unless it is known or has its answer.
    pub(super) fn asks(&mut self, asked: Asked) {
        let known = self.asked.iter().any(|other| other.confirm_id == asked.confirm_id);
        if !known && !self.elsewhere.is_settled(&asked.confirm_id) && self.asked.len() < ASKED_MAX {
            self.asked.push_back(asked);
        }
    }

    /// A question has its answer: it goes away. Returns it, where it was waiting here.
    pub(super) fn settled(&mut self, confirm_id: &ConfirmId) -> Option<Asked> {
        self.elsewhere.settle(confirm_id);
        self.drop_question(confirm_id);
        let place = self.asked.iter().position(|asked| asked.confirm_id == *confirm_id)?;
        self.asked.remove(place)
    }

    /// Questions that nobody waits for any more go away.
    pub(super) fn withdraw(&mut self, is_over: impl Fn(&Asked) -> bool) {
        let over = self.asked.iter().filter(|asked| is_over(asked));
        for confirm_id in over.map(|asked| asked.confirm_id.clone()).collect::<Vec<_>>() {
            self.drop_question(&confirm_id);
        }
        self.asked.retain(|asked| !is_over(asked));
    }

    /// Asks the next question, if it is time for it.
    pub(super) fn ask_next(&mut self) {
        let typing = !self.editor.is_empty();
        if let Some((Question { about: About::Confirmation(_), asked: Why::Idle, .. }, _)) =
            &self.question
            && typing
        {
            // Somebody who begins to type has other things in mind than others' turns.
            self.question = None;
        }
        if self.question.is_some() {
            return;
        }
        let idle = !typing && !self.own_turn_runs();
        let mut waiting = self.asked.iter().filter(|asked| asked.state == State::Waiting);
        let urgent = waiting.clone().find(|asked| self.serves_us(asked));
        let due = urgent.map(|asked| (asked, Why::Urgent));
        let due = due.or_else(|| waiting.next().filter(|_| idle).map(|asked| (asked, Why::Idle)));
        if let Some((asked, why)) = due {
            self.question = Some(self.ask(asked, why));
        }
    }

    fn own_turn_runs(&self) -> bool {
        self.turn.as_ref().is_some_and(|turn| self.own.contains(&turn.request))
    }

    fn ask(&self, asked: &Asked, why: Why) -> (Question, Menu) {
        let title = match self.who_else(asked) {
            Some(agent) => format!("{agent}: {} needs a confirmation:", asked.tool),
            None => format!("{} needs a confirmation:", asked.tool),
        };
        let mut about = vec![Line::of(Tone::Loud, &title)];
        about.extend(asked.about.clone());
        let options = asked.options.iter().map(|option| said(*option).to_owned()).collect();
        let question = Question {
            about: About::Confirmation(asked.confirm_id.clone()),
            since: self.now,
            asked: why,
            passed: false,
        };
        (question, Menu::new(about, options))
    }

    /// Who asks, where that is not the agent that is talked to.
    fn who_else<'a>(&self, asked: &'a Asked) -> Option<&'a AgentId> {
        Some(&asked.agent).filter(|agent| self.agent.as_ref() != Some(agent))
    }

    /// One line about what waits while it is not asked.
    pub(super) fn alert(&self) -> Option<Line> {
        let waiting = self.asked.iter().filter(|asked| asked.state != State::Answered).count();
        let asked = self.asked.iter().find(|asked| asked.state != State::Answered)?;
        let who = self.who_else(asked).map(|agent| format!("{agent}: ")).unwrap_or_default();
        let more = if waiting > 1 { format!(", {} more", waiting - 1) } else { String::new() };
        let told = format!("⚠ Ctrl-Y: {who}{} waits for a confirmation{more}", asked.tool);
        self.question.is_none().then(|| Line::of(Tone::Loud, &told))
    }

    /// Asks what the alert is about, whatever else goes on.
    pub(super) fn look_at_alert(&mut self) {
        let asked = self.asked.iter().find(|asked| asked.state != State::Answered);
        if let Some(asked) = asked.filter(|_| self.question.is_none()) {
            self.question = Some(self.ask(asked, Why::Called));
        }
    }

    /// All of what is asked about, above: there may be more than there are rows.
    pub(super) fn show_whole_question(&mut self) {
        let asked = match &self.question {
            Some((Question { about: About::Confirmation(id), .. }, _)) => {
                self.asked.iter().find(|asked| asked.confirm_id == *id)
            }
            Some(_) | None => None,
        };
        if let Some(asked) = asked {
            let title = Line::of(Tone::Loud, &format!("  ? {} with", asked.tool));
            let mut lines = vec![Line::new(), title];
            lines.extend(whole(&asked.params));
            self.pause_text();
            self.print(lines);
        }
    }

    fn drop_question(&mut self, confirm_id: &ConfirmId) {
        let asks = |question: &Question| matches!(&question.about, About::Confirmation(id) if id == confirm_id);
        if self.question.as_ref().is_some_and(|(question, _)| asks(question)) {
            self.question = None;
        }
    }

    pub(super) fn offer(&mut self, agent: AgentId, restorable: bool) {
        if self.wanted.as_ref() != Some(&agent) {
            return;
        }
        self.wanted = None;
        let mut offers = vec![Offer::Create, Offer::Leave];
        if restorable {
            offers.insert(0, Offer::Restore);
        }
        let about = vec![Line::of(Tone::Loud, &format!("{agent} is not there."))];
        let items = offers.iter().map(|offer| match offer {
            Offer::Restore => format!("bring {agent} back from its session"),
            Offer::Create => format!("create {agent}"),
            Offer::Leave => "leave it".to_owned(),
        });
        let menu = Menu::new(about, items.collect()).on_first();
        let (about, since) = (About::Agent { agent, offers }, self.now);
        let question = Question { about, since, asked: Why::Urgent, passed: false };
        self.question = Some((question, menu));
    }

    /// Whether nobody can have read the question yet: then it takes no answer.
    pub(super) fn question_is_young(&self) -> bool {
        self.question.as_ref().is_some_and(|(question, _)| self.is_lately(question.since))
    }

    fn is_lately(&self, then: Duration) -> bool {
        self.now.saturating_sub(then) < QUESTION_GUARD
    }

    /// How a question is answered, where its numbers do not say all of it.
    pub(super) fn how_to_answer(&self) -> Option<&'static str> {
        let (question, menu) = self.question.as_ref()?;
        match (&question.about, self.editor.is_empty()) {
            (About::Confirmation(_), true) => None,
            (About::Confirmation(_), false) => Some("↑ ↓ and Enter answer"),
            (About::Agent { .. }, true) if menu.is_chosen() => {
                Some("Enter or a number chooses · Esc leaves it")
            }
            (About::Agent { .. }, true) => Some("a number or ↑ ↓ and Enter choose · Esc leaves it"),
            (About::Agent { .. }, false) => Some("↑ ↓ and Enter answer · Esc leaves it"),
        }
    }

    /// The same for somebody who wanted to pass it.
    pub(super) fn hint_of_question(&self) -> Option<&'static str> {
        let (question, _) = self.question.as_ref()?;
        question.passed.then_some(if self.editor.is_empty() {
            "answer with a number, or choose with the arrows"
        } else {
            "the arrows choose, Enter answers"
        })
    }

    /// A question that has to be answered is not passed by a habit.
    pub(super) fn pass_question(&mut self) {
        self.question.iter_mut().for_each(|(question, _)| question.passed = true);
    }

    /// Whoever presses another key has been told how.
    pub(super) fn forget_passing(&mut self) {
        self.question.iter_mut().for_each(|(question, _)| question.passed = false);
    }

    /// Whether the turn that runs here takes it along when it is cancelled.
    fn ends_with_turn(&self, question: &Question) -> bool {
        match &question.about {
            About::Confirmation(id) => {
                let asked = self.asked.iter().find(|asked| asked.confirm_id == *id);
                question.asked == Why::Urgent && asked.is_some_and(|it| self.serves_this_turn(it))
            }
            About::Agent { .. } => false,
        }
    }

    /// A key while a question is open; whether the question took it.
    pub(super) fn answer(&mut self, key: Key) -> bool {
        let Some((question, _)) = &self.question else {
            return false;
        };
        // What the turn here waits for goes with it, so Esc is for the turn.
        let ends_here = self.ends_with_turn(question);
        let (typing, young) = (!self.editor.is_empty(), self.is_lately(question.since));
        // Whoever is about to type has others' questions in the way.
        let busy = question.asked == Why::Idle && self.is_lately(self.typed);
        let Some((_, menu)) = &mut self.question else {
            return false;
        };
        // A number in a text is no answer, however long the pause before it; nor is one that was on its
        // way before there was a question.
        if matches!(key, Key::Char(_)) && (typing || young || busy) {
            menu.choose_none();
            return false;
        }
        if young && matches!(key, Key::Up | Key::Down) {
            return !typing;
        }
        if young && (typing || key == Key::Enter) {
            return false;
        }
        match menu.on(key) {
            Answer::Ignored if key == Key::Escape && !ends_here => {
                self.put_aside();
                true
            }
            Answer::Ignored => false,
            Answer::Moved => true,
            Answer::Item(item) => {
                let (question, _) = self.question.take().expect("it was just asked");
                self.answered(question.about, item);
                true
            }
        }
    }

    /// Nobody wants to answer it now.
    fn put_aside(&mut self) {
        match self.question.take().map(|(question, _)| question.about) {
            Some(About::Confirmation(id)) => {
                let asked = self.asked.iter_mut().find(|asked| asked.confirm_id == id);
                if let Some(asked) = asked {
                    asked.state = State::Aside;
                }
            }
            // Whoever does not want the agent goes back.
            Some(About::Agent { .. }) => self.stay(),
            None => {}
        }
    }

    fn answered(&mut self, about: About, item: usize) {
        match about {
            About::Confirmation(id) => {
                let asked = self.asked.iter_mut().find(|asked| asked.confirm_id == id);
                let Some(asked) = asked else {
                    return;
                };
                asked.state = State::Answered;
                let (agent, confirm_id) = (asked.agent.clone(), id);
                let decision = asked.options[item];
                self.effects.push(Effect::Confirm { agent, confirm_id, decision });
            }
            About::Agent { agent, offers } => match offers[item] {
                Offer::Restore => self.attach(agent, Attach::Bring),
                Offer::Create => {
                    self.wanted = Some(agent.clone());
                    self.effects.push(Effect::Create(agent));
                }
                Offer::Leave => self.stay(),
            },
        }
    }

    pub(super) fn not_confirmed(&mut self, confirm_id: &ConfirmId, error: &str) {
        self.error(error);
        for asked in self.asked.iter_mut().filter(|asked| asked.confirm_id == *confirm_id) {
            asked.state = State::Waiting;
        }
    }
}

/// What was decided, by whom and why.
pub fn decided(decision: Choice, by: &str, reason: Option<&str>) -> String {
    let what = match decision {
        Choice::AllowOnce => "allowed once",
        Choice::AllowFile => "allowed for this file",
        Choice::AllowDir => "allowed for this directory",
        Choice::AllowExecCwd => "allowed for this program here",
        Choice::AllowTool => "allowed for this tool",
        Choice::AllowServer => "allowed for its MCP server",
        Choice::Deny => "denied",
        Choice::TimeoutDeny => return "nobody answered in time".to_owned(),
    };
    // A server that gives a reason has not decided: something has happened.
    match reason {
        Some(reason) => format!("{what}: {}", reason.replace('_', " ")),
        None => format!("{what} by {by}"),
    }
}

/// A decision as a person says it, in so few words that they can be told apart at forty columns.
fn said(choice: Choice) -> &'static str {
    match choice {
        Choice::AllowOnce => "allow it once",
        Choice::AllowFile => "allow this file from now on",
        Choice::AllowDir => "allow this directory from now on",
        Choice::AllowExecCwd => "allow this program here from now on",
        Choice::AllowTool => "allow this tool from now on",
        Choice::AllowServer => "allow its MCP server from now on",
        Choice::Deny => "deny it",
        Choice::TimeoutDeny => "nobody answered",
    }
}
