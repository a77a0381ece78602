//! Which models there are, by configuration and environment.

use std::path::Path;

use futures_util::StreamExt;

use super::*;
use crate::config::{AuthMethod, ModelConfig};
use crate::id::AgentId;
use crate::provider::replay::{Replay, Script, seams};
use crate::provider::{Fault, ModelRequest};
use crate::world::{Dir, Environment, Fs};

const CANARY: &str = "sk-canary-0123456789";

/// A machine with these variables and no files.
struct Machine(Vec<(&'static str, &'static str)>);

impl Environment for Machine {
    fn var(&self, name: &str) -> Option<String> {
        let (_, value) = self.0.iter().find(|(known, _)| *known == name)?;
        Some((*value).to_owned())
    }

    fn vars(&self) -> Vec<(String, String)> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        self.0.iter().map(owned).collect()
    }

    fn current_dir(&self) -> io::Result<PathBuf> {
        Ok(PathBuf::from("/"))
    }

    fn home_dir(&self) -> Option<PathBuf> {
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
    fn dir(&self, _: &Path) -> io::Result<Arc<dyn Dir>> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn canonical(&self, _: &Path) -> io::Result<PathBuf> {
        Err(io::ErrorKind::NotFound.into())
    }
}

/// A provider of which only its type and the aliases of its models with their ids are given.
fn provider(kind: ProviderKind, models: &[(&str, &str)]) -> ProviderConfig {
    let model = |(alias, id): &(&str, &str)| ((*alias).to_owned(), ModelConfig::of(id));
    ProviderConfig { models: models.iter().map(model).collect(), ..ProviderConfig::of(kind) }
}

