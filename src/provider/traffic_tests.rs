//! What a watcher is told of whole exchanges with a scripted server.

use std::sync::Mutex;

use futures_util::StreamExt;

use super::*;
use crate::config::{Config, ModelConfig, ProviderConfig, ProviderKind};
use crate::message::Message;
use crate::provider::key::KeyFinder;
use crate::provider::models::{Models, Watchers};
use crate::provider::replay::{Piece, Replay, Script, seams};
use crate::world::{Dir, Environment, Fs};

const KEY: &str = "sk-canary-0123456789";
const OTHER_KEY: &str = "or-canary-9876543210";

#[derive(Default)]
struct Seen(Mutex<Vec<(AgentId, Passed)>>);

impl Traffic for Seen {
    fn passed(&self, agent: &AgentId, passed: Passed) {
        self.0.lock().unwrap().push((agent.clone(), passed));
    }
}

/// Two keys in the environment, and no files.
struct Machine;

impl Environment for Machine {
    fn var(&self, name: &str) -> Option<String> {
        match name {
            "KEY" => Some(KEY.to_owned()),
            "OTHER_KEY" => Some(OTHER_KEY.to_owned()),
            _ => None,
        }
    }
    fn vars(&self) -> Vec<(String, String)> {
        Vec::new()
    }
    fn current_dir(&self) -> std::io::Result<std::path::PathBuf> {
        Ok("/".into())
    }
    fn home_dir(&self) -> Option<std::path::PathBuf> {
        None
    }
    fn os(&self) -> &'static str {
        "linux"
    }

    fn process_id(&self) -> u32 {
        1
    }
}

impl Fs for Machine {
    fn dir(&self, _path: &std::path::Path) -> std::io::Result<Arc<dyn Dir>> {
        Err(std::io::ErrorKind::NotFound.into())
    }
    fn canonical(&self, _path: &std::path::Path) -> std::io::Result<std::path::PathBuf> {
        Err(std::io::ErrorKind::NotFound.into())
    }
}

fn config() -> Config {
    let mut one = ProviderConfig { max_retries: 0, ..ProviderConfig::of(ProviderKind::Vllm) };
    one.api_key_env = Some("KEY".to_owned());
    one.headers = [("X-Team".to_owned(), "team-canary".into())].into();
    let model =
        ModelConfig { id: "m-1".to_owned(), context_window: 1000, max_output: 7, reasoning: false };
    one.models = [("m".to_owned(), model)].into();
    let mut other = ProviderConfig::of(ProviderKind::Openrouter);
    other.api_key_env = Some("OTHER_KEY".to_owned());
    Config {
        providers: [("one".to_owned(), one), ("other".to_owned(), other)].into(),
        ..Config::default()
    }
}

/// How much of an answer is wanted.
enum Wanted {
    All,
    FirstEvent,
}

async fn told(script: Script, question: &str, wanted: Wanted) -> Vec<Passed> {
    let seen = Arc::new(Seen::default());
    let seams = seams(Replay::new([script]));
    let keys = KeyFinder { environment: &Machine, fs: &Machine };
    let watchers = Watchers { traffic: Some(seen.clone()), ..Watchers::default() };
    let models = Models::build(&seams, keys, &config(), watchers).unwrap();
    let model = models.resolve(None).unwrap();
    let agent = AgentId::parse("w1").unwrap();
    let mut stream = model.provider.stream(ModelRequest {
        agent: agent.clone(),
        model: model.id.to_string(),
        system: "".into(),
        messages: [Arc::new(Message::User { content: question.into(), meta: None })]
            .into_iter()
            .collect(),
        tools: Arc::new([]),
        output_tokens_max: 7,
        reasoning: false,
    });
    match wanted {
        Wanted::All => while stream.next().await.is_some() {},
        Wanted::FirstEvent => drop(stream.next().await),
    }
    drop(stream);
    let seen = std::mem::take(&mut *seen.0.lock().unwrap());
    assert!(seen.iter().all(|(of, _)| *of == agent));
    for (_, passed) in &seen {
        let shown = format!("{passed:?}");
        for secret in [KEY, OTHER_KEY, "team-canary", "nxk_0123456789"] {
            assert!(!shown.contains(secret), "{shown}");
        }
        assert_eq!((passed.provider.as_str(), passed.model.as_str()), ("one", "m-1"));
        assert_eq!(passed.exchange, 1);
    }
    seen.into_iter().map(|(_, passed)| passed).collect()
}

