//! The confirmations of one agent that are not decided for good: which can be answered, whose answer
//! wins, and which are over. What was decided is in the database.
//! Pure but for the replies it hands out; the clock is the caller's.

use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::choice::Choice;
use crate::event::{AskedTool, NO_CONFIRMER};
use crate::id::{ConfirmId, RequestId};
use crate::limits::{CONFIRMATION_ANSWERS_MAX, CONFIRMATIONS_PENDING_MAX};
use crate::tool::Question;

pub type ConfirmReply = oneshot::Sender<Result<Answered, ConfirmError>>;

/// What came of an answer: the decision, which may be another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    pub accepted: bool,
    pub decision: Choice,
    pub resolved_by: String,
}

/// Why an answer came to nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfirmError {
    /// Of those that wait; the database may know it.
    #[error("there is no such confirmation")]
    Unknown,
    #[error("{decision:?} is not among its options: {}", names(options))]
    NotOffered { decision: String, options: Vec<Choice> },
    #[error("too many answers to this confirmation are on their way")]
    Busy,
    #[error("the decision could not be read or written")]
    Storage,
    #[error("the agent is gone")]
    Gone,
}

/// The option that somebody means.
pub fn offered(options: &[Choice], decision: &str) -> Result<Choice, ConfirmError> {
    let found = options.iter().find(|option| option.name() == decision);
    found.copied().ok_or_else(|| ConfirmError::NotOffered {
        decision: decision.to_owned(),
        options: options.to_vec(),
    })
}

fn names(options: &[Choice]) -> String {
    options.iter().map(|option| option.name()).collect::<Vec<_>>().join(", ")
}

/// How a confirmation was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolution {
    pub decision: Choice,
    /// Why, where the server decided.
    pub reason: Option<String>,
    pub by: String,
}

/// What the server calls itself where it decides.
const SERVER: &str = "server";

impl Resolution {
    pub fn by_client(decision: Choice, client: &str) -> Self {
        Self { decision, reason: None, by: client.to_owned() }
    }

    pub fn nobody_there() -> Self {
        Self::denied(NO_CONFIRMER)
    }

    /// The turn went on without the call.
    pub fn denied(why: &str) -> Self {
        Self { decision: Choice::Deny, reason: Some(why.to_owned()), by: SERVER.to_owned() }
    }

    pub fn too_late() -> Self {
        Self { decision: Choice::TimeoutDeny, reason: None, by: SERVER.to_owned() }
    }

    /// What a model is told whose call is not run.
    pub fn told(&self, tool: &str) -> String {
        let why = match (self.decision, self.reason.as_deref()) {
            (Choice::TimeoutDeny, _) => "nobody gave one in time (timeout_deny)",
            (_, Some(NO_CONFIRMER)) => "nobody is there to give one (no_confirmer)",
            (_, Some(_) | None) => "it was denied",
        };
        format!("{tool} was not run: it needs a confirmation, and {why}")
    }
}

/// One that somebody can decide.
#[derive(Debug)]
pub struct Confirmation {
    pub id: ConfirmId,
    pub request: RequestId,
    /// The call that waits for it.
    pub index: usize,
    pub tool: AskedTool,
    pub question: Question,
    pub expires: Instant,
    /// ISO 8601, UTC.
    pub expires_at: Arc<str>,
}

impl Confirmation {
    pub fn options(&self) -> &'static [Choice] {
        self.question.subject.options()
    }
}

/// A confirmation as others are told of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Pending {
    pub confirm_id: ConfirmId,
    pub request_id: RequestId,
    pub tool: AskedTool,
    pub target: Option<String>,
    pub cwd: String,
    pub options: &'static [Choice],
    pub expires_at: Arc<str>,
}

#[derive(Debug, Default)]
pub struct Confirmations {
    /// Oldest first.
    open: Vec<Open>,
}

#[derive(Debug)]
struct Open {
    confirmation: Confirmation,
    stage: Stage,
    /// Why the turn does not wait for it any more.
    withdrawn: Option<String>,
}

#[derive(Debug)]
enum Stage {
    /// It is being written, as far as its agent knows.
    Unwritten,
    Pending,
    /// Somebody's answer is being written.
    Deciding {
        resolution: Resolution,
        first: ConfirmReply,
        later: Vec<ConfirmReply>,
    },
}

/// What is to be done with an answer.
#[derive(Debug, PartialEq, Eq)]
pub enum Taken {
    /// It wins, once it is written.
    Write(Resolution),
    /// It came to nothing, or waits for the one that does; whoever gave it is told.
    Nothing,
}

/// A confirmation whose decision is on record.
#[derive(Debug)]
pub struct Settled {
    pub confirmation: Confirmation,
    pub resolution: Resolution,
    /// Whether its call still waits.
    pub is_wanted: bool,
    first: ConfirmReply,
    later: Vec<ConfirmReply>,
}

impl Settled {
    /// Tells everybody who answered who won.
    pub fn tell(self) {
        let Resolution { decision, by, .. } = self.resolution;
        let answered = |accepted| Ok(Answered { accepted, decision, resolved_by: by.clone() });
        // Whoever went away reads it later.
        let _ = self.first.send(answered(true));
        for reply in self.later {
            let _ = reply.send(answered(false));
        }
    }
}

impl Confirmations {
    /// Notes one that is about to be written.
    pub fn ask(&mut self, confirmation: Confirmation) {
        assert!(
            self.open.len() < 2 * CONFIRMATIONS_PENDING_MAX,
            "only calls that wait are asked for"
        );
        self.open.push(Open { confirmation, stage: Stage::Unwritten, withdrawn: None });
    }

