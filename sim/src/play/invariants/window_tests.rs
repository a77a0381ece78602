//! A leak in each place where secrets are looked for is found there, and where a secret belongs it
//! is no leak.

use std::time::Duration;

use http::HeaderValue;
use serde_json::json;

use super::super::seen_tests::{Run, asked};
use super::*;
use crate::disk::Item;

const KEY: &str = "sk-canary-0123456789";
const TOKEN: &str = "nxk_0123456789abcdef";
const SCENARIO: &str = r#"
schema = 1
about  = "Keys from a variable and a file."
[env]
MY_SECRET = "sk-canary-0123456789"
SHORT_KEY = "abc"
PATH      = "/usr/bin:/bin"
[files]
"/keys/openai"     = "sk-from-a-file-42\n"
"/project/mine.md" = "two pears"
[config.providers.one]
type         = "openai"
api_key_file = "/keys/openai"
models       = { default = { id = "default" } }
[[step]]
sleep = "1s"
"#;

fn window() -> Window {
    Window::new(&Scenario::parse("x.toml", SCENARIO).unwrap())
}

fn run() -> Run {
    Run { tokens: vec![TOKEN.into()], ..Run::default() }
}

fn put(run: &Run, path: &str, content: &str) {
    let item = Item::File { content: content.into(), mode: 0o600 };
    run.disk.put(path.as_ref(), item).unwrap();
}

fn nothing() -> Vec<String> {
    Vec::new()
}

#[test]
fn keys_come_from_variables_and_files() {
    assert_eq!(window().given, [KEY, "sk-from-a-file-42"]);
}

#[test]
fn a_secret_in_the_transcript_is_found_once() {
    let (run, mut window) = (run(), window());
    run.transcript.note(Duration::ZERO, "server", "all is well");
    assert_eq!(window.after_step(&run.seen()), nothing());
    run.transcript.note(Duration::ZERO, "server", &format!("the key is {KEY}"));
    assert_eq!(window.after_step(&run.seen()), ["a secret stands in the transcript"]);
    assert_eq!(window.after_step(&run.seen()), nothing(), "what was looked through is not again");
    let end = End { survey: None, left_behind: None };
    assert_eq!(window.at_end(&run.seen(), &end), ["a secret stands in the transcript"]);
}

#[test]
fn a_secret_in_the_log_is_found_and_not_repeated() {
    let (run, mut window) = (run(), window());
    let guard = run.log.listen(Vec::new());
    tracing::info!(target: "nexus3::x", "started");
    assert_eq!(window.after_step(&run.seen()), nothing());
    tracing::trace!(target: "nexus3::x", token = TOKEN, "listens");
    drop(guard);
    let found = "a secret stands in the log: TRACE nexus3::x: listens token=\"[secret]\"";
    assert_eq!(window.after_step(&run.seen()), [found]);
}

#[test]
fn a_secret_in_a_model_request_is_found() {
    let (run, mut window) = (run(), window());
    let long = format!("{}{TOKEN}{}", "x".repeat(10_000), "y".repeat(10_000));
    let mut check = |content: &str| {
        let messages = json!([{"role": "user", "content": content}]);
        window.on(&asked("scout", &json!({"messages": messages})), &run.seen())
    };
    assert_eq!(check("hello"), nothing());
    let found = ["a secret stands in a model request of scout"];
    assert_eq!(check(&long), found, "also in the middle of a long one");
    assert_eq!(check("sk-from-a-file-42"), found);
}

#[test]
fn a_key_belongs_in_its_header_alone_and_a_token_in_none() {
    let (run, mut window) = (run(), window());
    let mut check = |name: &'static str, value: &str| {
        let headers = HeaderMap::from_iter([(
            http::HeaderName::from_static(name),
            HeaderValue::from_str(value).unwrap(),
        )]);
        let request = Request { agent: "scout".to_owned(), headers, ..Request::default() };
        window.on(&Observation::Asked(request), &run.seen())
    };
    let found = ["a secret stands in a header of a request of scout"];
    assert_eq!(check("authorization", &format!("Bearer {KEY}")), nothing());
    assert_eq!(check("x-api-key", KEY), nothing());
    assert_eq!(check("x-title", KEY), found);
    assert_eq!(check("authorization", &format!("Bearer {TOKEN}")), found);
}

#[test]
fn a_secret_in_a_file_is_found_unless_it_belongs_there() {
    let (run, window) = (run(), window());
    let check = || window.in_files(&run.seen());
    put(&run, &format!("{HOME}/rpc-9000.token"), TOKEN);
    put(&run, "/keys/openai", "sk-from-a-file-42\n");
    put(&run, "/project/mine.md", "two pears");
    assert_eq!(check(), nothing());
    put(&run, &format!("{HOME}/nexus3.db"), &format!("\0\u{1}row{KEY}\0"));
    put(&run, "/project/rpc.token", TOKEN);
    let found = [
        format!("a secret stands in the file {HOME}/nexus3.db"),
        "a secret stands in the file /project/rpc.token".to_owned(),
    ];
    assert_eq!(check(), found);
    for path in [format!("{HOME}/nexus3.db"), "/project/rpc.token".to_owned()] {
        run.disk.remove(path.as_ref()).unwrap();
    }
    put(&run, "/project/mine.md", &format!("two pears and {KEY}"));
    put(&run, "/keys/openai", &format!("sk-from-a-file-42 {TOKEN}"));
    let found = ["/keys/openai", "/project/mine.md"];
    assert_eq!(check(), found.map(|path| format!("a secret stands in the file {path}")));
}
