//! A scenario, from its first step to its last check: the server of `nexus3`, unchanged, on a
//! simulated machine, with scripted models and clients around it. One seed decides everything.

mod checker; // asks the server how it is when all is over
mod checks; // invariants and expectations
mod client; // plays the calls of one client
mod director; // which step when
mod expect; // what a step expects
mod faults; // what goes wrong when
mod files; // what is on the disk
mod models; // watches the model host
mod programs; // scripted programs
mod schema; // results against the published document
mod server; // the server's host
pub mod snapshot; // transcripts that are kept
mod theatre; // all hosts
mod transcript; // what happened

use std::time::Duration;

use checker::Survey;
use checks::Finding;
use director::Director;
use faults::Faults;
use theatre::Theatre;

use crate::disk::View;
use crate::machine;
use crate::scenario::{Action, SERVER, Scenario, Wire};

/// The host that looks after the invariants.
const CHECKER: &str = "(checker)";
/// How long, in virtual time, the calm at the end may take.
const CALM_MAX: Duration = Duration::from_hours(3);

/// How a run went.
#[derive(Clone, Debug)]
pub struct Played {
    pub transcript: String,
    /// What did not hold; empty for a good run.
    pub failures: Vec<String>,
    /// Virtual time from start to end.
    pub virtual_time: Duration,
    /// How often a model was asked.
    pub turns: u64,
    /// Stands for the order in which things happened.
    pub order: u64,
}

/// Plays a scenario with a seed. One at a time in a process.
pub fn play(scenario: &Scenario, seed: u64) -> Played {
    machine::align_task_ids();
    let mut theatre = Theatre::open(scenario, seed);
    let mut director = Director::new(scenario);
    let mut faults = Faults::new(&scenario.faults, seed, &theatre.server.disk);
    let mut findings = Vec::new();
    let ended = steps(scenario, &mut theatre, &mut director, &mut faults);
    let survey = match ended {
        Ok(()) => calm(scenario, &mut theatre, &director, &mut faults, &mut findings),
        Err(problem) => {
            findings.push(Finding::plain(problem));
            None
        }
    };
    findings.extend(checks::expected(&theatre, scenario, survey.as_ref()));
    findings.extend(checks::secrets(&theatre, scenario));
    epilogue(&theatre, scenario, survey.as_ref());
    let ignored = |finding: &Finding| {
        finding.invariant.is_some_and(|invariant| scenario.expect.ignore.contains_key(&invariant))
    };
    let mut failures = director.failures;
    failures.extend(findings.iter().filter(|finding| !ignored(finding)).map(|finding| {
        match finding.invariant {
            Some(invariant) => format!("invariant {invariant:?}: {}", finding.what).to_lowercase(),
            None => finding.what.clone(),
        }
    }));
    Played {
        transcript: theatre.transcript.text(),
        failures,
        virtual_time: theatre.elapsed(),
        turns: theatre.models.model_calls().values().sum(),
        order: theatre.transcript.order(),
    }
}

/// Plays all steps, with everything that goes wrong meanwhile.
fn steps(
    scenario: &Scenario,
    theatre: &mut Theatre,
    director: &mut Director<'_>,
    faults: &mut Faults,
) -> Result<(), String> {
    // What is wrong from the start is wrong before the server starts.
    faults.advance(theatre);
    while !director.is_done() {
        if theatre.elapsed() > scenario.limit.0 {
            let open = director.unfinished().join(", ");
            return Err(format!("the limit of {} is over, and not: {open}", scenario.limit));
        }
        theatre.step()?;
        faults.advance(theatre);
        director.advance(theatre);
    }
    Ok(())
}

