//! Which turns an agent was asked for, and how each ended. A `request_id` names one turn for ever:
//! asked again with the same content it joins the turn or gets the recorded outcome.
//! Pure but for the senders it hands outcomes to.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use tokio::sync::oneshot;

use super::outcome::Outcome;
use crate::id::RequestId;
use crate::limits::REQUESTS_KEPT_MAX;

#[derive(Debug, Default)]
pub struct Requests {
    by_id: BTreeMap<RequestId, Record>,
    /// Ended ones, oldest first; only these are ever forgotten.
    ended: VecDeque<RequestId>,
}

#[derive(Debug)]
struct Record {
    content: Arc<str>,
    progress: Progress,
}

#[derive(Debug)]
enum Progress {
    Queued(Vec<oneshot::Sender<Arc<Outcome>>>),
    Running(Vec<oneshot::Sender<Arc<Outcome>>>),
    Ended(Arc<Outcome>),
}

/// How far a request is.
#[derive(Clone, Debug)]
pub enum State {
    Queued,
    Running,
    Ended(Arc<Outcome>),
}

/// What the log knows of a request that somebody wants to make.
#[derive(Debug)]
pub enum Known {
    Unknown,
    OtherContent,
    Same(State),
}

impl Requests {
    pub fn look_up(&self, id: &RequestId, content: &str) -> Known {
        match self.by_id.get(id) {
            None => Known::Unknown,
            Some(record) if *record.content != *content => Known::OtherContent,
            Some(record) => Known::Same(record.progress.state()),
        }
    }

    pub fn state(&self, id: &RequestId) -> Option<State> {
        self.by_id.get(id).map(|record| record.progress.state())
    }

    pub fn accept(&mut self, id: RequestId, content: Arc<str>) {
        let record = Record { content, progress: Progress::Queued(Vec::new()) };
        let before = self.by_id.insert(id, record);
        assert!(before.is_none(), "a request is accepted once");
    }

    /// Waits for the outcome of a request that has not ended.
    pub fn join(&mut self, id: &RequestId) -> oneshot::Receiver<Arc<Outcome>> {
        let (sender, receiver) = oneshot::channel();
        match &mut self.record(id).progress {
            Progress::Queued(waiting) | Progress::Running(waiting) => {
                // Callers come and go while a turn runs; those that went leave no trace.
                waiting.retain(|sender| !sender.is_closed());
                waiting.push(sender);
            }
            Progress::Ended(_) => panic!("an ended request is answered from its record"),
        }
        receiver
    }

    pub fn start(&mut self, id: &RequestId) {
        let progress = &mut self.record(id).progress;
        let Progress::Queued(waiting) = progress else {
            panic!("a turn starts once, from the queue");
        };
        *progress = Progress::Running(std::mem::take(waiting));
    }

    /// Records the outcome and tells everybody who waits.
    pub fn end(&mut self, id: &RequestId, outcome: Outcome) {
        let outcome = Arc::new(outcome);
        let progress = &mut self.record(id).progress;
        match std::mem::replace(progress, Progress::Ended(Arc::clone(&outcome))) {
            Progress::Queued(waiting) | Progress::Running(waiting) => {
                for sender in waiting {
                    // A caller that went away reads the outcome later by its request id.
                    let _ = sender.send(Arc::clone(&outcome));
                }
            }
            Progress::Ended(_) => panic!("a request ends once"),
        }
        self.ended.push_back(id.clone());
        if self.ended.len() > REQUESTS_KEPT_MAX {
            let oldest = self.ended.pop_front().expect("the log is longer than its bound");
            self.by_id.remove(&oldest);
        }
    }

    fn record(&mut self, id: &RequestId) -> &mut Record {
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
}

#[cfg(test)]
mod tests {
    use super::super::outcome::CancelReason;
    use super::*;

    fn id(number: usize) -> RequestId {
        RequestId::parse(&format!("r{number}")).unwrap()
    }

    fn end(requests: &mut Requests, number: usize) {
        requests.accept(id(number), "same".into());
        requests.start(&id(number));
        requests.end(&id(number), Outcome::Cancelled { reason: CancelReason::Cancelled });
    }

    #[test]
    fn the_oldest_outcomes_are_forgotten_and_running_ones_never() {
        let mut requests = Requests::default();
        requests.accept(id(0), "running".into());
        requests.start(&id(0));
        for number in 1..=REQUESTS_KEPT_MAX + 1 {
            end(&mut requests, number);
        }
        assert!(matches!(requests.state(&id(0)), Some(State::Running)));
        assert!(requests.state(&id(1)).is_none());
        assert!(matches!(requests.state(&id(2)), Some(State::Ended(_))));
        assert!(matches!(requests.look_up(&id(2), "other"), Known::OtherContent));
        assert!(matches!(requests.look_up(&id(2), "same"), Known::Same(State::Ended(_))));
    }

    #[test]
    fn everybody_who_joined_gets_the_outcome_once() {
        let mut requests = Requests::default();
        requests.accept(id(1), "x".into());
        let mut first = requests.join(&id(1));
        requests.start(&id(1));
        let mut second = requests.join(&id(1));
        drop(requests.join(&id(1)));
        requests.end(&id(1), Outcome::Cancelled { reason: CancelReason::Destroyed });
        assert_eq!(first.try_recv().unwrap(), second.try_recv().unwrap());
    }
}
