//! What the terminal does about what comes: lines that are printed, calls that are made.

use serde_json::json;

use super::*;
use crate::event::What;
use crate::limits::CONFIRM_ID_HEX;
use crate::terminal::choose::Size;

#[path = "asking_tests.rs"]
mod asking_tests;
#[path = "elsewhere_tests.rs"]
mod elsewhere_tests;
#[path = "place_tests.rs"]
mod place_tests;
#[path = "typed_tests.rs"]
mod typed_tests;

const ALERT: &str = "⚠ Ctrl-Y: exec waits for a confirmation";
const SIZE: Size = Size { columns: 80, rows: 24 };

/// A terminal that was told things, and all that it printed and did since.
struct Stage {
    core: Core,
    now: Duration,
    printed: Vec<String>,
    done: Vec<Effect>,
    remembered: Vec<String>,
}

fn agent(name: &str) -> AgentId {
    AgentId::parse(name).unwrap()
}

fn request(name: &str) -> RequestId {
    RequestId::parse(name).unwrap()
}

fn confirm_id() -> ConfirmId {
    ConfirmId::parse(&"c".repeat(CONFIRM_ID_HEX)).unwrap()
}

fn attached(name: &str) -> Input {
    Input::Attached(Box::new(Attached {
        agent: agent(name),
        cursor: 7,
        messages: Vec::new(),
        total: 0,
        missed: 0,
        seen: 0,
        summary: None,
        confirmations: Vec::new(),
    }))
}

impl Stage {
    fn with(name: &str) -> Self {
        let mut core = Core::new(SIZE.columns, SIZE.rows, Feed::Short);
        core.begin(agent(name), Attach::IfThere);
        let mut stage = Self {
            core,
            now: Duration::ZERO,
            printed: Vec::new(),
            done: Vec::new(),
            remembered: Vec::new(),
        };
        stage.on(attached(name));
        stage.forget();
        stage
    }

    fn on(&mut self, input: Input) {
        self.now += Duration::from_millis(10);
        for effect in self.core.on(self.now, input) {
            match effect {
                Effect::Print(lines) => self.printed.extend(lines.iter().map(Line::text)),
                Effect::Remember(text) => self.remembered.push(text),
                effect => self.done.push(effect),
            }
        }
    }

    fn forget(&mut self) {
        self.printed.clear();
        self.done.clear();
    }

    fn types(&mut self, text: &str) {
        for c in text.chars() {
            self.on(Input::Key(if c == '\n' { Key::Enter } else { Key::Char(c) }));
        }
    }

    fn event(&mut self, of: &str, event: serde_json::Value) {
        let what: What = serde_json::from_value(event).unwrap();
        let at = "2026-01-01T00:00:00Z".parse().unwrap();
        let event = Event::new(&agent("scout"), at, what).of(&request(of));
        self.on(Input::Event(Box::new(event)));
    }

    fn started(&mut self, of: &str, content: &str, source: &str) {
        let event = json!({"type": "turn_started", "content": content, "source": source,
            "source_agent_id": null});
        self.event(of, event);
    }

    fn says(&mut self, of: &str, text: &str) {
        self.event(of, json!({"type": "content_chunk", "text": text, "offset": 0}));
    }

    fn asks(&mut self, of: &str) {
        let event = json!({"type": "confirmation_requested", "confirm_id": confirm_id(),
            "tool": {"name": "exec", "params": {"program": "date"}}, "target": "date", "cwd": "/",
            "timeout_s": 120.0, "options": ["allow_once", "deny"]});
        self.event(of, event);
    }

    fn ended(&mut self, of: &str, how: &str) {
        let event = match how {
            "turn_completed" => json!({"type": how, "content": "Hi!", "halted": false,
                "finish_reason": "stop", "usage": {"input_tokens": 1, "output_tokens": 1}}),
            _ => json!({"type": how, "reason": how.trim_start_matches("turn_"), "error": null,
                "partial": ""}),
        };
        self.event(of, event);
    }

    /// A message that was typed here and has its turn.
    fn sends(&mut self, text: &str, of: &str) {
        self.types(&format!("{text}\n"));
        let number = self.core.next_number - 1;
        self.on(Input::Named { number, request: request(of) });
        self.started(of, text, "terminal");
        self.forget();
    }

    fn foot(&self) -> String {
        self.core.foot().text()
    }
}

