//! The invariant `answers`: every accepted send has exactly one outcome, and everybody who hears of
//! it hears the same: its caller, be it a client or an agent, who repeats it, who asks for it later, the
//! server at rest, and whoever reads its last event, of which there is one.

use std::collections::{BTreeMap, BTreeSet};

use nexus3::code::ErrorObject;
use nexus3::event::What;
use nexus3::rpc::code::Code;
use nexus3::rpc::method::{GetRequestResult, RequestStatus, SendResult};
use serde_json::Value;

use super::among::Among;
use super::journal::{Life, Turn, lives};
use super::{Check, End, Invariant, Observation, Seen};
use crate::play::checker::Survey;
use crate::play::director::{Sending, Told};
use crate::play::kept::Kept;
use crate::play::observed::Answer;
use crate::scenario::{EarlierAgent, Scenario};

#[derive(Debug, Default)]
pub struct Answers {
    /// What was told, and by which run of the server, by the era of the agent's name, the agent and
    /// the request.
    outcomes: BTreeMap<(u64, String, String), (u64, Value)>,
    /// How many of the sends have been looked at.
    looked_at: usize,
    /// Requests that an earlier server has ended, by agent: of those there are no events.
    earlier: BTreeSet<(String, String)>,
}

impl Answers {
    pub fn new(scenario: &Scenario) -> Self {
        let of = |agent: &EarlierAgent| {
            let id = agent.id.clone();
            let requests = agent.requests.iter().map(|request| request.id.clone());
            requests.map(move |request| (id.clone(), request)).collect::<Vec<_>>()
        };
        Self { earlier: scenario.agents.iter().flat_map(of).collect(), ..Self::default() }
    }
}

impl Check for Answers {
    fn invariant(&self) -> Invariant {
        Invariant::Answers
    }

    fn on(&mut self, observation: &Observation, seen: &Seen<'_>) -> Vec<String> {
        let Observation::Answered(Answer { server_start, method, agent, result }) = observation
        else {
            return Vec::new();
        };
        let (Some(agent), "get_request", Ok(result)) = (agent, method.as_str(), result) else {
            return Vec::new();
        };
        let Ok(known) = serde_json::from_value::<GetRequestResult>(result.clone()) else {
            // What does not even fit is told by `schema`.
            return Vec::new();
        };
        let outcome = match known.status {
            RequestStatus::Queued | RequestStatus::Running => None,
            RequestStatus::Completed
            | RequestStatus::Cancelled
            | RequestStatus::Failed
            | RequestStatus::Interrupted => {
                let error = known.error.as_ref();
                known.result.as_ref().map(of_result).or_else(|| error.map(of_error))
            }
        };
        let key = (era(agent, *server_start), agent.clone(), known.request_id.to_string());
        self.told(key, *server_start, outcome, seen).into_iter().collect()
    }

    fn after_step(&mut self, seen: &Seen<'_>) -> Vec<String> {
        let new = seen.sendings.get(self.looked_at..).unwrap_or_default();
        self.looked_at = seen.sendings.len();
        let mut found = Vec::new();
        for sending in new {
            let outcome = match &sending.outcome {
                Told::Result(result) => Some(result.clone()),
                Told::Error(error) if !refuses(error) => Some(of_error(error)),
                // A send that was refused may be made again.
                Told::Error(_) | Told::Accepted | Told::Nothing => None,
            };
            let era = era(sending.agent.as_str(), sending.server_start);
            let key = (era, sending.agent.to_string(), sending.request.to_string());
            found.extend(self.told(key, sending.server_start, outcome, seen));
        }
        found
    }

    fn at_end(&mut self, seen: &Seen<'_>, end: &End<'_>) -> Vec<String> {
        let mut found = self.after_step(seen);
        found.extend(end.survey.into_iter().flat_map(|survey| compare(survey, seen)));
        found
    }

    fn at_rest(&mut self, kept: &Kept, seen: &Seen<'_>, end: &End<'_>) -> Vec<String> {
        let lives = lives(kept);
        let mut found = Vec::new();
        for life in &lives {
            // Only a server that came to rest has ended all turns.
            let open = |turn: &&Turn| !turn.ends.is_empty() || end.survey.is_some();
            let problems = life.turns.iter().filter(open).filter_map(|turn| {
                let count = turn.ends.len();
                let problem = format!("it has {count} last events");
                (count != 1).then(|| format!("{} of {}: {problem}", turn.request, life.agent))
            });
            found.extend(problems);
        }
        for sending in seen.sendings.iter().chain(&Among::of(kept).sendings()) {
            let is_known = |(agent, request): &(String, String)| {
                *agent == sending.agent.as_str() && *request == sending.request.as_str()
            };
            if self.earlier.iter().any(is_known) {
                continue;
            }
            let problem = against_events(sending, &lives, kept);
            found.extend(
                problem.map(|what| format!("{} of {}: {what}", sending.request, sending.agent)),
            );
        }
        let requests = end.survey.into_iter().flat_map(|survey| &survey.requests);
        for ((agent, request), known) in requests {
            let turn =
                Life::only(&lives, agent.as_str()).and_then(|life| life.find(request.as_str()));
            let last = turn.and_then(|turn| turn.ends.first());
            if let (Some((_, last)), Some(known)) = (last, known)
                && !tells(last, known.result.as_ref().map(of_result).as_ref(), known.error.as_ref())
            {
                found.push(format!("{request} of {agent}: its last event says otherwise"));
            }
        }
        found
    }
}