    /// One is on record, and others are told of it. Who hears of it may have answered before its agent
    /// comes to hear that it is.
    pub fn written(&mut self, id: &ConfirmId) {
        let Some(open) = self.find(id) else { return };
        match open.stage {
            Stage::Unwritten => open.stage = Stage::Pending,
            Stage::Deciding { .. } => {}
            Stage::Pending => panic!("a confirmation is written once"),
        }
    }

    /// Takes an answer, in the words of who gives it. The first that was offered wins.
    pub fn answer(
        &mut self,
        id: &ConfirmId,
        decision: &str,
        client: &str,
        reply: ConfirmReply,
    ) -> Taken {
        let Some(open) = self.find(id) else {
            let _ = reply.send(Err(ConfirmError::Unknown));
            return Taken::Nothing;
        };
        let decision = match offered(open.confirmation.options(), decision) {
            Ok(decision) => decision,
            Err(not_offered) => {
                let _ = reply.send(Err(not_offered));
                return Taken::Nothing;
            }
        };
        match &mut open.stage {
            Stage::Deciding { later, .. } if later.len() >= CONFIRMATION_ANSWERS_MAX => {
                let _ = reply.send(Err(ConfirmError::Busy));
                Taken::Nothing
            }
            Stage::Deciding { later, .. } => {
                later.push(reply);
                Taken::Nothing
            }
            // Its id is drawn by chance: who knows it has it from the event that was written.
            stage @ (Stage::Unwritten | Stage::Pending) => {
                let resolution = Resolution::by_client(decision, client);
                let taken = Taken::Write(resolution.clone());
                *stage = Stage::Deciding { resolution, first: reply, later: Vec::new() };
                taken
            }
        }
    }

    pub fn get(&self, id: &ConfirmId) -> Option<&Confirmation> {
        let found = self.open.iter().find(|open| open.confirmation.id == *id);
        found.map(|open| &open.confirmation)
    }

    /// The answer to one is on record.
    pub fn settle(&mut self, id: &ConfirmId) -> Settled {
        let Open { confirmation, stage, withdrawn } = self.take(id);
        let Stage::Deciding { resolution, first, later } = stage else {
            panic!("only what was being decided is settled");
        };
        Settled { confirmation, resolution, is_wanted: withdrawn.is_none(), first, later }
    }

    /// The answer to one could not be written: it is as if nobody had answered. Returns it where nobody
    /// waits for it any more, and why.
    pub fn reopen(&mut self, id: &ConfirmId) -> Option<(Confirmation, String)> {
        let open = self.find(id).expect("what was being decided is still open");
        let Stage::Deciding { first, later, .. } =
            std::mem::replace(&mut open.stage, Stage::Pending)
        else {
            panic!("only what was being decided is opened again");
        };
        for reply in [first].into_iter().chain(later) {
            let _ = reply.send(Err(ConfirmError::Storage));
        }
        let why = open.withdrawn.clone()?;
        Some((self.take(id).confirmation, why))
    }

    /// The call at `index` does not wait any more. Returns its confirmation, which is over, unless
    /// somebody's answer is being written.
    pub fn withdraw(&mut self, index: usize, why: &str) -> Option<Confirmation> {
        let is_its = |open: &Open| open.confirmation.index == index && open.withdrawn.is_none();
        let place = self.open.iter().position(is_its)?;
        match self.open[place].stage {
            Stage::Unwritten | Stage::Pending => Some(self.open.remove(place).confirmation),
            Stage::Deciding { .. } => {
                self.open[place].withdrawn = Some(why.to_owned());
                None
            }
        }
    }

    /// Takes those whose time is over.
    pub fn expired(&mut self, now: Instant) -> Vec<Confirmation> {
        let is_over = |open: &mut Open| open.is_pending() && open.confirmation.expires <= now;
        self.open.extract_if(.., is_over).map(|open| open.confirmation).collect()
    }

    pub fn next_expiry(&self) -> Option<Instant> {
        let pending = self.open.iter().filter(|open| open.is_pending());
        pending.map(|open| open.confirmation.expires).min()
    }

    /// Whether a call waits for somebody.
    pub fn is_waiting(&self) -> bool {
        self.known().next().is_some()
    }

    pub fn pending(&self) -> Vec<Pending> {
        let told = |open: &Open| {
            let Confirmation { id, request, tool, question, expires_at, .. } = &open.confirmation;
            Pending {
                confirm_id: id.clone(),
                request_id: request.clone(),
                tool: tool.clone(),
                target: question.target.clone(),
                cwd: question.cwd.clone(),
                options: open.confirmation.options(),
                expires_at: Arc::clone(expires_at),
            }
        };
        self.known().map(told).collect()
    }

    /// Those that are on record and nobody's decision is.
    fn known(&self) -> impl Iterator<Item = &Open> {
        let is_known =
            |open: &&Open| !matches!(open.stage, Stage::Unwritten) && open.withdrawn.is_none();
        self.open.iter().filter(is_known)
    }

    fn find(&mut self, id: &ConfirmId) -> Option<&mut Open> {
        self.open.iter_mut().find(|open| open.confirmation.id == *id)
    }

    fn take(&mut self, id: &ConfirmId) -> Open {
        let place = self.open.iter().position(|open| open.confirmation.id == *id);
        self.open.remove(place.expect("a confirmation is open until it is taken"))
    }
}

impl Open {
    fn is_pending(&self) -> bool {
        matches!(self.stage, Stage::Pending)
    }
}

#[cfg(test)]
#[path = "confirmations_tests.rs"]
mod tests;
