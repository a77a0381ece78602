//! `events` sees what breaks it: each finding from streams that were bent on purpose.

use nexus3::event::Ended;
use serde_json::json;

use super::super::seen_tests::{Run, ended, event, kept, queued, started};
use super::*;

const ALICE: &str = "stream 1 of alice, of scout";

/// What one stream tells, and what is found in it.
struct Told {
    events: Events,
    run: Run,
    found: Vec<String>,
}

fn opened(after: Option<Seq>, pace: Pace) -> Told {
    let stream = StreamId { who: "alice".to_owned(), number: 1 };
    let (mut events, run) = (Events::default(), Run::default());
    let (agent, server_start) = (Some("scout".to_owned()), run.server_start);
    let opened = Opened { stream, server_start, agent, after, pace };
    events.on(&Observation::StreamOpened(opened), &run.seen());
    Told { events, run, found: Vec::new() }
}

fn live() -> Told {
    opened(None, Pace::AtOnce)
}

impl Told {
    fn then(mut self, request: Option<&str>, what: What, seq: Option<Seq>) -> Self {
        let stream = StreamId { who: "alice".to_owned(), number: 1 };
        let event = Box::new(event(request, what, seq));
        let found = self.events.on(&Observation::Event { stream, event }, &self.run.seen());
        self.found.extend(found);
        self
    }

    fn turn(self, what: What, seq: Option<Seq>) -> Self {
        self.then(Some("r1"), what, seq)
    }

    fn ends(mut self, end: StreamEnd) -> Self {
        let stream = StreamId { who: "alice".to_owned(), number: 1 };
        self.events.on(&Observation::StreamEnded { stream, end }, &self.run.seen());
        self
    }

    /// Another stream of the agent tells these, whose opening was told after all that was told so far.
    fn opened_late(&mut self, events: Vec<Event>) {
        let stream = StreamId { who: "bob".to_owned(), number: 2 };
        let (server_start, after, pace) = (self.run.server_start, None, Pace::AtOnce);
        let agent = Some("scout".to_owned());
        let opened = Opened { stream: stream.clone(), server_start, agent, after, pace };
        self.events.on(&Observation::StreamOpened(opened), &self.run.seen());
        for event in events {
            let heard = Observation::Event { stream: stream.clone(), event: Box::new(event) };
            self.found.extend(self.events.on(&heard, &self.run.seen()));
        }
        let end = StreamEnd::Broken;
        self.events.on(&Observation::StreamEnded { stream, end }, &self.run.seen());
    }

    fn finds(&self, problems: &[&str]) {
        let problems: Vec<_> =
            problems.iter().map(|problem| format!("{ALICE}: {problem}")).collect();
        assert_eq!(self.found, problems);
    }

    /// What is found once the server has ended and has kept this.
    fn at_rest(&mut self, kept: &Kept) -> Vec<String> {
        self.finds(&[]);
        let end = End { survey: None, left_behind: None };
        self.events.at_rest(kept, &self.run.seen(), &end)
    }
}

fn chunk(text: &str, offset: usize) -> What {
    What::ContentChunk { text: text.to_owned(), offset }
}

fn snapshot(text: &str, offset: usize) -> What {
    What::TurnSnapshot { text: text.to_owned(), offset }
}

fn stopping() -> What {
    What::ServerStopping {}
}

/// What is found when the next server tells an event under a number that was told before, and keeps it.
fn told_again(promises: Promises) -> Vec<String> {
    let mut told = live();
    told.events.promises = promises;
    let mut told = told.turn(queued(), Some(2)).ends(StreamEnd::Broken);
    told.finds(&[]);
    told.run.server_start += 1;
    let stream = StreamId { who: "alice".to_owned(), number: 2 };
    let (agent, after, pace) = (Some("scout".to_owned()), Some(1), Pace::AtOnce);
    let server_start = told.run.server_start;
    let opened = Opened { stream: stream.clone(), server_start, agent, after, pace };
    told.events.on(&Observation::StreamOpened(opened), &told.run.seen());
    let event = Box::new(event(Some("r2"), queued(), Some(2)));
    let again = Observation::Event { stream: stream.clone(), event };
    let mut found = told.events.on(&again, &told.run.seen());
    let end = StreamEnd::Broken;
    told.events.on(&Observation::StreamEnded { stream, end }, &told.run.seen());
    found.extend(told.at_rest(&kept(&[("r2", queued())])));
    found
}

#[test]
fn a_number_is_given_again_only_after_a_loss_that_may_be() {
    let again = "stream 2 of alice, of scout: #2 was another event before";
    let kept = "#2 is kept otherwise than it was told";
    assert_eq!(told_again(Promises::All), [again, kept]);
    assert_eq!(told_again(Promises::NotWhatWasChanged), [again, kept]);
    assert_eq!(told_again(Promises::NotTheLast), Vec::<String>::new());
}

