//! Entries as bytes.

use serde_json::{Value, json};

use super::*;
use crate::provider::script::{Ask, ScriptUsage, Time};

fn question(wire: Wire) -> Question {
    Question {
        wire,
        agent: "a".to_owned(),
        model: "m".to_owned(),
        messages: 1,
        calls: 2,
        last_message: String::new(),
        delivery: Delivery::Stream,
        body: Bytes::new(),
    }
}

fn says(chunks: &[&str]) -> Entry {
    let chunks = chunks.iter().map(|&chunk| chunk.to_owned()).collect();
    Entry { says: Some(Chunks::Many(chunks)), ..Entry::default() }
}

fn faulty(entry: Entry, fault: Fault) -> Answer {
    answer(Wire::Openai, entry, fault)
}

fn answer(wire: Wire, entry: Entry, fault: Fault) -> Answer {
    match Reply::new(&Entry { fault: Some(fault), ..entry }, &question(wire)).opening {
        Opening::Answer(answer) => answer,
        other @ (Opening::Closes | Opening::Silence) => panic!("{other:?}"),
    }
}

fn text(answer: &Answer) -> String {
    let bytes: Vec<&[u8]> = answer.pieces.iter().map(|piece| piece.bytes.as_ref()).collect();
    String::from_utf8(bytes.concat()).unwrap()
}

/// The records of a body, without what all of them have.
fn records(answer: &Answer) -> Vec<String> {
    const HEAD: &str = "{\"id\":\"chatcmpl-dedf9f982e43402d\",\
                        \"object\":\"chat.completion.chunk\",\"created\":0,\"model\":\"m\",";
    text(answer)
        .split_terminator("\n\n")
        .map(|record| record.strip_prefix("data: ").unwrap().replace(HEAD, "{"))
        .collect()
}

/// The records of a body of messages: what each is called, and its data.
fn events(answer: &Answer) -> Vec<(String, Value)> {
    let record = |record: &str| {
        let (event, data) = record.split_once("\ndata: ").unwrap();
        let data = serde_json::from_str(data).unwrap_or_else(|_| data.into());
        (event.strip_prefix("event: ").unwrap().to_owned(), data)
    };
    text(answer).split_terminator("\n\n").map(record).collect()
}

fn ms(number: u64) -> Duration {
    Duration::from_millis(number)
}

/// Thinks, says "a" and asks for two tools.
fn full() -> Entry {
    let ask = |n| {
        let args = json!({ "n": n }).as_object().unwrap().clone();
        Ask { tool: "echo".to_owned(), args, args_json: None }
    };
    Entry {
        thinks: Some(Chunks::One("hm".to_owned())),
        asks: vec![ask(1), ask(2)],
        usage: Some(ScriptUsage { input: 7, output: 3 }),
        pause: Some(Time(ms(20))),
        ..says(&["a"])
    }
}

#[test]
fn an_entry_becomes_a_stream_of_chunks() {
    let answer = faulty(full(), Fault::default());
    let call = |index, id: &str, n| {
        format!(
            "{{\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{{\"index\":{index},\
             \"id\":\"{id}\",\"type\":\"function\",\"function\":{{\"name\":\"echo\",\
             \"arguments\":\"{{\\\"n\\\":{n}}}\"}}}}]}},\"finish_reason\":null}}]}}"
        )
    };
    let expected = [
        r#"{"choices":[{"index":0,"delta":{"reasoning":"hm","role":"assistant"},"finish_reason":null}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}"#,
        &call(0, "call_3", 1),
        &call(1, "call_4", 2),
        r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}}"#,
        "[DONE]",
    ];
    assert_eq!(records(&answer), expected);
    let waits: Vec<Duration> = answer.pieces.iter().map(|piece| piece.wait).collect();
    assert_eq!(waits, [0, 20, 20, 20, 0, 0, 0].map(ms));
    assert_eq!((answer.status, answer.end), (StatusCode::OK, End::Whole));
}

