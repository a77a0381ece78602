//! Chunks to events, each sequence compared whole.

use serde_json::json;

use super::*;
use crate::limits::ANSWER_BYTES_MAX;
use crate::provider::ModelEvent::{Finished, Reasoning, Text, ToolCallDelta, ToolCallStarted};
use crate::provider::wire::Answer as _;

/// Feeds the chunks and the closing record.
fn events(chunks: &[Value]) -> Result<Vec<ModelEvent>, AnswerError> {
    let mut answer = Answer::default();
    let mut events = VecDeque::new();
    for chunk in chunks {
        assert_eq!(feed(&mut answer, &chunk.to_string(), &mut events)?, Progress::More);
    }
    assert_eq!(feed(&mut answer, DONE, &mut events)?, Progress::Done);
    answer.end(&mut events)?;
    Ok(events.into())
}

fn feed(
    answer: &mut Answer,
    data: &str,
    events: &mut VecDeque<ModelEvent>,
) -> Result<Progress, AnswerError> {
    let record = Record { event: None, data: data.to_owned() };
    answer.on_record(&record, events)
}

fn delta(delta: &Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn finish(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn calls(calls: &Value) -> Value {
    delta(&json!({ "tool_calls": calls }))
}

fn started(index: usize, id: &str, name: &str) -> ModelEvent {
    ToolCallStarted { index, id: id.to_owned(), name: name.to_owned() }
}

fn arguments(index: usize, arguments: &str) -> ModelEvent {
    ToolCallDelta { index, arguments: arguments.to_owned() }
}

#[test]
fn text_reasoning_and_usage_come_in_order_and_the_finish_last() {
    let chunks = [
        delta(&json!({"role": "assistant", "content": ""})),
        delta(&json!({"reasoning": "Hm", "reasoning_content": "Hm"})),
        delta(&json!({"reasoning_content": "."})),
        delta(&json!({"content": "Hel"})),
        delta(&json!({"content": "lo"})),
        finish("stop"),
        json!({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}}),
    ];
    let expected = vec![
        Reasoning("Hm".to_owned()),
        Reasoning(".".to_owned()),
        Text("Hel".to_owned()),
        Text("lo".to_owned()),
        ModelEvent::Usage(Usage { input_tokens: 7, output_tokens: 2 }),
        Finished(FinishReason::Stop),
    ];
    assert_eq!(events(&chunks), Ok(expected));
}

#[test]
fn tool_calls_are_told_apart_by_their_index() {
    let chunks = [
        calls(&json!([{"index": 0, "id": "a", "function": {"name": "read", "arguments": ""}}])),
        calls(&json!([{"index": 0, "function": {"arguments": "{\"p\":"}}])),
        calls(&json!([{"index": 1, "id": "b", "function": {"name": "list", "arguments": "{}"}}])),
        calls(&json!([{"index": 0, "function": {"arguments": "1}"}}])),
        finish("tool_calls"),
    ];
    let expected = vec![
        started(0, "a", "read"),
        arguments(0, "{\"p\":"),
        started(1, "b", "list"),
        arguments(1, "{}"),
        arguments(0, "1}"),
        Finished(FinishReason::ToolCalls),
    ];
    assert_eq!(events(&chunks), Ok(expected));
}

#[test]
fn missing_and_duplicate_tool_ids_are_replaced_with_our_own() {
    let chunks = [
        calls(&json!([
            {"index": 0, "id": "call_2", "function": {"name": "x"}},
            {"index": 1, "id": "", "function": {"name": "x"}},
            {"index": 2, "id": "call_2", "function": {"name": "x"}},
            {"index": 3, "function": {"name": "x"}},
        ])),
        finish("tool_calls"),
    ];
    let expected = vec![
        started(0, "call_2", "x"),
        started(1, "call_3", "x"),
        started(2, "call_4", "x"),
        started(3, "call_5", "x"),
        Finished(FinishReason::ToolCalls),
    ];
    assert_eq!(events(&chunks), Ok(expected));
}

#[test]
fn calls_under_one_index_are_told_apart_by_their_ids() {
    let chunks = [
        calls(&json!([{"index": 0, "id": "a", "function": {"name": "x", "arguments": "{}"}}])),
        calls(&json!([{"index": 0, "id": "b", "function": {"name": "y", "arguments": "{}"}}])),
        finish("stop"),
    ];
    let expected = vec![
        started(0, "a", "x"),
        arguments(0, "{}"),
        started(1, "b", "y"),
        arguments(1, "{}"),
        Finished(FinishReason::ToolCalls),
    ];
    assert_eq!(events(&chunks), Ok(expected));
}

#[test]
fn calls_without_an_index_begin_with_a_new_id_or_a_name() {
    let chunks = [
        calls(&json!([{"id": "a", "function": {"name": "x", "arguments": {"k": 1}}}])),
        calls(&json!([{"function": {"name": "y", "arguments": "{"}}])),
        calls(&json!([{"function": {"arguments": "}"}}])),
        finish("function_call"),
    ];
    let expected = vec![
        started(0, "a", "x"),
        arguments(0, "{\"k\":1}"),
        started(1, "call_2", "y"),
        arguments(1, "{"),
        arguments(1, "}"),
        Finished(FinishReason::ToolCalls),
    ];
    assert_eq!(events(&chunks), Ok(expected));
}

#[test]
fn a_repeated_name_starts_no_second_call_and_a_late_one_starts_the_first() {
    let chunks = [
        calls(&json!([{"index": 0, "id": "a", "function": {"arguments": "{"}}])),
        calls(&json!([{"index": 0, "id": "a", "function": {"name": "x", "arguments": "}"}}])),
        calls(&json!([{"index": 0, "id": "a", "function": {"name": "x", "arguments": " "}}])),
        finish("tool_calls"),
    ];
    let expected = vec![
        started(0, "a", "x"),
        arguments(0, "{}"),
        arguments(0, " "),
        Finished(FinishReason::ToolCalls),
    ];
    assert_eq!(events(&chunks), Ok(expected));
}

#[test]
fn every_finish_reason_has_its_meaning() {
    let finished = |reason: &str| events(&[finish(reason)]);
    assert_eq!(finished("stop"), Ok(vec![Finished(FinishReason::Stop)]));
    assert_eq!(finished("length"), Ok(vec![Finished(FinishReason::Length)]));
    assert_eq!(finished("eos"), Ok(vec![Finished(FinishReason::Stop)]));
    assert_eq!(finished("tool_calls"), Ok(vec![Finished(FinishReason::Stop)]));
    assert_eq!(finished("content_filter"), Err(AnswerError::ContentFilter));
    assert_eq!(finished(""), Err(AnswerError::NoFinishReason));
}

#[test]
fn a_refusal_is_read_as_text() {
    let chunks = [delta(&json!({"content": null, "refusal": "No."})), finish("stop")];
    let expected = vec![Text("No.".to_owned()), Finished(FinishReason::Stop)];
    assert_eq!(events(&chunks), Ok(expected));
}

#[test]
fn error_objects_are_found_in_every_form() {
    let error = |message: &str, kind: Option<&str>, status| {
        Err(AnswerError::ErrorObject(ErrorObject {
            message: Some(message.to_owned()),
            kind: kind.map(str::to_owned),
            status,
        }))
    };
    let openai = json!({"error": {"message": "m", "type": "server_error", "code": null}});
    assert_eq!(events(&[openai]), error("m", Some("server_error"), None));
    let openrouter = json!({"error": {"code": 502, "message": "m"}, "choices": []});
    assert_eq!(events(&[openrouter]), error("m", None, Some(502)));
    let plain = json!({"error": "m"});
    assert_eq!(events(&[plain]), error("m", None, None));
    let vllm = json!({"object": "error", "message": "m", "code": 400});
    assert_eq!(events(&[vllm]), error("m", None, Some(400)));
    let named = Record {
        event: Some("error".to_owned()),
        data: json!({"message": "m", "code": "overloaded"}).to_string(),
    };
    let outcome = Answer::default().on_record(&named, &mut VecDeque::new());
    assert_eq!(outcome.map(|_| Vec::new()), error("m", None, None));
}

#[test]
fn what_is_no_chunk_is_bad_json() {
    for data in ["{", "nonsense", "[]", "{\"choices\": 1}"] {
        let outcome = feed(&mut Answer::default(), data, &mut VecDeque::new());
        assert_eq!(outcome, Err(AnswerError::BadJson), "{data}");
    }
}

#[test]
fn a_call_that_never_gets_a_name_is_refused() {
    let chunks = [
        calls(&json!([{"index": 0, "id": "a", "function": {"arguments": "{}"}}])),
        finish("tool_calls"),
    ];
    assert_eq!(events(&chunks), Err(AnswerError::NamelessCall));
}

#[test]
fn an_answer_cannot_outgrow_its_bounds() {
    let half = "x".repeat(ANSWER_BYTES_MAX / 2);
    let chunk = delta(&json!({ "content": half }));
    assert!(events(&[chunk.clone(), chunk.clone(), finish("stop")]).is_ok());
    let one_more = delta(&json!({"content": "x"}));
    assert_eq!(events(&[chunk.clone(), chunk, one_more]), Err(AnswerError::TooLarge));

    let call = |index| json!({"index": index, "function": {"name": "x"}});
    let most: Vec<Value> = (0..TOOL_CALLS_PER_MESSAGE_MAX).map(call).collect();
    assert!(events(&[calls(&json!(most)), finish("tool_calls")]).is_ok());
    let too_many: Vec<Value> = (0..=TOOL_CALLS_PER_MESSAGE_MAX).map(call).collect();
    assert_eq!(events(&[calls(&json!(too_many))]), Err(AnswerError::TooManyCalls));
}