#[test]
fn numbers_only_grow() {
    live().turn(queued(), Some(2)).turn(started(), Some(5)).finds(&[]);
    live().turn(queued(), Some(2)).turn(queued(), Some(2)).finds(&["#2 comes after #2"]);
    opened(Some(7), Pace::AtOnce).turn(queued(), Some(7)).finds(&["#7 comes after #7"]);
    let against = "turn_queued has a number, or has none, against its nature";
    live().turn(queued(), None).finds(&[against]);
}

#[test]
fn one_number_is_one_event() {
    let mut told = live().turn(queued(), Some(2));
    let stream = StreamId { who: "bob".to_owned(), number: 2 };
    let (server_start, after, pace) = (told.run.server_start, Some(0), Pace::AtOnce);
    let opened = Opened { stream: stream.clone(), server_start, agent: None, after, pace };
    told.events.on(&Observation::StreamOpened(opened), &told.run.seen());
    let event = Box::new(event(Some("r2"), queued(), Some(2)));
    let found = told.events.on(&Observation::Event { stream, event }, &told.run.seen());
    assert_eq!(found, ["stream 2 of bob, of everything: #2 was another event before"]);
}

#[test]
fn texts_splice() {
    let begun = || live().turn(started(), Some(2)).turn(chunk("Hä", 0), None);
    begun().turn(chunk("llo", 2), None).turn(ended("Hällo"), Some(3)).finds(&[]);
    begun().turn(chunk("llo", 3), None).finds(&["r1 goes on at 3 and is known to 2"]);
    begun().turn(chunk("Hä", 0), None).finds(&["r1 goes on at 0 and is known to 2"]);
    let other = "the last text of r1 is not what was told of it";
    begun().turn(ended("Hola"), Some(3)).finds(&[other]);
    begun().turn(ended("Hällo"), Some(3)).finds(&[other]);
    let (reason, partial) = ("cancelled".to_owned(), "H".to_owned());
    let cancelled = What::TurnCancelled(Ended { reason, error: None, partial });
    begun().turn(cancelled, Some(3)).finds(&[other]);
}

#[test]
fn a_snapshot_stands_for_what_came_before() {
    let snapped = || live().turn(snapshot("Hä", 2), None);
    snapped().turn(chunk("llo", 2), None).turn(ended("Hällo"), Some(3)).finds(&[]);
    live().turn(chunk("llo", 2), None).finds(&["r1 goes on at 2 and is known to 0"]);
    let wrong = "the snapshot of r1 is not its text so far";
    live().turn(snapshot("Hä", 3), None).finds(&[wrong]);
    snapped().turn(snapshot("Ha", 2), None).finds(&[wrong]);
    let slow = opened(None, Pace::Never).turn(started(), Some(2)).turn(chunk("H", 0), None);
    slow.turn(ended("Hello"), Some(3)).finds(&[]);
}

#[test]
fn nothing_follows_the_end_of_a_turn_or_of_the_server() {
    let over = || live().turn(started(), Some(2)).turn(ended(""), Some(3));
    over().turn(chunk("!", 0), None).finds(&["content_chunk of r1 comes after its last event"]);
    let anew = over().then(None, What::AgentCreated { parent_agent_id: None }, Some(4));
    anew.turn(started(), Some(5)).finds(&[]);
    let stopped = live().then(None, stopping(), None);
    stopped.turn(queued(), Some(2)).finds(&["turn_queued follows server_stopping"]);
}

#[test]
fn a_cursor_misses_nothing() {
    let kept = kept(&[("r1", queued()), ("r1", started()), ("r1", ended(""))]);
    let missing = |found: Vec<String>, seq: Seq| {
        assert_eq!(found, [format!("{ALICE}: #{seq} was not told")]);
    };
    let from = |after| opened(after, Pace::AtOnce);
    let whole = from(Some(1)).turn(queued(), Some(2)).turn(started(), Some(3));
    assert_eq!(whole.ends(StreamEnd::Broken).at_rest(&kept), Vec::<String>::new());
    let hole = from(Some(0)).turn(queued(), Some(2)).ends(StreamEnd::Broken).at_rest(&kept);
    missing(hole, 1);
    let live = from(None).turn(queued(), Some(2)).turn(ended(""), Some(4));
    missing(live.ends(StreamEnd::Broken).at_rest(&kept), 3);
    let gap = from(Some(0)).then(None, What::StreamGap { from: 1, to: 2 }, None);
    let gap = gap.turn(started(), Some(3)).ends(StreamEnd::Broken).at_rest(&kept);
    assert_eq!(gap, Vec::<String>::new());
    let behind = from(Some(1)).turn(queued(), Some(2)).turn(started(), Some(3));
    let behind = behind.then(None, stopping(), None).ends(StreamEnd::ByServer).at_rest(&kept);
    missing(behind, 4);
}

