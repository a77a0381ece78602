//! The invariant `bounds`: no limit is exceeded at any time, a server that has stopped holds nothing
//! open, and at the end nothing is queued, running or left behind.

use std::collections::BTreeSet;

use nexus3::limits::{CONNECTIONS_MAX, REFUSALS_AT_ONCE_MAX, WAITING_SENDS_MAX};

use super::promises::changed;
use super::{Check, End, Invariant, Observation, Seen};
use crate::play::observed::Answer;
use crate::play::server::ProcessState;
use crate::scenario::Scenario;

#[derive(Debug)]
pub struct Bounds {
    /// Connections that the server may have accepted, those it is refusing included.
    accepted_max: usize,
    /// Files that the scenario puts there, perhaps beside a server that runs: they are not its own.
    foreign: BTreeSet<String>,
}

impl Bounds {
    pub fn new(scenario: &Scenario) -> Self {
        let configured = scenario.config.get("server").and_then(|server| {
            let connections = server.get("max_connections")?.as_u64()?;
            usize::try_from(connections).ok()
        });
        Self {
            accepted_max: configured.unwrap_or(CONNECTIONS_MAX) + REFUSALS_AT_ONCE_MAX,
            foreign: changed(scenario).map(|path| path.display().to_string()).collect(),
        }
    }
}

impl Check for Bounds {
    fn invariant(&self) -> Invariant {
        Invariant::Bounds
    }

    fn on(&mut self, observation: &Observation, _: &Seen<'_>) -> Vec<String> {
        let Observation::Answered(Answer { method, result: Ok(result), .. }) = observation else {
            return Vec::new();
        };
        if method != "list_agents" {
            return Vec::new();
        }
        let agents = result["agents"].as_array().into_iter().flatten();
        let waiting =
            agents.filter_map(|agent| Some((agent["queued"].as_u64()?, &agent["agent_id"])));
        let full = waiting.filter(|(queued, _)| *queued > WAITING_SENDS_MAX as u64);
        full.map(|(queued, agent)| format!("{queued} sends wait for {agent}")).collect()
    }

    fn after_step(&mut self, seen: &Seen<'_>) -> Vec<String> {
        let mut found = Vec::new();
        if seen.accepted > self.accepted_max {
            found.push(format!("the server has {} connections open", seen.accepted));
        }
        if seen.server == ProcessState::Stopped {
            found.extend(held(seen));
        }
        found
    }

    fn at_end(&mut self, seen: &Seen<'_>, end: &End<'_>) -> Vec<String> {
        let mut found = self.after_step(seen);
        if seen.processes > 0 {
            found.push(format!("{} processes of programs are left", seen.processes));
        }
        found.extend(end.survey.and_then(|survey| survey.trouble.clone()));
        let left_behind = end.left_behind.iter().flatten();
        let left_behind = left_behind.filter(|path| !self.foreign.contains(*path));
        found.extend(left_behind.map(|path| format!("{path} was left behind")));
        found
    }
}

/// What a stopped server must not hold.
fn held(seen: &Seen<'_>) -> Vec<String> {
    let (connections, handles) = (seen.connections, seen.disk.handles());
    let mut found = Vec::new();
    if connections > 0 {
        found.push(format!("{connections} connections of the stopped server are open"));
    }
    if handles > 0 {
        found.push(format!("{handles} files of the stopped server are open"));
    }
    if seen.processes > 0 {
        found.push(format!("{} processes of the stopped server run", seen.processes));
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::seen_tests::{Run, answered};
    use super::*;
    use crate::play::checker::Survey;

    fn bounds() -> Bounds {
        Bounds { accepted_max: 2, foreign: ["/theirs.token".to_owned()].into() }
    }

    #[test]
    fn limits_hold_while_the_run_goes_on() {
        let run = Run { accepted: 2, ..Run::default() };
        assert_eq!(bounds().after_step(&run.seen()), Vec::<String>::new());
        let run = Run { accepted: 3, ..Run::default() };
        assert_eq!(bounds().after_step(&run.seen()), ["the server has 3 connections open"]);
        let listed = |queued: usize| {
            let agent = json!({"agent_id": "scout", "queued": queued});
            answered("list_agents", None, json!({"agents": [agent]}))
        };
        let told = |queued| bounds().on(&listed(queued), &run.seen());
        assert_eq!(told(WAITING_SENDS_MAX), Vec::<String>::new());
        assert_eq!(told(WAITING_SENDS_MAX + 1), ["33 sends wait for \"scout\""]);
    }

    #[test]
    fn a_stopped_server_holds_nothing_open() {
        let check =
            |server| bounds().after_step(&Run { connections: 1, server, ..Run::default() }.seen());
        assert_eq!(check(ProcessState::Up), Vec::<String>::new());
        let open = ["1 connections of the stopped server are open"];
        assert_eq!(check(ProcessState::Stopped), open);
        let run = Run { processes: 2, server: ProcessState::Stopped, ..Run::default() };
        let running = ["2 processes of the stopped server run"];
        assert_eq!(bounds().after_step(&run.seen()), running);
    }

    #[test]
    fn a_server_that_does_not_come_to_rest_is_told() {
        let trouble = Some("scout does not come to rest".to_owned());
        let busy = Survey { trouble, ..Survey::default() };
        let left_behind = Some(vec!["/home/x.token".to_owned(), "/theirs.token".to_owned()]);
        let end = End { survey: Some(&busy), left_behind };
        let found = bounds().at_end(&Run::default().seen(), &end);
        assert_eq!(found, ["scout does not come to rest", "/home/x.token was left behind"]);
        let quiet = End { survey: None, left_behind: None };
        let found = bounds().at_end(&Run { processes: 1, ..Run::default() }.seen(), &quiet);
        assert_eq!(found, ["1 processes of programs are left"]);
    }
}
