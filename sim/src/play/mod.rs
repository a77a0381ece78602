//! A scenario, from its first step to its last check: the server of `nexus3`, unchanged, on a
//! simulated machine, with scripted models and clients around it. One seed decides everything.

mod checker; // asks the server how it is when all is over
mod client; // plays the calls of one client
mod confirming; // answers confirmations
mod crash; // the end at a durable point
mod director; // which step when
mod ended; // what a run came to
mod epilogue; // the end state
mod event_line; // an event in the transcript
mod exchanges; // watches the server's way to its models
mod expect; // what a step expects
mod expected; // what the file expects at the end
mod faults; // what goes wrong when
mod files; // what is on the disk
mod invariants; // what holds in every run
mod kept; // what the database has at the end
pub mod live; // the steps against a real server
mod log; // what was logged
mod made; // what clients did
mod marks; // what a run has reached
mod models; // watches the model host
mod observed; // what can be seen from outside
mod observer; // hears the events that are waited for
mod parting; // where a replay parts from its recording
mod programs; // scripted programs
mod scripted; // watches a script inside the server
mod server; // the server's host
pub mod snapshot; // transcripts that are kept
mod stage; // where steps are played
pub mod story; // a run as values
mod streams; // the event streams of a client
mod strikes; // what goes wrong by chance
mod theatre; // all hosts
pub mod transcript; // what happened

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

pub use files::differs as file_differs;
pub use log::Tracer;

use nexus3::message::Message;
use serde_json::Value;

use checker::{Debts, Order, Survey};
use crash::Crash;
use director::Director;
use faults::Faults;
use invariants::{End, Invariants, Seen};
use kept::Kept;
use log::Log;
use server::ProcessState;
use story::{Keep, Story};
use theatre::Theatre;

use crate::machine;
use crate::scenario::{Action, Fault, Judge, SERVER, Scenario, Wire};
use crate::verdict::Kind;

/// The host that looks after the invariants.
const CHECKER: &str = "(checker)";
/// The host that hears events for those who wait for them.
const OBSERVER: &str = "(observer)";
/// How long, in virtual time, the calm at the end may take.
const CALM_MAX: Duration = Duration::from_hours(3);
/// How long, in virtual time, readers may take to hear the end of their streams.
const STREAMS_END_MAX: Duration = Duration::from_mins(1);

/// How a run went.
#[derive(Clone, Debug)]
pub struct Played {
    pub transcript: String,
    /// What did not hold; empty for a good run.
    pub failures: Vec<String>,
    /// What the failures are about.
    pub kinds: BTreeSet<Kind>,
    /// Virtual time from start to end.
    pub virtual_time: Duration,
    /// Virtual time until the steps had ended.
    pub steps_time: Duration,
    /// How often each kind of durable event was told, as far as the database still has them.
    pub events: BTreeMap<String, u64>,
    /// The same events in their order, each with its agent.
    pub journal: Vec<String>,
    /// The same events as clients get them.
    pub told: Vec<Value>,
    /// Every agent's conversation.
    pub conversations: BTreeMap<String, Vec<Message>>,
    /// How often each mark was reached.
    pub marks: BTreeMap<String, u64>,
    /// Stands for what the run came to: which agents there are, what was said, how turns ended.
    pub end_state: u64,
    /// How often a model was asked.
    pub turns: u64,
    /// Stands for the order in which things happened.
    pub order: u64,
    /// How many durable points there were, those of the calm at the end included.
    pub points: u64,
    /// What happened as values, of a run that was recorded.
    pub story: Option<Story>,
}

/// What a run is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aim {
    /// To see that everything is as the file says.
    Whole,
    /// To see what holds whatever happens, with a crash at a durable point if one is given. What was
    /// expected of steps cannot all hold then: they are played, and only the invariants are judged.
    Invariants { crash_at: Option<u64> },
}

impl Aim {
    /// What a file wants of a run that nobody disturbs.
    fn of(scenario: &Scenario) -> Self {
        match scenario.judge {
            Judge::Everything => Self::Whole,
            Judge::Invariants => Self::Invariants { crash_at: None },
        }
    }
}

/// Plays a scenario with a seed. One at a time in a process.
pub fn play(scenario: &Scenario, seed: u64) -> Played {
    play_traced(scenario, seed, None)
}

/// Plays a scenario while somebody looks at all that is traced.
pub fn play_traced(scenario: &Scenario, seed: u64, tracer: Option<Tracer>) -> Played {
    run(scenario, seed, tracer, Aim::of(scenario), Keep::Lines)
}

