//! What a person reads of events.

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::choice::Choice;
use crate::code::{Code, ErrorObject};
use crate::event::AskedTool;
use crate::id::ConfirmId;
use crate::message::Usage;

fn event(agent: &str, millis: i64, what: What) -> Event {
    let at = Timestamp::from_millisecond(1_700_000_000_000 + millis).unwrap();
    Event::new(&AgentId::parse(agent).unwrap(), at, what)
}

fn chunk(agent: &str, text: &str) -> Event {
    event(agent, 0, What::ContentChunk { text: text.to_owned(), offset: 0 })
}

fn started(agent: &str, content: &str) -> Event {
    let (content, source) = (Arc::from(content), "cli".to_owned());
    event(agent, 0, What::TurnStarted { content, source, source_agent_id: None })
}

fn completed(agent: &str, content: &str) -> Event {
    let usage = Usage { input_tokens: 10, output_tokens: 2 };
    let finish_reason = "stop".to_owned();
    event(
        agent,
        3_250,
        What::TurnCompleted { content: content.into(), halted: false, finish_reason, usage },
    )
}

fn tool(agent: &str) -> [Event; 2] {
    let (tool_id, name) = ("t1".to_owned(), "read_file".to_owned());
    let params = r#"{"path":"a/rather/long/path/to/some/file.md"}"#.to_owned();
    let begun =
        What::ToolStarted { tool_id: tool_id.clone(), name: name.clone(), params: params.clone() };
    let (error, output) = (Some("there is\nno file".to_owned()), String::new());
    let done = What::ToolCompleted { tool_id, name, params, success: false, error, output };
    [event(agent, 100, begun), event(agent, 1_900, done)]
}

fn seen(width: Option<usize>, events: &[Event]) -> String {
    let mut view = View::new(width, Colours::Off);
    events.iter().map(|event| view.on(event)).collect()
}

#[test]
fn a_turn_reads_from_top_to_bottom() {
    let [begun, done] = tool("scout");
    let mut events =
        vec![started("scout", "Look\naround"), chunk("scout", "I "), chunk("scout", "look.")];
    events.extend([begun, done, chunk("scout", "Noth"), completed("scout", "Nothing")]);
    let expected = "scout: ← cli: Look\n\
        scout: I look.\n\
        scout: → read_file {\"path\":\"a/rather/long/path/to/some/file.md\"}\n\
        scout: ✗ read_file in 1.8 s: there is\n\
        scout: Nothing\n\
        scout: done in 3.2 s, 10 tokens in, 2 out\n";
    assert_eq!(seen(None, &events), expected);
}

#[test]
fn nobody_is_torn_who_speaks_while_others_do() {
    let events = [chunk("a", "one "), chunk("b", "uno "), chunk("b", "due"), chunk("a", "two")];
    assert_eq!(seen(None, &events), "a: one \nb: uno due\na: two");
}

#[test]
fn a_text_that_ends_its_line_leaves_no_empty_one() {
    let events = [chunk("a", "one\n"), chunk("b", "uno\n"), chunk("b", "due")];
    assert_eq!(seen(None, &events), "a: one\nb: uno\ndue");
}

#[test]
fn an_answer_that_is_read_later_is_whole() {
    let events = [started("a", "Hi"), completed("a", "Hello\nyou")];
    let expected = "a: ← cli: Hi\na: Hello\nyou\na: done in 3.2 s, 10 tokens in, 2 out\n";
    assert_eq!(seen(None, &events), expected);
}

#[test]
fn lines_fit_a_narrow_terminal() {
    let [begun, done] = tool("scout");
    let shown = seen(Some(40), &[started("scout", &"long ".repeat(50)), begun, done]);
    assert!(shown.lines().all(|line| line.chars().count() <= 40), "{shown}");
    assert_eq!(shown.lines().nth(1), Some("scout: → read_file {\"path\":\"a/rather/lo…"));
    // Even where there is no room at all.
    seen(Some(1), &[started("scout", "x")]);
}

#[test]
fn what_can_be_answered_is_shown_to_be_copied() {
    let confirm_id = ConfirmId::parse("0123456789abcdef").unwrap();
    let asked = What::ConfirmationRequested {
        confirm_id: confirm_id.clone(),
        tool: AskedTool { name: "write_file".to_owned(), params: json!({}) },
        target: Some("/tmp/x".to_owned()),
        cwd: None,
        timeout_s: 120.0,
        options: vec![Choice::AllowOnce, Choice::Deny],
    };
    let resolved = What::ConfirmationResolved {
        confirm_id,
        decision: Choice::Deny,
        reason: Some("cancelled".to_owned()),
        resolved_by: "server".to_owned(),
        resolved_at: "".into(),
    };
    let expected = "a: ? write_file /tmp/x\n  \
        nexus3 rpc confirm a 0123456789abcdef allow_once|deny\n\
        a: ? deny by server (cancelled)\n";
    assert_eq!(seen(Some(40), &[event("a", 0, asked), event("a", 1, resolved)]), expected);
}

#[test]
fn a_failed_turn_says_why() {
    let error = Some(ErrorObject::new(Code::Outside, "the model is away"));
    let ended = Ended { reason: "provider".to_owned(), error, partial: "So f".to_owned() };
    let events = [started("a", "Hi"), chunk("a", "So "), event("a", 500, What::TurnFailed(ended))];
    let expected = "a: ← cli: Hi\na: So f\na: failed in 0.5 s: the model is away\n";
    assert_eq!(seen(None, &events), expected);
    let ended = Ended { reason: "cancelled".to_owned(), error: None, partial: String::new() };
    assert_eq!(seen(None, &[event("a", 0, What::TurnCancelled(ended))]), "a: cancelled\n");
}

#[test]
fn a_model_cannot_move_the_cursor() {
    let shown = seen(None, &[chunk("a", "\x1b[2Jred\r"), started("a", "\x07bell")]);
    assert_eq!(shown, "a: \u{fffd}[2Jred\u{fffd}\na: ← cli: \u{fffd}bell\n");
}

#[test]
fn colours_are_there_only_where_they_are_wanted() {
    let mut view = View::new(None, Colours::On);
    let [begun, _] = tool("a");
    assert_eq!(view.on(&chunk("a", "x")), "\x1b[1ma\x1b[0m: x");
    assert!(view.on(&begun).starts_with("\n\x1b[1ma\x1b[0m: → read_file"));
    assert_eq!(
        view.on(&event("a", 0, What::ThinkingStarted {})),
        "\x1b[1ma\x1b[0m: \x1b[2mthinks\x1b[0m\n"
    );
}
