//! What the tests of agents share: a server whose model answers when the test says so, and short
//! words for what tests do all the time.

mod model;
mod progress;
pub mod server;

use std::ops::Deref;
use std::sync::Arc;

use model::AGENT;
pub use model::{Model, USAGE};
use nexus3::client::{ClientError, NexusClient};
use nexus3::config::{Config, ModelConfig, PermissionsConfig, ProviderConfig, ProviderKind};
use nexus3::id::{AgentId, RequestId};
use nexus3::message::{Message, Usage};
use nexus3::policy::ceiling::Yolo;
use nexus3::policy::{Grant, Permissions, Presets};
use nexus3::rpc::method::{
    AgentEntry, CreateAgentParams, DestroyAgentParams, DestroyAgentResult, GetMessagesParams,
    GetRequestResult, SendParams, SendResult,
};
use nexus3::rpc::wire::ErrorObject;
use nexus3::tool::Tools;
use nexus3::world::{World, real};
use progress::{Progress, WatchedHttp};
use serde_json::{Value, json};
use server::Running;
use tokio::task::JoinHandle;

pub const CONTEXT_WINDOW: u64 = 10_000;
pub const MAX_OUTPUT: u64 = 100;

/// A server and its model.
pub struct Stage {
    pub server: Running,
    pub model: Model,
    world: World,
}

impl Deref for Stage {
    type Target = NexusClient;

    fn deref(&self) -> &NexusClient {
        &self.server.client
    }
}

pub type Sent = JoinHandle<Result<SendResult, ClientError>>;

impl Stage {
    pub async fn new() -> Self {
        Self::with(Yolo::Refused, |_| {}).await
    }

    pub async fn with(yolo: Yolo, change: impl FnOnce(&mut Config)) -> Self {
        let (world, progress) = watched_world();
        let model = Model::start(progress).await;
        let mut config = config(&model);
        change(&mut config);
        Self { server: Running::start(world.clone(), config, yolo).await, model, world }
    }

    /// Stops the server and starts another on the same home, with the same model.
    pub async fn restarted(self, yolo: Yolo, change: impl FnOnce(&mut Config)) -> Self {
        let Self { server, model, world } = self;
        server.client.shutdown_server().await.expect("it takes leave");
        let home = server.stopped().await;
        let mut config = config(&model);
        change(&mut config);
        Self { server: Running::start_in(home, world.clone(), config, yolo).await, model, world }
    }

    /// Creates an agent under a name.
    pub async fn agent(&self, name: &str, preset: &str) -> AgentId {
        self.child(name, preset, None).await
    }

    pub async fn child(&self, name: &str, preset: &str, parent: Option<&AgentId>) -> AgentId {
        let params = CreateAgentParams { parent_agent_id: parent.cloned(), ..named(name, preset) };
        self.create_agent(&params).await.expect("the agent is created").agent_id
    }

    pub fn acting_as(&self, agent: &AgentId) -> NexusClient {
        self.server.client.clone().acting_as(agent)
    }

    /// Sends in the background and waits there.
    pub fn sending(&self, to: &AgentId, params: SendParams) -> Sent {
        sending(self.server.client.clone(), to, params)
    }

    /// Has a send accepted without waiting for it. Returns once it runs or waits.
    pub async fn queue(&self, to: &AgentId, request_id: &str, content: &str) {
        let params = SendParams { wait: Some(false), ..request(request_id, content) };
        self.send(to, &params).await.expect("the send is accepted");
    }

    /// A whole exchange: the agent is told something and answers.
    pub async fn exchange(&mut self, with: &AgentId, content: &str, answer: &str) -> SendResult {
        let sent = self.sending(with, says(content));
        self.model.asked_by(with.as_str()).await.answers(answer).await;
        ended(sent).await
    }

    pub async fn destroy(&self, id: &AgentId) -> DestroyAgentResult {
        let params = DestroyAgentParams { agent_id: id.clone(), cascade: None };
        self.destroy_agent(&params).await.expect("destroying answers")
    }

    pub async fn entries(&self) -> Vec<AgentEntry> {
        self.list_agents().await.expect("listing answers").agents
    }

    pub async fn entry(&self, id: &AgentId) -> AgentEntry {
        let entries = self.entries().await;
        entries.into_iter().find(|entry| entry.agent_id == *id).expect("the agent is listed")
    }

    pub async fn messages(&self, id: &AgentId) -> Vec<Message> {
        let page = self.get_messages(id, &GetMessagesParams::default()).await;
        let page = page.expect("reading messages answers");
        page.messages.into_iter().map(|numbered| (*numbered.message).clone()).collect()
    }

    pub async fn request(&self, agent: &AgentId, id: &str) -> GetRequestResult {
        self.get_request(agent, request_id(id)).await.expect("the request is known")
    }

    /// Asks until the conversation has this many messages.
    pub async fn has_messages(&self, agent: &AgentId, count: usize) {
        while self.get_context(agent).await.expect("it answers").message_count < count {}
    }

