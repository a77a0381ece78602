//! The invariant `events`: on every stream `seq` only grows; whoever has a cursor is told each durable
//! event after it once and in order, and so is whoever comes back with one; what is told is kept, and
//! kept as it was told; live events splice to the final text, and none follows its turn's last event.

use std::collections::{BTreeMap, BTreeSet};

use nexus3::event::{Event, Seq, What};
use nexus3::limits::STREAM_BUFFER_BYTES_MAX;
use serde_json::Value;

use super::promises::Promises;
use super::{Check, End, Invariant, Observation, Seen};
use crate::play::OBSERVER;
use crate::play::kept::Kept;
use crate::play::observed::{Opened, StreamEnd, StreamId};
use crate::scenario::{Pace, Scenario};

#[derive(Debug, Default)]
pub struct Events {
    promises: Promises,
    streams: BTreeMap<StreamId, Stream>,
    /// Every durable event that anybody was told, as it was told first.
    told: BTreeMap<Seq, Told>,
}

#[derive(Debug)]
struct Told {
    event: Event,
    /// The start of the server that told it.
    by: u64,
}

#[derive(Debug)]
struct Stream {
    opened: Opened,
    /// The last event that anybody was told of when it was opened.
    opened_after: Seq,
    /// What it told of other ids than the one it was opened with: the agent may have got another.
    others: BTreeSet<(Option<Seq>, String)>,
    last: Seq,
    seen: BTreeSet<Seq>,
    gaps: Vec<(Seq, Seq)>,
    /// The text of each turn that runs, as far as it was told, by agent and request.
    texts: BTreeMap<(String, String), String>,
    ended_turns: BTreeSet<(String, String)>,
    /// The bytes of all its events.
    bytes: usize,
    last_name: &'static str,
    end: Option<StreamEnd>,
}

/// The last event of every stream that ends with the server, and of one whose agent is gone.
const STOPPING: &str = "server_stopping";
const GONE: &str = "agent_destroyed";

impl Check for Events {
    fn invariant(&self) -> Invariant {
        Invariant::Events
    }

    fn on(&mut self, observation: &Observation, _: &Seen<'_>) -> Vec<String> {
        match observation {
            Observation::StreamOpened(opened) => {
                let told = self.told.last_key_value().map_or(0, |(seq, _)| *seq);
                let stream = Stream::new(opened.clone(), told);
                self.streams.insert(opened.stream.clone(), stream);
                Vec::new()
            }
            Observation::Event { stream, event } => self.hear(stream, event),
            Observation::StreamEnded { stream, end } => {
                if let Some(stream) = self.streams.get_mut(stream) {
                    stream.end = Some(*end);
                }
                Vec::new()
            }
            Observation::AskBegan(_)
            | Observation::AskEnded { .. }
            | Observation::Asked(_)
            | Observation::Answered(_)
            | Observation::Touched { .. }
            | Observation::Started(_)
            | Observation::McpCalled { .. }
            | Observation::Decided { .. } => Vec::new(),
        }
    }

    fn at_rest(&mut self, kept: &Kept, seen: &Seen<'_>, _: &End<'_>) -> Vec<String> {
        self.forget_lost(kept, seen.server_start);
        let names = self.names(kept);
        let mut found = self.against(kept, &names);
        let all = self.all(kept, &names);
        for stream in self.streams.values() {
            let of = stream.opened.agent.as_ref();
            let ids = of.map(|id| names_since(&names, id, stream.opened_after()));
            let owner = ids.as_ref().and_then(|ids| ids.last()).map(String::as_str);
            let mut problems: Vec<String> =
                stream.unfinished().map(str::to_owned).into_iter().collect();
            if self.promises == Promises::All || stream.opened.server_start == seen.server_start {
                problems.extend(stream.missing(&all, owner, seen.server_start));
                problems.extend(stream.strange(&all, ids.as_deref().unwrap_or_default()));
            }
            let problems = problems.into_iter();
            found.extend(problems.map(|problem| format!("{}: {problem}", stream.name())));
        }
        found
    }
}

impl Events {
    pub fn new(scenario: &Scenario) -> Self {
        Self { promises: Promises::of(scenario), ..Self::default() }
    }

    fn hear(&mut self, id: &StreamId, event: &Event) -> Vec<String> {
        let stream = self.streams.get_mut(id).expect("a stream is opened before it tells anything");
        let mut found = stream.take(event);
        let (name, by) = (stream.name(), stream.opened.server_start);
        if let Some(seq) = event.seq {
            let told = || Told { event: event.clone(), by };
            let first = self.told.entry(seq).or_insert_with(told);
            if first.event != *event {
                if self.promises == Promises::NotTheLast && first.by < by {
                    // The machine died between both, and took the first along with all that followed.
                    self.told.retain(|later, told| *later < seq || told.by == by);
                    self.told.insert(seq, told());
                } else {
                    found.push(format!("#{seq} was another event before"));
                }
            }
        }
        found.into_iter().map(|problem| format!("{name}: {problem}")).collect()
    }

