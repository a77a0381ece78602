//! What lies on the disk of a recorded session is there in its replay, as agents saw it.

use std::os::unix::fs::PermissionsExt;

use nexus3::rpc::method::SendParams;
use rustix::process::Signal;

use super::live::{KEY, Live};
use super::replay::replay;

const LINKED: &str = r#"
schema = 1
about = "An agent reads what a link leads to."
[files]
"/project/notes.txt" = "three apples"
[[model]]
agent = "a"
asks = [{ tool = "read_file", args = { path = "link" } }]
[[model]]
agent = "a"
says = "Apples."
[[step]]
call = "list_agents"
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_somebody_followed_is_part_of_the_recording() {
    let live = Live::start(LINKED).await;
    std::os::unix::fs::symlink("notes.txt", live.place.path().join("link")).unwrap();
    let a = live.create("a", "sandboxed", None).await;
    let read = SendParams { content: "Read".to_owned(), ..SendParams::default() };
    live.client.send(&a, &read).await.unwrap();
    let text = live.end(Signal::TERM).text;
    let played = replay(&text);
    assert_eq!(played.failures, [""; 0], "{text}\n{}", played.transcript);
}

const MODES: &str = r#"
schema = 1
about = "An agent looks at a script that can be run, and at a file that is its owner's alone."
[files]
"/project/run.sh" = { text = "exit 0\n", mode = 0o755 }
"/project/key.bin" = { base64 = "/w==", mode = 0o600 }
[[model]]
agent = "a"
asks = [{ tool = "file_info", args = { path = "run.sh" } },
        { tool = "file_info", args = { path = "key.bin" } },
        { tool = "list_directory", args = {} }]
[[model]]
agent = "a"
says = "They are so."
[[step]]
call = "list_agents"
"#;

#[tokio::test(flavor = "multi_thread")]
async fn files_have_the_modes_that_agents_saw() {
    let live = Live::start(MODES).await;
    let mode = std::fs::metadata(live.place.path().join("run.sh")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755, "the scenario's files are as it says");
    let a = live.create("a", "sandboxed", None).await;
    let look = SendParams { content: "Look".to_owned(), ..SendParams::default() };
    live.client.send(&a, &look).await.unwrap();
    let text = live.end(Signal::TERM).text;
    let played = replay(&text);
    assert_eq!(played.failures, [""; 0], "{text}\n{}", played.transcript);
    assert!(text.contains("mode = 0o755") && text.contains("mode = 0o600"), "{text}");
}

const ABOVE: &str = r#"
schema = 1
about = "An agent works below the root of a repository, which has instructions, too."
[files]
"/project/.git/HEAD" = "ref: refs/heads/main\n"
"/project/NEXUS.md" = "Count well.\n"
"/project/tools/deep/AGENTS.md" = "Be brief.\n"
[[model]]
agent = "a"
asks = [{ tool = "list_directory", args = {} }]
[[model]]
agent = "a"
says = "So it is."
[[step]]
call = "list_agents"
"#;

#[tokio::test(flavor = "multi_thread")]
async fn instructions_above_the_directory_of_the_server_are_part_of_the_recording() {
    let live = Live::start_in("tools/deep", ABOVE).await;
    let a = live.create("a", "sandboxed", None).await;
    let go = SendParams { content: "Go".to_owned(), ..SendParams::default() };
    live.client.send(&a, &go).await.unwrap();
    let text = live.end(Signal::TERM).text;
    assert!(text.contains("# Instructions from /project/NEXUS.md"), "{text}");
    assert!(text.contains("\ncwd = \"/project/tools/deep\"\n"), "{text}");
    let played = replay(&text);
    assert_eq!(played.failures, [""; 0], "{text}\n{}", played.transcript);
}

const BYTES: &str = r#"
schema = 1
about = "An agent reads bytes that are no text, with a key in them."
[[model]]
agent = "a"
asks = [{ tool = "read_file", args = { path = "dump.bin" } }]
[[model]]
agent = "a"
says = "No text."
[[step]]
call = "list_agents"
"#;

#[tokio::test(flavor = "multi_thread")]
async fn bytes_with_a_key_in_them_are_left_out() {
    let live = Live::start(BYTES).await;
    let content = [&[0xff, 0xfe][..], KEY.as_bytes()].concat();
    std::fs::write(live.place.path().join("dump.bin"), content).unwrap();
    let a = live.create("a", "sandboxed", None).await;
    let go = SendParams { content: "Go".to_owned(), ..SendParams::default() };
    live.client.send(&a, &go).await.unwrap();
    let text = live.end(Signal::TERM).text;
    assert!(text.contains("dump.bin") && !text.contains("base64"), "{text}");
}
