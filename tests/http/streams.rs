//! Event streams as they flow: over real sockets, and under a virtual clock where time matters.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use nexus3::event::{Audience, Committed, Event, Seq, What};
use nexus3::hub::{Hub, Journal, JournalError, Page, Scope, Start, Subscription};
use nexus3::id::{AgentId, RequestId};
use nexus3::limits::STREAM_BUFFER_BYTES_MAX;
use nexus3::world::BoxFuture;
use tokio::time::{Instant, sleep};

use super::memory::{Memory, WIRE_BYTES};
use super::support::client::{Client, Request};
use super::support::server::{Running, start_with};
use super::{create, start_with_agent};

const PING: &str = ": ping\n\n";

/// A client in the middle of an event stream.
pub struct EventReader {
    client: Client,
    frames: VecDeque<String>,
}

impl EventReader {
    pub async fn open(server: &Running, request: &Request) -> Self {
        let mut client = server.connect().await;
        let head = client.exchange(request).await;
        assert_eq!(head.status, 200, "{head:?}");
        Self { client, frames: VecDeque::new() }
    }

    /// The next frame; `None` once the stream has ended as it should.
    async fn next(&mut self) -> Option<String> {
        loop {
            if let Some(frame) = self.frames.pop_front() {
                return Some(frame);
            }
            match self.chunk() {
                Some(chunk) if chunk.is_empty() => return None,
                Some(chunk) => {
                    let text = String::from_utf8(chunk).expect("frames are text");
                    self.frames.extend(text.split_inclusive("\n\n").map(str::to_owned));
                }
                None => {
                    self.client.read_more().await.expect("a stream does not just break off");
                }
            }
        }
    }

    /// A whole chunk of the body, if it is there; an empty one is the last.
    fn chunk(&mut self) -> Option<Vec<u8>> {
        let received = &mut self.client.received;
        let line = received.windows(2).position(|window| window == b"\r\n")?;
        let size = std::str::from_utf8(&received[..line]).expect("a size is ASCII");
        let size = usize::from_str_radix(size, 16).expect("a size is hexadecimal");
        let (from, to) = (line + 2, line + 2 + size);
        if received.len() < to + 2 {
            return None;
        }
        assert_eq!(&received[to..to + 2], b"\r\n");
        let chunk = received[from..to].to_vec();
        received.drain(..to + 2);
        Some(chunk)
    }

    /// The type of the next event.
    async fn next_type(&mut self) -> String {
        let frame = self.next().await.expect("the stream goes on");
        let line = frame.lines().find_map(|line| line.strip_prefix("event: "));
        line.unwrap_or_else(|| panic!("{frame} is an event")).to_owned()
    }
}

impl Running {
    /// A stream of an agent, or of everything, that takes a place and is not read.
    pub fn hold_stream(&self, of: &str) -> Subscription {
        let scope = if of == "*" { Scope::Everything } else { Scope::Agent(agent(of)) };
        self.hub.subscribe(Arc::new(Nothing), scope, Start::Now).expect("there is room")
    }
}

struct Nothing;

impl Journal for Nothing {
    fn page<'a>(&'a self, _: &'a Scope, _: Seq) -> BoxFuture<'a, Result<Page, JournalError>> {
        Box::pin(async { Ok(Page::default()) })
    }

    fn last_seq(&self) -> Seq {
        0
    }
}

fn agent(id: &str) -> AgentId {
    id.parse().expect("it is an id")
}

const TIME: &str = "2026-01-01T00:00:00Z";

fn request() -> RequestId {
    RequestId::parse("r").expect("it is an id")
}

fn event(of: &str, what: What) -> Event {
    let at = TIME.parse().expect("it is a time");
    Event::new(&agent(of), at, what).of(&request())
}

fn publish(hub: &Hub, seq: Seq, of: &str, what: What) {
    let event = Event { seq: Some(seq), ..event(of, what) };
    hub.publish(&[Committed { seq, json: event.json().into(), event }]);
}

fn start_turn(hub: &Hub, seq: Seq, of: &str) {
    let (content, source) = ("hi".into(), "test".to_owned());
    publish(hub, seq, of, What::TurnStarted { content, source, source_agent_id: None });
}

fn chunk(hub: &Hub, of: &str, text: &str, offset: usize) {
    let at = TIME.parse().expect("it is a time");
    let what = What::ContentChunk { text: text.to_owned(), offset };
    hub.live(&agent(of), &request(), at, &what);
}

async fn start_in_memory() -> Running {
    let server = start_with(|world, _| world.net = Memory::new()).await;
    create(&server, "a").await;
    server
}

