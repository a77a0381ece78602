//! What the terminal makes of agents that it does not follow.

use super::*;
use crate::limits::terminal::{ASKED_MAX, SETTLED_KEPT_MAX, TURNS_KEPT_MAX};

impl Stage {
    /// Something happened to an agent, told by the stream of all of them.
    fn elsewhere(&mut self, name: &str, of: &str, event: serde_json::Value) {
        let what: What = serde_json::from_value(event).unwrap();
        let at = "2026-01-01T00:00:00Z".parse().unwrap();
        let event = Event::new(&agent(name), at, what).of(&request(of));
        self.on(Input::Elsewhere(Box::new(event)));
    }

    pub(super) fn started_elsewhere(&mut self, name: &str, of: &str, by: Option<&str>) {
        let event = json!({"type": "turn_started", "content": "work", "source": "rpc",
            "source_agent_id": by});
        self.elsewhere(name, of, event);
    }
}

fn asked() -> serde_json::Value {
    json!({"type": "confirmation_requested", "confirm_id": confirm_id(),
        "tool": {"name": "exec", "params": {"program": "date"}}, "target": "date", "cwd": "/",
        "timeout_s": 120.0, "options": ["allow_once", "deny"]})
}

fn allowed() -> serde_json::Value {
    json!({"type": "confirmation_resolved", "confirm_id": confirm_id(), "decision": "allow_once",
        "resolved_by": "rpc", "resolved_at": "2026-01-01T00:00:01Z"})
}

/// A terminal with a turn of its own, which hears of all agents.
fn busy() -> Stage {
    let mut stage = Stage::with("scout");
    stage.on(Input::Surveyed { cursor: 7, waiting: Vec::new() });
    stage.sends("Hello", "r1");
    stage.started_elsewhere("scout", "r1", None);
    stage
}

#[test]
fn what_works_for_our_turn_is_asked_at_once() {
    let mut stage = busy();
    stage.started_elsewhere("child", "r2", Some("scout"));
    stage.started_elsewhere("grandchild", "r3", Some("child"));
    stage.types("draft");
    stage.elsewhere("grandchild", "r3", asked());
    assert!(stage.foot().contains("grandchild: exec needs a confirmation"), "{}", stage.foot());
    stage.now += Duration::from_secs(1);
    stage.on(Input::Key(Key::Down));
    stage.on(Input::Key(Key::Enter));
    let (agent, confirm_id) = (agent("grandchild"), confirm_id());
    assert_eq!(stage.done, [Effect::Confirm { agent, confirm_id, decision: Choice::AllowOnce }]);
}

#[test]
fn what_works_for_others_waits_for_the_end_of_our_turn() {
    let mut stage = busy();
    stage.started_elsewhere("lead", "r2", Some("stranger"));
    stage.elsewhere("lead", "r2", asked());
    assert!(stage.foot().contains("⚠ Ctrl-Y: lead: exec waits"), "{}", stage.foot());
    stage.ended("r1", "turn_completed");
    assert!(stage.foot().contains("lead: exec needs a confirmation"), "{}", stage.foot());
    stage.forget();
    stage.elsewhere("lead", "r2", allowed());
    assert_eq!(stage.printed, ["  ? lead, exec date: allowed once by rpc"]);
    assert!(!stage.foot().contains("confirmation"), "{}", stage.foot());
}

#[test]
fn what_two_streams_tell_counts_once() {
    // However they overtake each other, nothing is asked that has its answer.
    for late in ["asked by all", "asked by the agent", "allowed"] {
        let mut stage = busy();
        stage.asks("r1");
        stage.elsewhere("scout", "r1", asked());
        stage.event("r1", allowed());
        assert_eq!(stage.printed, ["  ? exec date: allowed once by rpc"]);
        match late {
            "asked by all" => stage.elsewhere("scout", "r1", asked()),
            "asked by the agent" => stage.asks("r1"),
            _ => stage.elsewhere("scout", "r1", allowed()),
        }
        assert_eq!(stage.printed, ["  ? exec date: allowed once by rpc"], "{late}");
        assert!(!stage.foot().contains("confirmation"), "{late}: {}", stage.foot());
    }
}

