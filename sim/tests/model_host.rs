//! The model host against the `script` provider: whatever an entry says or breaks, a turn sees the
//! same of it over a socket, over pipes and without either.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt;
use nexus3::config::{AuthMethod, Config, ModelConfig, ProviderConfig, ProviderKind};
use nexus3::id::AgentId;
use nexus3::message::{Message, Usage};
use nexus3::provider::script::{self, Fault};
use nexus3::provider::{ModelEvent, ModelRequest, Models, ProviderError};
use nexus3::world::{Net, World, real};
use nexus3_sim::http_client::HttpClient;
use nexus3_sim::model::{Answered, Asked, ModelHost, Observer, Received, Scripted, Shown};
use nexus3_sim::pipes::Pipes;
use tempfile::NamedTempFile;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, timeout};
use tokio_util::task::AbortOnDropHandle;

const ANY_PORT: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);

/// Entries that take no time.
const PROMPT: &[&str] = &[
    r#"says = "hello""#,
    r#"says = ["hé", "", "llo"]
       thinks = "hm"
       usage = { input = 7, output = 3 }"#,
    r#"says = "cut"
       finish = "length""#,
    r#"says = "bad"
       finish = "content_filter""#,
    "",
    r#"asks = [{ tool = "echo", args = { text = "x", n = 1 } }, { tool = "sleep" }]"#,
    r#"agent = "somebody else""#,
    r#"when = "^bye$""#,
    r#"model = "alias"
       says = "by alias""#,
    r#"model = "id"
       says = "never""#,
    "fault = { status = 429, retry_after = \"2s\" }",
    "fault = { status = 500 }",
    "fault = { status = 401 }",
    "fault = { status = 302 }",
    "fault = { refuse = true }",
    "fault = { eof_without_finish = true }",
    "says = \"a\"\nfault = { eof_without_finish = true }",
    "fault = { bad_json = true }",
    "says = \"a\"\nfault = { bad_json = true }",
    "fault = { error_in_stream = true }",
    "says = \"a\"\nfault = { error_in_stream = true }",
    r#"asks = [{ tool = "echo" }, { tool = "echo" }]
       fault = { duplicate_tool_ids = true }"#,
    r#"asks = [{ tool = "echo" }]
       fault = { bad_arguments = true }"#,
    "fault = { reset_after = 0 }",
    "says = [\"a\", \"b\"]\nfault = { reset_after = 1 }",
    "says = [\"a\", \"b\"]\nfault = { reset_after = 9, split = 3 }",
    "says = [\"é\", \"b\"]\nfault = { split = 1 }",
    "says = [\"é\", \"b\"]\nfault = { split = 1000 }",
];

/// Entries that take time, or outlast a deadline.
const SLOW: &[&str] = &[
    "says = [\"a\", \"b\", \"c\"]\npause = \"20ms\"\ndelay = \"2s\"",
    "says = \"a\"\ndelay = \"10m\"",
    "says = [\"a\", \"b\"]\npause = \"10m\"",
    "fault = { stall = \"headers\" }",
    "fault = { stall = 0 }",
    "says = [\"a\", \"b\"]\nfault = { stall = 1 }",
    "says = [\"a\", \"b\"]\nfault = { stall = 9 }",
    "says = \"a\"\nfault = { drip = \"100ms\" }",
    "says = \"a\"\nfault = { status = 503, drip = \"1s\" }",
];

type Outcome = (Vec<ModelEvent>, Option<ProviderError>, Duration);

#[derive(Default)]
struct Notes(Mutex<Vec<Asked>>);

impl Observer for Notes {
    fn asked(&self, asked: &Asked, _: &Received<'_>) {
        self.0.lock().expect("no test panics here").push(asked.clone());
    }
}

/// A model host that runs until it is dropped.
struct Running {
    address: SocketAddr,
    script: Arc<Scripted>,
    notes: Arc<Notes>,
    _host: AbortOnDropHandle<()>,
}

async fn host(world: &World, file: &NamedTempFile) -> Running {
    let script = script::read(world.fs.as_ref(), file.path()).expect("the script is sound");
    let aliases = BTreeMap::from([("id".to_owned(), "alias".to_owned())]);
    let script = Arc::new(Scripted::new(script, aliases));
    let notes = Arc::new(Notes::default());
    let observer: Arc<dyn Observer> = notes.clone();
    let host = ModelHost::bind(world.net.as_ref(), ANY_PORT.into(), Arc::clone(&script), observer)
        .await
        .expect("a port is free");
    let address = host.local_addr().expect("it has an address");
    let host = AbortOnDropHandle::new(tokio::spawn(host.run()));
    Running { address, script, notes, _host: host }
}

