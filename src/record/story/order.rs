//! What happened after what: every beginning, end and event has its place in one order, and the events
//! their count, by which a replay knows them again.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use crate::id::{ConfirmId, RequestId};
use crate::limits::RECORD_MOMENTS_MAX;
use crate::record::note::{Event, Meaning};

/// A place in the order, and in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment {
    pub(super) place: u64,
    pub(super) at: Duration,
}

/// What a moment is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Sort {
    /// Somebody outside begins something.
    Beginning,
    /// An end, or an event.
    Other,
}

/// An event, as `on` of a step names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) name: &'static str,
    pub(super) agent: Option<String>,
    pub(super) nth: u64,
}

/// A confirmation that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) tool: String,
    pub(super) agent: Option<String>,
    /// Right after the question.
    pub(super) since: Moment,
    /// How many others of its agent waited then, which come before it in a list.
    pub(super) before: usize,
    /// When the answer came that is told of.
    pub(super) waiting: Waiting,
}

/// Whether a confirmation waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    Yes,
    /// Somebody has answered it, or the server.
    NoLonger,
}

#[derive(Debug, Default)]
pub(super) struct Order {
    next: u64,
    last: Duration,
    counts: BTreeMap<(&'static str, Option<String>), u64>,
    /// Events by their place, since a step may have to name one; the oldest are forgotten.
    marks: BTreeMap<u64, (Duration, Mark)>,
    /// The newest moments, for what is noticed only later.
    moments: VecDeque<(Moment, Sort)>,
    /// Who is in a turn.
    running: BTreeSet<String>,
    confirmations: BTreeMap<ConfirmId, Asked>,
    /// Whether nobody was there when somebody was to be asked.
    is_unheard: bool,
    /// When agents came back.
    restored: BTreeMap<String, Moment>,
    /// When agents were made.
    created: BTreeMap<(String, u64), Moment>,
    /// When requests were accepted.
    queued: BTreeMap<(Option<String>, RequestId), Moment>,
}

/// By how much the times of files may lag behind the clock.
const LAG: Duration = Duration::from_millis(10);
/// The event of an agent that is made.
const CREATED: &str = "agent_created";
/// The event of an agent that comes back.
const RESTORED: &str = "agent_restored";
/// Places lie apart, so that what is noticed later finds one between them: right after one, or right
/// before the next.
const APART: u64 = 4;

impl Order {
    pub(super) fn begins(&mut self, at: Duration) -> Moment {
        self.step(at, Sort::Beginning)
    }

    pub(super) fn ends(&mut self, at: Duration) -> Moment {
        self.step(at, Sort::Other)
    }

    pub(super) fn event(&mut self, at: Duration, event: &Event) {
        let moment = self.step(at, Sort::Other);
        let agent = event.agent.as_ref().map(ToString::to_string);
        let count = self.counts.entry((event.name, agent.clone())).or_default();
        *count += 1;
        let mark = Mark { name: event.name, agent: agent.clone(), nth: *count };
        // An agent comes back before the call begins that it comes back for, which cannot wait for it.
        if event.name != RESTORED {
            self.marks.insert(moment.place, (at, mark));
        } else if let Some(agent) = &agent {
            self.restored.insert(agent.clone(), moment);
            forget_oldest(&mut self.restored, |moment| *moment);
        }
        if self.marks.len() > RECORD_MOMENTS_MAX {
            self.marks.pop_first();
        }
        if let Some(agent) = agent.as_ref().filter(|_| event.name == CREATED) {
            let before = Moment { place: moment.place - 1, at };
            self.created.insert((agent.clone(), before.place), before);
            forget_oldest(&mut self.created, |moment| *moment);
        }
        match (&event.meaning, agent) {
            (Meaning::TurnStarted, Some(agent)) => {
                self.running.insert(agent);
            }
            (Meaning::TurnEnded, Some(agent)) => {
                self.running.remove(&agent);
            }
            (Meaning::Queued { request_id }, agent) => {
                let moment = Moment { place: moment.place - 1, at };
                self.queued.insert((agent, request_id.clone()), moment);
                forget_oldest(&mut self.queued, |moment| *moment);
            }
            (Meaning::Asks { confirm_id, tool }, agent) => {
                let since = Moment { place: moment.place + 1, at };
                self.asked(confirm_id.clone(), tool.clone(), agent, since);
            }
            (Meaning::DecidedForNobody { confirm_id }, _) => {
                self.is_unheard = true;
                self.decided(confirm_id);
            }
            (Meaning::Decided { confirm_id }, _) => self.decided(confirm_id),
            (Meaning::None | Meaning::TurnStarted | Meaning::TurnEnded, _) => {}
        }
    }

    fn decided(&mut self, id: &ConfirmId) {
        if let Some(asked) = self.confirmations.get_mut(id) {
            asked.waiting = Waiting::NoLonger;
        }
    }

    fn asked(&mut self, id: ConfirmId, tool: String, agent: Option<String>, since: Moment) {
        let waits = |other: &&Asked| other.agent == agent && other.waiting == Waiting::Yes;
        let before = self.confirmations.values().filter(waits).count();
        let asked = Asked { tool, agent, since, before, waiting: Waiting::Yes };
        self.confirmations.insert(id, asked);
        forget_oldest(&mut self.confirmations, |asked| asked.since);
    }