    /// Forgets what servers before the last one told and need not have kept.
    fn forget_lost(&mut self, kept: &Kept, last_start: u64) {
        let is_kept: BTreeSet<Seq> = kept.events.iter().map(|kept| kept.seq).collect();
        let may_be_lost = |seq: &Seq| match self.promises {
            Promises::All => false,
            Promises::NotTheLast => true,
            // What is new is numbered anew, too.
            Promises::NotWhatWasChanged => !is_kept.contains(seq),
        };
        self.told.retain(|seq, told| told.by == last_start || !may_be_lost(seq));
    }

    /// What was told and is not kept as it was told.
    fn against(&self, kept: &Kept, names: &Names) -> Vec<String> {
        let by_seq: BTreeMap<Seq, &Value> =
            kept.events.iter().map(|kept| (kept.seq, &kept.json)).collect();
        let forgotten = |seq: Seq| move |id: &String| kept.is_forgotten(id, seq);
        let problem = |(seq, Told { event, .. }): (&Seq, &Told)| match by_seq.get(seq) {
            Some(json) => {
                let told = serde_json::to_value(event).expect("an event has only string keys");
                (**json != told).then(|| format!("#{seq} is kept otherwise than it was told"))
            }
            None if names_since(names, &agent(event), *seq).iter().any(forgotten(*seq)) => None,
            None => Some(format!("#{seq} was told and is not kept")),
        };
        self.told.iter().filter_map(problem).collect()
    }

    /// Whose each durable event is that there ever was, as far as it is known: by the id that its agent
    /// has now, under which it is found.
    fn all(&self, kept: &Kept, names: &Names) -> BTreeMap<Seq, String> {
        let told = self.told.iter().filter_map(|(seq, Told { event, .. })| {
            Some((*seq, names_since(names, &agent(event), *seq).pop()?))
        });
        let kept = kept.events.iter().map(|kept| (kept.seq, kept.agent.clone()));
        told.chain(kept).collect()
    }

    /// Who got which id when, and when an id was given to another agent.
    fn names(&self, kept: &Kept) -> Names {
        let kept = kept.events.iter().filter_map(|kept| Some((kept.seq, kept.event.as_ref()?)));
        let all = kept.chain(self.told.iter().map(|(seq, told)| (*seq, &told.event)));
        let naming = |(seq, event): (Seq, &Event)| {
            let from = match &event.what {
                What::AgentUpdated { previous_agent_id, .. } => {
                    Some(previous_agent_id.as_ref()?.to_string())
                }
                What::AgentCreated { .. } => None,
                _ => return None,
            };
            Some((seq, Naming { from, to: agent(event) }))
        };
        all.filter_map(naming).collect()
    }
}

/// An agent got an id: its first, or another.
#[derive(Clone, Debug)]
struct Naming {
    from: Option<String>,
    to: String,
}

type Names = BTreeMap<Seq, Naming>;

/// What the agent that has this id after that event is called from then on, in this order.
fn names_since(names: &Names, id: &str, after: Seq) -> Vec<String> {
    let mut ids = vec![id.to_owned()];
    let mut is_known = names.range(..=after).any(|(_, naming)| naming.to == id);
    for naming in names.range(after + 1..).map(|(_, naming)| naming) {
        let current = ids.last().expect("there is one at least");
        if naming.from.as_ref() == Some(current) {
            ids.push(naming.to.clone());
        } else if naming.to == *current && std::mem::replace(&mut is_known, true) {
            // Somebody else has it, so this agent is gone.
            break;
        }
    }
    ids
}

impl Stream {
    fn new(opened: Opened, opened_after: Seq) -> Self {
        Self {
            last: opened.after.unwrap_or(0),
            opened,
            opened_after,
            others: BTreeSet::new(),
            seen: BTreeSet::new(),
            gaps: Vec::new(),
            texts: BTreeMap::new(),
            ended_turns: BTreeSet::new(),
            bytes: 0,
            last_name: "",
            end: None,
        }
    }

    fn name(&self) -> String {
        let StreamId { who, number } = &self.opened.stream;
        let what = self.opened.agent.as_deref().unwrap_or("everything");
        format!("stream {number} of {who}, of {what}")
    }

    fn take(&mut self, event: &Event) -> Vec<String> {
        let mut found = Vec::new();
        let name = event.what.name();
        if self.last_name == STOPPING {
            found.push(format!("{name} follows {STOPPING}"));
        }
        if event.seq.is_some() != event.what.is_durable() {
            found.push(format!("{name} has a number, or has none, against its nature"));
        }
        if let (Some(of), Some(agent)) = (&self.opened.agent, &event.agent_id)
            && of != agent.as_str()
        {
            self.others.insert((event.seq, agent.to_string()));
        }
        if let Some(seq) = event.seq {
            if seq <= self.last {
                found.push(format!("#{seq} comes after #{}", self.last));
            }
            self.last = seq;
            self.seen.insert(seq);
        }
        (self.last_name, self.bytes) = (name, self.bytes + event.json().len());
        found.extend(self.follow(event));
        found
    }

