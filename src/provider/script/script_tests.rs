//! The `script` provider: what a turn sees of every entry, in virtual time.

use std::time::Duration;

use futures_util::StreamExt;
use serde_json::json;
use tokio::time::Instant;

use super::*;
use crate::config::{ModelConfig, ProviderKind};
use crate::id::AgentId;
use crate::message::{Message, Usage};
use crate::provider::replay::Most;
use crate::provider::{
    self as wire, FinishReason, ModelEvent, ModelRequest, Provider, ProviderError,
};

type Outcome = (Vec<ModelEvent>, Option<ProviderError>);

fn provider_of(entries: Vec<Entry>) -> Remote {
    let mut config = ProviderConfig::of(ProviderKind::Script);
    config.models.insert("alias".to_owned(), ModelConfig::of("id"));
    // Each entry is seen by itself.
    config.max_retries = 0;
    let chance: Arc<dyn Chance> = Arc::new(Most);
    over(Script::new(entries).unwrap(), &chance, "p", &config).unwrap()
}

async fn ask(provider: &Remote, agent: &str, content: &str) -> Outcome {
    let mut stream = provider.stream(ModelRequest {
        agent: AgentId::parse(agent).unwrap(),
        model: "id".to_owned(),
        system: "".into(),
        messages: [Arc::new(Message::User { content: content.into(), meta: None })]
            .into_iter()
            .collect(),
        tools: Arc::new([]),
        output_tokens_max: 10,
        reasoning: false,
    });
    let mut events = Vec::new();
    while let Some(item) = stream.next().await {
        match item {
            Ok(event) => events.push(event),
            Err(error) => return (events, Some(error)),
        }
    }
    (events, None)
}

/// The error of an entry that says "a" and has this fault, and how long it took.
async fn failed(fault: Fault) -> (Vec<ModelEvent>, ProviderError, Duration) {
    let started = Instant::now();
    let entry = Entry { fault: Some(fault), ..says("a") };
    let (events, error) = ask(&provider_of(vec![entry]), "main", "hi").await;
    (events, error.expect("the entry fails"), started.elapsed())
}

fn says(text: &str) -> Entry {
    Entry { says: Some(Chunks::One(text.to_owned())), ..Entry::default() }
}

fn text(text: &str) -> ModelEvent {
    ModelEvent::Text(text.to_owned())
}

fn failure(fault: wire::Fault, status: Option<u16>, retryable: bool, what: &str) -> ProviderError {
    let message = format!("provider `p` {what}");
    ProviderError { fault, status, attempts: 1, retryable, message }
}

fn call(index: usize, id: &str, arguments: &str) -> [ModelEvent; 2] {
    [
        ModelEvent::ToolCallStarted { index, id: id.to_owned(), name: "echo".to_owned() },
        ModelEvent::ToolCallDelta { index, arguments: arguments.to_owned() },
    ]
}

fn two_calls(fault: Fault) -> Entry {
    let args = json!({ "text": "x" }).as_object().unwrap().clone();
    let ask = Ask { tool: "echo".to_owned(), args, args_json: None };
    Entry { asks: vec![ask.clone(), ask], fault: Some(fault), ..Entry::default() }
}

#[tokio::test(start_paused = true)]
async fn an_entry_is_streamed_at_its_own_pace() {
    let entry = Entry {
        delay: Some(Time(Duration::from_secs(1))),
        pause: Some(Time(Duration::from_millis(20))),
        thinks: Some(Chunks::One("hm".to_owned())),
        says: Some(Chunks::Many(vec!["a".to_owned(), "b".to_owned()])),
        usage: Some(ScriptUsage { input: 3, output: 2 }),
        finish: Some("length".to_owned()),
        ..Entry::default()
    };
    let started = Instant::now();
    let outcome = ask(&provider_of(vec![entry]), "main", "hi").await;
    let expected = vec![
        ModelEvent::Reasoning("hm".to_owned()),
        text("a"),
        text("b"),
        ModelEvent::Usage(Usage { input_tokens: 3, output_tokens: 2 }),
        ModelEvent::Finished(FinishReason::Length),
    ];
    assert_eq!(outcome, (expected, None));
    assert_eq!(started.elapsed(), Duration::from_millis(1040));
}

