//! Limits that many callers run into at the same time: what is left is given away exactly once.

use futures_util::future::join_all;
use nexus3::client::ClientError;
use nexus3::id::AgentId;
use nexus3::policy::ceiling::Yolo;
use nexus3::rpc::method::{
    CreateAgentParams, CreateAgentResult, InitialResponse, Limits, SendParams,
};
use serde_json::json;

use crate::agents_support::{Stage, ended, error_with, named, refused, request};

async fn limited(stage: &Stage, name: &str, preset: &str, limits: Limits) -> AgentId {
    let params = CreateAgentParams { limits: Some(limits), ..named(name, preset) };
    stage.create_agent(&params).await.expect("the agent is created").agent_id
}

fn is_at_its_limit(error: &ClientError) -> bool {
    match error {
        ClientError::Rpc { error } => {
            error.code == -32003 && error.data == Some(json!({"reason": "limit"}))
        }
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn parallel_sends_of_a_family_get_the_turns_that_are_left_and_no_more() {
    let mut stage = Stage::new().await;
    let limits = Limits { max_turns: Some(5), ..Limits::default() };
    let boss = limited(&stage, "boss", "trusted", limits).await;
    let mut agents = vec![boss.clone()];
    for name in ["a", "b", "c"] {
        agents.push(stage.child(name, "worker", Some(&boss)).await);
    }
    // Each agent is sent to by four callers at once.
    let clients = agents.iter().flat_map(|agent| (0..4).map(move |caller| (agent, caller)));
    let sends = clients.map(async |(agent, caller)| {
        let id = format!("r{caller}");
        let params = SendParams { wait: Some(false), ..request(&id, "go") };
        stage.send(agent, &params).await.map(|_| (agent.clone(), id))
    });
    let (taken, not): (Vec<_>, Vec<_>) = join_all(sends).await.into_iter().partition(Result::is_ok);
    assert_eq!((taken.len(), not.len()), (5, 11));
    assert!(not.iter().all(|outcome| is_at_its_limit(outcome.as_ref().unwrap_err())));
    let taken: Vec<(AgentId, String)> = taken.into_iter().map(Result::unwrap).collect();
    // Every send that was taken runs: nothing is refused after it was accepted.
    for (agent, _) in &taken {
        stage.model.asked_by(agent.as_str()).await.answers("done").await;
    }
    for (agent, id) in &taken {
        let sent = stage.sending(agent, request(id, "go"));
        ended(sent).await;
    }
    let none = stage.send(&boss, &request("more", "go")).await;
    let message = "max_turns is reached: this agent and those below it may have 5 turns in all";
    assert_eq!(refused(none), error_with(-32003, message, json!({"reason": "limit"})));
    let stage = stage.restarted(Yolo::Refused, |_| {}).await;
    let none = stage.send(&agents[1], &request("more", "go")).await;
    assert!(is_at_its_limit(&none.unwrap_err()));
}

#[tokio::test]
async fn whoever_creates_an_agent_is_told_so_though_its_first_message_came_too_late() {
    let mut stage = Stage::new().await;
    let limits = Limits { max_turns: Some(2), ..Limits::default() };
    let boss = limited(&stage, "boss", "trusted", limits).await;
    let names: Vec<String> = (0..6).map(|number| format!("w{number}")).collect();
    let creations = names.iter().map(async |name| {
        let (parent_agent_id, initial_message) = (Some(boss.clone()), Some("go".to_owned()));
        let params =
            CreateAgentParams { parent_agent_id, initial_message, ..named(name, "worker") };
        (name, stage.create_agent(&params).await)
    });
    let (mut begun, mut made) = (Vec::new(), 0);
    for (name, created) in join_all(creations).await {
        match created {
            Ok(CreateAgentResult { initial_status: Some(_), response: None, .. }) => {
                begun.push(name.clone());
                made += 1;
            }
            Ok(CreateAgentResult { response: Some(InitialResponse::Error(error)), .. }) => {
                assert_eq!((error.code, error.data), (-32003, Some(json!({"reason": "limit"}))));
                made += 1;
            }
            Ok(other) => panic!("{other:?}"),
            Err(error) => assert!(is_at_its_limit(&error)),
        }
    }
    assert_eq!((begun.len(), stage.entry(&boss).await.child_count), (2, made));
    for name in begun {
        stage.model.asked_by(&name).await.answers("done").await;
    }
}

#[tokio::test]
async fn parallel_creations_get_the_places_that_are_left_and_no_more() {
    let stage = Stage::new().await;
    let limits = Limits { max_agents: Some(4), ..Limits::default() };
    let boss = limited(&stage, "boss", "trusted", limits).await;
    let names: Vec<String> = (0..10).map(|number| format!("w{number}")).collect();
    let creations = names.iter().map(async |name| {
        let parent_agent_id = Some(boss.clone());
        let params = CreateAgentParams { parent_agent_id, ..named(name, "worker") };
        stage.create_agent(&params).await
    });
    let (made, not): (Vec<_>, Vec<_>) =
        join_all(creations).await.into_iter().partition(Result::is_ok);
    assert_eq!((made.len(), not.len()), (3, 7));
    assert!(not.iter().all(|outcome| is_at_its_limit(outcome.as_ref().unwrap_err())));
    assert_eq!(stage.entry(&boss).await.child_count, 3);
}
