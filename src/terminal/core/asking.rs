//! Questions: what has to be confirmed, and what to do about an agent that is not there. Those of our
//! own turns are asked at once; of others' only while nothing is being typed.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;

use super::{Attach, Core, Effect};
use crate::choice::Choice;
use crate::event::What;
use crate::id::{AgentId, ConfirmId, RequestId};
use crate::limits::terminal::QUESTION_GUARD;
use crate::rpc::method::ConfirmationEntry;
use crate::terminal::key::Key;
use crate::terminal::line::{Line, Tone};
use crate::terminal::menu::{Answer, Menu};

/// A call that waits for an answer.
#[derive(Debug)]
pub struct Asked {
    pub confirm_id: ConfirmId,
    pub request: RequestId,
    pub tool: String,
    about: Vec<Line>,
    options: Vec<Choice>,
    own: bool,
    answered: bool,
}

#[derive(Debug)]
pub struct Question {
    about: About,
    since: Duration,
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
    pub fn of_event(request: &RequestId, what: &What, own: &BTreeSet<RequestId>) -> Option<Self> {
        let What::ConfirmationRequested { confirm_id, tool, target, cwd, options, .. } = what
        else {
            return None;
        };
        Some(Self {
            confirm_id: confirm_id.clone(),
            request: request.clone(),
            tool: tool.name.clone(),
            about: about(&tool.params, target.as_deref(), cwd.as_deref()),
            options: options.clone(),
            own: own.contains(request),
            answered: false,
        })
    }

    pub fn of_entry(entry: ConfirmationEntry, own: &BTreeSet<RequestId>) -> Self {
        Self {
            own: own.contains(&entry.request_id),
            about: about(&entry.tool.params, entry.target.as_deref(), entry.cwd.as_deref()),
            confirm_id: entry.confirm_id,
            request: entry.request_id,
            tool: entry.tool.name,
            options: entry.options,
            answered: false,
        }
    }
}

/// What whoever decides has to know.
fn about(params: &Value, target: Option<&str>, cwd: Option<&str>) -> Vec<Line> {
    let fact = |name: &str, value: &str| {
        Line::of(Tone::Dim, &format!("  {name} ")).with(Tone::Plain, value).hanging(4)
    };
    let mut lines = Vec::new();
    lines.extend(target.map(|target| fact("on", target)));
    lines.extend(cwd.map(|cwd| fact("in", cwd)));
    lines.push(fact("with", &params.to_string()));
    lines
}

impl Core {
    /// Asks the next question, if it is time for it.
    pub(super) fn ask_next(&mut self) {
        let typing = !self.editor.is_empty();
        if let Some((Question { about: About::Confirmation(id), .. }, _)) = &self.question {
            // Somebody who begins to type has other things in mind than others' turns.
            let others = self.asked.iter().any(|asked| asked.confirm_id == *id && !asked.own);
            if others && typing {
                self.question = None;
            }
        }
        if self.question.is_some() {
            return;
        }
        let due = self.asked.iter().find(|asked| !asked.answered && (asked.own || !typing));
        let Some(asked) = due else {
            return;
        };
        let title = format!("{} needs a confirmation:", asked.tool);
        let mut about = vec![Line::of(Tone::Loud, &title)];
        about.extend(asked.about.clone());
        let options = asked.options.iter().map(|option| said(*option).to_owned()).collect();
        let question =
            Question { about: About::Confirmation(asked.confirm_id.clone()), since: self.now };
        self.question = Some((question, Menu::new(about, options)));
    }

    /// One line about what waits while it is not asked.
    pub(super) fn alert(&self) -> Option<Line> {
        let waiting = self.asked.iter().filter(|asked| !asked.answered).count();
        let asked = self.asked.iter().find(|asked| !asked.answered)?;
        let more = if waiting > 1 { format!(" and {} more", waiting - 1) } else { String::new() };
        let told =
            format!("⚠ {}{more} waits for a confirmation: clear the input to see it", asked.tool);
        self.question.is_none().then(|| Line::of(Tone::Loud, &told))
    }

    pub(super) fn drop_question(&mut self, confirm_id: &ConfirmId) {
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
        let question = Question { about: About::Agent { agent, offers }, since: self.now };
        self.question = Some((question, menu));
    }

    /// A key while a question is open; whether the question took it.
    pub(super) fn answer(&mut self, key: Key) -> bool {
        let Some((question, menu)) = &mut self.question else {
            return false;
        };
        let young = self.now.saturating_sub(question.since) < QUESTION_GUARD;
        if young && !self.editor.is_empty() {
            return false;
        }
        match menu.on(key) {
            Answer::Ignored => {
                // Whoever does not want the agent goes back.
                let asks = matches!(question.about, About::Agent { .. });
                if asks && key == Key::Escape {
                    self.question = None;
                    self.go_back();
                    return true;
                }
                asks
            }
            Answer::Moved => true,
            Answer::Item(item) => {
                let (question, _) = self.question.take().expect("it was just asked");
                self.answered(question.about, item);
                true
            }
        }
    }

    fn answered(&mut self, about: About, item: usize) {
        match about {
            About::Confirmation(id) => {
                let asked = self.asked.iter_mut().find(|asked| asked.confirm_id == id);
                let Some((asked, agent)) = asked.zip(self.agent.clone()) else {
                    return;
                };
                asked.answered = true;
                let (confirm_id, decision) = (id, asked.options[item]);
                self.effects.push(Effect::Confirm { agent, confirm_id, decision });
            }
            About::Agent { agent, offers } => match offers[item] {
                Offer::Restore => self.attach(agent, Attach::Bring),
                Offer::Create => {
                    self.wanted = Some(agent.clone());
                    self.effects.push(Effect::Create(agent));
                }
                Offer::Leave => self.go_back(),
            },
        }
    }

    pub(super) fn not_confirmed(&mut self, confirm_id: &ConfirmId, error: &str) {
        self.error(error);
        for asked in self.asked.iter_mut().filter(|asked| asked.confirm_id == *confirm_id) {
            asked.answered = false;
        }
    }
}

/// A decision as a person says it.
fn said(choice: Choice) -> &'static str {
    match choice {
        Choice::AllowOnce => "allow it once",
        Choice::AllowFile => "allow changes of this file, from now on",
        Choice::AllowDir => "allow changes in this directory, from now on",
        Choice::AllowExecCwd => "allow this program in this directory, from now on",
        Choice::AllowTool => "allow every call of this tool, from now on",
        Choice::AllowServer => "allow every tool of this MCP server, from now on",
        Choice::Deny => "deny it",
        Choice::TimeoutDeny => "nobody answered",
    }
}