fn config(providers: impl IntoIterator<Item = (&'static str, ProviderConfig)>) -> Config {
    let named = |(name, provider): (&str, ProviderConfig)| (name.to_owned(), provider);
    Config { providers: providers.into_iter().map(named).collect(), ..Config::default() }
}

fn built(
    config: &Config,
    variables: &[(&'static str, &'static str)],
) -> Result<Models, ModelError> {
    built_over(Replay::new([]), config, variables)
}

fn built_over(
    http: Arc<Replay>,
    config: &Config,
    variables: &[(&'static str, &'static str)],
) -> Result<Models, ModelError> {
    let machine = Machine(variables.to_vec());
    let keys = KeyFinder { environment: &machine, fs: &machine };
    Models::build(&seams(http), keys, config, Watchers::default())
}

/// Name, provider, id, context window and output of a model.
fn facts(model: &Model) -> (&str, &str, &str, u64, u64) {
    (&model.name, &model.provider_name, &model.id, model.context_window, model.output_tokens_max)
}

fn refusal(outcome: Result<Models, ModelError>) -> String {
    outcome.expect_err("this configuration is refused").to_string()
}

fn two_local_providers() -> Config {
    let mut home = provider(ProviderKind::Ollama, &[("small", ""), ("large", "llama3")]);
    home.models["small"] = ModelConfig {
        id: "qwen/qwen3".to_owned(),
        context_window: 1000,
        max_output: 100,
        reasoning: false,
    };
    let rack = provider(ProviderKind::Vllm, &[("big", "m")]);
    config([("home", home), ("rack", rack)])
}

#[test]
fn models_are_found_by_alias_by_id_and_by_default() {
    let models = built(&two_local_providers(), &[("OPENAI_API_KEY", CANARY)]).unwrap();
    let found = |name| models.resolve(name).unwrap();
    let small = ("small", "home", "qwen/qwen3", 1000, 100);
    assert_eq!(facts(&found(None)), small);
    assert_eq!(facts(&found(Some("small"))), small);
    assert_eq!(facts(&found(Some("home/qwen/qwen3"))), small);
    assert_eq!(
        facts(&found(Some("rack/other/x"))),
        ("rack/other/x", "rack", "other/x", 131_072, 4096)
    );
    assert_eq!(facts(&found(Some("demo"))), ("demo", "demo", "demo", 131_072, 4096));
    assert_eq!(models.names().collect::<Vec<_>>(), ["small", "large", "big", "demo"]);
    assert_eq!(models.notice(), None);
}

#[test]
fn an_unknown_model_names_the_known_ones() {
    let models = built(&two_local_providers(), &[]).unwrap();
    for name in ["tiny", "nowhere/m", "home/", "openai/gpt"] {
        assert_eq!(
            models.resolve(Some(name)).unwrap_err().to_string(),
            format!("Unknown model: {name} (known: small, large, big, demo, or provider/model-id)")
        );
    }
}

#[test]
fn the_default_model_is_the_configured_one_and_must_exist() {
    let with = |name: &str| {
        let mut config = two_local_providers();
        config.default_model = Some(name.to_owned());
        built(&config, &[])
    };
    let models = with("rack/m").unwrap();
    assert_eq!(&*models.resolve(None).unwrap().name, "big");
    assert_eq!(
        refusal(with("tiny")),
        "Unknown model: tiny (known: small, large, big, demo, or provider/model-id)"
    );
}

#[test]
fn without_configuration_and_keys_there_is_only_demo() {
    let models = built(&Config::default(), &[("OPENAI_API_KEY", " ")]).unwrap();
    assert_eq!(&*models.resolve(None).unwrap().name, "demo");
    assert_eq!(models.names().collect::<Vec<_>>(), ["demo"]);
    assert_eq!(models.notice(), Some(DEMO_NOTICE));
}

#[test]
fn without_configuration_a_key_chooses_its_provider() {
    let openai = ("gpt-4.1", "openai", "gpt-4.1", 131_072, 4096);
    let id = "openai/gpt-4.1";
    let openrouter = (id, "openrouter", id, 131_072, 4096);
    let both = [("OPENROUTER_API_KEY", CANARY), ("OPENAI_API_KEY", CANARY)];
    let claude = "claude-sonnet-4-5";
    let anthropic = (claude, "anthropic", claude, 131_072, 4096);
    let third = [("ANTHROPIC_API_KEY", CANARY)];
    for (variables, expected) in [
        (&both[1..], openai),
        (&both[..1], openrouter),
        (&both[..], openai),
        (&third[..], anthropic),
    ] {
        let models = built(&Config::default(), variables).unwrap();
        assert_eq!(facts(&models.resolve(None).unwrap()), expected);
    }
    assert_eq!(
        built(&Config::default(), &both[..1]).unwrap().notice(),
        Some(
            "no model is configured: OPENROUTER_API_KEY is set, so `openai/gpt-4.1` of openrouter \
             answers. For another one set `providers` in config.json in the home of the server"
        )
    );
}

#[test]
fn a_provider_without_its_key_is_refused_by_name() {
    let bare = |kind| provider(kind, &[]);
    let with = |provider| refusal(built(&config([("p", provider)]), &[]));
    let advice = "or name another one with `api_key_env` or a file with `api_key_file`";
    assert_eq!(
        with(bare(ProviderKind::Openai)),
        format!(
            "provider `p` needs a key: set the environment variable `OPENAI_API_KEY`, {advice}"
        )
    );
    let own_variable =
        ProviderConfig { api_key_env: Some("MINE".to_owned()), ..bare(ProviderKind::Ollama) };
    assert_eq!(
        with(own_variable),
        format!("provider `p` needs a key: set the environment variable `MINE`, {advice}")
    );
    let sourceless =
        ProviderConfig { auth_method: Some(AuthMethod::ApiKey), ..bare(ProviderKind::Vllm) };
    assert_eq!(
        with(sourceless),
        "provider `p` has an `auth_method` but neither `api_key_env` nor `api_key_file`"
    );
    let file =
        ProviderConfig { api_key_file: Some("/run/key".into()), ..bare(ProviderKind::Openai) };
    assert_eq!(with(file), "cannot read the key of provider `p` from \"/run/key\"");
    let keyless =
        ProviderConfig { auth_method: Some(AuthMethod::None), ..bare(ProviderKind::Openai) };
    assert!(built(&config([("p", keyless)]), &[]).is_ok());
}

#[test]
fn an_alias_names_one_model() {
    let with = |first: &str, second: &str| {
        let vllm = |alias: &str| provider(ProviderKind::Vllm, &[(alias, "m")]);
        built(&config([("a", vllm(first)), ("b", vllm(second))]), &[])
    };
    assert_eq!(
        refusal(with("x", "x")),
        "the alias `x` names a model of `a` and one of `b`: rename one"
    );
    assert_eq!(
        refusal(with("x", "demo")),
        "the alias `demo` is the built-in model's: rename that of provider `b`"
    );
    let own = config([("d", provider(ProviderKind::Demo, &[("demo", "x")]))]);
    let models = built(&own, &[]).unwrap();
    assert_eq!(&*models.resolve(Some("demo")).unwrap().id, "x");
}

#[tokio::test(start_paused = true)]
async fn a_key_is_in_no_error_and_no_debug_print() {
    let body = format!("{{\"error\": {{\"message\": \"bad key {CANARY}\"}}}}");
    let replay = Replay::new([Script::Answer {
        status: 401,
        content_type: "application/json",
        body: vec![crate::provider::replay::Piece::Bytes(body.into_bytes())],
    }]);
    // The provider that is asked quotes the key of the other one.
    let openai = provider(ProviderKind::Openai, &[("own", "m")]);
    let router = provider(ProviderKind::Openrouter, &[("other", "n")]);
    let keys = [("OPENAI_API_KEY", "sk-other-98765"), ("OPENROUTER_API_KEY", CANARY)];
    let config = config([("openai", openai), ("router", router)]);
    let models = built_over(replay, &config, &keys).unwrap();
    let model = models.resolve(None).unwrap();
    let request = ModelRequest {
        agent: AgentId::parse("main").unwrap(),
        model: model.id.to_string(),
        system: "".into(),
        messages: [].into_iter().collect(),
        tools: Arc::new([]),
        output_tokens_max: 1,
        reasoning: false,
    };
    let answer = model.provider.stream(request).next().await;
    let error = answer.expect("an exchange has an outcome").unwrap_err();
    assert_eq!(error.fault, Fault::Auth);
    let unsendable = built(&Config::default(), &[("OPENAI_API_KEY", "sk-canary\u{7f}")]);
    let shown = format!("{models:?} {model:?} {error:?} {error} {unsendable:?}");
    assert!(!shown.contains("canary"), "{shown}");
    assert!(unsendable.is_err());
}
