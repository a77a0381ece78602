//! A provider of either wire, asked once over real sockets.

use std::sync::Arc;

use futures_util::StreamExt;
use nexus3::config::{Config, ModelConfig, ProviderConfig, ProviderKind};
use nexus3::id::AgentId;
use nexus3::message::Message;
use nexus3::provider::{ModelEvent, ModelRequest, Models, ProviderError};
use nexus3::world::{Chance, Use, World, real};
use serde_json::{Value, json};

pub const CANARY: &str = "sk-canary-0123456789";

pub type Outcome = (Vec<ModelEvent>, Option<ProviderError>);

#[derive(Clone, Copy, Debug)]
pub enum Wire {
    Completions,
    Messages,
}

pub const WIRES: [Wire; 2] = [Wire::Completions, Wire::Messages];

impl Wire {
    pub fn kind(self) -> ProviderKind {
        match self {
            Self::Completions => ProviderKind::Vllm,
            Self::Messages => ProviderKind::Anthropic,
        }
    }

    /// A piece of an answer that says something.
    pub fn says(self, text: &str) -> String {
        record(&match self {
            Self::Completions => json!({"choices": [{"delta": {"content": text}}]}),
            Self::Messages => json!({"type": "content_block_delta", "index": 0,
                                     "delta": {"type": "text_delta", "text": text}}),
        })
    }

    /// A call of `echo` whose arguments come in pieces; `index` is its place among the calls.
    pub fn asks(self, index: u64, id: Option<&str>, arguments: &[&str]) -> String {
        match self {
            Self::Completions => {
                let call =
                    |call: Value| record(&json!({"choices": [{"delta": {"tool_calls": [call]}}]}));
                let mut named = json!({"index": index, "function": {"name": "echo"}});
                if let Some(id) = id {
                    named["id"] = json!(id);
                }
                let piece =
                    |text: &&str| call(json!({"index": index, "function": {"arguments": text}}));
                call(named) + &arguments.iter().map(piece).collect::<String>()
            }
            Self::Messages => {
                let mut block = json!({"type": "tool_use", "name": "echo", "input": {}});
                if let Some(id) = id {
                    block["id"] = json!(id);
                }
                let start =
                    json!({"type": "content_block_start", "index": index, "content_block": block});
                let piece = |text: &&str| {
                    record(&json!({"type": "content_block_delta", "index": index,
                                   "delta": {"type": "input_json_delta", "partial_json": text}}))
                };
                let pieces: String = arguments.iter().map(piece).collect();
                let stop = json!({"type": "content_block_stop", "index": index});
                [record(&start), pieces, record(&stop)].concat()
            }
        }
    }

    /// The ids and arguments of the calls in a request's last answer, and the results to them.
    pub fn acted(self, request: &Value) -> Acted {
        let messages = request["messages"].as_array().expect("there are messages");
        let answer = messages.iter().rposition(|message| message["role"] == "assistant");
        let (answer, results) = messages[answer.expect("the model has answered")..]
            .split_first()
            .expect("the answer is there");
        let blocks = |message: &Value| message["content"].as_array().cloned().unwrap_or_default();
        let (calls, results): (Vec<_>, Vec<_>) = match self {
            Self::Completions => {
                let calls = answer["tool_calls"].as_array().expect("it called").iter();
                let called =
                    |call: &Value| (text(&call["id"]), text(&call["function"]["arguments"]));
                let result =
                    |message: &Value| (text(&message["tool_call_id"]), text(&message["content"]));
                (calls.map(called).collect(), results.iter().map(result).collect())
            }
            Self::Messages => {
                let calls = blocks(answer).into_iter().filter(|block| block["type"] == "tool_use");
                let called = |call: Value| (text(&call["id"]), call["input"].to_string());
                let results = results.iter().flat_map(blocks);
                let result = |block: Value| (text(&block["tool_use_id"]), text(&block["content"]));
                (calls.map(called).collect(), results.map(result).collect())
            }
        };
        Acted { calls, results }
    }

