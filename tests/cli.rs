//! The program as people and scripts use it: exit codes, what goes to stdout and what to stderr.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "these tests run the program, so they use the machine as a shell does"
)]

#[path = "cli_support/mod.rs"]
mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::process::Signal;
use serde_json::json;
use support::{Serving, private_home, ran, run, signal as send_signal};

fn token_path(server: &Serving) -> PathBuf {
    server.home.path().join(format!("rpc-{}.token", server.port))
}

#[test]
fn a_server_is_used_from_the_command_line() {
    let server = Serving::start(&[]);
    assert_eq!(server.rpc(&["detect"]), ran(0, "nexus_server\n", ""));
    assert_eq!(server.rpc(&["list"]), ran(0, "no agents\n", ""));
    assert_eq!(server.rpc(&["create", "scout"]), ran(0, "scout\n", ""));
    assert_eq!(server.rpc(&["create", "--agent-id", "."]), ran(0, ".1\n", ""));
    let call = r#"call echo {"message": "x"}"#;
    let answer = "The tool `echo` answered: \"x\"\n";
    assert_eq!(server.rpc(&["send", "scout", call]), ran(0, answer, ""));
    assert_eq!(
        server.rpc(&["send", "scout", "hi", "--no-wait", "--request-id", "r1"]),
        ran(0, "r1\n", "")
    );
    let context = server.rpc(&["call", "get_context", "--agent", "scout"]);
    assert_eq!((context.code, context.json()["system_prompt"].clone()), (0, json!(true)));
    assert_eq!(server.rpc(&["destroy", "scout"]), ran(0, "scout\n", ""));
    let nobody = ran(1, "", "error: Agent not found: scout\n");
    assert_eq!(server.rpc(&["destroy", "scout"]), nobody);
    assert_eq!(server.rpc(&["shutdown"]), ran(0, "Server shutting down\n", ""));
    let token = token_path(&server);
    assert_eq!(server.ended(), (Some(0), String::new()));
    assert!(!token.exists());
}

