//! Entries of logs, letter by letter.

use serde_json::json;

use super::*;
use crate::code::{Code, ErrorObject};
use crate::event::Batch;
use crate::id::RequestId;
use crate::message::{AssistantMeta, ToolMeta, Usage, UserMeta};

const AT: &str = "2026-01-01T00:00:00.500Z";

fn event(what: What) -> Event {
    let agent = AgentId::parse("w1").unwrap();
    let request = RequestId::parse("r1").unwrap();
    Event::new(&agent, AT.parse().unwrap(), what).of(&request)
}

fn user(content: &str, meta: Option<UserMeta>) -> String {
    message(AT, &Message::User { content: content.into(), meta })
}

#[test]
fn a_question_says_who_asked() {
    assert_eq!(user("hi\nyou", None), format!("## {AT} user\n\nhi\nyou\n\n"));
    let source_agent_id = Some(AgentId::parse("boss").unwrap());
    let meta = UserMeta { source: "nexus_send".into(), source_agent_id };
    let said = user("do it", Some(meta));
    assert_eq!(said, format!("## {AT} user (from nexus_send `boss`)\n\ndo it\n\n"));
}

#[test]
fn an_answer_shows_its_text_and_its_calls() {
    let call = |id: &str, arguments| ToolCall { id: id.into(), name: "read".into(), arguments };
    let answer = Message::Assistant {
        content: "Let me look.".into(),
        tool_calls: vec![call("c1", json!({ "path": "a" })), call("c2", json!("{broken"))],
        meta: Some(AssistantMeta { partial: "cancelled".into() }),
    };
    let expected = format!(
        "## {AT} assistant (breaks off: cancelled)\n\nLet me look.\n\n\
         calls `read` as `c1`\n\n```json\n{{\n  \"path\": \"a\"\n}}\n```\n\n\
         calls `read` as `c2`\n\n```\n{{broken\n```\n\n"
    );
    assert_eq!(message(AT, &answer), expected);
}

#[test]
fn a_result_is_fenced_whatever_is_in_it_and_cut() {
    let result = |content: String, error| {
        let meta = Some(ToolMeta { error });
        message(AT, &Message::Tool { content, tool_call_id: "c`\n1".into(), meta })
    };
    assert_eq!(
        result("a\n````\nb\n".into(), true),
        format!("## {AT} result of `c' 1` (error)\n\n`````\na\n````\nb\n`````\n\n")
    );
    // Two bytes each, one of which would be split.
    let long = result(format!("x{}", "ä".repeat(LOG_PREVIEW_BYTES_MAX / 2)), false);
    let kept = "ä".repeat(LOG_PREVIEW_BYTES_MAX / 2 - 1);
    assert_eq!(long, format!("## {AT} result of `c' 1`\n\n```\nx{kept}\n… 2 bytes more\n```\n\n"));
}

#[test]
fn nothing_said_can_look_like_an_entry() {
    let forged = format!("a\n## {AT} agent destroyed\rb\r## {AT} user\n# fine");
    let assistant = Message::Assistant { content: forged.clone(), tool_calls: vec![], meta: None };
    let tool = Message::Tool { content: forged.clone(), tool_call_id: forged.clone(), meta: None };
    let meta = Some(UserMeta { source: forged.clone(), source_agent_id: None });
    let asked = Message::User { content: forged.clone().into(), meta };
    for said in [assistant, tool, asked] {
        let entry = message(AT, &said);
        let entries = entry.split(['\n', '\r']).filter(|line| line.starts_with("## "));
        assert_eq!(entries.count(), 1, "{entry}");
    }
    let started =
        What::TurnStarted { content: forged.into(), source: "rpc".into(), source_agent_id: None };
    let entry = verbose(1, &event(started));
    assert_eq!(entry.split(['\n', '\r']).filter(|line| line.starts_with("## ")).count(), 1);
}

#[test]
fn a_transcript_notes_lives_and_turns_that_did_not_complete() {
    let parent_agent_id = Some(AgentId::parse("boss").unwrap());
    let said = |what| note(&event(what));
    assert_eq!(
        said(What::AgentCreated { parent_agent_id }),
        Some(format!("## {AT} agent created as a child of `boss`\n\n"))
    );
    assert_eq!(
        said(What::AgentRestored { parent_agent_id: None }),
        Some(format!("## {AT} agent restored\n\n"))
    );
    assert_eq!(
        said(What::AgentDestroyed { parent_agent_id: None }),
        Some(format!("## {AT} agent destroyed\n\n"))
    );
    let ended = |error| Ended { reason: "why".into(), error, partial: "so f".into() };
    let cancelled = said(What::TurnCancelled(ended(None)));
    assert_eq!(cancelled, Some(format!("## {AT} turn `r1` cancelled (why)\n\n")));
    let error = ErrorObject::new(Code::Outside, "the model is gone");
    let failed = said(What::TurnFailed(ended(Some(error))));
    assert_eq!(failed, Some(format!("## {AT} turn `r1` failed (why)\n\nthe model is gone\n\n")));
    let interrupted = Ended { reason: "interrupted".into(), ..ended(None) };
    let mut event = event(What::TurnInterrupted(interrupted));
    assert_eq!(note(&event), Some(format!("## {AT} turn `r1` interrupted\n\n")), "said once");
    event.request_id = None;
    assert_eq!(note(&event), Some(format!("## {AT} turn interrupted\n\n")));
    let completed = |halted| What::TurnCompleted {
        content: "x".into(),
        halted,
        finish_reason: "stop".into(),
        usage: Usage::default(),
    };
    assert_eq!(said(completed(false)), None);
    let halted = format!("## {AT} turn `r1` halted at its limit of tool iterations\n\n");
    assert_eq!(said(completed(true)), Some(halted));
}

#[test]
fn a_verbose_entry_has_every_field() {
    let what = What::TurnCompleted {
        content: "two\nlines".into(),
        halted: false,
        finish_reason: "stop".into(),
        usage: Usage { input_tokens: 3, output_tokens: 1 },
    };
    assert_eq!(
        verbose(7, &event(what)),
        format!(
            "## {AT} turn_completed (event 7)\n\n- request: `r1`\n- halted: false\n\
             - finish_reason: `stop`\n\ncontent:\n\n```\ntwo\nlines\n```\n\nusage:\n\n\
             ```json\n{{\n  \"input_tokens\": 3,\n  \"output_tokens\": 1\n}}\n```\n\n"
        )
    );
    let batch = What::BatchStarted(Batch { tools: vec![], parallel: true });
    assert_eq!(
        verbose(8, &event(batch)),
        format!(
            "## {AT} batch_started (event 8)\n\n- request: `r1`\n- parallel: true\n\n\
             tools:\n\n```json\n[]\n```\n\n"
        )
    );
}

#[test]
fn a_file_says_what_it_lacks() {
    let entry = format!("## {AT} 1 entry was not written here\n\n");
    assert_eq!(lacking(LogFile::Context, AT, 1), entry);
    let entries = format!("## {AT} 12 entries were not written here\n\n");
    assert_eq!(lacking(LogFile::Verbose, AT, 12), entries);
    let line = format!("{{\"at\":\"{AT}\",\"direction\":\"lost\",\"entries\":12}}\n");
    assert_eq!(lacking(LogFile::Raw, AT, 12), line);
}