#[test]
fn a_message_is_shown_when_its_turn_begins() {
    let mut stage = Stage::with("scout");
    stage.types("Hello\n");
    let content = "Hello".to_owned();
    assert_eq!(stage.done, [Effect::Send { agent: agent("scout"), content, number: 1 }]);
    assert_eq!(stage.printed, Vec::<String>::new());
    assert_eq!(stage.foot(), "… Hello\nscout › \nscout");
    stage.on(Input::Named { number: 1, request: request("r1") });
    stage.started("r1", "Hello", "terminal");
    assert_eq!(stage.printed, ["", "› Hello"]);
    stage.says("r1", "Hi");
    assert!(stage.foot().starts_with("Hi\n⠋ 0.0 s working"), "{}", stage.foot());
    stage.ended("r1", "turn_completed");
    assert_eq!(stage.printed, ["", "› Hello", "Hi!"]);
    assert_eq!(stage.foot(), "scout › \nscout");
}

#[test]
fn a_turn_that_others_started_says_who_did() {
    let mut stage = Stage::with("scout");
    stage.types("half a li");
    stage.started("r9", "do it", "rpc");
    assert_eq!(stage.printed, ["", "rpc › do it"]);
    assert!(stage.foot().ends_with("scout › half a li\nscout"), "{}", stage.foot());
}

#[test]
fn whatever_ends_a_turn_ends_its_spinner() {
    for how in ["turn_completed", "turn_cancelled", "turn_failed", "turn_interrupted"] {
        let mut stage = Stage::with("scout");
        stage.sends("Hello", "r1");
        assert!(stage.core.is_moving());
        stage.ended("r1", how);
        assert!(!stage.core.is_moving(), "{how}");
        assert_eq!(stage.foot(), "scout › \nscout", "{how}");
    }
    let mut stage = Stage::with("scout");
    stage.sends("Hello", "r1");
    stage.on(Input::StreamOver(None));
    assert!(!stage.core.is_moving());
}

#[test]
fn how_far_a_call_is_stands_beside_it() {
    let mut stage = Stage::with("scout");
    stage.sends("Hello", "r1");
    let call = json!({"type": "tool_started", "tool_id": "1", "name": "dig", "params": "{}"});
    stage.event("r1", call);
    assert!(stage.foot().contains("s dig {}"), "{}", stage.foot());
    for (progress, total, message, told) in [
        (3.0, Some(4.0), Some("deep"), "s dig 75 % deep · {}"),
        (9.0, Some(4.0), None, "s dig 100 % · {}"),
        (2.5, None, None, "s dig 2.5 · {} · Esc cancels"),
    ] {
        let far = json!({"type": "tool_progress", "tool_id": "1", "name": "dig",
            "progress": progress, "total": total, "message": message});
        stage.event("r1", far);
        assert!(stage.foot().contains(told), "{}", stage.foot());
    }
}

#[test]
fn escape_cancels_the_turn_and_keeps_what_is_typed() {
    let mut stage = Stage::with("scout");
    stage.sends("Hello", "r1");
    stage.types("next");
    stage.on(Input::Key(Key::Escape));
    let cancel = Effect::Cancel { agent: agent("scout"), request: Some(request("r1")) };
    assert_eq!(stage.done, [cancel]);
    assert!(stage.foot().contains("› next"));
}

#[test]
fn a_question_of_the_own_turn_is_asked_at_once() {
    let mut stage = Stage::with("scout");
    stage.sends("Hello", "r1");
    stage.types("next");
    stage.asks("r1");
    assert!(stage.foot().contains("exec needs a confirmation"), "{}", stage.foot());
    // Whoever was typing has not answered.
    stage.types("1");
    assert_eq!(stage.done, []);
    stage.now += Duration::from_secs(1);
    stage.on(Input::Key(Key::Up));
    stage.on(Input::Key(Key::Enter));
    let confirm_id = confirm_id();
    let agent = agent("scout");
    assert_eq!(stage.done, [Effect::Confirm { agent, confirm_id, decision: Choice::Deny }]);
    assert!(!stage.foot().contains("needs a confirmation"));
    assert!(stage.foot().contains("› next1"));
}

#[test]
fn a_question_of_others_waits_until_nothing_is_typed() {
    let mut stage = Stage::with("scout");
    stage.types("x");
    stage.started("r9", "do it", "rpc");
    stage.asks("r9");
    assert!(stage.foot().contains(ALERT), "{}", stage.foot());
    stage.on(Input::Key(Key::Backspace));
    assert!(stage.foot().contains("exec needs a confirmation"), "{}", stage.foot());
    // Whoever was about to type a number has not answered.
    stage.types("1");
    assert_eq!(stage.done, []);
    assert!(stage.foot().contains(ALERT), "{}", stage.foot());
    // It can be answered all the same.
    stage.on(Input::Key(Key::Control('y')));
    stage.now += Duration::from_secs(1);
    stage.on(Input::Key(Key::Up));
    stage.on(Input::Key(Key::Enter));
    let (agent, confirm_id) = (agent("scout"), confirm_id());
    assert_eq!(stage.done, [Effect::Confirm { agent, confirm_id, decision: Choice::Deny }]);
    assert!(stage.foot().contains("› 1"), "{}", stage.foot());
}