    /// The end of an answer, as the wire calls its reason.
    pub fn ends(self, reason: Reason) -> String {
        let (own, other) = match reason {
            Reason::Done => ("stop", "end_turn"),
            Reason::Length => ("length", "max_tokens"),
            Reason::Calls => ("tool_calls", "tool_use"),
        };
        match self {
            Self::Completions => {
                let finish = json!({"choices": [{"delta": {}, "finish_reason": own}]});
                format!("{}data: [DONE]\n\n", record(&finish))
            }
            Self::Messages => {
                let delta = json!({"type": "message_delta", "delta": {"stop_reason": other}});
                format!("{}{}", record(&delta), record(&json!({"type": "message_stop"})))
            }
        }
    }

    /// An error in place of the rest of an answer.
    pub fn errs(self, message: &str) -> String {
        record(&match self {
            Self::Completions => json!({"error": {"message": message, "type": "server_error"}}),
            Self::Messages => {
                json!({"type": "error", "error": {"type": "api_error", "message": message}})
            }
        })
    }
}

#[derive(Clone, Copy, Debug)]
pub enum Reason {
    Done,
    Length,
    Calls,
}

/// Calls of a model with their arguments, and their results, each with its id.
#[derive(Debug, PartialEq, Eq)]
pub struct Acted {
    pub calls: Vec<(String, String)>,
    pub results: Vec<(String, String)>,
}

fn text(value: &Value) -> String {
    value.as_str().expect("it is text").to_owned()
}

pub fn record(data: &Value) -> String {
    format!("data: {data}\n\n")
}

/// A provider of this wire at `base_url`, with a key that must not be seen.
pub fn provider(wire: Wire, base_url: String) -> ProviderConfig {
    ProviderConfig {
        base_url: Some(base_url),
        api_key_env: Some("PROVIDER_TEST_KEY".to_owned()),
        ..named(wire.kind())
    }
}

/// A provider of which only the type and one model are given.
pub fn named(kind: ProviderKind) -> ProviderConfig {
    ProviderConfig {
        models: [("m".to_owned(), ModelConfig::of("m-1"))].into(),
        ..ProviderConfig::of(kind)
    }
}

/// This machine, with the canary for every key and no chance: repetitions come at once.
pub fn world() -> World {
    let mut world = real::world().expect("a test runs in a runtime");
    world.chance = Arc::new(Least);
    world.environment = Arc::new(Keys(Arc::clone(&world.environment)));
    world
}

/// A configuration of nothing but this provider.
pub fn config(provider: ProviderConfig) -> Config {
    Config { providers: [("p".to_owned(), provider)].into(), ..Config::default() }
}

pub fn models(world: &World, provider: ProviderConfig) -> Models {
    Models::new(world, &config(provider), None).expect("the configuration is sound")
}

pub async fn ask(world: &World, provider: ProviderConfig) -> Outcome {
    ask_one_of(&models(world, provider)).await
}

pub async fn ask_one_of(models: &Models) -> Outcome {
    let model = models.resolve(Some("m")).expect("it is configured");
    let mut stream = model.provider.stream(ModelRequest {
        agent: AgentId::parse("main").expect("it is well formed"),
        model: model.id.to_string(),
        system: "Be brief.".into(),
        messages: [Arc::new(Message::User { content: "hi".into(), meta: None })]
            .into_iter()
            .collect(),
        tools: Arc::new([]),
        output_tokens_max: 7,
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

struct Least;

impl Chance for Least {
    fn fill(&self, _: Use, bytes: &mut [u8]) {
        bytes.fill(0);
    }
}

/// An environment in which every key is the canary.
struct Keys(Arc<dyn nexus3::world::Environment>);

impl nexus3::world::Environment for Keys {
    fn var(&self, name: &str) -> Option<String> {
        if name.ends_with("_KEY") { Some(CANARY.to_owned()) } else { self.0.var(name) }
    }

    fn vars(&self) -> Vec<(String, String)> {
        self.0.vars()
    }

    fn current_dir(&self) -> std::io::Result<std::path::PathBuf> {
        self.0.current_dir()
    }

    fn home_dir(&self) -> Option<std::path::PathBuf> {
        self.0.home_dir()
    }

    fn os(&self) -> &'static str {
        "linux"
    }

    fn process_id(&self) -> u32 {
        self.0.process_id()
    }
}
