//! MCP servers that are programs of this machine and behave badly, on a server that runs: the script of a
//! shell plays them.

use std::path::PathBuf;

use super::support::{Ran, Serving, ran};

/// Speaks an earlier revision; `START` is what it does about the greeting of the newest, and `WORK` when its
/// tool is called, after the answer.
const SERVER: &str = r#"#!/bin/sh
answer() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
while read -r line; do
    id=${line#*'"id":'}
    id=${id%%,*}
    case $line in
    *'"server/discover"'*) START; answer '"error":{"code":-32601,"message":"what?"}' ;;
    *'"initialize"'*)
        answer '"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
    *'"tools/list"'*) answer '"result":{"tools":[{"name":"work","inputSchema":{"type":"object"}}]}' ;;
    *'"tools/call"'*)
        answer '"result":{"content":[{"type":"text","text":"done"}]}'
        WORK ;;
    esac
done
"#;

/// A server with an MCP server of this script and an agent that may call it.
struct Scene {
    server: Serving,
    script: PathBuf,
}

impl Scene {
    fn new(start: &str, work: &str) -> Self {
        let server = Serving::start(&["--allow-yolo"]);
        let script = server.home.path().join("server.sh");
        let text = SERVER.replace("START", start).replace("WORK", work);
        std::fs::write(&script, text).unwrap();
        assert_eq!(server.rpc(&["create", "scout", "--preset", "yolo"]), ran(0, "scout\n", ""));
        Self { server, script }
    }

    fn connect(&self, more: &[&str]) -> Ran {
        let script = self.script.to_str().unwrap();
        let first = ["mcp", "connect", "odd", "--command", "/bin/sh", "--arg", script];
        self.server.rpc(&[&first[..], more].concat())
    }

    fn call(&self) {
        let sent = self.server.rpc(&["send", "scout", "call mcp__odd__work {}"]);
        assert_eq!(sent, ran(0, "The tool `mcp__odd__work` answered: \"done\"\n", ""));
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.server.home.path().join("logs/server.log")).unwrap()
    }

    /// Waits until the MCP server is lost, and returns why.
    fn lost(&self) -> String {
        loop {
            if let Some((_, told)) = self.log().split_once("an MCP server is lost: ") {
                let (why, _) = told.split_once(" server=").unwrap();
                return why.to_owned();
            }
        }
    }

    fn stop(self) {
        assert_eq!(self.server.rpc(&["shutdown"]).code, 0);
        assert_eq!(self.server.ended(), (Some(0), String::new()));
    }
}

const FLOOD: &str = "it sent more than 1000 messages in a second that nobody asked for";

#[test]
fn a_program_that_floods_its_error_output_can_be_disconnected() {
    let scene = Scene::new(":", "while :; do echo; done >&2");
    assert_eq!(scene.connect(&[]), ran(0, "mcp__odd__work\n", ""));
    scene.call();
    // It works on for others meanwhile.
    assert_eq!(scene.server.rpc(&["status", "scout"]).code, 0);
    assert_eq!(scene.server.rpc(&["mcp", "disconnect", "odd"]), ran(0, "", ""));
    let listed = scene.server.rpc(&["mcp", "list"]);
    assert_eq!(listed, ran(0, "there are no MCP servers\n", ""));
    scene.stop();
}

#[test]
fn a_program_that_prints_nonsense_without_end_is_dropped() {
    let scene = Scene::new(":", "while :; do echo nonsense; done");
    assert_eq!(scene.connect(&[]), ran(0, "mcp__odd__work\n", ""));
    scene.call();
    assert_eq!(scene.lost(), FLOOD);
    scene.stop();
}

#[test]
fn a_program_that_answers_what_nobody_asked_without_end_is_dropped() {
    let scene =
        Scene::new(":", r#"while :; do echo '{"jsonrpc":"2.0","id":77777,"result":{}}'; done"#);
    assert_eq!(scene.connect(&[]), ran(0, "mcp__odd__work\n", ""));
    scene.call();
    assert_eq!(scene.lost(), FLOOD);
}

#[test]
fn a_program_that_hangs_up_on_what_it_does_not_know_is_greeted_as_it_likes() {
    let scene = Scene::new("exit 9", ":");
    assert_eq!(scene.connect(&[]), ran(0, "mcp__odd__work\n", ""));
    scene.call();
}

#[test]
fn what_a_server_says_is_not_in_the_log() {
    let said = r#"printf '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"%s"}}\n' "$KEY""#;
    let scene = Scene::new(":", said);
    let connected = scene.connect(&["--env", "KEY=canary-of-env"]);
    assert_eq!(connected, ran(0, "mcp__odd__work\n", ""));
    scene.call();
    // The next answer comes after the message that was said before it.
    scene.call();
    let log = scene.log();
    assert!(!log.contains("canary") && !log.contains("rmcp"), "{log}");
}

#[test]
fn a_server_is_named_by_its_url_and_half_a_server_is_none() {
    let server = Serving::start(&[]);
    let url = "http://10.0.0.1/mcp";
    let refused = server.rpc(&["mcp", "connect", "far", "--mcp-url", url, "--header", "A=b"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (1, ""), "{refused:?}");
    assert!(refused.stderr.contains("may not be reached"), "{refused:?}");
    for half in [["--arg", "x"], ["--env", "A=b"], ["--cwd", "/"], ["--header", "A=b"]] {
        let refused = server.rpc(&[&["mcp", "connect", "far"][..], &half].concat());
        assert_eq!(refused.code, 2, "{half:?} {refused:?}");
    }
}

#[test]
fn a_program_that_ends_at_once_is_told_with_its_last_words() {
    let server = Serving::start(&[]);
    let script = "echo no licence >&2; exit 3";
    let connect = ["mcp", "connect", "odd", "--command", "/bin/sh", "--arg", "-c", "--arg", script];
    // It was greeted in two ways.
    let told = "its program ended with code 3\n  no licence\n  no licence\n";
    assert_eq!(server.rpc(&connect), ran(1, "", told));
    let listed = server.rpc(&["mcp", "list"]);
    assert_eq!(listed, ran(0, "there are no MCP servers\n", ""));
}

#[test]
fn what_is_known_of_a_server_stands_under_lines_of_its_own() {
    let scene = Scene::new("echo hello >&2", ":");
    assert_eq!(scene.connect(&[]), ran(0, "mcp__odd__work\n", ""));
    let told = "SERVER  TRANSPORT  STATUS     TOOLS  AGENT  ERROR\n\
                odd     stdio      connected  1\n\
                tools:\n  mcp__odd__work\n";
    let status = scene.server.rpc(&["mcp", "status", "odd"]);
    assert!(status.stdout.starts_with(told), "{status:?}");
    // Its error output comes on a way of its own.
    while !scene.server.rpc(&["mcp", "status", "odd"]).stdout.ends_with("error output:\n  hello\n")
    {
    }
    scene.stop();
}

#[test]
fn an_answer_that_is_none_ends_its_call_at_once() {
    let scene = Scene::new(":", ":");
    let done = r#"'"result":{"content":[{"type":"text","text":"done"}]}'"#;
    let script = std::fs::read_to_string(&scene.script).unwrap();
    std::fs::write(&scene.script, script.replace(done, r#"'"error":"broken"'"#)).unwrap();
    assert_eq!(scene.connect(&[]), ran(0, "mcp__odd__work\n", ""));
    let sent = scene.server.rpc(&["send", "scout", "call mcp__odd__work {}"]);
    let told = "The MCP server refused the call (-32603): its answer is none, by the protocol";
    assert!(sent.stdout.contains(told), "{sent:?}");
    scene.stop();
}