/// How what a caller was told differs from the events of the turn.
fn against_events(sending: &Sending, lives: &[Life], kept: &Kept) -> Option<String> {
    let agent = sending.agent.as_str();
    if kept.forgotten.contains_key(agent) {
        return None;
    }
    let turn = Life::only(lives, agent).map(|life| life.find(sending.request.as_str()))?;
    let taken = matches!(sending.outcome, Told::Result(_) | Told::Accepted);
    let Some(turn) = turn else {
        return taken.then(|| "it was taken and has no event".to_owned());
    };
    let (_, last) = turn.ends.first()?;
    let same = match &sending.outcome {
        Told::Result(result) => tells(last, Some(result), None),
        Told::Error(error) if !refuses(error) => tells(last, None, Some(error)),
        Told::Error(_) | Told::Accepted | Told::Nothing => true,
    };
    (!same).then(|| "its caller was told otherwise than its last event says".to_owned())
}

/// Whether a last event says the same as a result or an error.
fn tells(last: &What, result: Option<&Value>, error: Option<&ErrorObject>) -> bool {
    match last {
        What::TurnCompleted { content, halted, finish_reason, usage } => {
            result.is_some_and(|result| {
                result["content"] == **content
                    && result["halted_at_iteration_limit"] == *halted
                    && result["finish_reason"] == **finish_reason
                    && Some(&result["usage"]) == serde_json::to_value(usage).ok().as_ref()
            })
        }
        What::TurnCancelled(_) => result.is_some_and(|result| result["cancelled"] == true),
        What::TurnFailed(ended) | What::TurnInterrupted(ended) => {
            error.is_some() && ended.error.as_ref() == error
        }
        _ => false,
    }
}

impl Answers {
    /// Remembers an outcome; says what is wrong where there was another one before.
    fn told(
        &mut self,
        key: (u64, String, String),
        server_start: u64,
        outcome: Option<Value>,
        seen: &Seen<'_>,
    ) -> Option<String> {
        // The requests of an agent that was destroyed may belong to the one before or after.
        if seen.destroyed.contains(&key.1) {
            return None;
        }
        let outcome = outcome?;
        let problem = format!("{} of {}: it was told two outcomes", key.2, key.1);
        let told = (server_start, outcome);
        let known = self.outcomes.entry(key).or_insert_with(|| told.clone());
        if is_closed_by(known, &told) {
            *known = told;
            return None;
        }
        (known.1 != told.1).then_some(problem)
    }
}

/// A turn whose end cannot be written ends in memory, and is closed as interrupted at the next start.
fn is_closed_by((ended_in, ended): &(u64, Value), (closed_in, closed): &(u64, Value)) -> bool {
    let is = |outcome: &Value, kind: &str| outcome["data"]["kind"] == kind;
    ended_in < closed_in && is(ended, "storage") && is(closed, "interrupted")
}

/// What the server at rest says, against what clients were told.
fn compare(survey: &Survey, seen: &Seen<'_>) -> Vec<String> {
    let mut found = Vec::new();
    let now = seen.server_start;
    let same = |sending: &&Sending| {
        let agent = sending.agent.as_str();
        era(agent, sending.server_start) == era(agent, now)
    };
    for sending in seen.sendings.iter().filter(same) {
        let key = (sending.agent.clone(), sending.request.clone());
        let problem = match survey.requests.get(&key) {
            Some(Some(known)) => disagree(sending, known),
            Some(None) if seen.destroyed.contains(sending.agent.as_str()) => None,
            Some(None) if survey.conversations.contains_key(&sending.agent) => lost(sending),
            // The agent is gone, and its requests with it.
            Some(None) | None => None,
        };
        let problem =
            problem.map(|problem| format!("{} of {}: {problem}", sending.request, sending.agent));
        found.extend(problem);
    }
    found
}

/// When an agent's name meant the same agent: over restarts, but for temporary agents, which are gone
/// with their server and whose names are given again.
fn era(agent: &str, server_start: u64) -> u64 {
    if agent.starts_with('.') { server_start } else { 0 }
}

/// How an outcome that is known differs from what the caller was told.
fn disagree(sending: &Sending, known: &GetRequestResult) -> Option<String> {
    let ended = match known.status {
        RequestStatus::Queued | RequestStatus::Running => {
            return Some("it has not ended".to_owned());
        }
        RequestStatus::Completed
        | RequestStatus::Cancelled
        | RequestStatus::Failed
        | RequestStatus::Interrupted => known,
    };
    match &sending.outcome {
        Told::Nothing | Told::Accepted => None,
        Told::Result(told) => {
            let kept = ended.result.as_ref().map(of_result).unwrap_or_default();
            (*told != kept).then(|| "its caller was told another result".to_owned())
        }
        Told::Error(told) => {
            // A refused repetition of a known id is an answer to the repetition.
            let same = ended.error.as_ref() == Some(told);
            (!refuses(told) && !same).then(|| "its caller was told another error".to_owned())
        }
    }
}

/// Whether an error may say that the send was not taken. One that could not be written down was not;
/// a turn that could not be written down is told in the same words.
fn refuses(error: &ErrorObject) -> bool {
    let kind = error.data.as_ref().and_then(|data| data["kind"].as_str());
    error.code != Code::Outside.number() || kind == Some("storage")
}

/// A send that was taken and that nobody knows of any more.
fn lost(sending: &Sending) -> Option<String> {
    match &sending.outcome {
        Told::Result(_) | Told::Accepted => Some("it was taken and is not known".to_owned()),
        Told::Error(_) | Told::Nothing => None,
    }
}

fn of_result(result: &SendResult) -> Value {
    serde_json::to_value(result).expect("a result has only string keys")
}

fn of_error(error: &ErrorObject) -> Value {
    serde_json::to_value(error).expect("an error has only string keys")
}

#[cfg(test)]
#[path = "answers_tests.rs"]
mod tests;
