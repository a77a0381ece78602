//! Entries as bytes.

use super::*;
use crate::provider::script::{Ask, ScriptUsage, Time};

fn question() -> Question {
    Question {
        agent: "a".to_owned(),
        model: "m".to_owned(),
        messages: 1,
        calls: 2,
        last_message: String::new(),
        digest: 5,
    }
}

fn says(chunks: &[&str]) -> Entry {
    let chunks = chunks.iter().map(|&chunk| chunk.to_owned()).collect();
    Entry { says: Some(Chunks::Many(chunks)), ..Entry::default() }
}

fn faulty(entry: Entry, fault: Fault) -> Answer {
    match Reply::new(&Entry { fault: Some(fault), ..entry }, &question()).opening {
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
    const HEAD: &str = "{\"id\":\"chatcmpl-0000000000000005\",\
                        \"object\":\"chat.completion.chunk\",\"created\":0,\"model\":\"m\",";
    text(answer)
        .split_terminator("\n\n")
        .map(|record| record.strip_prefix("data: ").unwrap().replace(HEAD, "{"))
        .collect()
}

fn ms(number: u64) -> Duration {
    Duration::from_millis(number)
}

#[test]
fn an_entry_becomes_a_stream_of_chunks() {
    let ask = |n| {
        let args = json!({ "n": n }).as_object().unwrap().clone();
        Ask { tool: "echo".to_owned(), args }
    };
    let entry = Entry {
        thinks: Some(Chunks::One("hm".to_owned())),
        asks: vec![ask(1), ask(2)],
        usage: Some(ScriptUsage { input: 7, output: 3 }),
        pause: Some(Time(ms(20))),
        ..says(&["a"])
    };
    let answer = faulty(entry, Fault::default());
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