#[test]
fn questions_stay_when_another_agent_is_talked_to() {
    let mut stage = busy();
    stage.asks("r1");
    stage.now += Duration::from_secs(1);
    stage.core.attach(agent("lead"), Attach::IfThere);
    stage.on(attached("lead"));
    assert!(stage.foot().contains("scout: exec needs a confirmation"), "{}", stage.foot());
    stage.elsewhere(
        "scout",
        "r1",
        json!({"type": "turn_cancelled", "reason": "cancelled",
        "error": null, "partial": ""}),
    );
    assert!(!stage.foot().contains("confirmation"), "{}", stage.foot());
}

#[test]
fn an_agent_that_goes_or_is_renamed_takes_its_questions_along() {
    let mut stage = Stage::with("scout");
    stage.on(Input::Surveyed { cursor: 7, waiting: Vec::new() });
    stage.elsewhere("lead", "r2", asked());
    stage.elsewhere(
        "chief",
        "r2",
        json!({"type": "agent_updated", "parent_agent_id": null,
        "changed": {}, "previous_agent_id": "lead"}),
    );
    stage.now += Duration::from_secs(1);
    stage.types("2");
    let confirm_id = confirm_id();
    let confirm = Effect::Confirm { agent: agent("chief"), confirm_id, decision: Choice::Deny };
    assert_eq!(stage.done, [confirm]);
    stage.elsewhere("chief", "r2", json!({"type": "agent_destroyed", "parent_agent_id": null}));
    assert_eq!(stage.core.asked.len(), 0);
}

#[test]
fn what_is_told_of_others_is_bounded() {
    let mut stage = Stage::with("scout");
    for number in 0..TURNS_KEPT_MAX + 10 {
        stage.started_elsewhere(&format!("a{number}"), "r1", None);
        let id = ConfirmId::parse(&format!("{number:0CONFIRM_ID_HEX$x}")).unwrap();
        let mut asked = asked();
        asked["confirm_id"] = json!(id);
        stage.elsewhere("lead", "r2", asked);
    }
    assert_eq!(stage.core.asked.len(), ASKED_MAX);
    for number in 0..SETTLED_KEPT_MAX + 10 {
        let id = ConfirmId::parse(&format!("{number:0CONFIRM_ID_HEX$x}")).unwrap();
        stage.core.settled(&id);
    }
    assert_eq!(stage.core.asked.len(), 0);
}

#[test]
fn escape_puts_the_question_of_another_aside() {
    let mut stage = Stage::with("scout");
    stage.on(Input::Surveyed { cursor: 7, waiting: Vec::new() });
    stage.started("r9", "do it", "rpc");
    stage.elsewhere("lead", "r2", asked());
    assert!(stage.foot().contains("lead: exec needs a confirmation"), "{}", stage.foot());
    stage.on(Input::Key(Key::Escape));
    // The turn that others have here goes on.
    assert_eq!(stage.done, []);
    assert!(stage.foot().contains("⚠ Ctrl-Y: lead: exec waits"), "{}", stage.foot());
    stage.on(Input::Key(Key::Control('y')));
    assert!(stage.foot().contains("lead: exec needs a confirmation"), "{}", stage.foot());
}

#[test]
fn a_new_survey_forgets_what_has_its_answer() {
    let mut stage = Stage::with("scout");
    stage.on(Input::Surveyed { cursor: 7, waiting: Vec::new() });
    stage.elsewhere("lead", "r2", asked());
    let gap = Event {
        agent_id: None,
        ..Event::new(
            &agent("lead"),
            "2026-01-01T00:00:00Z".parse().unwrap(),
            What::StreamGap { from: 8, to: 9 },
        )
    };
    stage.on(Input::Elsewhere(Box::new(gap)));
    assert_eq!(stage.done, [Effect::Survey]);
    stage.on(Input::Surveyed { cursor: 9, waiting: Vec::new() });
    assert!(!stage.foot().contains("confirmation"), "{}", stage.foot());
}
