//! The tool loop: calls run, results go back to the model, and the loop has an end.

use nexus3::config::{PresetConfig, ToolConfig};
use nexus3::message::{Message, ToolMeta};
use nexus3::policy::ceiling::Yolo;
use nexus3::rpc::method::SendResult;
use serde_json::{Value, json};

use crate::agents_support::{
    Stage, completed, ended, error_with, outcome, refused, request, request_id, tools_but, usage,
};

/// The last messages of a request to the model, from the assistant's on.
fn since_answer(request: &Value) -> Vec<Value> {
    let messages = request["messages"].as_array().expect("there are messages");
    let at = messages.iter().rposition(|message| message["role"] == "assistant");
    messages[at.expect("the model has answered")..].to_vec()
}

fn results(messages: &[Message]) -> Vec<(&str, &str, bool)> {
    let results = messages.iter().filter_map(|message| match message {
        Message::Tool { content, tool_call_id, meta } => {
            let failed = *meta == Some(ToolMeta { error: true });
            Some((tool_call_id.as_str(), content.as_str(), failed))
        }
        Message::User { .. } | Message::Assistant { .. } => None,
    });
    results.collect()
}

fn unknown(tool: &str) -> String {
    format!("Unknown tool: {tool}. Tools you have: {}.", tools_but(&[]).join(", "))
}

fn echo(text: &str) -> String {
    json!({"message": text}).to_string()
}

#[tokio::test]
async fn results_go_back_to_the_model_and_texts_are_joined() {
    let mut stage = Stage::new().await;
    let a = stage.agent("a", "worker").await;
    let sent = stage.sending(&a, request("r1", "go"));
    let mut call = stage.model.asked_by("a").await;
    call.says("Look: ").await;
    call.calls(&[("c1", "echo", &echo("x"))]).await;
    let call = stage.model.asked_by("a").await;
    let function = json!({"name": "echo", "arguments": echo("x").replace(' ', "")});
    assert_eq!(
        since_answer(&call.request),
        [
            json!({
                "role": "assistant",
                "content": "Look: ",
                "tool_calls": [{"id": "c1", "type": "function", "function": function}],
            }),
            json!({"role": "tool", "tool_call_id": "c1", "content": "x"}),
        ]
    );
    call.answers("done.").await;
    assert_eq!(ended(sent).await, completed("r1", "Look: done.", 2));
    let shown = serde_json::to_value(stage.messages(&a).await).unwrap();
    assert_eq!(
        shown.as_array().unwrap()[1..],
        [
            json!({
                "role": "assistant",
                "content": "Look: ",
                "tool_calls": [{"id": "c1", "name": "echo", "arguments": {"message": "x"}}],
            }),
            json!({"role": "tool", "content": "x", "tool_call_id": "c1"}),
            json!({"role": "assistant", "content": "done."}),
        ]
    );
    assert_eq!(stage.get_context(&a).await.unwrap().last_iteration_count, 2);
}

#[tokio::test]
async fn calls_one_after_another_stop_at_the_first_failure() {
    let mut stage = Stage::new().await;
    let a = stage.agent("a", "worker").await;
    let sent = stage.sending(&a, request("r1", "go"));
    let (one, three) = (echo("1"), echo("3"));
    let calls = [("c1", "echo", one.as_str()), ("c2", "fly", "{}"), ("c3", "echo", &three)];
    stage.model.asked_by("a").await.calls(&calls).await;
    stage.model.asked_by("a").await.answers("ok").await;
    ended(sent).await;
    let unknown = unknown("fly");
    let expected = [
        ("c1", "1", false),
        ("c2", unknown.as_str(), true),
        ("c3", "Not run: an earlier tool call of this message failed.", true),
    ];
    assert_eq!(results(&stage.messages(&a).await), expected);
}

#[tokio::test]
async fn calls_together_all_run_and_keep_their_order() {
    let mut stage = Stage::new().await;
    let a = stage.agent("a", "worker").await;
    let sent = stage.sending(&a, request("r1", "go"));
    let two = json!({"message": "2", "_parallel": true}).to_string();
    let three = echo("3");
    let calls = [("c1", "fly", "{}"), ("c2", "echo", two.as_str()), ("c3", "echo", &three)];
    stage.model.asked_by("a").await.calls(&calls).await;
    stage.model.asked_by("a").await.answers("ok").await;
    ended(sent).await;
    let unknown = unknown("fly");
    let expected = [("c1", unknown.as_str(), true), ("c2", "2", false), ("c3", "3", false)];
    assert_eq!(results(&stage.messages(&a).await), expected);
}

