//! The envelope, rule by rule.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn id(value: Value) -> Id {
    read_id(value).expect("a well-formed id")
}

fn request(value: Value, method: &str, params: Value) -> Request {
    let Value::Object(params) = params else { panic!("named params") };
    Request { id: id(value), method: method.to_owned(), params: Params::Named(params) }
}

fn invalid(value: Value, why: &str) -> Entry {
    Err(Invalid { id: id(value), why: why.to_owned() })
}

fn one(text: &str) -> Entry {
    match parse(text.as_bytes()) {
        Ok(Body::One(entry)) => entry,
        other => panic!("{other:?}"),
    }
}

fn code(bytes: &[u8]) -> i64 {
    parse(bytes).expect_err("the body is refused whole").code
}

#[test]
fn ids_are_strings_or_64_bit_integers() {
    let m = |id: &str| one(&format!(r#"{{"jsonrpc":"2.0","method":"m","id":{id}}}"#));
    for good in [json!("a"), json!(1), json!(-1), json!(i64::MIN), json!(u64::MAX), Value::Null] {
        assert_eq!(m(&good.to_string()), Ok(request(good, "m", json!({}))));
    }
    let refused = invalid(Value::Null, "`id` must be a string or a 64-bit integer");
    for bad in ["1.5", "true", "[]", "{}", "18446744073709551616", "1e3"] {
        assert_eq!(m(bad), refused, "{bad}");
    }
}

#[test]
fn the_envelope_is_checked_and_unknown_members_are_ignored() {
    let ok = r#"{"jsonrpc":"2.0","id":1,"method":"m","params":null,"extra":[1]}"#;
    assert_eq!(one(ok), Ok(request(json!(1), "m", json!({}))));
    let version = invalid(json!(1), "`jsonrpc` must be \"2.0\"");
    assert_eq!(one(r#"{"id":1,"method":"m"}"#), version);
    assert_eq!(one(r#"{"jsonrpc":2.0,"id":1,"method":"m"}"#), version);
    let method = invalid(json!(1), "`method` must be a non-empty string");
    assert_eq!(one(r#"{"jsonrpc":"2.0","id":1,"method":""}"#), method);
    assert_eq!(one(r#"{"jsonrpc":"2.0","id":1}"#), method);
    let params = invalid(json!(1), "`params` must be an object");
    assert_eq!(one(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":"x"}"#), params);
    let positional = one(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}"#);
    assert_eq!(positional.expect("a request").params, Params::Positional);
    for scalar in ["1", "\"x\"", "null", "true", "-1.5"] {
        assert_eq!(one(scalar), invalid(Value::Null, "it is no JSON object"));
    }
}

#[test]
fn duplicate_keys_are_refused_at_any_depth_with_the_id() {
    let deep = r#"{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":[{"b":1,"b":2}]}}"#;
    assert_eq!(one(deep), invalid(json!(7), "the key \"b\" stands twice in one object"));
    let twice = r#"{"jsonrpc":"2.0","id":7,"id":8,"method":"m"}"#;
    assert_eq!(one(twice), invalid(Value::Null, "the key \"id\" stands twice in one object"));
    let elsewhere = r#"{"jsonrpc":"2.0","id":7,"method":"m","params":{"id":1,"id":2}}"#;
    assert_eq!(one(elsewhere), invalid(json!(7), "the key \"id\" stands twice in one object"));
    let both = r#"{"x":1,"x":1,"jsonrpc":"2.0","id":7,"id":8,"method":"m"}"#;
    assert_eq!(one(both), invalid(Value::Null, "the key \"x\" stands twice in one object"));
    // The same key by another spelling is the same key.
    let escaped = r#"{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":1,"\u0061":2}}"#;
    assert_eq!(one(escaped), invalid(json!(7), "the key \"a\" stands twice in one object"));
}

#[test]
fn what_is_no_json_is_a_parse_error_even_after_a_duplicate_key() {
    for bad in ["", "{", "{} x", "nul", "{\"a\":1,\"a\":2", "[1,]", "\u{feff}{}", "NaN"] {
        assert_eq!(code(bad.as_bytes()), -32700, "{bad:?}");
    }
    assert_eq!(code(b"{\"a\":\"\xff\"}"), -32700);
    assert_eq!(code(br#"{"a":"\ud800"}"#), -32700);
}

#[test]
fn nesting_is_accepted_to_127_and_refused_beyond() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(parse(nested(127).as_bytes()).is_ok());
    assert_eq!(code(nested(128).as_bytes()), -32700);
}

#[test]
fn batches_hold_1_to_64_entries_and_each_is_judged_by_itself() {
    let good = r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#;
    assert_eq!(code(b"[]"), -32600);
    let many = |n: usize| format!("[{}]", vec![good; n].join(","));
    assert_eq!(code(many(65).as_bytes()), -32600);
    assert!(matches!(parse(many(64).as_bytes()), Ok(Body::Batch(entries)) if entries.len() == 64));
    let mixed = format!(r#"[1,{{"id":2,"a":1,"a":1}},{good}]"#);
    let expected = vec![
        invalid(Value::Null, "it is no JSON object"),
        invalid(json!(2), "the key \"a\" stands twice in one object"),
        Ok(request(json!(1), "m", json!({}))),
    ];
    assert_eq!(parse(mixed.as_bytes()), Ok(Body::Batch(expected)));
}

#[test]
fn answers_have_the_members_in_order() {
    let result = serde_json::value::to_raw_value(&json!({"a": 1})).unwrap();
    assert_eq!(
        answer(&id(json!("x")), &Ok(result)),
        r#"{"jsonrpc":"2.0","id":"x","result":{"a":1}}"#
    );
    let error = ErrorObject { code: -32000, message: "m".to_owned(), data: Some(json!({"k": 1})) };
    assert_eq!(
        answer(&Id::Null, &Err(error)),
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"m","data":{"k":1}}}"#
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn any_bytes_are_parsed_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&bytes);
    }

    #[test]
    fn values_survive_the_strict_reader(key in "[a-z]{1,4}", text in "\\PC*", number in any::<i64>()) {
        let params = json!({key: [text, number, null, true, 1.5, {"x": {}}]});
        let body = json!({"jsonrpc": "2.0", "id": number, "method": "m", "params": params});
        prop_assert_eq!(one(&body.to_string()), Ok(request(json!(number), "m", params)));
    }
}