#[test]
fn a_question_that_was_answered_elsewhere_goes_away() {
    let mut stage = Stage::with("scout");
    stage.sends("Hello", "r1");
    stage.asks("r1");
    stage.event(
        "r1",
        json!({"type": "confirmation_resolved", "confirm_id": confirm_id(), "decision": "allow_once",
            "resolved_by": "rpc", "resolved_at": "2026-01-01T00:00:01Z"}),
    );
    assert_eq!(stage.printed, ["  ? exec date: allowed once by rpc"]);
    assert!(!stage.foot().contains("confirmation"), "{}", stage.foot());
    stage.types("1");
    assert_eq!(stage.done, []);
}

#[test]
fn a_turn_that_ends_takes_its_questions_along() {
    let mut stage = Stage::with("scout");
    stage.sends("Hello", "r1");
    stage.asks("r1");
    stage.ended("r1", "turn_cancelled");
    assert_eq!(stage.foot(), "scout › \nscout");
}

#[test]
fn whispering_goes_to_the_other_and_back_by_the_cursor() {
    let mut stage = Stage::with("scout");
    stage.types("/whisper lead\n");
    let (lead, scout) = (agent("lead"), agent("scout"));
    let attach = Effect::Attach { agent: lead.clone(), how: Attach::IfThere };
    assert_eq!(stage.done, [Effect::Leave, attach]);
    stage.on(attached("lead"));
    assert!(stage.foot().starts_with("scout ⇢ lead ›"), "{}", stage.foot());
    stage.forget();
    stage.types("psst\n");
    let content = "psst".to_owned();
    assert_eq!(stage.done, [Effect::Send { agent: lead, content, number: 1 }]);
    stage.forget();
    stage.types("/over\n");
    let attach = Effect::Attach { agent: scout, how: Attach::After { seq: 7, seen: 0 } };
    assert_eq!(stage.done, [Effect::Leave, attach]);
}

#[test]
fn an_agent_that_is_not_there_can_be_created() {
    let mut stage = Stage::with("scout");
    stage.types("/agent nova\n");
    stage.on(Input::NotThere { agent: agent("nova"), restorable: false });
    stage.forget();
    assert!(stage.foot().contains("nova is not there"), "{}", stage.foot());
    stage.now += Duration::from_secs(1);
    stage.types("1");
    assert_eq!(stage.done, [Effect::Create(agent("nova"))]);
    stage.on(attached("nova"));
    assert!(stage.foot().contains("nova ›"), "{}", stage.foot());
}

#[test]
fn a_message_that_was_not_sent_can_be_sent_again() {
    let mut stage = Stage::with("scout");
    stage.types("Hello\n");
    stage.on(Input::NotSent { number: 1, error: "queue full".to_owned() });
    assert_eq!(stage.printed, ["✗ not sent: queue full"]);
    assert_eq!(stage.foot(), "scout › Hello\nscout");
}

#[test]
fn the_second_interrupt_leaves() {
    let mut stage = Stage::with("scout");
    stage.types("draft");
    stage.on(Input::Key(Key::Control('c')));
    assert_eq!(stage.foot(), "scout › \nCtrl-C again leaves");
    stage.now += LEAVE_WITHIN * 2;
    stage.on(Input::Tick);
    // What is not true any more is not said any more.
    assert_eq!(stage.foot(), "scout › \nscout");
    stage.on(Input::Key(Key::Control('c')));
    assert_eq!(stage.done, []);
    stage.on(Input::Key(Key::Control('c')));
    assert_eq!(stage.done, [Effect::Quit]);
}

#[test]
fn nothing_moves_while_the_server_is_away() {
    let mut stage = Stage::with("scout");
    stage.sends("Hello", "r1");
    stage.on(Input::Lost("reset".to_owned()));
    assert!(!stage.core.is_moving());
    assert_eq!(stage.foot(), "scout › \nno server · trying again");
    stage.on(Input::Back);
    assert!(stage.core.is_moving() && stage.foot().contains("working"), "{}", stage.foot());
}

#[test]
fn a_lost_server_is_told_once() {
    let mut stage = Stage::with("scout");
    for _ in 0..3 {
        stage.on(Input::Lost("reset".to_owned()));
    }
    assert_eq!(stage.printed, ["lost the server (reset); trying again"]);
    assert!(stage.foot().ends_with("no server · trying again"));
    stage.on(Input::Back);
    stage.on(Input::Back);
    assert_eq!(stage.printed[1..], ["the server is there again"]);
}

