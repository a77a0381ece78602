//! Secrets in bodies: whole, escaped, masked, cut off, and in pieces.

use serde_json::json;

use super::*;
use crate::config::{ProviderConfig, ProviderKind};

const KEY: &str = "sk-canary-0123456789";
const HEADER: &str = "https://secret.example/\"x\"";

fn redactor() -> Redactor {
    let mut config = ProviderConfig::of(ProviderKind::Vllm);
    config.headers = [
        ("x-secret".to_owned(), HEADER.into()),
        ("x-short".to_owned(), "short".into()),
        ("x-agent".to_owned(), "team-of-mine/${agent_id}".into()),
    ]
    .into();
    let mut redactor = Redactor::default();
    redactor.hide_all(&config, None);
    redactor.hide_key(KEY);
    redactor
}

fn record(content: &str) -> Value {
    json!({ "choices": [{ "index": 0, "delta": { "content": content } }] })
}

#[test]
fn whole_secrets_are_hidden_and_nothing_else_is() {
    let token = format!("nxk_{}", "0af9".repeat(16));
    let text = format!("a {KEY}, {HEADER} {token}. short nxk_ https://x.y team-of-mine/w1");
    assert_eq!(
        redactor().scrub_text(&text),
        "a [redacted], [redacted] [redacted]. short nxk_ https://x.y [redacted]w1"
    );
}

#[test]
fn masked_escaped_and_cut_off_secrets_are_hidden() {
    let escaped = Value::from(HEADER).to_string();
    let text = format!("<sk-canary-***789> {escaped} {}", &HEADER[..12]);
    assert_eq!(redactor().scrub_text(&text), "<[redacted]> \"[redacted]\" [redacted]");
    assert_eq!(redactor().scrub_text("begins sk-canar"), "begins [redacted]");
}

#[test]
fn names_and_nested_texts_of_a_document_are_searched() {
    let document = json!({ (KEY): [1, { "a": format!("x{KEY}") }], "b": null });
    assert_eq!(
        redactor().scrub_value(document),
        json!({ "[redacted]": [1, { "a": "x[redacted]" }], "b": null })
    );
}

#[test]
fn a_secret_spelt_out_over_records_is_hidden_at_every_split() {
    let text = format!("it is {KEY} ok");
    for pieces in [1, 2, 3, 5, 8] {
        let chars: Vec<char> = text.chars().collect();
        let pieces = chars.chunks(pieces).map(|piece| piece.iter().collect::<String>());
        let mut records: Vec<Value> = pieces.map(|piece| record(&piece)).collect();
        let count = records.len();
        redactor().scrub_records(&mut records);
        let content = |record: &Value| {
            record["choices"][0]["delta"]["content"].as_str().expect("it was text").to_owned()
        };
        assert_eq!(records.iter().map(content).collect::<String>(), "it is [redacted] ok");
        assert_eq!(records.len(), count, "the records stay as they were cut");
    }
}

#[test]
fn calls_that_take_turns_in_a_stream_are_told_apart() {
    let call = |index: u64, arguments: &str| json!({ "tool_calls": [{ "index": index, "arguments": arguments }] });
    let mut records = [call(0, "sk-cana"), call(1, "x"), call(0, "ry-0123456789"), call(1, "y")];
    redactor().scrub_records(&mut records);
    assert_eq!(records, [call(0, "[redacted]"), call(1, "x"), call(0, ""), call(1, "y")]);
}