#[test]
fn a_stream_of_an_earlier_server_owes_nothing_of_the_next_one() {
    let kept = kept(&[("r1", queued()), ("r1", started())]);
    let told = opened(Some(1), Pace::AtOnce).turn(queued(), Some(2));
    let mut told = told.then(None, stopping(), None).ends(StreamEnd::ByServer);
    assert_eq!(told.at_rest(&kept), [format!("{ALICE}: #3 was not told")]);
    told.run.server_start += 1;
    assert_eq!(told.at_rest(&kept), Vec::<String>::new());
}

#[test]
fn what_was_told_is_kept_as_it_was_told() {
    let mut told = live().turn(queued(), Some(2)).ends(StreamEnd::Closed);
    let kept_events = kept(&[("r1", queued())]);
    assert_eq!(told.at_rest(&kept_events), Vec::<String>::new());
    assert_eq!(told.at_rest(&kept(&[])), ["#2 was told and is not kept"]);
    let forgotten = Kept { forgotten: [("scout".to_owned(), 2)].into(), ..kept(&[]) };
    assert_eq!(told.at_rest(&forgotten), Vec::<String>::new());
    let mut other = kept_events;
    other.events[1].json["position"] = json!(3);
    assert_eq!(told.at_rest(&other), ["#2 is kept otherwise than it was told"]);
}

#[test]
fn a_stream_ends_with_the_server_and_says_so() {
    let kept = kept(&[("r1", queued())]);
    let heard = || live().turn(queued(), Some(2));
    let stopped = heard().then(None, stopping(), None).ends(StreamEnd::ByServer).at_rest(&kept);
    assert_eq!(stopped, Vec::<String>::new());
    let open = heard().at_rest(&kept);
    assert_eq!(open, [format!("{ALICE}: it did not end with the server")]);
    let silent = heard().ends(StreamEnd::ByServer).at_rest(&kept);
    assert_eq!(silent, [format!("{ALICE}: it ended, and nothing said why")]);
}

#[test]
fn a_stream_goes_along_with_its_agent_and_with_nobody_else() {
    let renamed = |id: &str, previous: &str, seq| {
        let previous_agent_id = Some(nexus3::id::AgentId::parse(previous).unwrap());
        let changed = serde_json::Map::new();
        let what = What::AgentUpdated { parent_agent_id: None, changed, previous_agent_id };
        let agent_id = Some(nexus3::id::AgentId::parse(id).unwrap());
        Event { agent_id, ..event(None, what, Some(seq)) }
    };
    let of = |id: &str, event: Event| {
        let agent_id = Some(nexus3::id::AgentId::parse(id).unwrap());
        Event { agent_id, ..event }
    };
    let told = |events: Vec<Event>| {
        let mut told = live().turn(queued(), Some(2));
        for event in events {
            let stream = StreamId { who: "alice".to_owned(), number: 1 };
            let heard = Observation::Event { stream, event: Box::new(event) };
            told.found.extend(told.events.on(&heard, &told.run.seen()));
        }
        told.ends(StreamEnd::Broken)
    };
    let mut kept = kept(&[("r1", queued()), ("r1", started()), ("r2", queued())]);
    let later = renamed("lead", "scout", 3);
    let third = of("lead", event(Some("r2"), queued(), Some(4)));
    for (kept, event) in kept.events[2..].iter_mut().zip([&later, &third]) {
        kept.json = serde_json::to_value(event).unwrap();
        kept.event = Some(event.clone());
    }
    for kept in &mut kept.events {
        kept.agent = "lead".to_owned();
    }
    let whole = told(vec![later.clone(), third.clone()]).at_rest(&kept);
    assert_eq!(whole, Vec::<String>::new());
    let mut late = told(vec![later.clone(), third.clone()]);
    late.opened_late(vec![later.clone(), third.clone()]);
    assert_eq!(late.at_rest(&kept), Vec::<String>::new(), "it was opened before the rename");
    assert_eq!(told(vec![third.clone()]).at_rest(&kept), [format!("{ALICE}: #3 was not told")]);
    kept.events[3].agent = "another".to_owned();
    let strange = told(vec![later, third]).at_rest(&kept);
    assert_eq!(strange, [format!("{ALICE}: #4 is of lead")]);
}