#[test]
fn commands_are_completed_and_near_ones_are_meant() {
    let mut stage = Stage::with("scout");
    stage.types("/sta");
    stage.on(Input::Key(Key::Tab));
    assert_eq!(stage.core.editor.text(), "/status ");
    stage.on(Input::Key(Key::Control('u')));
    stage.types("/c");
    stage.on(Input::Key(Key::Tab));
    assert!(stage.foot().contains("cancel  clear  clone  compact  create  cwd"));
    stage.types("reat\n");
    assert_eq!(stage.printed, ["✗ there is no command /creat; did you mean /create?"]);
}

#[test]
fn arguments_are_completed_with_what_they_are() {
    let mut stage = Stage::with("scout");
    for (typed, wanted) in [
        ("/agent sc", Some((Takes::Agent, "sc"))),
        ("/create sc", None),
        ("/create sc --preset tr", Some((Takes::Preset, "tr"))),
        ("/create sc --system-prompt tr", None),
        ("/cwd /t", Some((Takes::Path, "/t"))),
        ("see src/l", Some((Takes::Path, "src/l"))),
        ("see nothing", None),
    ] {
        stage.forget();
        stage.types(typed);
        stage.on(Input::Key(Key::Tab));
        let asked = stage.done.iter().map(|done| match done {
            Effect::Complete { takes, word, .. } => (*takes, word.as_str()),
            other => panic!("{other:?}"),
        });
        assert_eq!(asked.collect::<Vec<_>>(), Vec::from_iter(wanted), "{typed}");
        stage.on(Input::Key(Key::Control('u')));
    }
}

#[test]
fn nothing_of_an_agent_is_shown_after_another_was_chosen() {
    let mut stage = Stage::with("scout");
    stage.sends("Hello", "r1");
    stage.asks("r1");
    stage.now += Duration::from_secs(1);
    stage.types("/agent lead");
    stage.on(Input::Key(Key::Down));
    stage.on(Input::Key(Key::Enter));
    stage.types("\n");
    assert!(!stage.core.is_moving());
    assert_eq!(stage.foot(), "› \nlooking for lead");
    // What comes late of the attempt before is nobody's.
    stage.on(attached("scout"));
    assert_eq!(stage.foot(), "› \nlooking for lead");
}

#[test]
fn what_is_typed_is_kept_and_what_was_typed_comes_back() {
    let mut stage = Stage::with("scout");
    stage.types("Hello\n");
    stage.types(" secret\n");
    assert_eq!(stage.remembered, ["Hello"]);
    stage.on(Input::Recalled(vec!["older".to_owned(), "old".to_owned()]));
    for text in [" secret", "Hello", "old", "older", "older"] {
        stage.on(Input::Key(Key::Up));
        assert_eq!(stage.core.editor.text(), text);
    }
    for _ in 0..2 {
        stage.on(Input::Kept(Some("the disk is full".to_owned())));
    }
    assert_eq!(stage.printed, ["✗ what is typed here is not kept: the disk is full"]);
}

#[test]
fn what_was_said_before_is_shown_with_as_much_as_is_wanted() {
    let messages = json!([
        {"index": 4, "role": "user", "content": "Look", "meta": {"source": "rpc"}},
        {"index": 5, "role": "assistant", "content": "",
            "tool_calls": [{"id": "1", "name": "echo", "arguments": {"a": 1}}]},
        {"index": 6, "role": "tool", "content": "1", "tool_call_id": "1"},
        {"index": 7, "role": "assistant", "content": "Done."},
    ]);
    for (feed, expected) in [
        (Feed::Short, &["", "rpc › Look", "  → echo {\"a\":1}", "  ← 1", "Done."][..]),
        (Feed::Off, &["", "rpc › Look", "Done."]),
    ] {
        let mut stage = Stage::with("scout");
        stage.core.feed = feed;
        stage.core.attach(agent("scout"), Attach::Bring);
        stage.on(Input::Attached(Box::new(Attached {
            agent: agent("scout"),
            cursor: 7,
            messages: serde_json::from_value(messages.clone()).unwrap(),
            total: 8,
            missed: 2,
            seen: 0,
            summary: None,
            confirmations: Vec::new(),
        })));
        let (first, rest) = stage.printed.split_at(3);
        assert_eq!(first, ["", "── scout ──", "… 4 earlier messages: /messages"]);
        let (said, last) = rest.split_at(rest.len() - 1);
        assert_eq!(said, expected);
        assert_eq!(last, ["… up to 2 that came meanwhile are not here: /messages"]);
    }
}