#[test]
fn an_entry_becomes_a_stream_of_blocks() {
    let entry = Entry { says: Some(Chunks::Many(vec!["a".to_owned(), "b".to_owned()])), ..full() };
    let answer = answer(Wire::Anthropic, entry, Fault::default());
    let start = |index, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let delta = |index, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let stop = |index| json!({"type": "content_block_stop", "index": index});
    let tool = |id: &str| json!({"type": "tool_use", "id": id, "name": "echo", "input": {}});
    let input = |json: &str| json!({"type": "input_json_delta", "partial_json": json});
    let expected = [
        json!({"type": "message_start", "message": {
            "id": "msg_dedf9f982e43402d", "type": "message", "role": "assistant", "model": "m",
            "content": [], "stop_reason": null, "stop_sequence": null,
            "usage": {"input_tokens": 7, "output_tokens": 0},
        }}),
        json!({"type": "ping"}),
        start(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": "hm"})),
        delta(0, json!({"type": "signature_delta", "signature": "c2NyaXB0ZWQ="})),
        stop(0),
        start(1, json!({"type": "text", "text": ""})),
        delta(1, json!({"type": "text_delta", "text": "a"})),
        delta(1, json!({"type": "text_delta", "text": "b"})),
        stop(1),
        start(2, tool("call_3")),
        delta(2, input(r#"{"n":1}"#)),
        stop(2),
        start(3, tool("call_4")),
        delta(3, input(r#"{"n":2}"#)),
        stop(3),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": null},
            "usage": {"output_tokens": 3}}),
        json!({"type": "message_stop"}),
    ];
    let found = events(&answer);
    assert!(found.iter().all(|(event, data)| data["type"] == *event), "{found:?}");
    assert_eq!(found.into_iter().map(|(_, data)| data).collect::<Vec<_>>(), expected);
    let waits: Vec<Duration> = answer.pieces.iter().map(|piece| piece.wait).collect();
    assert_eq!(waits, [0, 0, 0, 20, 20, 20, 20, 0, 0].map(ms), "a chunk is one write");
}

#[test]
fn an_answer_ends_for_a_reason_in_the_words_of_its_wire() {
    let entry = |finish: Option<&str>| Entry { finish: finish.map(str::to_owned), ..says(&["a"]) };
    let reason = |entry| {
        let found = events(&answer(Wire::Anthropic, entry, Fault::default()));
        found[found.len() - 2].1["delta"]["stop_reason"].as_str().unwrap().to_owned()
    };
    for (finish, expected) in [
        (None, "end_turn"),
        (Some("stop"), "end_turn"),
        (Some("tool_calls"), "tool_use"),
        (Some("length"), "max_tokens"),
        (Some("content_filter"), "refusal"),
        (Some("pause_turn"), "pause_turn"),
    ] {
        assert_eq!(reason(entry(finish)), expected);
    }
    assert_eq!(reason(full()), "tool_use");
}

#[test]
fn faults_of_messages_come_after_the_last_block() {
    let none = Fault::default;
    let error = json!({"type": "error",
        "error": {"type": "api_error", "message": "scripted fault"}});
    for (fault, expected) in [
        (Fault { error_in_stream: true, ..none() }, Some(("error", error))),
        (Fault { bad_json: true, ..none() }, Some(("content_block_delta", "{\"type\": ".into()))),
        (Fault { eof_without_finish: true, ..none() }, None),
    ] {
        let found = events(&answer(Wire::Anthropic, says(&["a"]), fault));
        let stop =
            ("content_block_stop".to_owned(), json!({"type": "content_block_stop", "index": 0}));
        assert_eq!(found[4], stop);
        let last = found.get(5).map(|(event, data)| (event.as_str(), data.clone()));
        assert_eq!(last, expected);
        assert!(found.len() <= 6, "nothing follows: {found:?}");
    }
    let ids = |fault| {
        let found = events(&answer(Wire::Anthropic, full(), fault));
        let ids = found.iter().filter_map(|(_, data)| data["content_block"]["id"].as_str());
        let json = found.iter().filter_map(|(_, data)| data["delta"]["partial_json"].as_str());
        (ids.map(str::to_owned).collect(), json.map(str::to_owned).collect())
    };
    let (same, _): (Vec<_>, Vec<_>) = ids(Fault { duplicate_tool_ids: true, ..none() });
    assert_eq!(same, ["call_3", "call_3"]);
    let (none_at_all, _): (Vec<String>, Vec<_>) = ids(Fault { missing_tool_ids: true, ..none() });
    assert!(none_at_all.is_empty(), "{none_at_all:?}");
    let (_, bad): (Vec<_>, Vec<_>) = ids(Fault { bad_arguments: true, ..none() });
    assert_eq!(bad, [BAD_ARGUMENTS, BAD_ARGUMENTS]);
}

#[test]
fn a_status_has_the_error_of_its_wire() {
    for (status, kind) in [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (422, "invalid_request_error"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (503, "api_error"),
        (529, "overloaded_error"),
    ] {
        let fault = Fault { status: Some(status), ..Fault::default() };
        let answer = answer(Wire::Anthropic, says(&["a"]), fault);
        assert_eq!(answer.status, status);
        let body: Value = serde_json::from_str(&text(&answer)).unwrap();
        let error = json!({"type": kind, "message": "scripted fault"});
        assert_eq!(body, json!({"type": "error", "error": error}));
    }
}

#[test]
fn a_cut_comes_after_so_many_chunks_and_before_the_finish() {
    let stall = |chunks| Fault { stall: Some(Stall::Chunks(chunks)), ..Fault::default() };
    let reset = |chunks| Fault { reset_after: Some(chunks), ..Fault::default() };
    let outcome = |fault| {
        let answer = faulty(says(&["a", "b"]), fault);
        (answer.pieces.len(), answer.end)
    };
    assert_eq!(outcome(stall(0)), (0, End::Silence));
    assert_eq!(outcome(stall(1)), (1, End::Silence));
    assert_eq!(outcome(stall(9)), (2, End::Silence));
    assert_eq!(outcome(reset(1)), (1, End::Breaks));
    assert_eq!(outcome(reset(u64::MAX)), (2, End::Breaks));
    assert_eq!(outcome(Fault { reset_after: Some(1), ..stall(2) }), (1, End::Breaks));
    assert_eq!(outcome(Fault { reset_after: Some(1), ..stall(1) }), (1, End::Silence));
    assert_eq!(outcome(Fault::default()), (4, End::Whole));
    let of_messages = |fault| {
        let answer = answer(Wire::Anthropic, says(&["a", "b"]), fault);
        (answer.pieces.len(), answer.end)
    };
    assert_eq!(of_messages(stall(0)), (2, End::Silence), "the head of the answer is no chunk");
    assert_eq!(of_messages(reset(1)), (3, End::Breaks));
    assert_eq!(of_messages(Fault::default()), (6, End::Whole));
}

#[test]
fn split_and_drip_cut_the_same_bytes() {
    let entry = Entry { pause: Some(Time(ms(20))), ..says(&["é", "b"]) };
    let whole = faulty(entry.clone(), Fault::default());
    let split = faulty(entry.clone(), Fault { split: Some(7), ..Fault::default() });
    assert_eq!(text(&split), text(&whole));
    assert!(split.pieces.iter().all(|piece| (1..=7).contains(&piece.bytes.len())));
    let waits = split.pieces.iter().filter(|piece| !piece.wait.is_zero()).count();
    assert_eq!(waits, 1, "the pause stays where it was");

    let drip = faulty(entry, Fault { drip: Some(Time(ms(2))), ..Fault::default() });
    assert_eq!(text(&drip), text(&whole));
    assert_eq!(drip.pieces.len(), text(&whole).len());
    let time: Duration = drip.pieces.iter().map(|piece| piece.wait).sum();
    assert_eq!(time, ms(2) * u32::try_from(drip.pieces.len()).unwrap() + ms(20));
}

#[test]
fn a_status_comes_with_its_retry_after_in_whole_seconds() {
    for (time, header) in [(2000, "2"), (1001, "2"), (0, "0")] {
        let retry_after = Some(Time(ms(time)));
        let answer =
            faulty(says(&["a"]), Fault { status: Some(429), retry_after, ..Fault::default() });
        assert_eq!(answer.status, StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(answer.headers[RETRY_AFTER], header);
        assert_eq!(
            text(&answer),
            r#"{"error":{"message":"scripted fault","type":"script_error","param":null,"code":null}}"#
        );
    }
}

/// The answer to who does not ask for a stream, and what comes after it.
fn document(wire: Wire, entry: Entry, fault: Fault) -> (StatusCode, Value, End) {
    let question = Question { delivery: Delivery::Document, ..question(wire) };
    match Reply::new(&Entry { fault: Some(fault), ..entry }, &question).opening {
        Opening::Answer(answer) => {
            assert_eq!(answer.headers[CONTENT_TYPE], "application/json");
            let body = serde_json::from_str(&text(&answer)).unwrap_or_default();
            (answer.status, body, answer.end)
        }
        other @ (Opening::Closes | Opening::Silence) => panic!("{other:?}"),
    }
}

#[test]
fn who_asks_for_no_stream_gets_one_document() {
    let args = serde_json::Map::from_iter([("n".to_owned(), 1.into())]);
    let entry = Entry {
        thinks: Some(Chunks::One("Hm.".to_owned())),
        asks: vec![Ask { tool: "t".to_owned(), args, args_json: None }],
        usage: Some(ScriptUsage { input: 3, output: 4 }),
        ..says(&["Hel", "lo"])
    };
    let (status, body, end) = document(Wire::Openai, entry.clone(), Fault::default());
    assert_eq!((status, end), (StatusCode::OK, End::Whole));
    let function = json!({"name": "t", "arguments": "{\"n\":1}"});
    let message = json!({
        "role": "assistant",
        "content": "Hello",
        "reasoning": "Hm.",
        "tool_calls": [{"id": "call_3", "type": "function", "function": function}],
    });
    assert_eq!(body["object"], "chat.completion");
    let choice = json!({"index": 0, "message": message, "finish_reason": "tool_calls"});
    assert_eq!(body["choices"], json!([choice]));
    assert_eq!(body["usage"]["total_tokens"], 7);
    let (_, body, _) = document(Wire::Anthropic, entry, Fault::default());
    assert_eq!(
        body["content"],
        json!([
            {"type": "thinking", "thinking": "Hm.", "signature": "c2NyaXB0ZWQ="},
            {"type": "text", "text": "Hello"},
            {"type": "tool_use", "name": "t", "input": {"n": 1}, "id": "call_3"},
        ])
    );
    assert_eq!(
        (&body["stop_reason"], &body["usage"]["output_tokens"]),
        (&"tool_use".into(), &4.into())
    );
}

#[test]
fn a_fault_of_a_stream_is_one_of_a_document() {
    let faulty = |fault| document(Wire::Openai, says(&["a", "b"]), fault);
    let reset = Fault { reset_after: Some(1), ..Fault::default() };
    assert_eq!(faulty(reset), (StatusCode::OK, Value::Null, End::Breaks));
    let stall = Fault { stall: Some(Stall::Chunks(1)), ..Fault::default() };
    assert_eq!(faulty(stall), (StatusCode::OK, Value::Null, End::Silence));
    let garbage = Fault { bad_json: true, ..Fault::default() };
    assert_eq!(faulty(garbage), (StatusCode::OK, Value::Null, End::Whole));
    let cut = Fault { eof_without_finish: true, ..Fault::default() };
    assert_eq!(faulty(cut), (StatusCode::OK, Value::Null, End::Breaks));
    let error = Fault { error_in_stream: true, ..Fault::default() };
    let (status, body, end) = faulty(error);
    assert_eq!((status, end), (StatusCode::INTERNAL_SERVER_ERROR, End::Whole));
    assert_eq!(body["error"]["message"], COMPLAINT);
}
