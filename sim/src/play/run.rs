//! A run while it goes on: its steps with all that goes wrong meanwhile, then the calm, in which the
//! server must come to rest, then what the invariants say of it.

use std::time::Duration;

use super::checker::{Debts, Order, Survey};
use super::crash::Crash;
use super::director::Director;
use super::ended::Rest;
use super::faults::Faults;
use super::invariants::{End, Invariants, Seen};
use super::kept::Kept;
use super::log::{Listening, Log, Tracer};
use super::server::ProcessState;
use super::story::{Keep, Story};
use super::theatre::Theatre;
use super::{Aim, Played, Sought, ended, epilogue, expected, marks, scripted, strikes};
use crate::machine;
use crate::scenario::{Action, Fault, Invariant, SERVER, Scenario, Wire};
use crate::verdict::Kind;

/// How long, in virtual time, the calm at the end may take.
const CALM_MAX: Duration = Duration::from_hours(3);
/// How long, in virtual time, readers may take to hear the end of their streams.
const STREAMS_END_MAX: Duration = Duration::from_mins(1);
/// A server that lets nobody in any more has ended by then.
const STOPS_WITHIN: Duration = Duration::from_secs(5);

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
    /// What is sought was found, or is not to be found.
    Enough,
    /// A host has failed or panicked.
    Broken(String),
}

/// A run while it goes on.
pub struct Run<'a> {
    scenario: &'a Scenario,
    aim: Aim,
    crash: Option<Crash>,
    theatre: Theatre,
    director: Director<'a>,
    faults: Faults,
    invariants: Invariants,
    log: Log,
    /// Ends with the run.
    _listening: Listening,
    /// What the database has, once the server has ended.
    kept: Option<Kept>,
    /// When the steps had ended.
    steps_ended: Duration,
    sought: Option<Sought>,
}

impl<'a> Run<'a> {
    pub fn new(
        scenario: &'a Scenario,
        seed: u64,
        mut tracers: Vec<Tracer>,
        aim: Aim,
        keep: Keep,
    ) -> Self {
        machine::align_task_ids();
        let theatre = Theatre::open(scenario, seed, keep);
        match scenario.wire {
            Wire::Openai | Wire::Anthropic => {}
            Wire::Script => tracers.push(scripted::tracer(&theatre.watching)),
        }
        let log = Log::default();
        let listening = log.listen(tracers);
        let faults = Faults::new(&scenario.faults, seed, &theatre);
        let crash = match aim {
            Aim::Invariants { crash_at: Some(point) } => {
                Some(Crash::at(point, seed, &scenario.about, &theatre))
            }
            Aim::Invariants { crash_at: None } | Aim::Whole => None,
        };
        Self {
            scenario,
            aim,
            crash,
            theatre,
            director: Director::new(scenario),
            faults,
            invariants: Invariants::new(scenario),
            log,
            _listening: listening,
            kept: None,
            steps_ended: Duration::ZERO,
            sought: None,
        }
    }

    /// The same run, no further than it takes to see what is sought.
    pub fn seeking(self, sought: Sought) -> Self {
        Self { sought: Some(sought), ..self }
    }

    pub fn finish(mut self) -> Played {
        let mut failures = Failures::default();
        let played = self.steps();
        self.steps_ended = self.theatre.elapsed();
        let survey = match (played, self.aim) {
            (Ok(()), _) | (Err(Unplayed::TooLong(_)), Aim::Invariants { .. }) => {
                self.calm(&mut failures)
            }
            (Err(Unplayed::Enough), _) => None,
            (Err(Unplayed::TooLong(problem)), Aim::Whole) => {
                failures.add(Kind::Expectation, problem);
                self.at_end(None, None);
                None
            }
            (Err(Unplayed::Broken(problem)), _) => {
                failures.add(Kind::Panic, problem);
                self.at_end(None, None);
                None
            }
        };
        match self.aim {
            // Who has not seen the end knows nothing of it.
            Aim::Whole if self.is_enough() => {}
            Aim::Whole => {
                let kept = self.kept.as_ref();
                let unmet = expected::unmet(&self.theatre, self.scenario, survey.as_ref(), kept);
                for unmet in unmet {
                    failures.add(Kind::Expectation, unmet);
                }
            }
            Aim::Invariants { .. } => {}
        }
        epilogue::tell(&self.theatre, survey.as_ref(), self.kept.as_ref());
        self.played(failures)
    }

    /// Whether nothing more is to be learned from this run.
    fn is_enough(&self) -> bool {
        let Some(Sought { kind, within }) = self.sought else { return false };
        match kind {
            Kind::Invariant(invariant) if !self.is_ignored(invariant) => {
                self.invariants.has_found(invariant) || self.theatre.elapsed() > within
            }
            Kind::Invariant(_) | Kind::Expectation | Kind::Panic => self.theatre.elapsed() > within,
            // It shows by waiting for it.
            Kind::Rest => false,
        }
    }

    /// How much virtual time the calm may take.
    fn calm_max(&self) -> Duration {
        match self.sought {
            Some(Sought { kind: Kind::Rest, within }) => within.min(CALM_MAX),
            Some(_) | None => CALM_MAX,
        }
    }

    fn is_ignored(&self, invariant: Invariant) -> bool {
        self.scenario.expect.ignore.contains_key(&invariant)
    }

    /// Plays all steps, with everything that goes wrong meanwhile.
    fn steps(&mut self) -> Result<(), Unplayed> {
        // What is wrong from the start is wrong before the server starts.
        self.faults.advance(&mut self.theatre);
        while !self.director.is_done() {
            if self.is_enough() {
                return Err(Unplayed::Enough);
            }
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

    /// Lets time pass, with the crash that it may bring.
    fn step(&mut self) -> Result<(), String> {
        let now = self.theatre.elapsed();
        let (director, faults, crash) = (&self.director, &self.faults, &self.crash);
        self.theatre.step(|| {
            let due = director.due().chain(faults.due()).chain(crash.iter().filter_map(Crash::due));
            due.filter(|due| *due > now).min()
        })?;
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
        if self.is_enough() {
            return None;
        }
        let Rest { survey, left_behind, problems } = rest;
        for problem in problems {
            failures.add(Kind::Rest, problem);
        }
        self.at_end(survey.as_ref(), left_behind);
        survey
    }

    fn rest(&mut self) -> Rest {
        let until = self.theatre.elapsed() + self.calm_max();
        let mut problems = Vec::new();
        let state = self.theatre.server.process().state;
        let has_stopped = match self.aim {
            Aim::Whole => state != ProcessState::Up,
            Aim::Invariants { .. } => state == ProcessState::Stopped,
        };
        let survey = if has_stopped && stops(self.scenario) && !self.owes() {
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
        if survey.trouble.is_none() {
            return Ok(survey);
        }
        let soon = self.theatre.elapsed() + STOPS_WITHIN;
        let stopped = self.wait(soon, "the server goes on", |theatre| {
            (theatre.server.process().state == ProcessState::Stopped).then_some(())
        });
        if stopped.is_ok() { self.ask(until) } else { Ok(survey) }
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

    /// Whether the next start has something to see to: what a failing disk did not let go of at the
    /// stop it removes, and what that disk did not take of a turn it ends.
    fn owes(&self) -> bool {
        match (self.debts(), self.aim) {
            (Debts::No, _) => false,
            (Debts::Some, Aim::Whole) => !self.theatre.left_behind().is_empty(),
            (Debts::Some, Aim::Invariants { .. }) => true,
        }
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
            if self.theatre.elapsed() > until || self.is_enough() {
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
            recordings: theatre.server.recordings(),
            story,
        }
    }
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
