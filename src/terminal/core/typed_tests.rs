//! What becomes of what is typed: text, numbers that answer, words that are completed.

use super::*;

#[test]
fn a_number_in_the_middle_of_a_text_is_no_answer() {
    let mut stage = Stage::with("scout");
    stage.sends("Hello", "r1");
    stage.types("take ");
    stage.asks("r1");
    // However long it takes to write it.
    stage.now += Duration::from_secs(1);
    stage.types("version 1 or 2");
    assert_eq!(stage.done, []);
    assert!(stage.foot().contains("› take version 1 or 2"), "{}", stage.foot());
    stage.now += Duration::from_secs(9);
    stage.types("2");
    assert_eq!(stage.done, [], "however long the pause");
    // No number is shown where none answers.
    assert!(stage.foot().contains("\n    deny it\n  ↑ ↓ and Enter answer"), "{}", stage.foot());
    stage.on(Input::Key(Key::Control('u')));
    assert!(stage.foot().contains("\n  2 deny it\n"), "{}", stage.foot());
    stage.types("2");
    assert_eq!(stage.done.len(), 1, "nothing else can be meant");
}

#[test]
fn all_of_what_is_asked_can_be_seen() {
    let mut stage = Stage::with("scout");
    stage.sends("Hello", "r1");
    let lines: Vec<String> = (1..=99).map(|line| format!("line {line}")).collect();
    let content = lines.join("\n");
    let params = json!({"path": "/srv/a", "content": content, "mode": 1});
    let event = json!({"type": "confirmation_requested", "confirm_id": confirm_id(),
        "tool": {"name": "write_file", "params": params}, "target": "/srv/a", "cwd": "/",
        "timeout_s": 120.0, "options": ["allow_once", "deny"]});
    stage.event("r1", event);
    stage.on(Input::Resized { columns: 40, rows: 12 });
    assert!(stage.foot().contains("more rows: Ctrl-O shows them"), "{}", stage.foot());
    stage.on(Input::Key(Key::Control('o')));
    let first = ["", "  ? write_file with", "  path \"/srv/a\"", "  content", "  │ line 1"];
    assert_eq!(stage.printed[..5], first);
    assert_eq!(stage.printed[102..], ["  │ line 99", "  mode 1"]);
    assert!(stage.foot().contains("write_file needs a confirmation"), "{}", stage.foot());
}

#[test]
fn whoever_leaves_keeps_what_was_said() {
    let mut stage = Stage::with("scout");
    stage.sends("Hello", "r1");
    stage.says("r1", "One, two");
    stage.on(Input::Key(Key::Control('d')));
    assert_eq!((stage.printed, stage.done), (vec!["One, two".to_owned()], vec![Effect::Quit]));
}

#[test]
fn a_pasted_tab_is_sent_and_its_cells_are_counted() {
    let mut stage = Stage::with("scout");
    stage.on(Input::Paste("all:\n\tcc x".to_owned()));
    assert_eq!(stage.foot(), "scout › all:\n            cc x\nscout");
    assert_eq!(stage.core.foot().cursor, (1, 16));
    stage.types("\n");
    let content = "all:\n\tcc x".to_owned();
    assert_eq!(stage.done, [Effect::Send { agent: agent("scout"), content, number: 1 }]);
}

#[test]
fn of_many_messages_that_wait_a_few_are_seen() {
    let mut stage = Stage::with("scout");
    for number in 1..=5 {
        stage.types(&format!("message {number}\n"));
    }
    let waiting = "… message 1\n… message 2\n… message 3\n… and 2 more";
    assert_eq!(stage.foot(), format!("{waiting}\nscout › \nscout"));
}

#[test]
fn what_is_completed_in_a_command_is_one_word() {
    let found = |names: &[&str]| names.iter().map(ToString::to_string).collect();
    for (typed, word, names, expected) in [
        ("/cwd my", "my", &["my dir/"][..], r"/cwd my\ dir/"),
        (r"/cwd my\ d", "my d", &["my dir/"], r"/cwd my\ dir/"),
        (r"/cwd my\ d", "my d", &["my dir/", "my dirs/"], r"/cwd my\ dir"),
        ("see ./m", "./m", &["./my dir/"], "see ./my dir/"),
    ] {
        let mut stage = Stage::with("scout");
        stage.types(typed);
        stage.on(Input::Key(Key::Tab));
        let [Effect::Complete { before, from, word: asked, .. }] = &stage.done[..] else {
            panic!("{:?}", stage.done)
        };
        assert_eq!(asked, word);
        let (before, from) = (before.clone(), *from);
        stage.on(Input::Candidates { before, from, found: found(names) });
        assert_eq!(stage.core.editor.text(), expected);
    }
}

#[test]
fn what_is_sent_to_the_followed_agent_is_a_message_as_any_other() {
    let mut stage = Stage::with("scout");
    stage.types("/send scout Hello,  \"you\"\n");
    let content = "Hello,  \"you\"".to_owned();
    assert_eq!(stage.done, [Effect::Send { agent: agent("scout"), content, number: 1 }]);
    assert_eq!(stage.printed, Vec::<String>::new());
    stage.forget();
    stage.types("/send scout --help\n");
    assert!(matches!(stage.done[..], [Effect::Run { .. }]), "{:?}", stage.done);
}

#[test]
fn what_is_sent_elsewhere_goes_on_until_escape() {
    let mut stage = Stage::with("scout");
    stage.types("/send carl count\n");
    let [Effect::Run { number, .. }] = stage.done[..] else { panic!("{:?}", stage.done) };
    stage.now += Duration::from_secs(3);
    stage.on(Input::Tick);
    let foot = stage.foot();
    assert!(stage.core.is_moving(), "{foot}");
    assert!(foot.contains(" 3.0 s /send carl count · Esc cancels\nscout › "), "{foot}");
    stage.forget();
    // The turn that is seen comes first.
    stage.sends("Hello", "r1");
    assert_eq!(stage.foot().matches("Esc cancels").count(), 1, "{}", stage.foot());
    stage.on(Input::Key(Key::Escape));
    let cancel = Effect::Cancel { agent: agent("scout"), request: Some(request("r1")) };
    assert_eq!(stage.done, [cancel]);
    stage.ended("r1", "turn_cancelled");
    stage.forget();
    stage.on(Input::Key(Key::Escape));
    assert_eq!(stage.done, [Effect::Interrupt(number)]);
    let text = "✗ cancelled".to_owned();
    stage.on(Input::Ran { number: Some(number), text, how: Tone::Bad });
    assert_eq!(stage.foot(), "scout › \nscout");
    assert!(!stage.core.is_moving());
}