#[tokio::test]
async fn malformed_arguments_are_told_to_the_model() {
    let mut stage = Stage::new().await;
    let a = stage.agent("a", "worker").await;
    // The model calls every call by the same id; sent back, each has its own.
    for (id, arguments, told) in [
        ("c1", "{oops", "The arguments of echo must be one JSON object."),
        ("c1_2", "[1]", "The arguments of echo must be one JSON object."),
        ("c1_3", "", "Invalid arguments for echo: `message` is missing, it must be a string."),
        (
            "c1_4",
            r#"{"message": 1}"#,
            "Invalid arguments for echo: `message` must be a string, not 1.",
        ),
        (
            "c1_5",
            r#"{"message": "x", "loud": true}"#,
            "Invalid arguments for echo: there is no argument `loud`, there are: message.",
        ),
    ] {
        let sent = stage.sending(&a, crate::agents_support::says("go"));
        stage.model.asked_by("a").await.calls(&[("c1", "echo", arguments)]).await;
        let call = stage.model.asked_by("a").await;
        let last = since_answer(&call.request).pop();
        let expected = json!({"role": "tool", "tool_call_id": id, "content": told});
        assert_eq!(last, Some(expected), "{arguments}");
        call.answers("ok").await;
        ended(sent).await;
    }
    let shown = serde_json::to_value(stage.messages(&a).await).unwrap();
    assert_eq!(shown[1]["tool_calls"][0]["arguments"], "{oops", "raw where it is no object");
}

#[tokio::test]
async fn the_loop_ends_at_its_limit_and_the_next_send_goes_on() {
    let mut stage = Stage::with(Yolo::Refused, |config| config.max_tool_iterations = 2).await;
    let a = stage.agent("a", "worker").await;
    let sent = stage.sending(&a, request("r1", "go"));
    for text in ["one ", "two "] {
        let mut call = stage.model.asked_by("a").await;
        call.says(text).await;
        call.calls(&[("c1", "echo", &echo("x"))]).await;
    }
    let halted = SendResult::Completed {
        content: "one two ".to_owned(),
        request_id: request_id("r1"),
        halted_at_iteration_limit: true,
        finish_reason: "iteration_limit".to_owned(),
        usage: usage(2),
    };
    assert_eq!(ended(sent).await, halted);
    assert!(stage.entry(&a).await.halted_at_iteration_limit);
    let context = stage.get_context(&a).await.unwrap();
    assert!(context.halted_at_iteration_limit);
    assert_eq!((context.last_iteration_count, context.max_tool_iterations), (2, 2));
    let sent = stage.sending(&a, request("r2", "go on"));
    let call = stage.model.asked_by("a").await;
    assert_eq!(
        since_answer(&call.request)[1..],
        [
            json!({"role": "tool", "tool_call_id": "c1_2", "content": "x"}),
            json!({"role": "user", "content": "go on"}),
        ]
    );
    call.answers("three").await;
    assert_eq!(ended(sent).await, completed("r2", "three", 1));
    assert!(!stage.entry(&a).await.halted_at_iteration_limit);
}

#[tokio::test]
async fn an_empty_answer_is_asked_for_once_more() {
    let mut stage = Stage::new().await;
    let a = stage.agent("a", "worker").await;
    let sent = stage.sending(&a, request("r1", "one"));
    stage.model.asked_by("a").await.stops().await;
    stage.model.asked_by("a").await.answers("1").await;
    assert_eq!(ended(sent).await, completed("r1", "1", 2));
    let sent = stage.sending(&a, request("r2", "two"));
    stage.model.asked_by("a").await.stops().await;
    stage.model.asked_by("a").await.stops().await;
    let data = json!({"kind": "provider", "fault": "empty", "retryable": true, "attempts": 2});
    let failure = error_with(-32000, "the model gave an empty answer, twice", data);
    assert_eq!(refused(outcome(sent).await), failure);
    let kept: Vec<Value> = stage
        .messages(&a)
        .await
        .iter()
        .map(|message| serde_json::to_value(message).unwrap()["content"].clone())
        .collect();
    assert_eq!(kept, ["one", "1", "two"], "no empty message is kept");
}

#[tokio::test]
async fn a_tool_that_takes_too_long_is_stopped_and_the_turn_goes_on() {
    let own = ToolConfig { enabled: None, allowed_paths: None, timeout: Some(0.02) };
    let hasty = PresetConfig {
        extends: "worker".to_owned(),
        description: None,
        allowed_paths: None,
        blocked_paths: Vec::new(),
        tools: [("sleep".to_owned(), own)].into(),
    };
    let mut stage = Stage::with(Yolo::Refused, |config| {
        config.skill_timeout = 0.01;
        config.permissions.presets.insert("hasty".to_owned(), hasty);
    })
    .await;
    for (preset, seconds) in [("worker", "0.01"), ("hasty", "0.02")] {
        let agent = stage.agent(preset, preset).await;
        let sent = stage.sending(&agent, request("r1", "go"));
        let calls = [("c1", "sleep", r#"{"seconds": 3600}"#)];
        stage.model.asked_by(preset).await.calls(&calls).await;
        stage.model.asked_by(preset).await.answers("ok").await;
        assert_eq!(ended(sent).await, completed("r1", "ok", 2));
        let told = format!(
            "sleep did not end within {seconds} seconds and was stopped: whether it had an effect \
             is not known."
        );
        assert_eq!(results(&stage.messages(&agent).await), [("c1", told.as_str(), true)]);
    }
}
