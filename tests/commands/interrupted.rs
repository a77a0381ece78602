//! An interrupt while an answer is waited for.

use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::process::Signal;

use super::model::{beside, saying};
use super::support::{Ran, Serving, ran, signal};

const LONG: Duration = Duration::from_mins(10);

fn left(child: Child) -> Ran {
    Ran::of(child.wait_with_output().expect("it ends"))
}

fn begun(server: &Serving, arguments: &[&str]) -> Child {
    let mut command = server.command(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
}

/// Asks until an agent is at work.
fn is_running(server: &Serving) {
    loop {
        let listed = server.rpc(&["list", "--json"]).json();
        if listed["agents"].as_array().unwrap().iter().any(|agent| agent["status"] == "running") {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_cancels_the_turn() {
    let (_model, home) = saying("late", LONG).await;
    beside(|| {
        let server = Serving::start_in(home, &[]);
        server.rpc(&["create", "scout"]);
        let sending = begun(&server, &["rpc", "send", "scout", "hi", "--request-id", "r1"]);
        is_running(&server);
        signal(&sending, Signal::INT);
        let told = "cancelling the turn; interrupt again to leave at once\n";
        assert_eq!(left(sending), ran(130, "", told));
        let request = ["call", "get_request", r#"{"request_id": "r1"}"#, "--agent", "scout"];
        assert_eq!(server.rpc(&request).json()["status"], "cancelled");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_run_has_made_goes_with_it() {
    let (_model, home) = saying("late", LONG).await;
    beside(|| {
        let server = Serving::start_in(home, &[]);
        for interrupts in [1, 2] {
            let running = begun(&server, &["run", "hi"]);
            is_running(&server);
            for _ in 0..interrupts {
                signal(&running, Signal::INT);
            }
            assert_eq!(left(running).code, 130);
            assert_eq!(server.rpc(&["list"]), ran(0, "no agents\n", ""));
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_watch_leaves() {
    let (_model, home) = saying("late", LONG).await;
    beside(|| {
        let server = Serving::start_in(home, &[]);
        server.rpc(&["create", "scout"]);
        let mut watching = begun(&server, &["rpc", "watch", "--after", "0"]);
        let mut stdout = std::io::BufReader::new(watching.stdout.take().unwrap());
        let mut line = String::new();
        std::io::BufRead::read_line(&mut stdout, &mut line).unwrap();
        assert_eq!(line, "scout: created\n");
        signal(&watching, Signal::INT);
        assert_eq!(left(watching), ran(130, "", ""));
    })
    .await;
}
