//! The invariants of a finished run, and what its `[expect]` says.

use std::collections::BTreeSet;
use std::sync::Arc;

use nexus3::agent::check_pairs;
use nexus3::id::RequestId;
use nexus3::message::Message;
use nexus3::rpc::method::{GetRequestResult, RequestStatus, SendResult};
use secrecy::ExposeSecret;
use serde_json::Value;

use super::checker::Survey;
use super::director::{Director, Sending, Told};
use super::files;
use super::theatre::Theatre;
use crate::scenario::{Expect, Invariant, Scenario, Wire};

/// What does not hold, with the invariant it belongs to, if to any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub invariant: Option<Invariant>,
    pub what: String,
}

impl Finding {
    fn of(invariant: Invariant, what: String) -> Self {
        Self { invariant: Some(invariant), what }
    }

    pub fn plain(what: String) -> Self {
        Self { invariant: None, what }
    }
}

/// What the server at rest says, against what clients were told.
pub fn survey(survey: &Survey, director: &Director<'_>, server_start: u64) -> Vec<Finding> {
    compare(survey, &director.sendings, &director.destroyed, server_start)
}

fn compare(
    survey: &Survey,
    sendings: &[Sending],
    destroyed: &BTreeSet<String>,
    server_start: u64,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(trouble) = &survey.trouble {
        findings.push(Finding::of(Invariant::Bounds, trouble.clone()));
    }
    for (agent, messages) in &survey.conversations {
        if let Err(broken) = check_pairs(messages.iter().map(AsRef::as_ref)) {
            findings.push(Finding::of(Invariant::Pairs, format!("{agent}: {broken}")));
        }
    }
    // What an earlier process was asked is gone with it until there is a store.
    let sendings: Vec<&Sending> =
        sendings.iter().filter(|sending| sending.server_start == server_start).collect();
    for sending in &sendings {
        let key = (sending.agent.clone(), sending.request.clone());
        let problem = match survey.requests.get(&key) {
            Some(Some(known)) => disagree(sending, known),
            Some(None) if destroyed.contains(sending.agent.as_str()) => None,
            Some(None) if survey.conversations.contains_key(&sending.agent) => lost(sending),
            // The agent is gone, and its requests with it.
            Some(None) | None => None,
        };
        if let Some(problem) = problem {
            let what = format!("{} of {}: {problem}", sending.request, sending.agent);
            findings.push(Finding::of(Invariant::Answers, what));
        }
    }
    findings.extend(order(survey, &sendings));
    findings
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
            let kept = ended.result.as_ref().map(result).unwrap_or_default();
            (*told != kept).then(|| "its caller was told another result".to_owned())
        }
        Told::Error(told) => {
            // A refused repetition of a known id is an answer to the repetition.
            let refused = (-32003..=-32001).contains(&told.code);
            let same = ended.error.as_ref() == Some(told);
            (!refused && !same).then(|| "its caller was told another error".to_owned())
        }
    }
}

/// A send that was taken and that nobody knows of any more.
fn lost(sending: &Sending) -> Option<String> {
    match &sending.outcome {
        Told::Result(_) | Told::Accepted => Some("it was taken and is not known".to_owned()),
        Told::Error(_) | Told::Nothing => None,
    }
}

fn result(result: &SendResult) -> Value {
    serde_json::to_value(result).expect("a result has only string keys")
}

/// Turns of an agent run in the order in which they were accepted. That order is known where one
/// send was made after another had been accepted, and its turn by the request id in its message.
fn order(survey: &Survey, sendings: &[&Sending]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (agent, messages) in &survey.conversations {
        let contents = users(messages);
        let place = |sending: &Sending| {
            contents.iter().position(|content| is_of(content, &sending.request))
        };
        let accepted: Vec<(&Sending, usize)> = sendings
            .iter()
            .filter(|sending| sending.agent == *agent && sending.outcome == Told::Accepted)
            .filter_map(|sending| Some((*sending, place(sending)?)))
            .collect();
        for (first, first_place) in &accepted {
            let overtaken = accepted.iter().find(|(second, second_place)| {
                first.told <= second.made && second_place < first_place
            });
            if let Some((second, _)) = overtaken {
                let what = format!("{agent}: {} ran before {}", second.request, first.request);
                findings.push(Finding::of(Invariant::Order, what));
            }
        }
    }
    findings
}

