//! Records to events, each sequence compared whole.

use serde_json::json;

use super::*;
use crate::provider::ModelEvent::{Finished, Reasoning, Text, ToolCallDelta, ToolCallStarted};
use crate::provider::error_object::ErrorObject;
use crate::provider::wire::Answer as _;

fn events(records: &[Value]) -> Result<Vec<ModelEvent>, AnswerError> {
    let mut answer = Answer::default();
    let mut events = VecDeque::new();
    for record in records {
        assert_eq!(feed(&mut answer, record, &mut events)?, Progress::More);
    }
    assert_eq!(feed(&mut answer, &json!({"type": "message_stop"}), &mut events)?, Progress::Done);
    answer.end(&mut events)?;
    Ok(events.into())
}

fn feed(
    answer: &mut Answer,
    record: &Value,
    events: &mut VecDeque<ModelEvent>,
) -> Result<Progress, AnswerError> {
    let event = record["type"].as_str().map(str::to_owned);
    answer.on_record(&Record { event, data: record.to_string() }, events)
}

fn block(index: u64, block: &Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: u64, delta: &Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn stop(index: u64) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

fn text(text: &str) -> Value {
    delta(0, &json!({"type": "text_delta", "text": text}))
}

fn call(index: u64, id: &Value, input: &Value) -> Value {
    block(index, &json!({"type": "tool_use", "id": id, "name": "read", "input": input}))
}

fn arguments(index: u64, json: &str) -> Value {
    delta(index, &json!({"type": "input_json_delta", "partial_json": json}))
}

fn finish(reason: &str) -> Value {
    json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null},
           "usage": {"output_tokens": 5}})
}

fn started(index: usize, id: &str) -> ModelEvent {
    ToolCallStarted { index, id: id.to_owned(), name: "read".to_owned() }
}

fn piece(index: usize, arguments: &str) -> ModelEvent {
    ToolCallDelta { index, arguments: arguments.to_owned() }
}

fn used(input_tokens: u64, output_tokens: u64) -> ModelEvent {
    ModelEvent::Usage(Usage { input_tokens, output_tokens })
}

#[test]
fn thoughts_text_and_usage_come_in_order_and_the_finish_last() {
    let start = json!({"type": "message_start", "message": {"id": "m", "usage": {
        "input_tokens": 3, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 100,
        "output_tokens": 1}}});
    let records = [
        start,
        json!({"type": "ping"}),
        block(0, &json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, &json!({"type": "thinking_delta", "thinking": "Hm."})),
        delta(0, &json!({"type": "signature_delta", "signature": "abc"})),
        stop(0),
        block(1, &json!({"type": "text", "text": ""})),
        text("Hel"),
        text("lo"),
        stop(1),
        json!({"type": "something_new", "more": true}),
        finish("end_turn"),
    ];
    let expected = vec![
        Reasoning("Hm.".to_owned()),
        Text("Hel".to_owned()),
        Text("lo".to_owned()),
        used(123, 5),
        Finished(FinishReason::Stop),
    ];
    assert_eq!(events(&records), Ok(expected));
}

#[test]
fn calls_get_their_arguments_by_their_blocks_and_ids_of_their_own() {
    let records = [
        call(1, &json!("toolu_1"), &json!({})),
        arguments(1, ""),
        arguments(1, "{\"path\":"),
        call(2, &json!("toolu_1"), &json!({"path": "b"})),
        arguments(1, "\"a\"}"),
        stop(1),
        stop(2),
        call(3, &Value::Null, &Value::Null),
        stop(3),
        call(4, &json!("d"), &json!({"path": "d"})),
        finish("tool_use"),
    ];
    let expected = vec![
        started(0, "toolu_1"),
        piece(0, "{\"path\":"),
        started(1, "call_2"),
        piece(0, "\"a\"}"),
        piece(1, "{\"path\":\"b\"}"),
        started(2, "call_3"),
        started(3, "d"),
        piece(3, "{\"path\":\"d\"}"),
        used(0, 5),
        Finished(FinishReason::ToolCalls),
    ];
    assert_eq!(events(&records), Ok(expected));
}

#[test]
fn every_stop_reason_is_understood() {
    let finished = |reason: &str| {
        let ended = events(&[block(0, &json!({"type": "text", "text": "a"})), finish(reason)])?;
        Ok(ended.last().cloned())
    };
    for (reason, expected) in [
        ("end_turn", FinishReason::Stop),
        ("stop_sequence", FinishReason::Stop),
        ("tool_use", FinishReason::Stop),
        ("max_tokens", FinishReason::Length),
        ("model_context_window_exceeded", FinishReason::Length),
    ] {
        assert_eq!(finished(reason), Ok(Some(Finished(expected))), "{reason}");
    }
    assert_eq!(finished("refusal"), Err(AnswerError::ContentFilter));
    assert_eq!(finished(""), Err(AnswerError::NoFinishReason));
}

#[test]
fn what_is_wrong_is_told_apart() {
    let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}});
    let expected = AnswerError::ErrorObject(ErrorObject {
        message: Some("busy".to_owned()),
        kind: Some("overloaded_error".to_owned()),
        status: Some(529),
    });
    assert_eq!(events(&[error]), Err(expected));
    let record = Record { event: Some("error".to_owned()), data: r#"{"error": "odd"}"#.to_owned() };
    let odd = Answer::default().on_record(&record, &mut VecDeque::new());
    assert!(matches!(odd, Err(AnswerError::ErrorObject(_))), "{odd:?}");
    assert_eq!(events(&[]), Err(AnswerError::NoFinishReason));
    assert_eq!(events(&[json!({"no": "type"})]), Err(AnswerError::BadJson));
    let nameless = block(0, &json!({"type": "tool_use", "id": "a", "name": ""}));
    assert_eq!(events(&[nameless]), Err(AnswerError::NamelessCall));
    let many: Vec<_> = (0..=TOOL_CALLS_PER_MESSAGE_MAX as u64)
        .map(|index| call(index, &Value::Null, &Value::Null))
        .collect();
    assert_eq!(events(&many), Err(AnswerError::TooManyCalls));
}
