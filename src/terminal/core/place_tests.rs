//! With whom the terminal talks after something went wrong, and what becomes of what was on its way.

use super::*;

fn back_to_scout() -> Effect {
    Effect::Attach { agent: agent("scout"), how: Attach::After { seq: 7, seen: 0 } }
}

#[test]
fn whoever_does_not_want_a_missing_agent_is_where_they_were() {
    for leaves in ['2', '\u{1b}'] {
        let mut stage = Stage::with("scout");
        stage.types("/agent nova\n");
        stage.on(Input::NotThere { agent: agent("nova"), restorable: false });
        stage.forget();
        stage.now += Duration::from_secs(1);
        let key = if leaves == '2' { Key::Char('2') } else { Key::Escape };
        stage.on(Input::Key(key));
        assert_eq!(stage.done, [back_to_scout()]);
        stage.on(attached("scout"));
        assert_eq!(stage.foot(), "scout › \nscout");
    }
}

#[test]
fn an_agent_that_cannot_be_followed_is_told_and_the_one_before_is_back() {
    let mut stage = Stage::with("scout");
    stage.types("/whisper lead\n");
    stage.forget();
    let failed = |name: &str| Input::NotAttached { agent: agent(name), error: "no".to_owned() };
    // What comes late of another attempt is nobody's.
    stage.on(failed("nova"));
    assert_eq!((stage.printed.len(), stage.done.len()), (0, 0));
    stage.on(failed("lead"));
    assert_eq!(stage.printed, ["✗ cannot talk to lead: no"]);
    assert_eq!(stage.done, [back_to_scout()]);
    stage.on(attached("scout"));
    assert_eq!(stage.foot(), "scout › \nscout");
}

#[test]
fn nothing_is_over_but_the_agent_that_is_followed() {
    let mut stage = Stage::with("scout");
    stage.types("/agent lead\n");
    stage.on(Input::StreamOver(None));
    assert_eq!(stage.foot(), "› \nlooking for lead");
}

#[test]
fn a_question_about_an_agent_keeps_nobody_from_leaving() {
    let mut stage = Stage::with("scout");
    stage.types("/agent nova\n");
    stage.on(Input::NotThere { agent: agent("nova"), restorable: false });
    stage.forget();
    stage.on(Input::Key(Key::Control('d')));
    assert_eq!(stage.done, [Effect::Quit]);
}

#[test]
fn a_message_that_did_not_reach_an_agent_is_told_to_who_has_left_it() {
    let mut stage = Stage::with("scout");
    stage.types("Hello\n/agent lead\n");
    stage.on(attached("lead"));
    stage.forget();
    assert_eq!(stage.foot(), "lead › \nlead");
    stage.on(Input::NotSent { number: 1, error: "queue full".to_owned() });
    assert_eq!(stage.printed, ["✗ not sent to scout: queue full"]);
    assert_eq!(stage.foot(), "lead › \nlead");
}

#[test]
fn escape_puts_aside_what_another_turn_waits_for() {
    let mut stage = Stage::with("scout");
    stage.on(Input::Surveyed { cursor: 7, waiting: Vec::new() });
    stage.sends("Hello", "r1");
    stage.asks("r1");
    // It is the own turn's, but this is not the place where that runs.
    stage.now += Duration::from_secs(1);
    stage.on(Input::Key(Key::Down));
    stage.core.change_to(agent("lead"), None, Attach::IfThere);
    stage.on(attached("lead"));
    assert!(stage.foot().contains("scout: exec needs a confirmation"), "{}", stage.foot());
    stage.forget();
    stage.on(Input::Key(Key::Escape));
    assert_eq!(stage.done, []);
    assert!(stage.foot().contains("⚠ Ctrl-Y: scout: exec waits"), "{}", stage.foot());
    stage.types("Hi\n");
    let content = "Hi".to_owned();
    assert_eq!(stage.done, [Effect::Send { agent: agent("lead"), content, number: 2 }]);
}

#[test]
fn what_others_ask_is_heard_again_when_the_server_is_back() {
    let mut stage = Stage::with("scout");
    stage.on(Input::Lost("reset".to_owned()));
    stage.on(Input::Unwatched(None));
    stage.forget();
    stage.on(Input::Back);
    assert_eq!(stage.done, [Effect::Refresh(agent("scout")), Effect::Survey]);
}