/// Plays a scenario and keeps what happened as values as well.
pub fn play_recorded(scenario: &Scenario, seed: u64, tracer: Option<Tracer>) -> Played {
    run(scenario, seed, tracer, Aim::of(scenario), Keep::Story)
}

/// Plays a scenario to its end, with a crash of the server at a durable point if one is given.
/// Failures are what the invariants say, and a server that does not come to rest.
pub fn play_crashing(
    scenario: &Scenario,
    seed: u64,
    crash_at: Option<u64>,
    tracer: Option<Tracer>,
) -> Played {
    run(scenario, seed, tracer, Aim::Invariants { crash_at }, Keep::Lines)
}

fn run(scenario: &Scenario, seed: u64, tracer: Option<Tracer>, aim: Aim, keep: Keep) -> Played {
    machine::align_task_ids();
    let theatre = Theatre::open(scenario, seed, keep);
    let mut tracers: Vec<Tracer> = tracer.into_iter().collect();
    match scenario.wire {
        Wire::Openai | Wire::Anthropic => {}
        Wire::Script => tracers.push(scripted::tracer(&theatre.watching)),
    }
    let log = Log::default();
    let _listening = log.listen(tracers);
    let faults = Faults::new(&scenario.faults, seed, &theatre);
    let crash = match aim {
        Aim::Invariants { crash_at: Some(point) } => {
            Some(Crash::at(point, seed, &scenario.about, &theatre))
        }
        Aim::Invariants { crash_at: None } | Aim::Whole => None,
    };
    let mut run = Run {
        scenario,
        aim,
        crash,
        theatre,
        director: Director::new(scenario),
        faults,
        invariants: Invariants::new(scenario),
        log,
        kept: None,
        steps_ended: Duration::ZERO,
    };
    let mut failures = Failures::default();
    let played = run.steps();
    run.steps_ended = run.theatre.elapsed();
    let survey = match (played, aim) {
        (Ok(()), _) | (Err(Unplayed::TooLong(_)), Aim::Invariants { .. }) => {
            run.calm(&mut failures)
        }
        (Err(Unplayed::TooLong(problem)), Aim::Whole) => {
            failures.add(Kind::Expectation, problem);
            run.at_end(None, None);
            None
        }
        (Err(Unplayed::Broken(problem)), _) => {
            failures.add(Kind::Panic, problem);
            run.at_end(None, None);
            None
        }
    };
    match aim {
        Aim::Whole => {
            let kept = run.kept.as_ref();
            for unmet in expected::unmet(&run.theatre, scenario, survey.as_ref(), kept) {
                failures.add(Kind::Expectation, unmet);
            }
        }
        Aim::Invariants { .. } => {}
    }
    epilogue::tell(&run.theatre, survey.as_ref(), run.kept.as_ref());
    run.played(failures)
}

/// What did not hold, with what it is about.
#[derive(Debug, Default)]
struct Failures(Vec<(Kind, String)>);

impl Failures {
    fn add(&mut self, kind: Kind, what: String) {
        self.0.push((kind, what));
    }
}

/// Why steps were not played to their end.
#[derive(Debug)]
enum Unplayed {
    TooLong(String),
    /// A host has failed or panicked.
    Broken(String),
}

/// A run while it goes on.
struct Run<'a> {
    scenario: &'a Scenario,
    aim: Aim,
    crash: Option<Crash>,
    theatre: Theatre,
    director: Director<'a>,
    faults: Faults,
    invariants: Invariants,
    log: Log,
    /// What the database has, once the server has ended.
    kept: Option<Kept>,
    /// When the steps had ended.
    steps_ended: Duration,
}

