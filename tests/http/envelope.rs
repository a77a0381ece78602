//! The envelope of JSON-RPC, rule by rule, and the text of the answers.

use serde_json::{Value, json};

use super::support::server::Running;
use super::{refusal, start, start_with_agent};

async fn told(server: &Running, path: &str, body: impl Into<Vec<u8>>) -> (u16, Value) {
    server.connect().await.exchange(&server.post(path, body)).await.told()
}

/// What a request gets that is none, with the id that could be read.
fn invalid(id: &Value, why: &str) -> (u16, Value) {
    let error = json!({"code": -32600, "message": format!("Invalid request: {why}")});
    (400, json!({"jsonrpc": "2.0", "id": id, "error": error}))
}

fn nested(depth: usize) -> String {
    format!("{}{}", "[".repeat(depth), "]".repeat(depth))
}

#[tokio::test]
async fn ids_come_back_as_they_were_given() {
    let server = start().await;
    let ids =
        ["1", "0", "-1", "9223372036854775807", "-9223372036854775808", "18446744073709551615"];
    for id in ids.into_iter().chain([r#""""#, r#""a\"\u00e9\n""#, r#""1""#]) {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"list_agents"}}"#);
        let id: Value = serde_json::from_str(id).expect("ids are JSON");
        let expected = json!({"jsonrpc": "2.0", "id": id, "result": {"agents": []}});
        assert_eq!(told(&server, "/rpc", body).await, (200, expected));
    }
    for id in ["1.5", "1e2", "true", "[]", "{}", "18446744073709551616", "-9223372036854775809"] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"list_agents"}}"#);
        let expected = invalid(&Value::Null, "`id` must be a string or a 64-bit integer");
        assert_eq!(told(&server, "/rpc", body).await, expected, "{id}");
    }
}

#[tokio::test]
async fn a_notification_gets_204_whatever_becomes_of_it() {
    let server = start_with_agent().await;
    let table = [
        ("/rpc", json!({"method": "list_agents"})),
        ("/rpc", json!({"method": "list_agents", "id": null})),
        ("/rpc", json!({"method": "fly"})),
        ("/rpc", json!({"method": "create_agent", "params": {"agent_id": "a"}})),
        ("/rpc", json!({"method": "create_agent", "params": [1]})),
        ("/rpc", json!({"method": "create_agent", "params": {"unknown": 1}})),
        ("/agent/a", json!({"method": "send", "params": {"content": ""}})),
        // A turn of an hour is not waited for.
        (
            "/agent/a",
            json!({"method": "send", "params": {"content": "call sleep {\"seconds\":3600}"}}),
        ),
    ];
    for (path, mut body) in table {
        body["jsonrpc"] = json!("2.0");
        let mut client = server.connect().await;
        let answer = client.exchange(&server.post(path, body.to_string())).await;
        assert_eq!((answer.status, answer.body.as_str()), (204, ""), "{body}");
        let again = client.exchange(&server.post(path, body.to_string())).await;
        assert_eq!(again.status, 204, "the connection lives on");
    }
    let created = json!({"jsonrpc": "2.0", "method": "create_agent", "params": {"agent_id": "b"}});
    server.connect().await.exchange(&server.post("/rpc", created.to_string())).await;
    let context = server.call("/agent/b", "get_context", json!({})).await;
    assert_eq!(context["result"]["message_count"], 0, "a notification does what it says");
}

#[tokio::test]
async fn what_is_no_json_is_a_parse_error() {
    let server = start().await;
    let cases: [(&[u8], &str); 9] = [
        (b"", "line 1, column 0"),
        (b"{", "line 1, column 1"),
        (b"nonsense", "line 1, column 2"),
        (b"{} {}", "line 1, column 4"),
        (b"[1,]", "line 1, column 4"),
        (b"{\"a\":1,\"a\":2", "line 1, column 12"),
        (b"{\"a\":\"\xff\"}", "line 1, column 7"),
        (b"\"\\ud800\"", "line 1, column 8"),
        (b"\xef\xbb\xbf{}", "line 1, column 1"),
    ];
    for (body, place) in cases {
        let expected = refusal(400, -32700, &format!("Parse error at {place}"));
        assert_eq!(told(&server, "/rpc", body).await, expected, "{body:?}");
    }
    let (status, deep) = told(&server, "/rpc", nested(128)).await;
    assert_eq!((status, &deep["error"]["code"]), (400, &json!(-32700)));
    let (status, flat) = told(&server, "/rpc", nested(127)).await;
    assert_eq!((status, flat[0]["error"]["code"].clone()), (200, json!(-32600)));
    let params = |value: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"list_agents","params":{{"x":{value}}}}}"#)
    };
    let (status, deep) = told(&server, "/rpc", params(&nested(126))).await;
    assert_eq!((status, &deep["error"]["code"]), (400, &json!(-32700)));
    let (status, flat) = told(&server, "/rpc", params(&nested(125))).await;
    assert_eq!((status, &flat["error"]["code"]), (200, &json!(-32602)));
}