#[tokio::test]
async fn events_come_as_they_happen_and_the_agents_last_one_ends_its_stream() {
    let server = start_with_agent().await;
    let mut own = EventReader::open(&server, &server.request("GET", "/agent/a/events")).await;
    let mut all = EventReader::open(&server, &server.request("GET", "/events")).await;
    start_turn(&server.hub, 101, "a");
    assert_eq!(own.next_type().await, "turn_started");
    chunk(&server.hub, "a", "x\ny", 0);
    let data = r#"{"type":"content_chunk","text":"x\ny","offset":0,"agent_id":"a","at":"2026-01-01T00:00:00.000Z","request_id":"r"}"#;
    let frame = format!("event: content_chunk\ndata: {data}\n\n");
    assert_eq!(own.next().await, Some(frame));
    publish(&server.hub, 102, "a", What::AgentDestroyed { parent_agent_id: None });
    let frame = own.next().await.expect("it has a last event");
    assert!(frame.starts_with("id: 102\nevent: agent_destroyed\ndata: {"), "{frame}");
    assert_eq!(own.next().await, None);
    // The connection is as good as any other afterwards.
    let health = server.request("GET", "/healthz");
    assert_eq!(own.client.exchange(&health).await.status, 200);
    for name in ["turn_started", "content_chunk", "agent_destroyed"] {
        assert_eq!(all.next_type().await, name);
    }
}

#[tokio::test]
async fn a_server_that_stops_ends_every_stream_with_its_last_event() {
    let server = start_with_agent().await;
    let mut streams = Vec::new();
    for path in ["/events", "/agent/a/events", "/agent/a/events?after=1"] {
        streams.push(EventReader::open(&server, &server.request("GET", path)).await);
    }
    server.stop().await;
    for stream in &mut streams {
        let frame = stream.next().await.expect("there is a last event");
        let start = r#"event: server_stopping
data: {"type":"server_stopping","agent_id":null,"at":""#;
        assert!(frame.starts_with(start), "{frame}");
        assert_eq!(stream.next().await, None);
        assert_eq!(stream.client.read_to_end().await, b"");
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_stream_pings_every_15_seconds_and_is_never_idle() {
    let server = start_in_memory().await;
    let mut stream = EventReader::open(&server, &server.request("GET", "/events")).await;
    let opened = Instant::now();
    for number in 1..=10 {
        assert_eq!(stream.next().await.as_deref(), Some(PING));
        assert_eq!(opened.elapsed(), Duration::from_secs(15 * number));
    }
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_takes_nothing_for_30_seconds_is_cut_off() {
    let server = start_in_memory().await;
    let request = server.request("GET", "/agent/a/events");
    let stuck = EventReader::open(&server, &request).await;
    start_turn(&server.hub, 101, "a");
    let piece = "x".repeat(1000);
    let mut offset = 0;
    let began = Instant::now();
    // More than the wire, the library and the buffer hold together.
    while offset < 4 * (STREAM_BUFFER_BYTES_MAX + WIRE_BYTES) {
        chunk(&server.hub, "a", &piece, offset);
        offset += piece.len();
        tokio::task::yield_now().await;
    }
    assert_eq!(server.hub.listeners(&agent("a")), 1);
    sleep(Duration::from_secs(29)).await;
    assert_eq!(server.hub.listeners(&agent("a")), 1);
    sleep(Duration::from_secs(2)).await;
    assert_eq!(server.hub.listeners(&agent("a")), 0, "its place is free");
    assert_eq!(began.elapsed(), Duration::from_secs(31));
    drop(stuck);
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_that_reads_gets_the_whole_text() {
    let server = start_in_memory().await;
    let request = server.request("GET", "/agent/a/events");
    let mut slow = EventReader::open(&server, &request).await;
    start_turn(&server.hub, 101, "a");
    let piece = "x".repeat(1000);
    for number in 0..2000 {
        chunk(&server.hub, "a", &piece, number * 1000);
        if number % 100 == 0 {
            sleep(Duration::from_secs(1)).await;
        }
    }
    let mut text = String::new();
    assert_eq!(slow.next_type().await, "turn_started");
    let mut snapshots = 0;
    while text.len() < 2_000_000 {
        // Slow, but not too slow.
        sleep(Duration::from_millis(100)).await;
        let frame = slow.next().await.expect("the stream goes on");
        if frame == PING {
            continue;
        }
        let data = frame.lines().find_map(|line| line.strip_prefix("data: "));
        let event: Event = serde_json::from_str(data.expect("events have data")).expect("JSON");
        match event.what {
            What::ContentChunk { text: more, offset } => {
                assert_eq!(offset, text.len());
                text.push_str(&more);
            }
            What::TurnSnapshot { text: whole, offset } => {
                assert_eq!(offset, whole.len());
                snapshots += 1;
                text = whole;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(text, "x".repeat(2_000_000));
    assert!(snapshots > 0, "it missed chunks");
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_left_in_silence_is_noticed_and_its_place_freed() {
    let server = start_in_memory().await;
    let stream = EventReader::open(&server, &server.request("GET", "/events")).await;
    assert_eq!(server.hub.listeners(&agent("a")), 1);
    drop(stream);
    sleep(Duration::from_secs(16)).await;
    assert_eq!(server.hub.listeners(&agent("a")), 0);
}
