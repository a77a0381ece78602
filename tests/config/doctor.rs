//! What a doctor finds on machines that lack something.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use nexus3::cli::doctor::{Finding, examine};
use nexus3::world::real::{self, Landlock};
use nexus3_sim::disk::{Disk, Fault, Item, Switch};
use serde_json::{Value, json};

use crate::support::Person;

/// What is wrong, by check.
fn wrong(person: &Person) -> Vec<(String, String, String)> {
    let ran = person.run(&["doctor", "--json"]);
    let found = ran.json();
    let findings = found["findings"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let wrong: Vec<_> = findings
        .iter()
        // Whether the kernel has it is the business of another test.
        .filter(|finding| finding["ok"] == json!(false) && finding["check"] != "landlock")
        .map(|finding| (text(&finding["check"]), text(&finding["message"]), text(&finding["hint"])))
        .collect();
    let healthy = findings.iter().all(|finding| finding["ok"] == json!(true));
    assert_eq!((ran.code == 0, &found["ok"]), (healthy, &json!(healthy)), "{ran:?}");
    wrong
}

/// A person whose server would listen where nobody does.
fn person() -> (Person, tokio::net::TcpSocket) {
    let person = Person::new();
    let silent = tokio::net::TcpSocket::new_v4().unwrap();
    silent.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let port = silent.local_addr().unwrap().port();
    person.write_home("config.json", &json!({"server": {"port": port}}).to_string());
    (person, silent)
}

#[test]
fn a_healthy_machine_has_nothing_wrong() {
    let (person, _port) = person();
    assert_eq!(wrong(&person), []);
    let said = person.run(&["doctor"]);
    assert!(said.stdout.starts_with("ok    home: "), "{said:?}");
    let left = fs::read_dir(person.home.path()).unwrap().count();
    assert_eq!(left, 1, "it leaves nothing behind");
}

#[test]
fn a_token_that_others_can_read_and_a_lock_that_nobody_holds_are_found() {
    let (person, _port) = person();
    person.write_home("server.lock", r#"{"pid": 12, "port": 9000}"#);
    person.write_home("rpc-9000.token", "nxk_0");
    let token = person.home.path().join("rpc-9000.token");
    fs::set_permissions(&token, fs::Permissions::from_mode(0o640)).unwrap();
    let path = token.display();
    let died = "a server died and left its lock and its token behind (process 12, port 9000)";
    let start = "start a server: it takes both away, and closes what was left open";
    let found = |check: &str, message: &str, hint: &str| {
        (check.to_owned(), message.to_owned(), hint.to_owned())
    };
    assert_eq!(
        wrong(&person),
        [
            found(
                "token",
                &format!("others can read the token file {path}"),
                &format!("run `chmod 600 {path}`")
            ),
            found("lock", died, start),
        ]
    );
    // What it advises helps.
    assert_eq!(person.run(&["serve", "0", "--idle-timeout", "0.05"]).code, 0);
    assert_eq!(wrong(&person), []);
}

#[test]
fn a_home_that_others_can_enter_is_found() {
    let (person, _port) = person();
    fs::set_permissions(person.home.path(), fs::Permissions::from_mode(0o750)).unwrap();
    let home = person.home.path().display();
    let (check, message, hint) = wrong(&person).remove(0);
    assert_eq!((check, message), ("home".to_owned(), format!("others can enter {home}")));
    assert_eq!(hint, format!("run `chmod 700 {home}`"));
}

#[test]
fn keys_that_are_missing_or_cannot_be_sent_are_found_for_each_provider() {
    let (mut person, port) = person();
    let port = port.local_addr().unwrap().port();
    let provider = |variable: &str, model: &str| json!({"type": "openai", "api_key_env": variable, "models": {model: {"id": "x"}}});
    let providers = json!({"a": provider("NOWHERE_KEY", "m"), "b": provider("ODD_KEY", "n")});
    let config = json!({"server": {"port": port}, "providers": providers});
    person.write_home("config.json", &config.to_string());
    person.set("ODD_KEY", "two\nlines");
    let found: Vec<_> = wrong(&person).into_iter().map(|(check, text, _)| (check, text)).collect();
    let told = |text: &str| ("provider".to_owned(), text.to_owned());
    assert_eq!(
        found,
        [
            told(
                "provider `a` needs a key: set the environment variable `NOWHERE_KEY`, or name \
                 another one with `api_key_env` or a file with `api_key_file`"
            ),
            told("provider `b` cannot be used: the key has characters that cannot be sent"),
        ]
    );
}

/// What is said of the MCP servers of a home, right or wrong.
fn said_of_mcp(person: &Person) -> Vec<(bool, String)> {
    let found = person.run(&["doctor", "--json"]).json();
    let findings = found["findings"].as_array().unwrap();
    let of_mcp = findings.iter().filter(|finding| finding["check"] == "mcp");
    of_mcp
        .map(|finding| {
            (finding["ok"] == json!(true), finding["message"].as_str().unwrap().to_owned())
        })
        .collect()
}

#[test]
fn mcp_servers_without_a_program_or_a_way_are_found() {
    let (person, _port) = person();
    person.write("bin/there", "#!/bin/sh\n");
    person.write("bin/no-program", "a text");
    let there = person.at("bin/there");
    fs::set_permissions(&there, fs::Permissions::from_mode(0o755)).unwrap();
    let (bin, plain) = (person.at("bin"), person.at("bin/no-program"));
    let nowhere = person.at("nowhere");
    let servers = json!({
        "by_path": {"command": there},
        "in_path": {"command": "there", "env": {"PATH": bin}},
        "meta": {"url": "http://169.254.169.254/mcp"},
        "missing": {"command": "surely-no-such-program"},
        "plain": {"command": plain},
        "relative": {"command": "./there", "cwd": bin},
        "relative_none": {"command": "./here", "cwd": bin},
        "relative_to_us": {"command": "./there"},
        "somewhere": {"command": there, "cwd": nowhere},
        "web": {"url": "https://mcp.example/"},
    });
    person.write_home("mcp.json", &json!({"mcpServers": servers}).to_string());
    let fine = |text: String| (true, text);
    let bad = |text: String| (false, text);
    assert_eq!(
        said_of_mcp(&person),
        [
            fine(format!("by_path: there is a program {}", there.display())),
            fine("in_path: there is a program there".to_owned()),
            bad("meta: the address 169.254.169.254 gives credentials of the machine to everybody \
                 who asks"
                .to_owned()),
            bad("missing: there is no program surely-no-such-program".to_owned()),
            bad(format!("plain: there is no program {}", plain.display())),
            fine("relative: there is a program ./there".to_owned()),
            bad("relative_none: there is no program ./here".to_owned()),
            fine("relative_to_us: ./there is looked for where the server is started".to_owned()),
            bad(format!("somewhere: there is no directory {} to run in", nowhere.display())),
            fine("web: at mcp.example".to_owned()),
        ]
    );
    let hints: Vec<_> = wrong(&person).into_iter().map(|(_, _, hint)| hint).collect();
    assert!(hints.iter().all(|hint| hint.contains("mcp.json")), "{hints:?}");
}

#[test]
fn private_mcp_addresses_follow_the_configuration() {
    let (person, port) = person();
    let port = port.local_addr().unwrap().port();
    let servers = json!({"near": {"url": "http://10.0.0.7/mcp"}});
    person.write_home("mcp.json", &json!({"mcpServers": servers}).to_string());
    let private = "near: the address 10.0.0.7 is private".to_owned();
    assert_eq!(said_of_mcp(&person), [(false, private)]);
    let config = json!({"server": {"port": port}, "network": {"allow_private": true}});
    person.write_home("config.json", &config.to_string());
    assert_eq!(said_of_mcp(&person), [(true, "near: at 10.0.0.7".to_owned())]);
}

#[test]
fn entries_of_mcp_json_that_are_none_are_found_and_show_no_secret() {
    let (person, _port) = person();
    let servers = json!({
        "bad name": {"command": "x", "env": {"KEY": "canary-secret"}},
        "old": {"type": "sse", "url": "http://127.0.0.1/"},
    });
    person.write_home("mcp.json", &json!({"mcpServers": servers}).to_string());
    let found = wrong(&person);
    let told = format!("{found:?}");
    assert!(told.contains("`bad name` is no name for an MCP server"), "{told}");
    assert!(told.contains("the older HTTP+SSE transport is not supported"), "{told}");
    person.write_home("mcp.json", r#"{"mcpServers": {"x": {"comand": "canary-secret"}}}"#);
    let found = wrong(&person);
    let told = format!("{found:?}");
    assert!(told.contains("mcp.json") && told.contains("there is no key comand"), "{told}");
    assert!(!told.contains("canary-secret"), "{told}");
}

/// A provider that lets in who has the right key, as a person of this key finds it.
async fn found_with(key: &str, status: u16) -> Vec<(String, String, String)> {
    let model = wiremock::MockServer::start().await;
    let right = wiremock::matchers::header("authorization", "Bearer right-key-0123");
    let answer = |status| wiremock::ResponseTemplate::new(status).set_body_string("secret-canary");
    wiremock::Mock::given(right).respond_with(answer(200)).mount(&model).await;
    wiremock::Mock::given(wiremock::matchers::any())
        .respond_with(answer(status))
        .mount(&model)
        .await;
    let (mut person, port) = person();
    let port = port.local_addr().unwrap().port();
    let base_url = format!("{}/v1", model.uri());
    let provider = json!({"type": "openai", "base_url": base_url, "models": {"m": {"id": "x"}}});
    let config = json!({"server": {"port": port}, "providers": {"p": provider}});
    person.write_home("config.json", &config.to_string());
    person.set("OPENAI_API_KEY", key);
    let key = key.to_owned();
    let found = tokio::task::spawn_blocking(move || {
        let said = person.run(&["doctor"]);
        assert!(!format!("{said:?}").contains(&key), "{said:?}");
        wrong(&person)
    });
    let found = found.await.unwrap();
    let asked = model.received_requests().await.unwrap();
    assert!(asked.iter().all(|request| request.method == "GET"), "no model was asked");
    assert_eq!(asked.len(), 2, "each time once");
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_its_provider_does_not_take_is_found() {
    assert_eq!(found_with("right-key-0123", 401).await, []);
    for status in [401, 403] {
        let told = format!(
            "provider `p` refused access (HTTP {status}; check the key in the variable \
             `OPENAI_API_KEY`)"
        );
        let hint = "put a key there that it takes, then look again";
        let found = ("provider".to_owned(), told, hint.to_owned());
        assert_eq!(found_with("wrong-key-0123", status).await, [found]);
    }
    // It answers, and does not say whether it would.
    assert_eq!(found_with("wrong-key-0123", 404).await, []);
}

#[test]
fn a_provider_that_nobody_answers_for_is_found() {
    let (person, silent) = person();
    let port = silent.local_addr().unwrap().port();
    let base_url = format!("http://127.0.0.1:{port}/v1");
    let provider = json!({"type": "vllm", "base_url": base_url, "models": {"m": {"id": "x"}}});
    let config = json!({"server": {"port": port}, "providers": {"p": provider}});
    person.write_home("config.json", &config.to_string());
    let (check, message, hint) = wrong(&person).remove(0);
    assert_eq!((check.as_str(), message.as_str()), ("provider", "provider `p` cannot be reached"));
    assert_eq!(hint, "see whether it runs and is where `base_url` says");
}

#[test]
fn a_wrong_key_of_the_configuration_is_found() {
    let (person, _port) = person();
    person.write_home("config.json", "{\n  \"serwer\": {}\n}");
    let (check, message, _) = wrong(&person).remove(0);
    let path = person.home.path().join("config.json");
    let told = format!("{}:2:3: serwer: unknown key", path.display());
    assert!(check == "configuration" && message.starts_with(&told), "{message}");
}

#[test]
fn a_project_that_nobody_trusts_is_found() {
    let (mut person, _port) = person();
    person.write("p/.nexus3/config.json", r#"{"permissions": {"default_preset": "trusted"}}"#);
    person.go("p");
    let (check, message, _) = wrong(&person).remove(0);
    assert_eq!(check, "trust");
    assert!(message.contains("run `nexus3 trust "), "{message}");
    assert_eq!(person.run(&["trust"]).code, 0);
    assert_eq!(wrong(&person), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_service_on_the_port_is_found() {
    let other = wiremock::MockServer::start().await;
    let person = Person::new();
    let port = other.address().port();
    person.write_home("config.json", &json!({"server": {"port": port}}).to_string());
    let found = tokio::task::spawn_blocking(move || wrong(&person)).await.unwrap();
    let (check, message, _) = &found[0];
    assert_eq!(check, "port");
    assert_eq!(*message, format!("another service answers at 127.0.0.1:{port}"));
}

/// What is wrong on a machine whose disk is so, and whose kernel is old.
async fn on_disk(fault: Fault) -> Vec<Finding> {
    let disk = Disk::new(|| "2026-01-01T00:00:00Z".parse().unwrap());
    let home = Path::new("/home/nexus/.nexus3");
    disk.put(home, Item::Dir { mode: 0o700 }).unwrap();
    disk.set_fault(fault, Switch::On);
    let mut world = real::world().unwrap();
    world.fs = Arc::new(disk);
    let findings = examine(&world, home, None, Landlock::Missing).await;
    findings.into_iter().filter(|finding| !finding.ok && finding.check != "port").collect()
}

#[tokio::test]
async fn a_full_disk_and_a_kernel_without_landlock_are_found() {
    for (fault, state) in [(Fault::Full, "full"), (Fault::ReadOnly, "read-only")] {
        let found = on_disk(fault).await;
        let told: Vec<&str> = found.iter().map(|finding| finding.message.as_str()).collect();
        let disk = format!("the disk of /home/nexus/.nexus3 is {state}");
        let kernel = "this kernel has no Landlock: programs of agents can read what you can";
        assert_eq!(told, [disk.as_str(), kernel]);
        assert!(found.iter().all(|finding| finding.hint.is_some()));
    }
}
