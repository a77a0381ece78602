//! `nexus3 run`: one answer, and nothing left behind.

use std::time::Duration;

use serde_json::json;

use super::model::{beside, saying};
use super::support::{Serving, finished, private_home, program, ran, run};

/// A port that nobody has, and that nobody else can take meanwhile.
pub fn silent() -> (tokio::net::TcpSocket, String) {
    let silent = tokio::net::TcpSocket::new_v4().unwrap();
    silent.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let port = silent.local_addr().unwrap().port().to_string();
    (silent, port)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_answers_on_a_server_of_its_own() {
    let (_silent, port) = silent();
    let (_model, home) = saying("Hello you", Duration::ZERO).await;
    beside(move || {
        assert_eq!(run(home.path(), &["run", "hi", "--port", &port]), ran(0, "Hello you\n", ""));
        let told = run(home.path(), &["run", "hi", "--port", &port, "--json"]).json();
        assert_eq!(
            (&told["content"], &told["finish_reason"]),
            (&json!("Hello you"), &json!("stop"))
        );
        let entries = std::fs::read_dir(home.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().path());
        let tokens = names.filter(|path| path.extension() == Some("token".as_ref()));
        assert_eq!(tokens.count(), 0, "nobody else could have come in");
    })
    .await;
}

#[test]
fn a_run_uses_the_server_that_is_there() {
    let server = Serving::start(&[]);
    let place = private_home();
    std::fs::write(place.path().join("here.txt"), "").unwrap();
    let answered = finished(
        server.command(&["run", r#"call list_directory {"path": "."}"#]).current_dir(place.path()),
    );
    assert_eq!(answered.code, 0, "{answered:?}");
    assert!(answered.stdout.contains("here.txt"), "it works where it was asked: {answered:?}");
    assert_eq!(server.rpc(&["list"]), ran(0, "no agents\n", ""));
    let refused = finished(&mut server.command(&["run", "hi", "--preset", "yolo"]));
    assert_eq!((refused.code, refused.stdout.as_str()), (1, ""));
    let events = finished(&mut server.command(&["trace", ".1", "--json"])).stdout;
    let first = events.lines().next().unwrap();
    let created: serde_json::Value = serde_json::from_str(first).unwrap();
    assert_eq!(created["type"], "agent_created");
}

#[test]
fn a_run_without_a_server_says_when_the_home_is_taken() {
    let server = Serving::start(&[]);
    let (_silent, port) = silent();
    let refused = finished(program(server.home.path()).args(["run", "hi", "--port", &port]));
    assert_eq!((refused.code, refused.stdout.as_str()), (1, ""));
    let told = format!("error: another server uses the home {}: ", server.home.path().display());
    assert!(refused.stderr.starts_with(&told), "{refused:?}");
}
