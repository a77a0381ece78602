//! What a client does about a stream of events that is lost. Time is virtual.

use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::super::stage_tests::{Play, Stage};
use super::*;

fn record(mut event: Value) -> String {
    event["agent_id"] = json!("a");
    event["at"] = json!("2026-01-01T00:00:00.000Z");
    event["request_id"] = json!("r");
    format!("data: {event}\n\n")
}

fn queued(seq: Seq) -> String {
    record(json!({"type": "turn_queued", "position": 0, "seq": seq}))
}

fn text(kind: &str, text: &str, offset: usize) -> String {
    record(json!({"type": kind, "text": text, "offset": offset}))
}

fn destroyed(seq: Seq) -> String {
    record(json!({"type": "agent_destroyed", "parent_agent_id": null, "seq": seq}))
}

fn stopping() -> String {
    record(json!({"type": "server_stopping"}))
}

fn shown(next: Option<Result<Event, ClientError>>) -> String {
    match next {
        Some(Ok(Event { what: What::ContentChunk { text, .. }, .. })) => text,
        Some(Ok(event)) => match event.seq {
            Some(seq) => format!("{} {seq}", event.what.name()),
            None => event.what.name().to_owned(),
        },
        Some(Err(_)) => "lost".to_owned(),
        None => "over".to_owned(),
    }
}

/// Everything that is told until the end, and what was asked for.
async fn followed(agent: Option<&str>, plays: Vec<Play>) -> (Vec<String>, Vec<String>) {
    let mut stage = Stage::of(plays).await;
    let agent = agent.map(|agent| AgentId::parse(agent).unwrap());
    let mut events = stage.client.events(agent.as_ref(), Some(3));
    let mut told = Vec::new();
    while told.last().is_none_or(|last| last != "over") {
        told.push(shown(events.next().await));
    }
    assert!(events.next().await.is_none(), "what is over stays over");
    (told, stage.asked())
}

#[tokio::test(start_paused = true)]
async fn a_lost_stream_goes_on_where_it_was() {
    let (told, asked) = followed(
        None,
        vec![
            Play::Stream(vec![queued(4), text("content_chunk", "one ", 0), queued(7)]),
            Play::Break,
            Play::Status(503),
            Play::OpenStream(vec![text("turn_snapshot", "one two ", 8), queued(8), stopping()]),
        ],
    )
    .await;
    let expected = ["turn_queued 4", "one ", "turn_queued 7", "lost", "lost", "two "];
    let rest = ["turn_queued 8", "server_stopping", "over"];
    assert_eq!(told, [&expected[..], &rest].concat());
    let again = "/events?after=7";
    assert_eq!(asked, ["/events?after=3", again, again, again]);
}

#[tokio::test(start_paused = true)]
async fn a_silent_stream_is_opened_again() {
    let start = Instant::now();
    let plays = vec![Play::OpenStream(vec![queued(4)]), Play::Stream(vec![stopping()])];
    let (told, _) = followed(None, plays).await;
    assert_eq!(told, ["turn_queued 4", "lost", "server_stopping", "over"]);
    assert_eq!(start.elapsed().as_secs(), 45);
}

#[tokio::test(start_paused = true)]
async fn an_agents_stream_ends_with_it() {
    let plays = vec![Play::Stream(vec![destroyed(4)])];
    assert_eq!(followed(Some("a"), plays).await.0, ["agent_destroyed 4", "over"]);
    // Its id may have had an earlier life, of which events are kept.
    let plays = vec![Play::Stream(vec![destroyed(4), queued(5), destroyed(6)])];
    let expected = ["agent_destroyed 4", "turn_queued 5", "agent_destroyed 6", "over"];
    assert_eq!(followed(Some("a"), plays).await.0, expected);
    // The stream of everything goes on.
    let plays = vec![Play::OpenStream(vec![destroyed(4), stopping()])];
    let expected = ["agent_destroyed 4", "server_stopping", "over"];
    assert_eq!(followed(None, plays).await.0, expected);
    // What is kept of one that is gone may be nothing.
    assert_eq!(followed(Some("a"), vec![Play::Stream(Vec::new())]).await.0, ["over"]);
}

#[tokio::test(start_paused = true)]
async fn an_agent_is_followed_under_its_new_id() {
    let renamed = json!({"type": "agent_updated", "parent_agent_id": null, "changed": {},
        "previous_agent_id": "before", "seq": 4});
    let plays = vec![
        Play::Stream(vec![record(renamed), queued(5)]),
        Play::Stream(vec![queued(6), destroyed(7)]),
    ];
    let (told, asked) = followed(Some("before"), plays).await;
    let expected =
        ["agent_updated 4", "turn_queued 5", "turn_queued 6", "agent_destroyed 7", "over"];
    assert_eq!(told, expected);
    assert_eq!(asked, ["/agent/before/events?after=3", "/agent/a/events?after=5"]);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_told_once() {
    for status in [400, 401, 404] {
        let (told, asked) = followed(Some("a"), vec![Play::Status(status)]).await;
        assert_eq!((told, asked.len()), (vec!["lost".to_owned(), "over".to_owned()], 1));
    }
}

#[tokio::test(start_paused = true)]
async fn attempts_come_slower_and_slower() {
    let stage = Stage::of(Vec::new()).await;
    let mut events = stage.client.events(None, None);
    let (start, mut waits) = (Instant::now(), Vec::new());
    for _ in 0..8 {
        assert_eq!(shown(events.next().await), "lost");
        waits.push(start.elapsed().as_millis());
    }
    assert_eq!(waits, [0, 250, 750, 1750, 3750, 7750, 12_750, 17_750]);
    assert_eq!(events.cursor(), None);
}

#[tokio::test(start_paused = true)]
async fn events_are_a_stream_too() {
    let stage = Stage::of(vec![Play::Stream(vec![queued(4), stopping()])]).await;
    let stream = stage.client.events(None, None).into_stream();
    let told: Vec<String> = stream.map(|event| shown(Some(event))).collect().await;
    assert_eq!(told, ["turn_queued 4", "server_stopping"]);
}