#[test]
fn logs_go_where_they_are_asked_to() {
    let place = private_home();
    let logs = place.path().join("made/for/this");
    let server = Serving::start(&["-v", "--raw-log", "--log-dir", logs.to_str().unwrap()]);
    assert_eq!(server.rpc(&["shutdown"]), ran(0, "Server shutting down\n", ""));
    let default = server.home.path().join("logs");
    let beside = default.exists();
    assert_eq!(server.ended(), (Some(0), String::new()));
    assert!(!beside, "nothing is left in the usual place");
    let log = std::fs::read_to_string(logs.join("server.log")).unwrap();
    assert!(log.contains("listening") && log.contains("stopped"), "{log}");
    let mode = std::fs::metadata(&logs).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn json_is_the_servers_result_and_nothing_else() {
    let server = Serving::start(&[]);
    let port: u16 = server.port.parse().unwrap();
    assert_eq!(
        server.rpc(&["detect", "--json"]).json(),
        json!({"port": port, "detection": "nexus_server"})
    );
    assert_eq!(
        server.rpc(&["create", "a", "--json"]).json(),
        json!({"agent_id": "a", "url": "/agent/a"})
    );
    let sent = server.rpc(&["send", "a", "hi", "--request-id", "r1", "--json"]).json();
    assert_eq!((&sent["request_id"], &sent["finish_reason"]), (&json!("r1"), &json!("stop")));
    assert_eq!(server.rpc(&["list", "--json"]).json()["agents"][0]["agent_id"], "a");
    let messages = server.rpc(&["call", "get_messages", r#"{"limit": 1}"#, "--agent", "a"]).json();
    assert_eq!(messages["messages"][0]["meta"], json!({"source": "cli"}));
    assert_eq!(
        server.rpc(&["destroy", "a", "--json"]).json(),
        json!({"success": true, "agent_id": "a", "destroyed": ["a"]})
    );
    assert_eq!(
        server.rpc(&["shutdown", "--json"]).json(),
        json!({"success": true, "message": "Server shutting down"})
    );
}

#[test]
fn exit_codes_tell_failures_apart() {
    let server = Serving::start(&[]);
    let failed = server.rpc(&["send", "nobody", "hi"]);
    assert_eq!(failed, ran(1, "", "error: Agent not found: nobody\n"));
    let params = server.rpc(&["call", "list_agents", "{oops"]);
    assert_eq!((params.code, params.stdout.as_str()), (1, ""));
    assert!(params.stderr.starts_with("error: the params are no JSON\n  because: "));
    for usage in [&["send"][..], &["fly"], &["send", "a/b", "hi"], &["list", "--port", "x"]] {
        let usage = server.rpc(usage);
        assert_eq!((usage.code, usage.stdout.as_str()), (2, ""), "{usage:?}");
    }
    let wrong = server.rpc(&["list", "--api-key", "nxk_wrong"]);
    let hint = "  hint: the server did not accept the token: see --api-key and --home\n";
    assert_eq!(wrong, ran(4, "", &format!("error: Invalid API key\n{hint}")));
    let elsewhere = private_home();
    let missing = run(elsewhere.path(), &["rpc", "list", "--port", &server.port]);
    let error = "error: Authorization header required\n";
    assert_eq!(missing, ran(4, "", &format!("{error}{hint}")));
}

#[test]
fn without_a_server_the_exit_code_is_three() {
    let home = private_home();
    // Bound and not listening: nobody answers, and nobody else can take the port meanwhile.
    let silent = tokio::net::TcpSocket::new_v4().unwrap();
    silent.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let port = silent.local_addr().unwrap().port().to_string();
    assert_eq!(run(home.path(), &["rpc", "detect", "--port", &port]), ran(1, "no_server\n", ""));
    let listed = run(home.path(), &["rpc", "list", "--no-start", "--port", &port]);
    assert_eq!((listed.code, listed.stdout.as_str()), (3, ""));
    let lines: Vec<&str> = listed.stderr.lines().collect();
    assert_eq!(lines[0], format!("error: no server answers at 127.0.0.1:{port}"));
    assert_eq!(lines[2], "  hint: start one with `nexus3 serve`, or name its port with --port");
}

#[test]
fn a_token_that_others_can_read_is_refused() {
    let server = Serving::start(&[]);
    let path = token_path(&server);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(server.home.path())), (0o600, 0o700));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let path = path.display();
    let message = format!("error: others can read the token file {path}: run `chmod 600 {path}`\n");
    assert_eq!(server.rpc(&["list"]), ran(4, "", &message));
}

#[test]
fn tokens_are_looked_for_in_their_order() {
    let server = Serving::start(&[]);
    let home = server.home.path();
    let token = std::fs::read_to_string(token_path(&server)).unwrap();
    let put = |name: &str, token: &str| {
        std::fs::write(home.join(name), token).unwrap();
        std::fs::set_permissions(home.join(name), std::fs::Permissions::from_mode(0o600)).unwrap();
    };
    let older = format!("server-{}.key", server.port);
    std::fs::remove_file(token_path(&server)).unwrap();
    assert_eq!(server.rpc(&["list"]).code, 4);
    // From the last to the first: each wins over those before it.
    for name in ["server.key", &older, "rpc.token", &format!("rpc-{}.token", server.port)] {
        put(name, &token);
        assert_eq!(server.rpc(&["list"]).code, 0, "{name}");
        put(name, "nxk_wrong");
        assert_eq!(server.rpc(&["list"]).code, 4, "{name}");
    }
    let list = |value: &str| {
        support::finished(server.command(&["rpc", "list"]).env("NEXUS3_API_KEY", value)).code
    };
    assert_eq!((list(&token), list("")), (0, 4), "an empty variable is none");
    assert_eq!(server.rpc(&["list", "--api-key", &token]).code, 0);
}

#[test]
fn signals_end_the_server_in_order() {
    for signal in [Signal::TERM, Signal::INT] {
        let server = Serving::start(&[]);
        let token = token_path(&server);
        assert!(token.exists());
        send_signal(&server.child, signal);
        assert_eq!(server.ended(), (Some(0), String::new()));
        assert!(!token.exists());
    }
}

#[test]
fn a_server_says_where_it_is_and_what_it_runs_on() {
    let server = Serving::start(&[]);
    let version = env!("CARGO_PKG_VERSION");
    let address = format!("http://127.0.0.1:{}", server.port);
    assert_eq!(server.said[0], format!("nexus3 {version} listens on {address}"));
    assert_eq!(server.said[1], format!("token: {}", token_path(&server).display()));
    let open = Serving::start(&["--no-auth"]);
    let warning =
        "WARNING: --no-auth: every program on this machine can use this server and its agents";
    assert_eq!(open.said[1], warning);
    let elsewhere = private_home();
    let listed = run(elsewhere.path(), &["rpc", "list", "--port", &open.port]);
    assert_eq!(listed, ran(0, "no agents\n", ""));
}

#[test]
fn a_taken_port_is_explained() {
    let first = Serving::start(&[]);
    let home = private_home();
    let second = run(home.path(), &["serve", &first.port]);
    assert_eq!((second.code, second.stdout.as_str()), (1, ""));
    let lines: Vec<&str> = second.stderr.lines().collect();
    assert_eq!(lines[0], format!("error: cannot listen on 127.0.0.1:{}", first.port));
    let hint = "  hint: a NEXUS3 server runs there already; choose another port with --port";
    assert_eq!(lines[2], hint);
    assert!(!home.path().join(format!("rpc-{}.token", first.port)).exists());
    let pid = first.child.id();
    let same_home = run(first.home.path(), &["serve", "0"]);
    let path = first.home.path().display();
    let port = &first.port;
    let taken = format!("error: another server uses the home {path}: process {pid}, port {port}\n");
    assert_eq!(same_home, ran(1, "", &taken));
}

#[test]
fn a_home_that_cannot_be_written_is_explained() {
    let home = private_home();
    // Not by a mode: the tests may run as somebody whom no mode keeps out.
    std::fs::write(home.path().join("logs"), "no directory").unwrap();
    let served = run(home.path(), &["serve", "0"]);
    assert_eq!((served.code, served.stdout.as_str()), (1, ""));
    let logs = home.path().join("logs");
    let told = served.stderr.lines().next().unwrap_or_default();
    assert_eq!(told, format!("error: cannot make {}", logs.display()));
    let nowhere = run(Path::new("/proc/nexus3"), &["serve", "0"]);
    assert_eq!(nowhere.code, 1);
    assert!(nowhere.stderr.starts_with("error: cannot use /proc/nexus3 as"), "{nowhere:?}");
}

#[test]
fn a_database_of_a_newer_server_is_refused_untouched() {
    let home = private_home();
    let file = home.path().join("nexus3.db");
    let database = rusqlite::Connection::open(&file).unwrap();
    database.execute_batch("CREATE TABLE later (a); PRAGMA user_version = 99;").unwrap();
    database.close().unwrap();
    let before = std::fs::read(&file).unwrap();
    let served = run(home.path(), &["serve", "0"]);
    assert_eq!((served.code, served.stdout.as_str()), (1, ""));
    let path = file.display();
    let told = format!("error: the database {path} has version 99, and this server knows versions");
    assert!(served.stderr.starts_with(&told), "{served:?}");
    assert_eq!(std::fs::read(&file).unwrap(), before);
}

#[tokio::test]
async fn another_service_on_the_port_is_told_from_ours() {
    let other = wiremock::MockServer::start().await;
    let port = other.address().port().to_string();
    let home = private_home();
    let (detected, served) = tokio::task::spawn_blocking(move || {
        let detected = run(home.path(), &["rpc", "detect", "--port", &port]);
        (detected, run(home.path(), &["serve", "--port", &port]))
    })
    .await
    .unwrap();
    assert_eq!(detected, ran(1, "other_service\n", ""));
    assert_eq!(served.code, 1);
    let told = "  hint: another service answers there; choose another port with --port";
    assert_eq!(served.stderr.lines().last(), Some(told));
}

#[test]
fn a_wrong_configuration_is_told_by_place() {
    let home = private_home();
    let file = home.path().join("team.json");
    std::fs::write(&file, "{\n  \"turn_timeout\": 1,\n  \"serwer\": {}\n}\n").unwrap();
    let path = file.display().to_string();
    let served = run(home.path(), &["serve", "0", "--config", &path]);
    assert_eq!((served.code, served.stdout.as_str()), (1, ""));
    let told = served.stderr.lines().next().unwrap_or_default();
    assert!(told.starts_with(&format!("error: {path}:3:3: ")), "{told}");
    let missing = run(home.path(), &["serve", "0", "--config", "no/such.json"]);
    assert_eq!(missing.code, 1);
    assert!(missing.stderr.starts_with("error: there is no configuration file "), "{missing:?}");
}

#[test]
fn help_is_complete() {
    let home = private_home();
    let commands: &[(&str, &[&str])] = &[
        ("help", &[]),
        ("help_serve", &["serve"]),
        ("help_rpc", &["rpc"]),
        ("help_rpc_detect", &["rpc", "detect"]),
        ("help_rpc_list", &["rpc", "list"]),
        ("help_rpc_create", &["rpc", "create"]),
        ("help_rpc_send", &["rpc", "send"]),
        ("help_rpc_destroy", &["rpc", "destroy"]),
        ("help_rpc_confirmations", &["rpc", "confirmations"]),
        ("help_rpc_confirm", &["rpc", "confirm"]),
        ("help_rpc_shutdown", &["rpc", "shutdown"]),
        ("help_rpc_call", &["rpc", "call"]),
        ("help_rpc_discover", &["rpc", "discover"]),
        ("help_rpc_status", &["rpc", "status"]),
        ("help_rpc_cancel", &["rpc", "cancel"]),
        ("help_rpc_messages", &["rpc", "messages"]),
        ("help_rpc_compact", &["rpc", "compact"]),
        ("help_rpc_watch", &["rpc", "watch"]),
        ("help_rpc_permissions", &["rpc", "permissions"]),
        ("help_rpc_cwd", &["rpc", "cwd"]),
        ("help_rpc_prompt", &["rpc", "prompt"]),
        ("help_rpc_model", &["rpc", "model"]),
        ("help_rpc_mcp", &["rpc", "mcp"]),
        ("help_rpc_mcp_connect", &["rpc", "mcp", "connect"]),
        ("help_mcp", &["mcp"]),
        ("help_rpc_sessions", &["rpc", "sessions"]),
        ("help_rpc_save", &["rpc", "save"]),
        ("help_rpc_load", &["rpc", "load"]),
        ("help_rpc_clone", &["rpc", "clone"]),
        ("help_rpc_rename", &["rpc", "rename"]),
        ("help_rpc_delete", &["rpc", "delete"]),
        ("help_sessions", &["sessions"]),
        ("help_sessions_list", &["sessions", "list"]),
        ("help_sessions_show", &["sessions", "show"]),
        ("help_sessions_export", &["sessions", "export"]),
        ("help_sessions_prune", &["sessions", "prune"]),
        ("help_run", &["run"]),
        ("help_trace", &["trace"]),
        ("help_perm", &["perm"]),
        ("help_perm_explain", &["perm", "explain"]),
        ("help_completions", &["completions"]),
        ("help_man", &["man"]),
    ];
    for (name, command) in commands {
        let helped = run(home.path(), &[command, &["--help"][..]].concat());
        assert_eq!((helped.code, helped.stderr.as_str()), (0, ""), "{name}");
        insta::assert_snapshot!(*name, helped.stdout);
    }
    let version = format!("nexus3 {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(run(home.path(), &["--version"]), ran(0, &version, ""));
}
