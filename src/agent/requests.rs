//! Which turns an agent was asked for, and how each ended. A `request_id` names one turn for ever:
//! asked again with the same content it joins the turn or gets the recorded outcome.
//! Outcomes that are on record are in the database; here are only their names.
//! Pure but for the senders it hands outcomes to.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use tokio::sync::oneshot;

use super::handle::{Accepted, SendError};
use super::outcome::{Failure, Outcome};
use crate::id::RequestId;
use crate::limits::REQUESTS_KEPT_MAX;

pub type AcceptReply = oneshot::Sender<Result<Accepted, SendError>>;

#[derive(Debug, Default)]
pub struct Requests {
    by_id: BTreeMap<RequestId, Request>,
    /// Those on record, oldest first.
    recorded: VecDeque<RequestId>,
    recorded_ids: BTreeSet<RequestId>,
}

#[derive(Debug)]
struct Request {
    content: Arc<str>,
    /// Callers that are told once the request is durable; `None` from then on.
    accepting: Option<Vec<AcceptReply>>,
    progress: Progress,
}

#[derive(Debug)]
enum Progress {
    Queued(Vec<oneshot::Sender<Arc<Outcome>>>),
    Running(Vec<oneshot::Sender<Arc<Outcome>>>),
    /// Ended, and not on record, because the disk does not take it.
    Ended(Arc<Outcome>),
}

/// How far a request is.
#[derive(Clone, Debug)]
pub enum State {
    Queued,
    Running,
    Ended(Arc<Outcome>),
    /// The database knows how it ended.
    Recorded,
}

/// What is known of a request that somebody wants to make.
#[derive(Debug, PartialEq, Eq)]
pub enum Known {
    Unknown,
    OtherContent,
    Same,
}

impl Requests {
    /// Starts with the ended requests that are on record, oldest first.
    pub fn restored(recorded: Vec<RequestId>) -> Self {
        let recorded_ids = recorded.iter().cloned().collect();
        Self { by_id: BTreeMap::new(), recorded: recorded.into(), recorded_ids }
    }

    pub fn look_up(&self, id: &RequestId, content: &str) -> Known {
        match self.by_id.get(id) {
            // Whether the content is the same is seen when the record is read.
            None if self.recorded_ids.contains(id) => Known::Same,
            None => Known::Unknown,
            Some(request) if *request.content != *content => Known::OtherContent,
            Some(_) => Known::Same,
        }
    }

    /// What others may know: nothing of a request that is not durable yet.
    pub fn state(&self, id: &RequestId) -> Option<State> {
        if self.recorded_ids.contains(id) {
            return Some(State::Recorded);
        }
        let request = self.by_id.get(id)?;
        request.accepting.is_none().then(|| request.progress.state())
    }

    /// Notes a new request; it is accepted once it is durable.
    pub fn add(&mut self, id: RequestId, content: Arc<str>) {
        let progress = Progress::Queued(Vec::new());
        let request = Request { content, accepting: Some(Vec::new()), progress };
        let before = self.by_id.insert(id, request);
        assert!(before.is_none(), "a request is added once");
    }

    /// Tells a caller of its request: at once where that is durable, else as soon as it is.
    pub fn answer(&mut self, id: &RequestId, reply: AcceptReply) {
        if self.recorded_ids.contains(id) {
            let _ = reply.send(Ok(Accepted::Recorded));
            return;
        }
        let request = self.by_id.get_mut(id).expect("only known requests are answered");
        match &mut request.accepting {
            Some(waiting) => waiting.push(reply),
            None => drop(reply.send(Ok(request.progress.join()))),
        }
    }

    /// The request is durable: its callers are told.
    pub fn accept(&mut self, id: &RequestId) {
        let request = self.request(id);
        let waiting = request.accepting.take().expect("a request is accepted once");
        for reply in waiting {
            let mut accepted = request.progress.join();
            // What is told is that it was taken, however far it is by now.
            if let Accepted::Waiting { state, .. } = &mut accepted {
                *state = State::Queued;
            }
            let _ = reply.send(Ok(accepted));
        }
    }

    /// The request could not be written down, so it never was.
    pub fn refuse(&mut self, id: &RequestId) {
        let mut request = self.by_id.remove(id).expect("only known requests are refused");
        for reply in request.accepting.expect("an accepted request is not refused") {
            let _ = reply.send(Err(SendError::Storage));
        }
        request.progress.tell(&Arc::new(Outcome::Failed(Failure::Storage)));
    }

    pub fn start(&mut self, id: &RequestId) {
        let progress = &mut self.request(id).progress;
        let Progress::Queued(waiting) = progress else {
            panic!("a turn starts once, from the queue");
        };
        *progress = Progress::Running(std::mem::take(waiting));
    }

    /// The outcome is on record: everybody who waits is told, and the database keeps it from now
    /// on. Returns requests of which so many have come since that they are to be forgotten.
    pub fn end(&mut self, id: &RequestId, outcome: Outcome) -> Option<RequestId> {
        self.request(id).progress.tell(&Arc::new(outcome));
        self.record(id)
    }

    /// The outcome could not be written: everybody is told that, and it is kept here until it can.
    pub fn end_unrecorded(&mut self, id: &RequestId, outcome: Outcome) {
        let outcome = Arc::new(outcome);
        let progress = &mut self.request(id).progress;
        std::mem::replace(progress, Progress::Ended(Arc::clone(&outcome))).tell(&outcome);
    }

    /// The outcome of a request that ended before is on record now.
    pub fn record(&mut self, id: &RequestId) -> Option<RequestId> {
        self.by_id.remove(id).expect("a request is recorded once");
        self.recorded.push_back(id.clone());
        self.recorded_ids.insert(id.clone());
        if self.recorded.len() <= REQUESTS_KEPT_MAX {
            return None;
        }
        let oldest = self.recorded.pop_front().expect("the log is longer than its bound");
        self.recorded_ids.remove(&oldest);
        Some(oldest)
    }

    fn request(&mut self, id: &RequestId) -> &mut Request {
        self.by_id.get_mut(id).expect("only known requests change")
    }
}

impl Progress {
    fn state(&self) -> State {
        match self {
            Self::Queued(_) => State::Queued,
            Self::Running(_) => State::Running,
            Self::Ended(outcome) => State::Ended(Arc::clone(outcome)),
        }
    }

    fn join(&mut self) -> Accepted {
        let state = self.state();
        match self {
            Self::Queued(waiting) | Self::Running(waiting) => {
                let (sender, outcome) = oneshot::channel();
                // Callers come and go while a turn runs; those that went leave no trace.
                waiting.retain(|sender| !sender.is_closed());
                waiting.push(sender);
                Accepted::Waiting { state, outcome }
            }
            Self::Ended(outcome) => Accepted::Ended(Arc::clone(outcome)),
        }
    }

    fn tell(&mut self, outcome: &Arc<Outcome>) {
        match self {
            Self::Queued(waiting) | Self::Running(waiting) => {
                for sender in waiting.drain(..) {
                    // A caller that went away reads the outcome later by its request id.
                    let _ = sender.send(Arc::clone(outcome));
                }
            }
            Self::Ended(_) => panic!("a request ends once"),
        }
    }
}

#[cfg(test)]
#[path = "requests_tests.rs"]
mod tests;