    /// Follows the texts of turns.
    fn follow(&mut self, event: &Event) -> Option<String> {
        let name = event.what.name();
        let Some(request) = event.request_id.as_ref().map(ToString::to_string) else {
            match &event.what {
                What::StreamGap { from, to } => self.gaps.push((*from, *to)),
                // An agent that is made anew may be asked for the same turns.
                What::AgentCreated { .. } | What::AgentDestroyed { .. } => {
                    let of = agent(event);
                    self.ended_turns.retain(|(agent, _)| *agent != of);
                }
                _ => {}
            }
            return None;
        };
        let turn = (agent(event), request.clone());
        if self.ended_turns.contains(&turn) {
            return Some(format!("{name} of {request} comes after its last event"));
        }
        match &event.what {
            What::TurnStarted { .. } => drop(self.texts.insert(turn, String::new())),
            What::ContentChunk { text, offset } => {
                let known = self.texts.entry(turn).or_default();
                if known.chars().count() != *offset {
                    let known = known.chars().count();
                    return Some(format!("{request} goes on at {offset} and is known to {known}"));
                }
                known.push_str(text);
            }
            What::TurnSnapshot { text, offset } => {
                let known = self.texts.insert(turn, text.clone()).unwrap_or_default();
                if text.chars().count() != *offset || !text.starts_with(&known) {
                    return Some(format!("the snapshot of {request} is not its text so far"));
                }
            }
            what => {
                let last = what.turn_text()?;
                self.ended_turns.insert(turn.clone());
                let known = self.texts.remove(&turn)?;
                let fits = if self.is_whole() { last == known } else { last.starts_with(&known) };
                if !fits {
                    return Some(format!("the last text of {request} is not what was told of it"));
                }
            }
        }
        None
    }

    /// The event after which it was opened, at the latest: whoever opened it may be told that only after
    /// others are told of what came next.
    fn opened_after(&self) -> Seq {
        match (self.opened.after, self.seen.first()) {
            (None, Some(first)) => self.opened_after.min(first - 1),
            (Some(_), _) | (None, None) => self.opened_after,
        }
    }

    /// Whether nothing that it should tell can have been left out for its slowness.
    fn is_whole(&self) -> bool {
        self.opened.after.is_none()
            && self.opened.pace == Pace::AtOnce
            && self.bytes < STREAM_BUFFER_BYTES_MAX
    }

    /// What it should have told, up to where it came, or to the end if it came to the end of the last
    /// server.
    fn missing(
        &self,
        all: &BTreeMap<Seq, String>,
        of: Option<&str>,
        last_start: u64,
    ) -> Option<String> {
        let first = self.opened.after.map(|after| after + 1).or_else(|| self.seen.first().copied());
        let to_the_end = self.last_name == STOPPING && self.opened.server_start == last_start;
        let to = if to_the_end { Seq::MAX } else { self.last };
        let concerned = all.range(first?..).take_while(|(seq, _)| **seq <= to);
        let concerned = concerned.filter(|(_, agent)| of.is_none_or(|of| of == *agent));
        let told = |seq: &Seq| {
            self.seen.contains(seq) || self.gaps.iter().any(|(from, to)| from <= seq && seq <= to)
        };
        let missing = concerned.map(|(seq, _)| seq).find(|seq| !told(seq));
        missing.map(|seq| format!("#{seq} was not told"))
    }

    /// What it told of agents that it is not about: it is about one, whatever that is called.
    fn strange(&self, all: &BTreeMap<Seq, String>, ids: &[String]) -> Vec<String> {
        let is_its = |(seq, id): &&(Option<Seq>, String)| match seq {
            Some(seq) => all.get(seq) == ids.last(),
            None => ids.contains(id),
        };
        let strange = self.others.iter().filter(|other| !is_its(other));
        let told = |(seq, id): &(Option<Seq>, String)| match seq {
            Some(seq) => format!("#{seq} is of {id}"),
            None => format!("a live event is of {id}"),
        };
        strange.map(told).collect()
    }

    /// How it did not end as it should, once the server has.
    fn unfinished(&self) -> Option<&'static str> {
        // Nobody waits until the observer has read to the end, nor for those who take their time.
        if self.opened.stream.who == OBSERVER || self.opened.pace != Pace::AtOnce {
            return None;
        }
        match self.end {
            None => Some("it did not end with the server"),
            Some(StreamEnd::ByServer) => {
                let explained = [STOPPING, GONE].contains(&self.last_name);
                // What is kept of an agent that is gone may end with anything.
                (!explained && self.opened.after.is_none())
                    .then_some("it ended, and nothing said why")
            }
            Some(StreamEnd::Silent | StreamEnd::Broken | StreamEnd::Closed) => None,
        }
    }
}

/// Whose event it is; empty for the server's own.
fn agent(event: &Event) -> String {
    event.agent_id.as_ref().map(ToString::to_string).unwrap_or_default()
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;
