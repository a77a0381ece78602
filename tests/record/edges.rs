//! What goes wrong while somebody records: a kill, a file in the way, a place that cannot be written.

use std::os::unix::fs::PermissionsExt;

use nexus3::event::What;
use nexus3::message::Message;
use nexus3::rpc::method::SendParams;
use rustix::process::Signal;

use super::home::private_home;
use super::live::{Live, output, serve, until};
use super::replay::replay;

const SILENT: &str = r#"
schema = 1
about = "A model that says something and then nothing more."
[[model]]
agent = "a"
says = "Hello."
[[model]]
agent = "a"
says = ["Well, ", "so"]
fault = { stall = 1 }
[[step]]
call = "list_agents"
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_leaves_a_recording_of_what_happened_until_then() {
    let live = Live::start(SILENT).await;
    let a = live.create("a", "worker", None).await;
    let first = SendParams { content: "Hi".to_owned(), ..SendParams::default() };
    live.client.send(&a, &first).await.unwrap();
    let mut stream = live.client.open_events(Some(&a), None).await.unwrap();
    let unheard = SendParams { content: "And now?".to_owned(), wait: Some(false), ..first };
    live.client.send(&a, &unheard).await.unwrap();
    until(&mut stream, |what| matches!(what, What::ContentChunk { .. })).await;
    // It is written now and then, whatever else happens.
    while !live.text().contains("Well, ") {
        live.client.list_agents().await.unwrap();
    }
    let mode = std::fs::metadata(live.recording()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let text = live.end(Signal::KILL).text;
    assert!(text.contains("# The server was still running."), "{text}");
    let played = replay(&text);
    assert_eq!(played.failures, [""; 0], "{text}\n{}", played.transcript);
    let last = played.conversations["a"].last();
    let is_cut = |message: &Message| matches!(message, Message::Assistant { content, .. } if content == "Well, ");
    assert!(last.is_some_and(is_cut), "what had come of the answer is in it: {last:?}");
}

#[test]
fn a_file_in_the_way_and_a_place_that_is_none_are_told_before_anything_is_served() {
    let (home, place) = (private_home(), private_home());
    std::fs::write(place.path().join("mine.toml"), "precious").unwrap();
    let (code, said) = output(&mut serve(&home, &place, &["--record", "mine.toml"]));
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("mine.toml is there already: a recording replaces nothing"), "{said}");
    assert_eq!(std::fs::read_to_string(place.path().join("mine.toml")).unwrap(), "precious");
    let (code, said) = output(&mut serve(&home, &place, &["--record", "no/where.toml"]));
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("cannot record to ") && said.contains("no/where.toml"), "{said}");
}
