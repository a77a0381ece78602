//! What the `[expect]` of a scenario says of its end.

use super::checker::Survey;
use super::files;
use super::kept::Kept;
use super::theatre::Theatre;
use crate::scenario::{Expect, Scenario};

/// What is not as `[expect]` says, a sentence each.
pub fn unmet(
    theatre: &Theatre,
    scenario: &Scenario,
    survey: Option<&Survey>,
    kept: Option<&Kept>,
) -> Vec<String> {
    let expect = &scenario.expect;
    let mut findings = files::unexpected(&theatre.server.disk, &expect.files);
    // The database also has the dormant ones, and is the same whether they were active at the end.
    let of_kept = kept.map(|kept| {
        kept.agents.iter().filter(|agent| agent.exists()).map(|agent| agent.id.as_str()).collect()
    });
    let of_survey =
        survey.map(|survey| survey.agents.iter().map(|agent| agent.agent_id.as_str()).collect());
    let found: Option<Vec<&str>> = of_kept.or(of_survey);
    if let (Some(expected), Some(mut found)) = (&expect.agents, found) {
        let mut expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        found.sort_unstable();
        expected.sort_unstable();
        if found != expected {
            findings.push(format!("expected the agents {expected:?}, found {found:?}"));
        }
    }
    findings.extend(model_calls(theatre, expect));
    findings.extend(theatre.watching.failures());
    findings
}

fn model_calls(theatre: &Theatre, expect: &Expect) -> Vec<String> {
    let calls = theatre.watching.model_calls();
    let differs = |(agent, expected): (&String, &u64)| {
        let found = calls.get(agent).copied().unwrap_or(0);
        let what = format!("expected {expected} model calls of {agent}, found {found}");
        (found != *expected).then_some(what)
    };
    expect.model_calls.iter().filter_map(differs).collect()
}