    /// The moment of something that nothing has to find again.
    pub(super) fn passes(&mut self, at: Duration) -> Moment {
        self.next += APART;
        self.last = self.last.max(at);
        Moment { place: self.next, at }
    }

    fn step(&mut self, at: Duration, sort: Sort) -> Moment {
        let moment = self.passes(at);
        self.moments.push_back((moment, sort));
        if self.moments.len() > RECORD_MOMENTS_MAX {
            self.moments.pop_front();
        }
        moment
    }

    /// The moment of something that is noticed only now: right after what happened before it.
    pub(super) fn at(&self, since: Duration) -> Moment {
        let before = self.moments.iter().rev().find(|(moment, _)| moment.at <= since);
        Moment { place: before.map_or(1, |(moment, _)| moment.place + 1), at: since }
    }

    /// The moment of a change of this time, which may lag behind the clock: before what somebody began while
    /// it lagged, unless it was seen unchanged after that.
    pub(super) fn around(&self, time: Duration, last: Duration) -> Moment {
        let latest = time + LAG;
        let within = |(moment, sort): &&(Moment, Sort)| {
            *sort == Sort::Beginning && (time.max(last)..=latest).contains(&moment.at)
        };
        match self.moments.iter().find(within) {
            Some((moment, _)) => Moment { place: moment.place - 1, ..*moment },
            None => self.at(latest),
        }
    }

    /// The moment of something of which only is known that it happened between these: before somebody
    /// began something, or else after an event, as far as can be from both.
    pub(super) fn between(&self, last: Duration, missed: Duration) -> Moment {
        let middle = (last + missed) / 2;
        let within =
            self.moments.iter().filter(|(moment, _)| moment.at > last && moment.at < missed);
        match within.min_by_key(|(moment, sort)| (*sort, moment.at.abs_diff(middle))) {
            Some((moment, Sort::Beginning)) => Moment { place: moment.place - 1, ..*moment },
            Some((moment, Sort::Other)) => Moment { place: moment.place + 1, ..*moment },
            None => self.at(missed),
        }
    }

    /// The last event between two places.
    pub(super) fn event_between(&self, from: u64, to: u64) -> Option<(Moment, &Mark)> {
        // What was noticed late may have its place before what it comes after. And whoever waits for
        // an event hears all of them, so that nobody is there no longer: then times must do.
        if from >= to || self.is_unheard {
            return None;
        }
        let (place, (at, mark)) = self.marks.range(from..to).next_back()?;
        Some((Moment { place: *place, at: *at }, mark))
    }

    pub(super) fn is_running(&self) -> bool {
        !self.running.is_empty()
    }

    /// The confirmation of this id, which somebody answers.
    pub(super) fn answer(&mut self, id: &str) -> Option<Asked> {
        let asked = self.confirmations.get_mut(&ConfirmId::parse(id).ok()?)?;
        let told = asked.clone();
        asked.waiting = Waiting::NoLonger;
        Some(told)
    }

    /// Whether an agent came back between two moments.
    pub(super) fn came_back(&self, agent: &str, (from, to): (Moment, Moment)) -> bool {
        self.restored.get(agent).is_some_and(|back| from < *back && *back < to)
    }

    /// The moment right before an agent was made, for the first time since then.
    pub(super) fn created(&self, agent: &str, since: Moment) -> Option<Moment> {
        let of_agent = |place| (agent.to_owned(), place);
        let mut made = self.created.range(of_agent(since.place)..=of_agent(u64::MAX));
        made.next().map(|(_, moment)| *moment)
    }

    /// The moment of the last event before another.
    pub(super) fn told_before(&self, moment: Moment) -> Option<Moment> {
        let (place, (at, _)) = self.marks.range(..moment.place).next_back()?;
        Some(Moment { place: *place, at: *at })
    }

    /// The moment right before an agent's request was accepted.
    pub(super) fn queued(&self, agent: Option<&str>, id: &str) -> Option<Moment> {
        let id = RequestId::parse(id).ok()?;
        self.queued.get(&(agent.map(str::to_owned), id)).copied()
    }

    /// How long all of it took.
    pub(super) fn last(&self) -> Duration {
        self.last
    }
}

/// Keeps a map within its bound.
fn forget_oldest<K: Clone + Ord, V>(map: &mut BTreeMap<K, V>, since: impl Fn(&V) -> Moment) {
    if map.len() > RECORD_MOMENTS_MAX {
        let oldest = map.iter().min_by_key(|(_, value)| since(value)).map(|(key, _)| key.clone());
        oldest.map(|key| map.remove(&key));
    }
}

/// A time that people read: whole milliseconds, from a second on hundredths of it, and from ten on tenths.
pub(super) fn rounded(time: Duration) -> Duration {
    let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let step = match millis {
        0..1000 => 1,
        1000..10_000 => 10,
        10_000.. => 100,
    };
    Duration::from_millis(millis.next_multiple_of(step))
}

/// A time that many others add up to, or are measured against: whole milliseconds, and none too many.
pub(super) fn exact(time: Duration) -> Duration {
    Duration::from_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}