/// Whether a message names the request. `r1` is not named by `r10`.
fn is_of(content: &str, request: &RequestId) -> bool {
    content.split_whitespace().any(|word| word == request.as_str())
}

fn users(messages: &[Arc<Message>]) -> Vec<&str> {
    let mut contents = Vec::new();
    for message in messages {
        match message.as_ref() {
            Message::User { content, .. } => contents.push(content.as_ref()),
            Message::Assistant { .. } | Message::Tool { .. } => {}
        }
    }
    contents
}

/// What a stopped server must not have left.
pub fn at_end(theatre: &Theatre, connections: usize) -> Vec<Finding> {
    let mut findings = Vec::new();
    if connections > 0 {
        let what = format!("{connections} connections of the stopped server are open");
        findings.push(Finding::of(Invariant::Bounds, what));
    }
    for path in theatre.left_behind() {
        findings.push(Finding::of(Invariant::Bounds, format!("{path} was left behind")));
    }
    let handles = theatre.server.disk.handles();
    if handles > 0 {
        let what = format!("{handles} files of the stopped server are open");
        findings.push(Finding::of(Invariant::Bounds, what));
    }
    findings
}

/// No token and no key in anything that people read.
pub fn secrets(theatre: &Theatre, scenario: &Scenario) -> Vec<Finding> {
    let process = theatre.server.process();
    let tokens = process.secrets.iter().map(|token| token.expose_secret().to_owned());
    let keys = scenario.env.iter().filter(|(name, _)| name.ends_with("_KEY"));
    let keys = keys.map(|(_, value)| value.clone());
    let text = theatre.transcript.text();
    tokens
        .chain(keys)
        .filter(|secret| !secret.is_empty() && text.contains(secret.as_str()))
        .map(|_| Finding::of(Invariant::Window, "a secret stands in the transcript".to_owned()))
        .collect()
}

/// What `[expect]` says.
pub fn expected(theatre: &Theatre, scenario: &Scenario, survey: Option<&Survey>) -> Vec<Finding> {
    let expect = &scenario.expect;
    let mut findings: Vec<Finding> = files::unexpected(&theatre.server.disk, &expect.files)
        .into_iter()
        .map(Finding::plain)
        .collect();
    if let (Some(expected), Some(survey)) = (&expect.agents, survey) {
        let mut found: Vec<&str> =
            survey.agents.iter().map(|agent| agent.agent_id.as_str()).collect();
        let mut expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        found.sort_unstable();
        expected.sort_unstable();
        if found != expected {
            findings
                .push(Finding::plain(format!("expected the agents {expected:?}, found {found:?}")));
        }
    }
    match scenario.wire {
        Wire::Openai | Wire::Anthropic => findings.extend(model_calls(theatre, expect)),
        // The script is played inside the server, where nobody counts; the transcript says so.
        Wire::Script => {}
    }
    findings.extend(theatre.watching.failures().into_iter().map(Finding::plain));
    findings
}

fn model_calls(theatre: &Theatre, expect: &Expect) -> Vec<Finding> {
    let calls = theatre.models.model_calls();
    let differs = |(agent, expected): (&String, &u64)| {
        let found = calls.get(agent).copied().unwrap_or(0);
        let what = format!("expected {expected} model calls of {agent}, found {found}");
        (found != *expected).then(|| Finding::plain(what))
    };
    expect.model_calls.iter().filter_map(differs).collect()
}

#[cfg(test)]
#[path = "checks_tests.rs"]
mod tests;
