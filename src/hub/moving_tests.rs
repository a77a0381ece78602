//! An agent that gets another id, and those who listen to it.

use super::super::Start;
use super::stage::{Stage, agent, stream_of};

#[tokio::test]
async fn streams_go_along_with_an_agent_that_gets_another_id() {
    let mut stage = Stage::new();
    for _ in 0..2 {
        stage.start("a", "hi");
        stage.end("a");
    }
    stage.publish();
    let mut live = stage.client(stream_of("a"), Start::Now);
    let mut late = stage.client(stream_of("a"), Start::After(0));
    let mut asking = stage.client(stream_of("a"), Start::After(0));
    let powerless = stage.subscribe(stream_of("a"), Start::Now).unwrap().of_an_agent();
    assert!(late.read().is_none() && asking.read().is_none(), "a page comes at the second poll");
    assert_eq!(late.read().map(|event| event.what.name()), Some("turn_started"));
    stage.rename("a", "b");
    stage.start("b", "on");
    stage.end("b");
    // Whoever has the old id by now is somebody else.
    stage.start("a", "other");
    stage.end("a");
    stage.publish();
    let turn = ["turn_started", "turn_completed"];
    assert_eq!(live.read_all(), [&["agent_updated"][..], &turn].concat());
    let after_the_first = [&turn[1..], &turn, &["agent_updated"], &turn].concat();
    assert_eq!(late.read_all(), after_the_first);
    assert_eq!(asking.read_all(), [&turn[..1], &after_the_first].concat());
    let heard =
        |name: &str| (stage.hub.listeners(&agent(name)), stage.hub.confirmers(&agent(name)));
    assert_eq!((heard("a"), heard("b")), ((0, 0), (4, 3)));
    drop((live, late, asking, powerless));
    assert_eq!(heard("b"), (0, 0));
    assert!(stage.hub.state().moved.is_empty() && stage.hub.state().powerless.is_empty());
}
