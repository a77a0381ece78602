//! How a server ends: who may finish, who is cancelled, and what is left behind.

use nexus3::client::ClientError;
use nexus3::config::Config;
use nexus3::policy::ceiling::Yolo;
use nexus3::rpc::method::{ShutdownResult, ShutdownServerResult};
use nexus3::server::{RunError, Server};
use nexus3::world::real;

use crate::agents_support::server::settings;
use crate::agents_support::{
    Stage, cancelled, completed, ended, error, named, refused, request, says,
};

fn stopping() -> ShutdownServerResult {
    ShutdownServerResult { success: true, message: "Server shutting down".to_owned() }
}

/// Waits for the end, and checks that nothing of the server is left but its home.
async fn has_ended(stage: Stage) {
    let (client, address) = (stage.server.client.clone(), stage.server.address);
    let token_path = stage.server.token_path.clone();
    let home = stage.server.stopped().await;
    assert!(!token_path.exists(), "the token file is removed");
    assert!(matches!(client.list_agents().await, Err(ClientError::NoServer { .. })));
    let world = real::world().expect("the machine opens");
    drop(world.net.bind(address).await.expect("the port is free again"));
    let again = Server::bind(world, settings(&home, Config::default(), Yolo::Refused)).await;
    again.expect("the home is free again");
}

#[tokio::test]
async fn a_running_turn_may_finish_and_what_waits_is_cancelled() {
    let mut stage = Stage::with(Yolo::Refused, |config| config.server.shutdown_grace = 60.0).await;
    let a = stage.agent("a", "worker").await;
    let running = stage.sending(&a, request("r1", "one"));
    let mut call = stage.model.asked_by("a").await;
    let waiting = stage.sending(&a, request("r2", "two"));
    stage.has_queued(&a, 1).await;
    assert_eq!(stage.shutdown_server().await.unwrap(), stopping());
    assert_eq!(ended(waiting).await, cancelled("r2"));
    let no_more = error(-32001, "the server is shutting down");
    assert_eq!(refused(stage.send(&a, &says("three")).await), no_more);
    assert_eq!(refused(stage.create_agent(&named("b", "worker")).await), no_more);
    assert_eq!(stage.entries().await.len(), 1, "it still answers");
    call.says("1").await;
    call.stops().await;
    assert_eq!(ended(running).await, completed("r1", "1", 1));
    has_ended(stage).await;
}

#[tokio::test]
async fn a_turn_that_outlives_its_grace_is_cancelled() {
    for grace in [0.0, 0.05] {
        let mut stage =
            Stage::with(Yolo::Refused, |config| config.server.shutdown_grace = grace).await;
        let a = stage.agent("a", "worker").await;
        let running = stage.sending(&a, request("r1", "one"));
        let mut call = stage.model.asked_by("a").await;
        call.says("Hel").await;
        assert_eq!(stage.shutdown_server().await.unwrap(), stopping());
        assert_eq!(ended(running).await, cancelled("r1"));
        call.dropped().await;
        has_ended(stage).await;
    }
}

#[tokio::test]
async fn a_known_request_is_told_while_the_server_stops() {
    let mut stage = Stage::with(Yolo::Refused, |config| config.server.shutdown_grace = 60.0).await;
    let a = stage.agent("a", "worker").await;
    let done = stage.exchange(&a, "zero", "0").await;
    let nexus3::rpc::method::SendResult::Completed { request_id: known, .. } = &done else {
        panic!("the turn completes");
    };
    let running = stage.sending(&a, request("r1", "one"));
    let call = stage.model.asked_by("a").await;
    stage.shutdown_server().await.unwrap();
    assert_eq!(stage.send(&a, &request(known.as_str(), "zero")).await.unwrap(), done);
    call.answers("1").await;
    assert_eq!(ended(running).await, completed("r1", "1", 1));
    has_ended(stage).await;
}

#[tokio::test]
async fn a_server_without_turns_ends_at_once() {
    let stage = Stage::new().await;
    stage.agent("a", "worker").await;
    assert_eq!(stage.shutdown_server().await.unwrap(), stopping());
    has_ended(stage).await;
}

#[tokio::test]
async fn the_server_stops_once_every_agent_asked() {
    let stage = Stage::new().await;
    let (a, b) = (stage.agent("a", "worker").await, stage.agent("b", "worker").await);
    assert_eq!(stage.shutdown(&a).await.unwrap(), ShutdownResult { success: true });
    let asked: Vec<bool> = stage.entries().await.iter().map(|e| e.should_shutdown).collect();
    assert_eq!(asked, [true, false]);
    stage.agent("c", "worker").await;
    stage.shutdown(&b).await.unwrap();
    assert_eq!(stage.entries().await.len(), 3, "one has not asked");
    stage.shutdown(&crate::agents_support::agent_id("c")).await.unwrap();
    has_ended(stage).await;
}

#[tokio::test]
async fn the_server_stops_once_the_last_agent_that_did_not_ask_is_gone() {
    let stage = Stage::new().await;
    let (a, b) = (stage.agent("a", "worker").await, stage.agent("b", "worker").await);
    stage.shutdown(&a).await.unwrap();
    assert!(stage.destroy(&b).await.success);
    has_ended(stage).await;
}

#[tokio::test]
async fn a_pool_without_agents_does_not_stop() {
    let stage = Stage::new().await;
    let a = stage.agent("a", "worker").await;
    stage.destroy(&a).await;
    assert_eq!(stage.entries().await, []);
}

#[tokio::test]
async fn a_home_has_one_server() {
    let stage = Stage::new().await;
    let home = &stage.server.home;
    let world = real::world().unwrap();
    let second = settings(home, Config::default(), Yolo::Refused);
    let refused = Server::bind(world, second).await.expect_err("the home is taken");
    assert!(matches!(refused, RunError::Home(_)));
    let expected = format!(
        "another server uses the home {}: process {}, port {}",
        home.path().display(),
        std::process::id(),
        stage.server.address.port()
    );
    assert_eq!(refused.to_string(), expected);
    let token = std::fs::read_to_string(&stage.server.token_path).unwrap();
    assert!(token.starts_with("nxk_"), "the first server's token is untouched");
}