fn streamed(pieces: &[&str]) -> Script {
    let pieces = pieces.iter().map(|piece| Piece::Bytes(piece.as_bytes().to_vec()));
    Script::Answer { status: 200, content_type: "text/event-stream", body: pieces.collect() }
}

fn text(content: &str) -> String {
    format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{content}\"}}}}]}}\n\n")
}

const FINISH: &str =
    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

#[tokio::test(start_paused = true)]
async fn an_exchange_is_told_as_request_and_answer_without_any_key() {
    let question = format!("is it {OTHER_KEY} or nxk_0123456789abcdef?");
    let answer = [text("sk-can"), text("ary-0123"), text("456789 yes")];
    let script = streamed(&[&answer[0], &answer[1], &answer[2], FINISH]);
    let told = told(script, &question, Wanted::All).await;
    let carried: Vec<Carried> = told.into_iter().map(|passed| passed.carried).collect();
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let delta = |content: &str| json!({ "choices": [{ "delta": { "content": content } }] });
    assert_eq!(
        carried,
        [
            Carried::Request {
                url: "http://localhost:8000/v1/chat/completions".to_owned(),
                headers: vec![
                    header("content-type", "application/json"),
                    header("accept", "text/event-stream"),
                    header("authorization", "[redacted]"),
                    header("x-team", "[redacted]"),
                ],
                body: json!({
                    "model": "m-1",
                    "messages": [
                        { "role": "user", "content": "is it [redacted] or [redacted]?" },
                    ],
                    "stream": true,
                    "stream_options": { "include_usage": true },
                    "max_tokens": 7,
                }),
            },
            Carried::Response {
                status: 200,
                headers: vec![header("content-type", "text/event-stream")],
                body: json!([
                    delta("[redacted]"),
                    delta(""),
                    delta(" yes"),
                    { "choices": [{ "delta": {}, "finish_reason": "stop" }] },
                    "[DONE]",
                ]),
                end: BodyEnd::Whole,
            },
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_told_with_its_body_and_what_we_made_of_it() {
    let body = format!("{{\"error\": {{\"message\": \"bad key {KEY}\"}}}}");
    let script = Script::Answer {
        status: 401,
        content_type: "application/json",
        body: vec![Piece::Bytes(body.into_bytes())],
    };
    let told = told(script, "hi", Wanted::All).await;
    let [_, answer, error] = told.as_slice() else { panic!("{told:?}") };
    let Carried::Response { status: 401, body, end: BodyEnd::Whole, .. } = &answer.carried else {
        panic!("{answer:?}")
    };
    assert_eq!(body, &json!({ "error": { "message": "bad key [redacted]" } }));
    assert!(matches!(&error.carried, Carried::Error { fault: Fault::Auth, .. }), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_nobody_wants_or_that_breaks_is_told_as_far_as_it_came() {
    let half = text("half");
    let ends = |told: &[Passed]| match &told[1].carried {
        Carried::Response { end, body, .. } => (*end, body.as_array().unwrap().len()),
        other => panic!("{other:?}"),
    };
    let dropped = told(streamed(&[&half, &half]), "hi", Wanted::FirstEvent).await;
    assert_eq!((dropped.len(), ends(&dropped)), (2, (BodyEnd::Dropped, 1)));
    let broken = told(streamed(&[&half, &half]), "hi", Wanted::All).await;
    assert_eq!((broken.len(), ends(&broken)), (3, (BodyEnd::Broken, 2)));
    let connect = Script::Fault(crate::world::HttpFault::Connect);
    assert_eq!(told(connect, "hi", Wanted::All).await.len(), 2, "the request and the error");
}

#[tokio::test(start_paused = true)]
async fn a_long_answer_is_cut_between_records_and_a_long_question_anywhere() {
    let quarter = text(&"x".repeat(LOG_RAW_BODY_BYTES_MAX / 4));
    let pieces = [quarter.as_str(), &quarter, &quarter, &quarter, FINISH];
    let long = "ä".repeat(LOG_RAW_BODY_BYTES_MAX / 2);
    let told = told(streamed(&pieces), &long, Wanted::All).await;
    let Carried::Request { body: Value::String(body), .. } = &told[0].carried else {
        panic!("a body of that length is text")
    };
    assert!(body.len() < LOG_RAW_BODY_BYTES_MAX + 100 && body.ends_with(" bytes more"));
    let Carried::Response { end: BodyEnd::Cut, body, .. } = &told[1].carried else {
        panic!("it was cut")
    };
    assert_eq!(body.as_array().unwrap().len(), 3);
}