    /// Asks until this many sends wait for the agent.
    pub async fn has_queued(&self, agent: &AgentId, count: usize) {
        while self.entry(agent).await.queued < count {}
    }
}

pub fn sending(client: NexusClient, to: &AgentId, params: SendParams) -> Sent {
    let to = to.clone();
    tokio::spawn(async move { client.send(&to, &params).await })
}

pub async fn outcome(sent: Sent) -> Result<SendResult, ClientError> {
    sent.await.expect("the caller does not panic")
}

pub async fn ended(sent: Sent) -> SendResult {
    outcome(sent).await.expect("the send ends well")
}

/// The machine, and what tells how much of a model's answers the server has taken.
pub fn watched_world() -> (World, Arc<Progress>) {
    let mut world = real::world().expect("a test runs in a runtime");
    let progress = Arc::new(Progress::default());
    let inner = Arc::clone(&world.http);
    world.http = Arc::new(WatchedHttp { inner, progress: Arc::clone(&progress) });
    (world, progress)
}

fn config(model: &Model) -> Config {
    let sizes = ModelConfig {
        id: "m-1".to_owned(),
        context_window: CONTEXT_WINDOW,
        max_output: MAX_OUTPUT,
        reasoning: false,
    };
    let provider = ProviderConfig {
        base_url: Some(model.base_url.clone()),
        headers: [(AGENT.to_owned(), "${agent_id}".into())].into(),
        request_timeout: 60.0,
        stream_idle_timeout: 60.0,
        models: [("m".to_owned(), sizes)].into(),
        ..ProviderConfig::of(ProviderKind::Vllm)
    };
    Config { providers: [("wire".to_owned(), provider)].into(), ..Config::default() }
}

pub fn named(name: &str, preset: &str) -> CreateAgentParams {
    CreateAgentParams {
        agent_id: Some(name.to_owned()),
        preset: Some(preset.to_owned()),
        ..CreateAgentParams::default()
    }
}

pub fn says(content: &str) -> SendParams {
    SendParams { content: content.to_owned(), ..SendParams::default() }
}

pub fn request(id: &str, content: &str) -> SendParams {
    SendParams { request_id: Some(request_id(id)), ..says(content) }
}

pub fn agent_id(text: &str) -> AgentId {
    AgentId::parse(text).expect("it is well formed")
}

pub fn request_id(text: &str) -> RequestId {
    RequestId::parse(text).expect("it is well formed")
}

/// What a turn of that many answers of the model comes to.
pub fn completed(id: &str, content: &str, answers: u64) -> SendResult {
    SendResult::Completed {
        content: content.to_owned(),
        request_id: request_id(id),
        halted_at_iteration_limit: false,
        finish_reason: "stop".to_owned(),
        usage: usage(answers),
    }
}

pub fn usage(answers: u64) -> Usage {
    let (input, output) = USAGE;
    Usage { input_tokens: input * answers, output_tokens: output * answers }
}

pub fn cancelled(id: &str) -> SendResult {
    SendResult::Cancelled { cancelled: true, request_id: request_id(id) }
}

/// The JSON-RPC error that a call came to, sent with HTTP 200.
pub fn refused<T: std::fmt::Debug>(outcome: Result<T, ClientError>) -> ErrorObject {
    match outcome {
        Err(ClientError::Rpc { error }) => error,
        other => panic!("expected a JSON-RPC error: {other:?}"),
    }
}

pub fn error(code: i64, message: &str) -> ErrorObject {
    ErrorObject { code, message: message.to_owned(), data: None }
}

pub fn error_with(code: i64, message: &str, data: Value) -> ErrorObject {
    ErrorObject { data: Some(data), ..error(code, message) }
}

pub fn forbidden(reason: &str, message: &str) -> ErrorObject {
    error_with(-32003, message, json!({"reason": reason}))
}

/// The names of all tools but these, in the order models see them.
pub fn every_tool_but(lacking: &[&str]) -> Vec<String> {
    let tools = Tools::new();
    let names = tools.names().filter(|name| !lacking.contains(name));
    names.map(str::to_owned).collect()
}

/// The same for an agent that may write nowhere.
pub fn tools_but(lacking: &[&str]) -> Vec<String> {
    let permissions = permissions("worker");
    let tools = Tools::new().definitions(&permissions);
    let names = tools.iter().map(|tool| tool.name.to_string());
    names.filter(|name| !lacking.contains(&name.as_str())).collect()
}

fn permissions(preset: &str) -> Permissions {
    let presets = Presets::new(&PermissionsConfig::default()).expect("the built-in ones are sound");
    let preset = Arc::clone(presets.get(preset).expect("it is built in"));
    Permissions::new(Grant::new(preset, "/".into(), Vec::new()), None, &[])
}

pub fn timed_out() -> ErrorObject {
    let data = json!({"kind": "timeout", "retryable": true});
    error_with(-32000, "the time for this request is over", data)
}
