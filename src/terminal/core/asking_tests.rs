//! What answers a question, and what does not: who has not read it has not answered it.

use super::*;

/// Long enough for a question to be read.
const READ: Duration = Duration::from_secs(1);
const AT_ONCE: Duration = Duration::from_millis(120);

impl Stage {
    /// The same turn asks for something else as well.
    fn asks_more(&mut self, of: &str) {
        let event = json!({"type": "confirmation_requested",
            "confirm_id": "d".repeat(CONFIRM_ID_HEX),
            "tool": {"name": "exec", "params": {"program": "rm"}}, "target": "rm", "cwd": "/",
            "timeout_s": 120.0, "options": ["allow_once", "deny"]});
        self.event(of, event);
    }

    fn resolved(&mut self, of: &str) {
        let event = json!({"type": "confirmation_resolved", "confirm_id": confirm_id(),
            "decision": "deny", "resolved_by": "rpc", "resolved_at": "2026-01-01T00:00:01Z"});
        self.event(of, event);
    }

    fn misses(&mut self, name: &str) {
        self.types(&format!("/agent {name}\n"));
        self.on(Input::NotThere { agent: agent(name), restorable: false });
        self.forget();
    }
}

#[test]
fn a_question_that_has_just_appeared_takes_no_answer() {
    let mut stage = Stage::with("scout");
    stage.sends("writeout", "r1");
    stage.asks("r1");
    stage.now += AT_ONCE;
    stage.types("1 more thing");
    assert_eq!(stage.done, []);
    assert!(stage.foot().contains("scout › 1 more thing"), "{}", stage.foot());
    let mut stage = Stage::with("scout");
    stage.sends("writeout", "r1");
    stage.asks("r1");
    stage.now += AT_ONCE;
    for key in [Key::Down, Key::Enter] {
        stage.on(Input::Key(key));
    }
    assert_eq!(stage.done, []);
    // What was pressed then chooses nothing later either.
    stage.now += READ;
    stage.on(Input::Key(Key::Enter));
    assert_eq!(stage.done, []);
    stage.types("2");
    let (agent, confirm_id) = (agent("scout"), confirm_id());
    assert_eq!(stage.done, [Effect::Confirm { agent, confirm_id, decision: Choice::Deny }]);
}

#[test]
fn a_number_that_is_pressed_twice_answers_one_question() {
    let mut stage = Stage::with("scout");
    stage.sends("Hello", "r1");
    stage.asks("r1");
    stage.asks_more("r1");
    stage.now += READ;
    stage.types("1");
    stage.now += AT_ONCE;
    stage.types("1");
    let (agent, confirm_id) = (agent("scout"), confirm_id());
    assert_eq!(stage.done, [Effect::Confirm { agent, confirm_id, decision: Choice::AllowOnce }]);
    assert!(stage.foot().contains("on rm") && stage.foot().contains("› 1"), "{}", stage.foot());
}

#[test]
fn numbers_stand_before_answers_once_they_answer() {
    let mut stage = Stage::with("scout");
    stage.sends("Hello", "r1");
    stage.asks("r1");
    assert!(stage.foot().contains("\n    deny it\n"), "{}", stage.foot());
    assert!(stage.foot().contains(" s wants an answer · Esc cancels"), "{}", stage.foot());
    stage.now += READ;
    stage.on(Input::Tick);
    assert!(stage.foot().contains("\n  2 deny it\n"), "{}", stage.foot());
    let mut idle = Stage::with("scout");
    idle.misses("nova");
    assert!(idle.core.is_moving() && idle.foot().contains("❯   create nova"), "{}", idle.foot());
    idle.now += READ;
    idle.on(Input::Tick);
    assert!(!idle.core.is_moving() && idle.foot().contains("❯ 1 create nova"), "{}", idle.foot());
}

#[test]
fn how_to_answer_is_told_as_long_as_there_is_something_to_answer() {
    let mut stage = Stage::with("scout");
    stage.sends("Hello", "r1");
    stage.types("draft");
    stage.asks("r1");
    stage.now += READ;
    stage.on(Input::Key(Key::Enter));
    let told = "\nthe arrows choose, Enter answers";
    assert!(stage.foot().ends_with(told), "{}", stage.foot());
    stage.on(Input::Key(Key::Control('u')));
    stage.on(Input::Key(Key::Enter));
    let told = "\nanswer with a number, or choose with the arrows";
    assert!(stage.foot().ends_with(told), "{}", stage.foot());
    stage.resolved("r1");
    assert!(stage.foot().ends_with("scout › \nscout"), "{}", stage.foot());
}

#[test]
fn what_is_typed_where_an_agent_is_not_there_is_kept() {
    let mut stage = Stage::with("scout");
    stage.misses("nova");
    stage.now += READ;
    stage.on(Input::Tick);
    let told = "\n  Enter or a number chooses · Esc leaves it\n› \n";
    assert!(stage.foot().contains(told), "{}", stage.foot());
    stage.types("psst\n");
    assert_eq!(stage.done, []);
    let foot = stage.foot();
    assert!(foot.contains("↑ ↓ and Enter answer · Esc leaves it\n› psst\n"), "{foot}");
    assert!(foot.ends_with("\nthe arrows choose, Enter answers"), "{foot}");
    stage.on(Input::Key(Key::Down));
    stage.on(Input::Key(Key::Enter));
    assert_eq!(stage.done, [Effect::Create(agent("nova"))]);
    stage.on(attached("nova"));
    assert_eq!(stage.foot(), "nova › psst\nnova");
}

#[test]
fn what_was_decided_is_told_in_words() {
    for (decision, by, reason, told) in [
        (Choice::AllowOnce, "terminal", None, "allowed once by terminal"),
        (Choice::AllowFile, "rpc", None, "allowed for this file by rpc"),
        (Choice::Deny, "server", Some("cancelled"), "denied: cancelled"),
        (Choice::TimeoutDeny, "server", None, "nobody answered in time"),
    ] {
        assert_eq!(asking::decided(decision, by, reason), told);
    }
}

#[test]
fn what_is_pasted_at_a_question_is_not_chosen_by_its_enter() {
    let mut stage = Stage::with("scout");
    stage.misses("nova");
    stage.now += READ;
    stage.on(Input::Paste("a text".to_owned()));
    stage.on(Input::Key(Key::Enter));
    assert_eq!(stage.done, []);
    assert!(stage.foot().contains("› a text"), "{}", stage.foot());
}
