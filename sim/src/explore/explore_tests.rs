//! What a seed and a profile make of a scenario is a scenario, the same every time.

use super::*;
use crate::scenario::{Lane, Scenario};

const TEXT: &str = r#"
schema = 1
about  = "Two clients ask an agent."
[[model]]
times = "always"
says  = "Hello."
[[step]]
client = "alice"
call   = "create_agent"
params = { agent_id = "scout" }
expect = { agent_id = "scout" }
[[step]]
at     = "1s"
client = "bob"
call   = "send"
agent  = "scout"
params = { content = "Hello", request_id = "r1" }
background = true
[[step]]
client = "bob"
call   = "snd"
agent  = "scout"
expect_error = { code = -32601 }
[expect]
agents = ["scout"]
ignore = [{ invariant = "answers", reason = "to see that it stays" }]
"#;

fn ground() -> Ground {
    Ground {
        name: "two_clients".to_owned(),
        document: Document::parse(TEXT).unwrap(),
        mcp: None,
        clients: vec!["alice".to_owned(), "bob".to_owned()],
        steps_time: std::time::Duration::from_secs(2),
        points: 40,
        events: [("agent_created".to_owned(), 1), ("turn_completed".to_owned(), 3)].into(),
        journal: vec!["agent_created of scout".to_owned()],
    }
}

#[test]
fn every_seed_of_every_profile_is_a_scenario_of_its_own() {
    let ground = ground();
    for name in profile::names() {
        let profile = Profile::built_in(name).unwrap();
        let mut texts = std::collections::BTreeSet::new();
        for seed in 0..300 {
            let text = effective(&ground, &profile, seed).text();
            let scenario = Scenario::parse("x.toml", &text);
            let scenario = scenario.unwrap_or_else(|problems| panic!("{problems:?}\n{text}"));
            assert_eq!((scenario.seed, scenario.judge), (seed, profile.judge), "{name}");
            assert_eq!(text, effective(&ground, &profile, seed).text());
            texts.insert(text);
        }
        assert_eq!(texts.len(), 300, "{name}");
    }
}

#[test]
fn expectations_go_and_what_is_ignored_stays() {
    let ground = ground();
    let scenario = |name: &str| {
        let profile = Profile::built_in(name).unwrap();
        Scenario::parse("x.toml", &effective(&ground, &profile, 1).text()).unwrap()
    };
    let (quiet, chaos) = (scenario("quiet"), scenario("chaos"));
    assert_eq!(quiet.expect.agents, Some(vec!["scout".to_owned()]));
    assert_eq!(chaos.expect.agents, None);
    assert_eq!(quiet.expect.ignore, chaos.expect.ignore);
}

#[test]
fn wrong_profiles_are_refused() {
    let problem = |text: &str| {
        let text = format!("about = \"x\"\n{text}");
        match Profile::parse("x", &text) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        }
    };
    assert_eq!(problem(""), "");
    assert_eq!(problem("chance = 1.0"), "the profile `x` is wrong");
    assert_eq!(problem("client.again = 2.0"), "the profile `x` is wrong: 2 is no probability");
    let fault = "[[fault]]\nkind = \"crash\"\nchance = 0.5\n";
    assert_eq!(problem(fault), "");
    for (more, told) in [
        ("times = [2, 1]", "`times` of crash is no range from 1 on"),
        ("begins = [\"rate\"]", "`rate` of crash is missing"),
        ("place = []", "crash happens nowhere or never"),
    ] {
        let expected = format!("the profile `x` is wrong: {told}");
        assert_eq!(problem(&format!("{fault}{more}")), expected);
    }
    let unknown = Profile::built_in("calm").map(|_| ()).unwrap_err().to_string();
    assert!(unknown.starts_with("there is no profile `calm`"), "{unknown}");
}

#[test]
fn runs_part_at_the_first_event_that_differs() {
    let ground = ground();
    let parts = |journal: &[&str]| {
        let journal: Vec<String> = journal.iter().map(|event| (*event).to_owned()).collect();
        ground.parts_at(&journal)
    };
    assert_eq!(parts(&["agent_created of scout"]), None);
    assert_eq!(parts(&[]).unwrap(), "event 1, without agent_created of scout");
    let longer = ["agent_created of scout", "turn_queued of scout"];
    assert_eq!(parts(&longer).unwrap(), "event 2, turn_queued of scout");
}

#[test]
fn every_mark_that_a_profile_wants_can_be_drawn() {
    for name in profile::names() {
        let profile = Profile::built_in(name).unwrap();
        let drawn: Vec<String> =
            profile.fault.iter().map(|fault| format!("fault:{}", fault.kind)).collect();
        let faults = profile.reaches.iter().filter(|mark| mark.starts_with("fault:"));
        for mark in faults {
            assert!(drawn.contains(mark), "{name} never draws {mark}");
        }
    }
}

#[test]
fn only_runs_that_need_no_network_have_pipes() {
    let (ground, profile) = (ground(), Profile::built_in("chaos").unwrap());
    let (mut over_pipes, mut alike_over_network) = (0, 0);
    for seed in 0..300 {
        let text = effective(&ground, &profile, seed).text();
        let scenario = Scenario::parse("x.toml", &text).unwrap();
        let needs_no_network = scenario.faults.iter().all(crate::scenario::Fault::fits_pipes);
        match scenario.lane {
            Lane::Pipes => over_pipes += usize::from(needs_no_network),
            Lane::Turmoil => alike_over_network += usize::from(needs_no_network),
        }
        assert!(scenario.lane == Lane::Turmoil || needs_no_network, "{text}");
    }
    assert!(over_pipes > 20 && alike_over_network > 20, "{over_pipes}, {alike_over_network}");
}