fn on_pipes() -> World {
    let net: Arc<dyn Net> = Arc::new(Pipes::new());
    let http = Arc::new(HttpClient::new(Arc::clone(&net)));
    World { net, http, ..real::world().expect("the machine opens") }
}

fn script_file(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().expect("a test may write a file");
    file.write_all(text.as_bytes()).expect("a test may write a file");
    file
}

fn config(kind: ProviderKind) -> ProviderConfig {
    let model =
        ModelConfig { id: "id".to_owned(), context_window: 1000, max_output: 7, reasoning: false };
    ProviderConfig {
        // Every entry is seen by itself.
        max_retries: 0,
        request_timeout: 30.0,
        stream_idle_timeout: 10.0,
        models: [("alias".to_owned(), model)].into(),
        ..ProviderConfig::of(kind)
    }
}

fn models(world: &World, provider: ProviderConfig) -> Models {
    let providers = [("p".to_owned(), provider)].into();
    Models::new(world, &Config { providers, ..Config::default() }, None).expect("it is sound")
}

fn over_wire(world: &World, address: SocketAddr) -> Models {
    over(world, ProviderKind::Vllm, format!("http://{address}/v1"))
}

fn over_messages(world: &World, address: SocketAddr) -> Models {
    over(world, ProviderKind::Anthropic, format!("http://{address}"))
}

fn over(world: &World, kind: ProviderKind, base_url: String) -> Models {
    let provider = ProviderConfig {
        base_url: Some(base_url),
        auth_method: Some(AuthMethod::None),
        headers: [("x-nexus-agent".to_owned(), "${agent_id}".into())].into(),
        ..config(kind)
    };
    models(world, provider)
}

fn without_wire(world: &World, file: &NamedTempFile) -> Models {
    let script = Some(file.path().to_owned());
    models(world, ProviderConfig { script, ..config(ProviderKind::Script) })
}

async fn ask(models: &Models, agent: &str, content: &str) -> Outcome {
    let started = Instant::now();
    let model = models.resolve(None).expect("there is a default");
    let mut stream = model.provider.stream(ModelRequest {
        agent: AgentId::parse(agent).expect("it is well formed"),
        model: model.id.to_string(),
        system: "Be brief.".into(),
        messages: [Arc::new(Message::User { content: content.into(), meta: None })]
            .into_iter()
            .collect(),
        tools: Arc::new([]),
        output_tokens_max: model.output_tokens_max,
        reasoning: model.reasoning,
    });
    let mut events = Vec::new();
    while let Some(item) = stream.next().await {
        match item {
            Ok(event) => events.push(event),
            Err(error) => return (events, Some(error), started.elapsed()),
        }
    }
    (events, None, started.elapsed())
}