#[tokio::test]
async fn json_that_is_no_request_keeps_its_id() {
    let server = start().await;
    let one = json!(1);
    let table = [
        ("1", Value::Null, "it is no JSON object"),
        ("null", Value::Null, "it is no JSON object"),
        (r#""x""#, Value::Null, "it is no JSON object"),
        ("{}", Value::Null, "`jsonrpc` must be \"2.0\""),
        (r#"{"id":1,"method":"m"}"#, one.clone(), "`jsonrpc` must be \"2.0\""),
        (r#"{"jsonrpc":2.0,"id":1,"method":"m"}"#, one.clone(), "`jsonrpc` must be \"2.0\""),
        (r#"{"jsonrpc":"2.00","id":"1","method":"m"}"#, json!("1"), "`jsonrpc` must be \"2.0\""),
        (r#"{"jsonrpc":"2.0","id":1}"#, one.clone(), "`method` must be a non-empty string"),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":""}"#,
            one.clone(),
            "`method` must be a non-empty string",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":7}"#,
            one.clone(),
            "`method` must be a non-empty string",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":7}"#,
            one.clone(),
            "`params` must be an object",
        ),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":""}"#, one, "`params` must be an object"),
    ];
    for (body, id, why) in table {
        assert_eq!(told(&server, "/rpc", body).await, invalid(&id, why), "{body}");
    }
}

#[tokio::test]
async fn a_key_that_stands_twice_is_refused_with_the_id_where_only_one_is_there() {
    let server = start().await;
    let twice = |key: &str| format!("the key {key:?} stands twice in one object");
    let table = [
        (r#"{"jsonrpc":"2.0","id":7,"method":"m","method":"m"}"#, json!(7), "method"),
        (r#"{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":[{"b":1,"b":2}]}}"#, json!(7), "b"),
        (r#"{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":1,"\u0061":2}}"#, json!(7), "a"),
        (r#"{"jsonrpc":"2.0","id":7,"id":8,"method":"m"}"#, Value::Null, "id"),
        (r#"{"jsonrpc":"2.0","id":7,"method":"m","params":{"id":1,"id":2}}"#, json!(7), "id"),
        (r#"{"jsonrpc":"2.0","x":1,"x":1,"id":7,"id":8,"method":"m"}"#, Value::Null, "x"),
    ];
    for (body, id, key) in table {
        assert_eq!(told(&server, "/rpc", body).await, invalid(&id, &twice(key)), "{body}");
        let (status, answers) = told(&server, "/rpc", format!("[{body}]")).await;
        assert_eq!((status, answers), (200, json!([invalid(&id, &twice(key)).1])), "{body}");
    }
}

#[tokio::test]
async fn params_are_an_object_or_nothing_and_unknown_members_are_ignored() {
    let server = start().await;
    let ok = (200, json!({"jsonrpc": "2.0", "id": 1, "result": {"agents": []}}));
    for rest in ["", r#","params":null"#, r#","params":{}"#, r#","extra":[1],"trace":{"a":1}"#] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"list_agents"{rest}}}"#);
        assert_eq!(told(&server, "/rpc", body).await, ok);
    }
    let known = "Known parameters: agent_id, cascade";
    let table = [
        ("list_agents", json!([]), "Params must be an object: This method takes no parameters"),
        ("list_agents", json!({"a": 1}), "Unknown parameter: a. This method takes no parameters"),
        ("destroy_agent", json!(["a"]), &format!("Params must be an object: {known}")),
        ("destroy_agent", json!({"agent": "a"}), &format!("Unknown parameter: agent. {known}")),
        ("destroy_agent", json!({}), &format!("Missing parameter: agent_id. {known}")),
    ];
    for (method, params, message) in table {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let error = json!({"code": -32602, "message": message});
        let expected = json!({"jsonrpc": "2.0", "id": 1, "error": error});
        assert_eq!(told(&server, "/rpc", body.to_string()).await, (200, expected));
    }
}

#[tokio::test]
async fn answers_have_their_members_in_order() {
    let server = start().await;
    let text = async |body: &str| {
        let answer = server.connect().await.exchange(&server.post("/rpc", body)).await;
        assert_eq!(answer.header("content-type"), Some("application/json"));
        answer.body
    };
    assert_eq!(
        text(r#"{"method":"list_agents","id":"x","jsonrpc":"2.0"}"#).await,
        r#"{"jsonrpc":"2.0","id":"x","result":{"agents":[]}}"#
    );
    assert_eq!(
        text(r#"{"method":"list_agent","id":1,"jsonrpc":"2.0"}"#).await,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found: list_agent","data":{"suggestion":"list_agents"}}}"#
    );
    assert_eq!(
        text("[]").await,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: the batch is empty"}}"#
    );
}
