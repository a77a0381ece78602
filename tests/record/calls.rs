//! What clients and models may say besides what they usually do.

use std::io::{BufRead, BufReader, Write};

use nexus3::choice::Choice;
use nexus3::event::What;
use nexus3::id::AgentId;
use nexus3::limits::BODY_BYTES_MAX;
use nexus3::rpc::method::{ConfirmParams, SendParams};
use rustix::process::Signal;

use super::live::{Live, until};
use super::replay::replay;

fn asks(content: &str) -> SendParams {
    SendParams { content: content.to_owned(), ..SendParams::default() }
}

const ODD: &str = r#"
schema = 1
about = "A model that gives a null, and one that gives no JSON."
[[model]]
agent = "a"
asks = [{ tool = "echo", args_json = '{"message":"hi","why":null}' },
        { tool = "echo", args_json = '{"message": cut' }]
[[model]]
agent = "a"
says = "Done."
[[step]]
call = "list_agents"
"#;

#[tokio::test(flavor = "multi_thread")]
async fn nulls_and_what_is_no_json_are_said_again() {
    let live = Live::start(ODD).await;
    let a = live.create("a", "worker", None).await;
    live.client.send(&a, &asks("Go")).await.unwrap();
    let text = live.end(Signal::TERM).text;
    assert!(text.contains("null") && text.contains(r#"{"message": cut"#), "{text}");
    let played = replay(&text);
    assert_eq!(played.failures, [""; 0], "{text}\n{}", played.transcript);
}

/// Sends bytes to a server, and returns the first line of its answer.
fn sent(address: std::net::SocketAddr, bytes: &str) -> String {
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream.write_all(bytes.as_bytes()).unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_refused_before_it_was_a_call_is_refused_again() {
    let live = Live::start(MANY).await;
    let name = format!("rpc-{}.token", live.address.port());
    let token = std::fs::read_to_string(live.home.path().join(name)).unwrap();
    let token = token.trim_end();
    let host = "host: localhost\r\nconnection: close\r\n";
    let bearer = format!("{host}authorization: Bearer {token}\r\n");
    let wrong = "sk-somebody-elses-key";
    let requests = [
        format!("POST / HTTP/1.1\r\n{bearer}content-length: 9\r\n\r\n{{\"${{x}}\":,"),
        format!("POST / HTTP/1.1\r\n{host}content-length: 2\r\n\r\n{{}}"),
        format!("POST / HTTP/1.1\r\n{host}authorization: Bearer {wrong}\r\n\r\n"),
        format!("DELETE / HTTP/1.1\r\n{bearer}\r\n"),
        format!("POST /no/where HTTP/1.1\r\n{bearer}\r\n"),
        format!("POST / HTTP/1.1\r\n{bearer}content-length: 999999999\r\n\r\n"),
        format!("GET /agent/nobody/events HTTP/1.1\r\n{bearer}\r\n"),
        format!("POST / HTTP/1.1\r\n{bearer}origin: https://example.com\r\n\r\n"),
    ];
    let address = live.address;
    let long = "x".repeat(70_000);
    let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"list_agents"},7]"#;
    let left_out = [
        format!("GET / HTTP/1.1\r\n{bearer}x-long: {long}\r\n\r\n"),
        format!("POST / HTTP/1.1\r\n{bearer}content-length: {}\r\n\r\n{batch}", batch.len()),
    ];
    let left_out =
        left_out.map(|request| sent(address, &request)["HTTP/1.1 ".len()..][..3].to_owned());
    assert_eq!(left_out, ["431", "200"]);
    let answers =
        requests.map(|request| sent(address, &request)["HTTP/1.1 ".len()..][..3].to_owned());
    assert_eq!(answers, ["400", "401", "403", "405", "404", "413", "404", "403"]);
    let text = live.end(Signal::TERM).text;
    assert!(!text.contains(token) && !text.contains(wrong), "{text}");
    let played = replay(&text);
    assert_eq!(played.failures, [""; 0], "{text}\n{}", played.transcript);
    assert_eq!(text.matches("raw = ").count(), 8, "{text}");
    let told = "could not be refused for the same: 1 request with HTTP 431, 1 entry of a batch.\n";
    assert!(text.contains(told), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_told_no_length_and_is_too_large_is_counted_and_left_out() {
    let live = Live::start(MANY).await;
    let name = format!("rpc-{}.token", live.address.port());
    let token = std::fs::read_to_string(live.home.path().join(name)).unwrap();
    let head = format!(
        "POST / HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n",
        token.trim_end()
    );
    let chunked = |length: usize| {
        let body = "x".repeat(length);
        format!("{head}transfer-encoding: chunked\r\n\r\n{length:x}\r\n{body}\r\n0\r\n\r\n")
    };
    let answers = [BODY_BYTES_MAX + 1, BODY_BYTES_MAX]
        .map(|length| sent(live.address, &chunked(length))["HTTP/1.1 ".len()..][..3].to_owned());
    // What just fits was read whole, so it is refused again for what it says.
    assert_eq!(answers, ["413", "400"]);
    let text = live.end(Signal::TERM).text;
    let told = "\n# Refused, and not here since a replay could not be refused for the same: 1 request \
                with HTTP 413.\n";
    assert!(text.contains(told), "{}", &text[..500]);
    assert_eq!(text.matches("raw = ").count(), 1);
    let played = replay(&text);
    assert_eq!(played.failures, [""; 0], "{}", played.transcript);
}

const ASKED: &str = r#"
schema = 1
about = "A model that wants to write elsewhere."
[[model]]
agent = "a"
asks = [{ tool = "exec", args = { program = "true", args = [] } }]
[[model]]
agent = "a"
says = "So be it."
[[step]]
call = "list_agents"
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_second_answer_to_a_confirmation_is_the_call_it_was() {
    let live = Live::start(ASKED).await;
    let a = live.create("a", "trusted", None).await;
    let mut stream = live.client.open_events(Some(&a), Some(0)).await.unwrap();
    let (client, agent) = (live.client.clone(), a.clone());
    let sending = tokio::spawn(async move { client.send(&agent, &asks("Go")).await.unwrap() });
    let is_asked = |what: &What| matches!(what, What::ConfirmationRequested { .. });
    let events = until(&mut stream, is_asked).await;
    let asked = &events.last().unwrap().what;
    let What::ConfirmationRequested { confirm_id, .. } = asked else { unreachable!() };
    let mut accepted = Vec::new();
    for decision in [Choice::Deny, Choice::AllowOnce] {
        let decision = decision.name().to_owned();
        let params = ConfirmParams { confirm_id: confirm_id.clone(), decision };
        accepted.push(live.client.confirm(&a, &params).await.unwrap().accepted);
    }
    assert_eq!(accepted, [true, false]);
    sending.await.unwrap();
    drop(stream);
    let text = live.end(Signal::TERM).text;
    let played = replay(&text);
    assert_eq!(played.failures, [""; 0], "{text}\n{}", played.transcript);
}

const MANY: &str = r#"
schema = 1
about = "A model that is asked by many."
[[model]]
agent = "a"
says = "Yes."
times = 8
[[step]]
call = "list_agents"
"#;

#[tokio::test(flavor = "multi_thread")]
async fn what_was_asked_at_the_same_moment_is_answered_in_the_same_order() {
    let live = Live::start(MANY).await;
    let a: AgentId = live.create("a", "worker", None).await;
    let all = (1..=8).map(|number| {
        let (client, a) = (live.client.clone(), a.clone());
        async move { client.send(&a, &asks(&format!("Number {number}"))).await.unwrap() }
    });
    futures_util::future::join_all(all).await;
    let text = live.end(Signal::TERM).text;
    let played = replay(&text);
    assert_eq!(played.failures, [""; 0], "{text}\n{}", played.transcript);
}