#[tokio::test(start_paused = true)]
async fn every_entry_is_the_same_over_pipes_and_without_a_wire() {
    for entry in PROMPT.iter().chain(SLOW) {
        let file = script_file(&format!("[[model]]\n{entry}\n"));
        let world = on_pipes();
        let expected = ask(&without_wire(&world, &file), "main", "hi").await;
        let running = host(&world, &file).await;
        let outcome = ask(&over_wire(&world, running.address), "main", "hi").await;
        assert_eq!(outcome, expected, "{entry}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_entry_is_the_same_as_messages() {
    for entry in PROMPT.iter().chain(SLOW) {
        let file = script_file(&format!("[[model]]\n{entry}\n"));
        let world = on_pipes();
        let expected = ask(&without_wire(&world, &file), "main", "hi").await;
        let running = host(&world, &file).await;
        let outcome = ask(&over_messages(&world, running.address), "main", "hi").await;
        assert_eq!(counted(outcome.0), expected.0, "{entry}");
        assert_eq!(outcome.1, expected.1, "{entry}");
        // The same words are not as many bytes.
        if !entry.contains("drip") {
            assert_eq!(outcome.2, expected.2, "{entry}");
        }
    }
}

/// Events without a usage of nothing, which messages always tell and chat completions never.
fn counted(mut events: Vec<ModelEvent>) -> Vec<ModelEvent> {
    events.retain(|event| *event != ModelEvent::Usage(Usage::default()));
    events
}

#[tokio::test]
async fn every_prompt_entry_is_the_same_over_real_sockets() {
    let world = real::world().expect("the machine opens");
    for entry in PROMPT {
        let file = script_file(&format!("[[model]]\n{entry}\n"));
        let (events, error, _) = ask(&without_wire(&world, &file), "main", "hi").await;
        for over in [over_wire, over_messages] {
            let running = host(&world, &file).await;
            let outcome = ask(&over(&world, running.address), "main", "hi").await;
            assert_eq!((counted(outcome.0), outcome.1), (events.clone(), error.clone()), "{entry}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn slow_entries_take_their_time() {
    let took = [2040, 30_000, 10_000, 30_000, 10_000, 10_000, 10_000];
    for (entry, took) in SLOW.iter().zip(took) {
        let file = script_file(&format!("[[model]]\n{entry}\n"));
        let world = on_pipes();
        let (.., elapsed) = ask(&without_wire(&world, &file), "main", "hi").await;
        assert_eq!(elapsed, Duration::from_millis(took), "{entry}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_observer_sees_who_was_shown_what_and_who_answered() {
    let file = script_file(
        "[[model]]\nagent = \"boss\"\nfault = { status = 429 }\n\
         [[model]]\nsays = \"a\"\ntimes = 3\n[[model]]\nwhen = \"never\"\n",
    );
    let world = on_pipes();
    let running = host(&world, &file).await;
    let models = over_wire(&world, running.address);
    let long = "many words\n".repeat(20);
    for (agent, content) in [("boss", "hi"), ("boss", "hi"), ("w1", &*long)] {
        ask(&models, agent, content).await;
    }
    let asked = std::mem::take(&mut *running.notes.0.lock().expect("no test panics here"));
    let digests: Vec<u64> = asked.iter().map(|asked| asked.shown().digest).collect();
    assert_eq!(digests[0], digests[1], "the same messages have the same hash");
    assert_ne!(digests[0], digests[2], "other messages have another");
    let told = |asked: &Asked| {
        let Asked { number, agent, model, answered, .. } = asked.clone();
        (number, agent, model, asked.shown(), answered)
    };
    let expected = |number: u64, agent: &str, last: &str, answered| {
        let digest = digests[usize::try_from(number).expect("it is small") - 1];
        let shown = Shown { messages: 2, last: last.to_owned(), digest };
        (number, agent.to_owned(), "alias".to_owned(), shown, answered)
    };
    let limited = Fault { status: Some(429), ..Fault::default() };
    let shortened = format!("{}man…", "many words ".repeat(7));
    assert_eq!(
        asked.iter().map(told).collect::<Vec<_>>(),
        [
            expected(1, "boss", "hi", Answered::Entry { number: 1, fault: Some(limited) }),
            expected(2, "boss", "hi", Answered::Entry { number: 2, fault: None }),
            expected(3, "w1", &shortened, Answered::Entry { number: 2, fault: None }),
        ]
    );
    let calls = [("boss".to_owned(), 2), ("w1".to_owned(), 1)].into();
    assert_eq!(running.script.model_calls(), calls);
    assert_eq!(running.script.left_over(), [(2, 1), (3, 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_no_entry_answers_fails_the_run() {
    let file = script_file("");
    let world = on_pipes();
    let running = host(&world, &file).await;
    let (events, error, _) = ask(&over_wire(&world, running.address), "main", "hi").await;
    assert_eq!(events, []);
    assert_eq!(error.expect("nobody answers").status, Some(500));
    for request in ["GET / HTTP/1.1\r\n\r\n", &post("{}")] {
        let answer = raw(&world, running.address, request).await;
        assert!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{answer}");
    }
    let asked = running.notes.0.lock().expect("no test panics here").clone();
    let answered: Vec<_> = asked.iter().map(|asked| asked.answered.clone()).collect();
    assert_eq!(answered, [Answered::Unmatched, Answered::Unreadable, Answered::Unreadable]);
    assert!(asked.iter().all(Asked::is_failure));
}

fn post(body: &str) -> String {
    post_to("/v1/chat/completions", body)
}

fn post_to(path: &str, body: &str) -> String {
    let length = body.len();
    format!("POST {path} HTTP/1.1\r\ncontent-length: {length}\r\n\r\n{body}")
}

/// All that comes back on a fresh connection.
async fn raw(world: &World, address: SocketAddr, request: &str) -> String {
    let mut stream = world.net.connect(address).await.expect("the host listens");
    stream.write_all(request.as_bytes()).await.expect("the host reads");
    let mut answer = String::new();
    timeout(Duration::from_mins(1), stream.read_to_string(&mut answer))
        .await
        .expect("the host closes")
        .expect("it is text");
    answer
}

#[tokio::test(start_paused = true)]
async fn a_script_answers_in_the_wire_it_is_asked_in() {
    let file = script_file("[[model]]\nsays = \"a\"\ntimes = 2\n");
    let world = on_pipes();
    let running = host(&world, &file).await;
    let hi = r#"{"model":"id","stream":true,"max_tokens":9,"messages":[{"role":"user","content":"hi"}]}"#;
    let chat = raw(&world, running.address, &post(hi)).await;
    assert!(chat.contains("\"delta\":{\"content\":\"a\""), "{chat}");
    let messages = raw(&world, running.address, &post_to("/v1/messages", hi)).await;
    assert!(messages.contains("event: content_block_delta\n"), "{messages}");
    assert!(messages.contains("\"stop_reason\":\"end_turn\""), "{messages}");
    let unmatched = raw(&world, running.address, &post_to("/v1/messages", hi)).await;
    assert!(unmatched.starts_with("HTTP/1.1 500 "), "{unmatched}");
    assert!(unmatched.contains("\"type\":\"api_error\""), "{unmatched}");
    let asked = running.notes.0.lock().expect("no test panics here").clone();
    let shown = |asked: &Asked| (asked.shown().messages, asked.shown().last);
    let shown: Vec<_> = asked.iter().map(shown).collect();
    assert_eq!(shown, vec![(1, "hi".to_owned()); 3]);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_asks_for_no_stream_gets_a_document_in_its_wire() {
    let file = script_file("[[model]]\nsays = [\"a\", \"b\"]\ntimes = 2\n");
    let world = on_pipes();
    let running = host(&world, &file).await;
    let hi = r#"{"model":"id","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}"#;
    let chat = raw(&world, running.address, &post(hi)).await;
    assert!(chat.contains("content-type: application/json\r\n"), "{chat}");
    assert!(chat.contains("\"message\":{\"role\":\"assistant\",\"content\":\"ab\"}"), "{chat}");
    let messages = raw(&world, running.address, &post_to("/v1/messages", hi)).await;
    assert!(messages.contains("\"content\":[{\"type\":\"text\",\"text\":\"ab\"}]"), "{messages}");
}

#[tokio::test(start_paused = true)]
async fn the_bytes_are_the_same_in_every_run() {
    let hi = r#"{"model":"id","stream":true,"messages":[{"role":"user","content":"hi"}]}"#;
    let file = script_file(
        "[[model]]\nsays = [\"a\", \"b\"]\nfault = { split = 64 }\n\
         [[model]]\nsays = [\"a\", \"b\"]\nfault = { reset_after = 1 }\n\
         [[model]]\nfault = { refuse = true }\n\
         [[model]]\nfault = { status = 429, retry_after = \"1500ms\" }\n",
    );
    let mut runs = Vec::new();
    for _ in 0..2 {
        let world = on_pipes();
        let running = host(&world, &file).await;
        let mut answers = Vec::new();
        for _ in 0..4 {
            answers.push(raw(&world, running.address, &post(hi)).await);
        }
        runs.push(answers);
    }
    assert_eq!(runs[0], runs[1]);
    let [whole, cut, refused, limited] = runs[0].as_slice() else {
        panic!("there were four requests");
    };
    assert!(!whole.contains("date:"), "there is no clock: {whole}");
    assert!(whole.ends_with("\r\n0\r\n\r\n"), "a whole body has its end: {whole}");
    assert!(whole.contains("\r\n40\r\ndata: "), "pieces are as long as they should be: {whole}");
    assert!(cut.ends_with("\"finish_reason\":null}]}\n\n\r\n"), "a cut body has none: {cut}");
    assert_eq!(refused, "", "a refused connection has no byte");
    assert!(limited.contains("retry-after: 2\r\n"), "{limited}");
}
