//! What lies on the disk of a recorded session is there in its replay, as agents saw it.

use std::os::unix::fs::PermissionsExt;

use nexus3::rpc::method::SendParams;
use rustix::process::Signal;

use super::live::Live;
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