impl Run<'_> {
    /// Plays all steps, with everything that goes wrong meanwhile.
    fn steps(&mut self) -> Result<(), Unplayed> {
        // What is wrong from the start is wrong before the server starts.
        self.faults.advance(&mut self.theatre);
        while !self.director.is_done() {
            if self.theatre.elapsed() > self.scenario.limit.0 {
                let open = self.director.unfinished().join(", ");
                let limit = self.scenario.limit;
                let problem = format!("the limit of {limit} is over, and not: {open}");
                return Err(Unplayed::TooLong(problem));
            }
            self.step().map_err(Unplayed::Broken)?;
            self.faults.advance(&mut self.theatre);
            let ended = self.director.ended;
            self.director.advance(&mut self.theatre);
            self.observe();
            if self.director.ended > ended {
                let seen = seen(&self.theatre, &self.director, &self.log);
                self.invariants.after_step(&seen);
            }
        }
        Ok(())
    }

    /// Lets one tick pass, with the crash that it may bring.
    fn step(&mut self) -> Result<(), String> {
        self.theatre.step()?;
        if let Some(crash) = &mut self.crash {
            crash.advance(&mut self.theatre);
        }
        Ok(())
    }

    fn has_crashed(&self) -> bool {
        self.crash.as_ref().is_some_and(Crash::has_struck)
    }

    /// Lets the invariants hear of what was observed in a tick.
    fn observe(&mut self) {
        let observed = self.theatre.observed.take();
        if observed.is_empty() {
            return;
        }
        let seen = seen(&self.theatre, &self.director, &self.log);
        for observation in &observed {
            self.invariants.on(observation, &seen);
        }
    }

    /// Faults stop, links heal, the server is up; then it must come to rest, and end without a trace.
    fn calm(&mut self, failures: &mut Failures) -> Option<Survey> {
        self.faults.end_all(&mut self.theatre);
        let had_crashed = self.has_crashed();
        let mut rest = self.rest();
        if self.has_crashed() && !had_crashed {
            // What the crash has cut short is done again.
            rest = self.rest();
        }
        let Rest { survey, left_behind, problems } = rest;
        for problem in problems {
            failures.add(Kind::Rest, problem);
        }
        self.at_end(survey.as_ref(), left_behind);
        survey
    }

    fn rest(&mut self) -> Rest {
        let until = self.theatre.elapsed() + CALM_MAX;
        let mut problems = Vec::new();
        let state = self.theatre.server.process().state;
        let has_stopped = match self.aim {
            Aim::Whole => state != ProcessState::Up,
            Aim::Invariants { .. } => state == ProcessState::Stopped,
        };
        // What a failing disk did not let go of at the stop, the next start removes.
        let is_left = || self.debts() == Debts::Some && !self.theatre.left_behind().is_empty();
        let survey = if has_stopped && stops(self.scenario) && !is_left() {
            None
        } else {
            let survey = self.look(until);
            self.theatre.server.process().signals.raise();
            survey.map_err(|problem| problems.push(problem)).ok()
        };
        let ended = self.wait(until, "the server does not stop", |theatre| {
            (!theatre.server.is_up()).then_some(())
        });
        let left_behind = match ended {
            Ok(()) => {
                // One that is not told of the end is found by the invariants.
                let until = self.theatre.elapsed() + STREAMS_END_MAX;
                let _ = self.wait(until, "a stream does not end", |theatre| {
                    let reading = theatre.desks.values().any(|desk| desk.is_reading());
                    (!reading).then_some(())
                });
                let kept = Kept::read(&self.theatre.server.disk);
                self.kept = kept
                    .unwrap_or_else(|| Err("there is none".to_owned()))
                    // One that never came to rest may have left anything, or nothing.
                    .map_err(|problem| {
                        let problem = format!("the database cannot be read: {problem}");
                        problems.extend(survey.is_some().then_some(problem));
                    })
                    .ok();
                Some(self.theatre.left_behind())
            }
            Err(problem) => {
                problems.push(problem);
                None
            }
        };
        Rest { survey, left_behind, problems }
    }

    fn at_end(&mut self, survey: Option<&Survey>, left_behind: Option<Vec<String>>) {
        self.observe();
        let seen = seen(&self.theatre, &self.director, &self.log);
        let end = End { survey, left_behind };
        self.invariants.at_end(&seen, &end);
        if let Some(kept) = &self.kept {
            self.invariants.at_rest(kept, &seen, &end);
        }
    }

    /// Asks the server at rest how it is. One that was still stopping is asked once it is there again.
    fn look(&mut self, until: Duration) -> Result<Survey, String> {
        let survey = self.ask(until)?;
        let has_stopped = self.theatre.server.process().state == ProcessState::Stopped;
        if survey.trouble.is_some() && has_stopped { self.ask(until) } else { Ok(survey) }
    }

    fn ask(&mut self, until: Duration) -> Result<Survey, String> {
        if !self.theatre.is_running(SERVER) {
            self.theatre.start(SERVER);
        }
        self.wait(until, "the server does not start", |theatre| {
            if let Some(refused) = &theatre.server.process().refused {
                return Some(Err(format!("the server does not start: {refused}")));
            }
            theatre.server.is_up().then_some(Ok(()))
        })??;
        let token = self.theatre.server.process().token.clone();
        let sendings = self.director.sendings.iter();
        let requests = sendings.map(|sending| (sending.agent.clone(), sending.request.clone()));
        let (requests, server) = (requests.collect(), self.theatre.server_address());
        let debts = self.debts();
        self.theatre.checker.survey(Order { server, token, requests, debts });
        self.wait(until, "the server does not come to rest", |theatre| {
            theatre.checker.take_survey()
        })
    }

    /// Whether a fault of the disk may have left something to be done once it is over.
    fn debts(&self) -> Debts {
        let of_disk = |fault: &Fault| strikes::of_disk(&fault.kind).is_some();
        if self.scenario.faults.iter().any(of_disk) { Debts::Some } else { Debts::No }
    }

    /// Lets time pass until `done` has something.
    fn wait<T>(
        &mut self,
        until: Duration,
        otherwise: &str,
        mut done: impl FnMut(&mut Theatre) -> Option<T>,
    ) -> Result<T, String> {
        loop {
            if let Some(value) = done(&mut self.theatre) {
                return Ok(value);
            }
            if self.theatre.elapsed() > until {
                return Err(otherwise.to_owned());
            }
            self.step()?;
            self.observe();
        }
    }

    /// What is left to tell; `failures` are those of the run as a whole.
    fn played(self, failures: Failures) -> Played {
        let Self { scenario, aim, theatre, director, invariants, kept, steps_ended, .. } = self;
        let of_steps = match aim {
            Aim::Whole => director.failures,
            Aim::Invariants { .. } => Vec::new(),
        };
        // What a replay does differently explains all that follows from it.
        let parted = match aim {
            Aim::Whole => theatre.watching.parted(),
            Aim::Invariants { .. } => None,
        };
        let of_steps = parted.into_iter().chain(of_steps);
        let of_steps = of_steps.map(|what| (Kind::Expectation, what));
        let ignored = |invariant| scenario.expect.ignore.contains_key(&invariant);
        let violations = invariants.found(ignored).into_iter();
        let violations = violations
            .map(|violation| (Kind::Invariant(violation.invariant), violation.to_string()));
        let (kinds, failures) = of_steps.chain(failures.0).chain(violations).unzip();
        let transcript = theatre.transcript.text();
        let story = theatre.transcript.moments().map(|moments| {
            let events = kept.iter().flat_map(|kept| &kept.events);
            Story { moments, journal: events.filter_map(|event| event.event.clone()).collect() }
        });
        Played {
            marks: marks::reached(&transcript, kept.as_ref()),
            journal: kept.as_ref().map(ended::journal).unwrap_or_default(),
            told: kept.as_ref().map(ended::told).unwrap_or_default(),
            conversations: kept.as_ref().map(ended::conversations).unwrap_or_default(),
            transcript,
            failures,
            kinds,
            virtual_time: theatre.elapsed(),
            steps_time: steps_ended,
            events: kept.as_ref().map(ended::events).unwrap_or_default(),
            end_state: kept.as_ref().map(ended::state).unwrap_or_default(),
            turns: theatre.watching.model_calls().values().sum(),
            order: theatre.transcript.order(),
            points: theatre.server.disk.points(),
            story,
        }
    }
}

/// How a run came to rest.
struct Rest {
    survey: Option<Survey>,
    left_behind: Option<Vec<String>>,
    problems: Vec<String>,
}

/// What is known at this moment.
fn seen<'a>(theatre: &'a Theatre, director: &'a Director<'_>, log: &'a Log) -> Seen<'a> {
    let process = theatre.server.process();
    Seen {
        server_start: process.starts,
        server: process.state,
        connections: theatre.server.net.open(),
        accepted: theatre.server.net.accepted(),
        processes: theatre.server.processes(process.state),
        sendings: &director.sendings,
        calls: &director.calls,
        raw: &director.raw,
        destroyed: &director.destroyed,
        tokens: process.secrets.clone(),
        transcript: &theatre.transcript,
        log,
        disk: &theatre.server.disk,
    }
}

fn stops(scenario: &Scenario) -> bool {
    let last = scenario.steps.iter().rev().find_map(|step| match step.action {
        Action::Stop(_) => Some(true),
        Action::Start { .. } => Some(false),
        _ => None,
    });
    last.unwrap_or(false)
}