#[test]
fn calls_are_left_out_only_where_there_are_some() {
    let tools = json!([{"tool_id": "1", "name": "exec"}, {"tool_id": "2", "name": "exec"}]);
    let batch = |kind: &str| json!({"type": kind, "tools": tools, "parallel": false});
    for (done, told) in [(1, 0), (0, 1)] {
        let mut stage = Stage::with("scout");
        stage.sends("Hello", "r1");
        stage.event("r1", batch("batch_started"));
        for _ in 0..done {
            let call = json!({"type": "tool_completed", "tool_id": "1", "name": "exec",
                "params": "{}", "success": true, "error": null, "output": ""});
            stage.event("r1", call);
        }
        stage.asks("r1");
        let denied = json!({"type": "confirmation_resolved", "confirm_id": confirm_id(),
            "decision": "deny", "resolved_by": "rpc", "resolved_at": "2026-01-01T00:00:01Z"});
        stage.event("r1", denied);
        stage.event("r1", batch("batch_halted"));
        let left_out = stage.printed.iter().filter(|line| line.contains("left out"));
        assert_eq!(left_out.count(), told);
    }
}

/// An agent that works.
fn summary() -> serde_json::Value {
    json!({"agent_id": "scout", "is_temp": false, "created_at": "2026-01-01T00:00:00Z",
        "message_count": 0, "should_shutdown": false, "parent_agent_id": null, "child_count": 0,
        "depth": 0, "model": "demo", "permission_level": "sandboxed", "preset": "sandboxed",
        "cwd": "/home/ann/work/tree", "write_paths": [], "status": "idle",
        "active_request_id": null, "queued": 0, "halted_at_iteration_limit": false,
        "last_action_at": null, "tokens": {"total": 1096, "budget": 131_072}})
}

fn refreshed(summary: &serde_json::Value) -> Input {
    Input::Refreshed(Box::new(serde_json::from_value(summary.clone()).unwrap()))
}

#[test]
fn a_narrow_status_tells_the_level_and_the_end_of_the_directory() {
    for (columns, told) in [
        (80, "scout · demo · 1096 of 131k tokens · sandboxed · /home/ann/work/tree"),
        (50, "scout · demo · 1096/131k · sandboxed · …/tree"),
        (41, "scout · demo · 1096 · sandboxed · …/tree"),
        (40, "scout · de… · 1096 · sandboxed · …/tree"),
        (35, "scout · d… · 1096 · sandboxed · …e"),
        (20, "scout · d… · 1096 …"),
    ] {
        let mut stage = Stage::with("scout");
        stage.on(Input::Resized { columns, rows: 12 });
        stage.on(refreshed(&summary()));
        assert_eq!(stage.foot(), format!("scout › \n{told}"));
    }
    let mut known = summary();
    known["model"] = json!("default");
    known["permission_level"] = json!("trusted");
    known["cwd"] = json!("/home/ann/project");
    known["tokens"]["total"] = json!(4923);
    let mut stage = Stage::with("scout");
    stage.on(Input::Resized { columns: 40, rows: 12 });
    stage.on(refreshed(&known));
    assert_eq!(stage.foot(), "scout › \nscout · d… · 4923 · trusted · …/project");
}

#[test]
fn a_renamed_agent_has_its_new_name_at_once() {
    let mut stage = Stage::with("scout");
    stage.on(refreshed(&summary()));
    let what = json!({"type": "agent_updated", "parent_agent_id": null, "changed": {},
        "previous_agent_id": "scout"});
    let what: What = serde_json::from_value(what).unwrap();
    let at = "2026-01-01T00:00:00Z".parse().unwrap();
    stage.on(Input::Event(Box::new(Event::new(&agent("notes"), at, what))));
    assert!(stage.foot().contains("notes › \nnotes · demo"), "{}", stage.foot());
}

#[test]
fn a_turn_that_somebody_comes_back_to_has_gone_on() {
    let mut stage = Stage::with("scout");
    stage.on(Input::Surveyed { cursor: 7, waiting: Vec::new() });
    stage.sends("Count", "r1");
    stage.started_elsewhere("scout", "r1", None);
    stage.types("/agent lead\n");
    stage.on(attached("lead"));
    stage.now += Duration::from_secs(5);
    stage.types("/agent scout\n");
    let mut running = summary();
    running["status"] = json!("running");
    running["active_request_id"] = json!("r1");
    let Input::Attached(mut back) = attached("scout") else { panic!("it is not attached") };
    back.summary = Some(serde_json::from_value(running).unwrap());
    stage.on(Input::Attached(back));
    assert!(stage.foot().contains(" 5.2 s working"), "{}", stage.foot());
    // What is told late of a turn says how long it had gone on by then.
    let mut late = Stage::with("scout");
    late.started("r2", "Count", "rpc");
    let what = json!({"type": "content_chunk", "text": "One", "offset": 0});
    let what: What = serde_json::from_value(what).unwrap();
    let at = "2026-01-01T00:00:09Z".parse().unwrap();
    let said = Event::new(&agent("scout"), at, what).of(&request("r2"));
    late.on(Input::Event(Box::new(said)));
    assert!(late.foot().contains(" 9.0 s working"), "{}", late.foot());
}