#[tokio::test(start_paused = true)]
async fn the_agents_of_a_provider_share_its_entries() {
    let boss = Entry { agent: Some("boss".to_owned()), ..says("b") };
    let by_alias = Entry { model: Some("alias".to_owned()), ..says("m") };
    let by_id = Entry { model: Some("id".to_owned()), ..says("never") };
    let provider = provider_of(vec![boss, by_alias, by_id]);
    assert_eq!(ask(&provider, "w1", "hi").await.0[0], text("m"));
    assert_eq!(ask(&provider, "boss", "hi").await.0[0], text("b"));
    let what =
        "answered HTTP 500: no entry of the script matches agent `w1`, model `id` and message 1";
    let expected = failure(wire::Fault::Status, Some(500), true, what);
    assert_eq!(ask(&provider, "w1", "hi").await, (vec![], Some(expected)));
}

#[tokio::test(start_paused = true)]
async fn tool_calls_are_asked_for_and_mended_as_on_the_wire() {
    let finished = [ModelEvent::Finished(FinishReason::ToolCalls)];
    let object = r#"{"text":"x"}"#;
    let two = |arguments| [call(0, "call_1", arguments), call(1, "call_2", arguments)].concat();
    for (fault, arguments) in [
        (Fault::default(), object),
        (Fault { duplicate_tool_ids: true, ..Fault::default() }, object),
        (Fault { missing_tool_ids: true, ..Fault::default() }, object),
        (Fault { bad_arguments: true, ..Fault::default() }, "{\"cut off\": "),
    ] {
        let outcome = ask(&provider_of(vec![two_calls(fault)]), "main", "hi").await;
        assert_eq!(outcome, ([&two(arguments)[..], &finished].concat(), None));
    }
}

#[tokio::test(start_paused = true)]
async fn faults_before_the_answer_are_told_apart() {
    let status = |status| Fault { status: Some(status), ..Fault::default() };
    let limited = "answered HTTP 429: scripted fault";
    let refused = "refused access (HTTP 401; no key is configured for it): scripted fault";
    let closed = "closed the connection before it answered";
    let late = "did not answer within 120 s";
    for (fault, expected, seconds) in [
        (status(429), failure(wire::Fault::Status, Some(429), true, limited), 0),
        (status(401), failure(wire::Fault::Auth, Some(401), false, refused), 0),
        (
            Fault { refuse: true, ..Fault::default() },
            failure(wire::Fault::Reset, None, true, closed),
            0,
        ),
        (
            Fault { stall: Some(Stall::Headers), ..Fault::default() },
            failure(wire::Fault::Timeout, None, true, late),
            120,
        ),
    ] {
        let outcome = failed(fault).await;
        assert_eq!(outcome, (vec![], expected, Duration::from_secs(seconds)));
    }
}

#[tokio::test(start_paused = true)]
async fn faults_within_the_answer_are_told_apart_and_keep_the_text() {
    let after = |fault| async {
        let (events, error, took) = failed(fault).await;
        assert_eq!(events, [text("a")]);
        assert_eq!((error.status, error.retryable), (None, true));
        (error.fault, error.message.replace("provider `p` ", ""), took)
    };
    let told = |fault, what: &str, took| (fault, what.to_owned(), took);
    let at_once = Duration::ZERO;
    let none = Fault::default;
    assert_eq!(
        after(Fault { eof_without_finish: true, ..none() }).await,
        told(wire::Fault::Eof, "ended its answer without a finish reason", at_once)
    );
    assert_eq!(
        after(Fault { bad_json: true, ..none() }).await,
        told(wire::Fault::BadJson, "sent malformed JSON in its answer", at_once)
    );
    let reported = "reported an error in its answer: scripted fault";
    assert_eq!(
        after(Fault { error_in_stream: true, ..none() }).await,
        told(wire::Fault::ErrorInStream, reported, at_once)
    );
    let silent = "sent nothing for 60 s in the middle of its answer";
    assert_eq!(
        after(Fault { stall: Some(Stall::Chunks(1)), ..none() }).await,
        told(wire::Fault::Stall, silent, Duration::from_mins(1))
    );
    let broke = "broke the connection in the middle of its answer";
    assert_eq!(
        after(Fault { reset_after: Some(1), ..none() }).await,
        told(wire::Fault::Reset, broke, Duration::from_millis(1))
    );
}

#[tokio::test(start_paused = true)]
async fn cut_bytes_change_no_word() {
    let expected = (vec![text("é"), ModelEvent::Finished(FinishReason::Stop)], None);
    for fault in [
        Fault { split: Some(1), ..Fault::default() },
        Fault { drip: Some(Time(Duration::from_secs(50))), ..Fault::default() },
    ] {
        let entry = Entry { fault: Some(fault), ..says("é") };
        assert_eq!(ask(&provider_of(vec![entry]), "main", "hi").await, expected);
    }
}
