//! What the keys do that are about the server itself, and about where it may ask.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::Request;
use nexus3::config::{Config, ModelConfig, NetworkConfig, ProviderConfig, ProviderKind};
use nexus3::provider::Models;
use nexus3::world::{BoxFuture, Http, HttpError, HttpResponse, HttpTerms, real};
use serde_json::{Value, json};

use crate::support::Person;

fn configured(config: &Value) -> Person {
    let person = Person::new();
    person.write_home("config.json", &config.to_string());
    person
}

fn log(person: &Person) -> String {
    std::fs::read_to_string(person.home.path().join("logs/server.log")).unwrap()
}

#[test]
fn a_server_logs_as_much_as_its_level_says() {
    let logged = |level: &str| {
        let config = json!({"server": {"port": 0, "idle_timeout": 0.05, "log_level": level}});
        let person = configured(&config);
        assert_eq!(person.run(&["serve"]).code, 0);
        log(&person)
    };
    assert_eq!(logged("error"), "");
    assert_eq!(logged("warn"), "");
    let info = logged("info");
    assert!(info.contains(" INFO nexus3::server: stopped"), "{info}");
}

#[test]
fn a_server_listens_where_its_host_and_port_say_and_commands_look_there() {
    let silent = tokio::net::TcpSocket::new_v4().unwrap();
    silent.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let port = silent.local_addr().unwrap().port();
    drop(silent);
    let mut person = configured(&json!({"server": {"host": "localhost", "port": port}}));
    let server = person.serve_as_configured();
    assert_eq!(server.port, port.to_string());
    // Nothing else says where the server is.
    assert_eq!(person.run(&["rpc", "detect"]).stdout, "nexus_server\n");
    assert_eq!(person.run(&["rpc", "create", "scout", "--no-start"]).stdout, "scout\n");
    // A project that nobody trusts leads no command, and no token, elsewhere.
    let elsewhere = json!({"server": {"port": port.wrapping_add(1).max(1)}});
    person.write("p/.nexus3/config.json", &elsewhere.to_string());
    person.go("p");
    assert_eq!(person.run(&["rpc", "detect"]).stdout, "nexus_server\n");
    person.set("NEXUS3_SERVER__PORT", "soon");
    let wrong = person.run(&["rpc", "shutdown"]);
    assert_eq!((wrong.code, wrong.stderr.lines().count()), (1, 3), "{wrong:?}");
    assert_eq!(wrong.stderr.lines().last(), Some("  hint: or name the server with --port"));
    assert_eq!(person.run(&["rpc", "shutdown", "--port", &port.to_string()]).code, 0);
}

#[test]
fn a_server_on_the_other_loopback_is_found_there() {
    let person = configured(&json!({"server": {"host": "::1", "port": 0}}));
    let server = person.serve_as_configured();
    let url = format!("http://[::1]:{}", server.port);
    assert_eq!(person.run(&["rpc", "detect", "--url", &url]).stdout, "nexus_server\n");
    let elsewhere = person.run(&["rpc", "detect", "--url", &url.replace("[::1]", "127.0.0.1")]);
    assert_eq!(elsewhere.stdout, "no_server\n");
}

#[test]
fn unencrypted_requests_leave_this_machine_only_when_allowed() {
    let provider = |insecure: bool| {
        let models = json!({"m": {"id": "m-1"}});
        json!({"server": {"port": 0, "idle_timeout": 0.05}, "providers": {"p": {
            "type": "vllm", "base_url": "http://models.example/v1", "models": models,
            "allow_insecure_http": insecure,
        }}})
    };
    let refused = configured(&provider(false)).run(&["serve"]);
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("plain http to another machine"), "{refused:?}");
    assert_eq!(configured(&provider(true)).run(&["serve"]).code, 0);
}

/// Keeps the terms that a provider is asked on, and asks nobody.
#[derive(Clone, Default)]
struct Terms {
    /// Guards plain data; nothing is awaited while it is held.
    given: Arc<Mutex<Vec<HttpTerms>>>,
}

impl Http for Terms {
    fn with(self: Arc<Self>, terms: &HttpTerms) -> Arc<dyn Http> {
        self.given.lock().unwrap().push(terms.clone());
        self
    }

    fn send(&self, _: Request<Bytes>) -> BoxFuture<'_, Result<HttpResponse, HttpError>> {
        unreachable!("no model is asked")
    }
}

#[tokio::test]
async fn private_addresses_are_within_reach_only_when_allowed() {
    let reached = |allow_private: bool, address: &str| {
        let provider = ProviderConfig {
            models: [("m".to_owned(), ModelConfig::of("m"))].into(),
            ..ProviderConfig::of(ProviderKind::Vllm)
        };
        let config = Config {
            providers: [("p".to_owned(), provider)].into(),
            network: NetworkConfig { allow_private },
            ..Config::default()
        };
        let terms = Terms::default();
        let mut world = real::world().unwrap();
        world.http = Arc::new(terms.clone());
        Models::new(&world, &config, None).unwrap();
        let given = terms.given.lock().unwrap();
        given[0].reach.check(address.parse().unwrap()).is_ok()
    };
    assert!(!reached(false, "10.0.0.7") && reached(true, "10.0.0.7"));
    assert!(reached(false, "127.0.0.1") && !reached(true, "169.254.169.254"));
}
