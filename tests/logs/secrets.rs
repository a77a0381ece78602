//! A whole server with a provider that shows every key it is shown, and the log of their traffic.

use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use nexus3::client::NexusClient;
use nexus3::config::{Config, ModelConfig, ProviderConfig, ProviderKind};
use nexus3::logs::Detail;
use nexus3::policy::ceiling::Yolo;
use nexus3::rpc::method::{CreateAgentParams, SendParams, SendResult};
use nexus3::server::{Access, LogSettings, Resume, Server, Settings};
use nexus3::world::real;
use secrecy::ExposeSecret;
use serde_json::Value;
use wiremock::matchers::{header, method};
use wiremock::{Mock, MockServer, ResponseTemplate};

const KEY: &str = "sk-canary-0123456789";
const TEAM: &str = "team-canary-42";

/// An answer that spells out the key in three tokens and the header's value in one.
fn echo() -> ResponseTemplate {
    let token = |text: &str| {
        format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
    };
    let finish =
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let body =
        [&token("my key: sk-ca"), &token("nary-01234"), &token("56789, "), &token(TEAM), finish];
    let body = body.map(str::to_owned).concat();
    ResponseTemplate::new(200)
        .insert_header("x-seen", format!("Bearer {KEY}").as_str())
        .set_body_raw(body, "text/event-stream")
}

fn config(base_url: String, key_file: &Path) -> Config {
    let model = ModelConfig {
        id: "m-1".to_owned(),
        context_window: 10_000,
        max_output: 7,
        reasoning: false,
    };
    let provider = ProviderConfig {
        base_url: Some(base_url),
        api_key_file: Some(key_file.to_owned()),
        headers: [("X-Team".to_owned(), TEAM.into())].into(),
        request_timeout: 10.0,
        stream_idle_timeout: 10.0,
        models: [("m".to_owned(), model)].into(),
        ..ProviderConfig::of(ProviderKind::Vllm)
    };
    let mut config =
        Config { providers: [("wire".to_owned(), provider)].into(), ..Config::default() };
    config.server.port = 0;
    config
}

#[tokio::test]
async fn the_traffic_is_in_the_raw_log_and_no_secret_is() {
    let provider = MockServer::start().await;
    Mock::given(method("POST"))
        .and(header("authorization", format!("Bearer {KEY}")))
        .and(header("x-team", TEAM))
        .respond_with(echo())
        .expect(1)
        .mount(&provider)
        .await;
    let mut key_file = tempfile::NamedTempFile::new().expect("a test may write a file");
    writeln!(key_file, "{KEY}").expect("a test may write a file");
    let private = Permissions::from_mode(0o700);
    let home = tempfile::Builder::new().permissions(private).tempdir().expect("it is made");
    let dir = home.path().join("elsewhere");
    let world = real::world().expect("a test runs in a runtime");
    let settings = Settings {
        config: config(format!("{}/v1", provider.uri()), key_file.path()),
        home: home.path().to_owned(),
        access: Access::TokenHolders,
        yolo: Yolo::Refused,
        resume: Resume::WhenAsked,
        logs: LogSettings { dir: dir.clone(), detail: Detail { verbose: false, raw: true } },
        record: None,
    };
    let server = Server::bind(world.clone(), settings).await.expect("the server starts");
    let token = server.token().expect("there is one").clone();
    let client = NexusClient::on(&world, server.address(), Some(token.clone()));
    let serving = tokio::spawn(server.run());
    let create =
        CreateAgentParams { agent_id: Some("w1".to_owned()), ..CreateAgentParams::default() };
    let agent = client.create_agent(&create).await.expect("it is created").agent_id;
    let content = format!("the token is {}, the key {KEY}", token.expose_secret());
    let send = SendParams { content, ..SendParams::default() };
    let answer = client.send(&agent, &send).await.expect("it answers");
    let SendResult::Completed { content, .. } = answer else { panic!("{answer:?}") };
    assert_eq!(content, format!("my key: {KEY}, {TEAM}"), "the conversation is untouched");
    client.shutdown_server().await.expect("it stops");
    serving.await.expect("it ends in order");

    let raw = std::fs::read_to_string(dir.join("w1/raw.jsonl")).expect("it is there");
    for secret in [KEY, TEAM, token.expose_secret()] {
        assert!(!raw.contains(secret), "{raw}");
    }
    let lines: Vec<Value> =
        raw.lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect();
    let [request, response] = lines.as_slice() else { panic!("{raw}") };
    assert_eq!(request["direction"], "request");
    assert_eq!(request["headers"]["authorization"], "[redacted]");
    let messages = request["body"]["messages"].as_array().expect("there are some");
    let question = &messages.last().expect("it is the question")["content"];
    assert_eq!(question, "the token is [redacted], the key [redacted]");
    assert_eq!((&response["direction"], &response["status"]), (&"response".into(), &200.into()));
    assert_eq!(response["headers"]["x-seen"], "Bearer [redacted]");
    let records = response["body"].as_array().expect("it is a stream");
    let text = records.iter().filter_map(|r| r["choices"][0]["delta"]["content"].as_str());
    assert_eq!(text.collect::<String>(), "my key: [redacted], [redacted]");
}