/// Faults stop, links heal, the server is up; then it must come to rest, and end without a trace.
fn calm(
    scenario: &Scenario,
    theatre: &mut Theatre,
    director: &Director<'_>,
    faults: &mut Faults,
    findings: &mut Vec<Finding>,
) -> Option<Survey> {
    faults.end_all(theatre);
    let until = theatre.elapsed() + CALM_MAX;
    let stopped_by_a_step = !theatre.server.is_up() && stops(scenario);
    let survey = if stopped_by_a_step {
        None
    } else {
        let survey = look(theatre, director, until);
        match &survey {
            Ok(survey) => {
                let start = theatre.server.process().starts;
                findings.extend(checks::survey(survey, director, start));
            }
            Err(problem) => findings.push(Finding::plain(problem.clone())),
        }
        theatre.server.process().signals.raise();
        survey.ok()
    };
    match ended(theatre, until) {
        Ok(connections) => findings.extend(checks::at_end(theatre, connections)),
        Err(problem) => findings.push(Finding::plain(problem)),
    }
    survey
}

/// Waits for the server's end and returns how many connections it left open.
fn ended(theatre: &mut Theatre, until: Duration) -> Result<usize, String> {
    wait(theatre, until, "the server does not stop", |theatre| {
        (!theatre.server.is_up()).then_some(())
    })?;
    Ok(theatre.server.net.open())
}

fn stops(scenario: &Scenario) -> bool {
    let last = scenario.steps.iter().rev().find_map(|step| match step.action {
        Action::Stop(_) => Some(true),
        Action::Start { .. } => Some(false),
        _ => None,
    });
    last.unwrap_or(false)
}

fn look(theatre: &mut Theatre, director: &Director<'_>, until: Duration) -> Result<Survey, String> {
    if !theatre.is_running(SERVER) {
        theatre.start(SERVER);
    }
    wait(theatre, until, "the server does not start", |theatre| {
        if let Some(refused) = &theatre.server.process().refused {
            return Some(Err(format!("the server does not start: {refused}")));
        }
        theatre.server.is_up().then_some(Ok(()))
    })??;
    let token = theatre.server.process().token.clone();
    let requests = director.sendings.iter();
    let requests = requests.map(|sending| (sending.agent.clone(), sending.request.clone()));
    theatre.checker.survey(theatre.server_address(), token, requests.collect());
    wait(theatre, until, "the server does not come to rest", |theatre| {
        theatre.checker.take_survey()
    })
}

/// Lets time pass until `done` has something.
fn wait<T>(
    theatre: &mut Theatre,
    until: Duration,
    otherwise: &str,
    mut done: impl FnMut(&mut Theatre) -> Option<T>,
) -> Result<T, String> {
    loop {
        if let Some(value) = done(theatre) {
            return Ok(value);
        }
        if theatre.elapsed() > until {
            return Err(otherwise.to_owned());
        }
        theatre.step()?;
    }
}

/// The end state, in a few lines.
fn epilogue(theatre: &Theatre, scenario: &Scenario, survey: Option<&Survey>) {
    let transcript = &theatre.transcript;
    if let Some(survey) = survey {
        let agents = survey
            .agents
            .iter()
            .map(|agent| format!("{} ({} messages)", agent.agent_id, agent.message_count));
        let agents: Vec<String> = agents.collect();
        let agents = if agents.is_empty() { "none".to_owned() } else { agents.join(", ") };
        transcript.end("agents", &agents);
    }
    match scenario.wire {
        Wire::Openai | Wire::Anthropic => models_at_end(theatre),
        Wire::Script => transcript.end("models", "inside the server: not seen, not counted"),
    }
    transcript.end("disk", &format!("{:016x}", theatre.server.disk.digest(View::Now)));
}

fn models_at_end(theatre: &Theatre) {
    let transcript = &theatre.transcript;
    let calls = theatre.models.model_calls();
    let calls: Vec<String> =
        calls.iter().map(|(agent, count)| format!("{agent} {count}")).collect();
    if !calls.is_empty() {
        transcript.end("models", &format!("asked by {}", calls.join(", ")));
    }
    let left: Vec<String> =
        theatre.models.left_over().iter().map(|(number, _)| number.to_string()).collect();
    if !left.is_empty() {
        transcript.end("models", &format!("not used up: entry {}", left.join(", ")));
    }
}
