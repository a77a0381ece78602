//! Kept events over HTTP, read by the client library: cursors, gaps, agents that are gone. The server
//! is put together by hand around a journal that the test fills.

use std::sync::{Arc, Mutex};

use nexus3::activity::Activity;
use nexus3::client::{ClientError, EventStream, NexusClient};
use nexus3::config::Config;
use nexus3::event::{Audience, Committed, Event, Seq, What};
use nexus3::http::{Auth, Service, serve};
use nexus3::hub::{Hub, Journal, JournalError, KeptEvent, Page, Scope};
use nexus3::id::AgentId;
use nexus3::logs::{Detail, Logs};
use nexus3::policy::ceiling::Yolo;
use nexus3::pool::{Ground, Pool, Records};
use nexus3::provider::Models;
use nexus3::rpc::Rpc;
use nexus3::rpc::method::CreateAgentParams;
use nexus3::world::{BoxFuture, real};
use serde_json::json;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::memory::Memory;

/// Keeps events in memory, one in a page.
#[derive(Default)]
struct Kept {
    /// Held to look or to add; nothing is awaited under it.
    events: Mutex<Vec<Committed>>,
    /// Events up to this one were thrown away.
    forgotten: Seq,
    fails: bool,
}

impl Journal for Kept {
    fn page<'a>(&'a self, of: &'a Scope, after: Seq) -> BoxFuture<'a, Result<Page, JournalError>> {
        Box::pin(async move {
            if self.fails {
                return Err(JournalError { source: "the disk is gone".into() });
            }
            let events = self.events.lock().expect("nothing under this lock panics");
            let matching = events.iter().filter(|event| match of {
                Scope::Agent(agent) => event.event.agent_id.as_ref() == Some(agent),
                Scope::Everything => true,
            });
            let mut left = matching.filter(|event| event.seq > after.max(self.forgotten));
            let first = left.next().map(|event| KeptEvent {
                seq: event.seq,
                name: event.event.what.name().to_owned(),
                json: Arc::clone(&event.json),
            });
            let gap = (after < self.forgotten).then_some((after + 1, self.forgotten));
            Ok(Page { events: first.into_iter().collect(), gap, more: left.next().is_some() })
        })
    }

    fn last_seq(&self) -> Seq {
        let events = self.events.lock().expect("nothing under this lock panics");
        events.last().map_or(0, |event| event.seq)
    }
}

struct Served {
    client: NexusClient,
    hub: Arc<Hub>,
    journal: Arc<Kept>,
    _home: TempDir,
}

/// A server with the agents `a` and `b`.
async fn start(journal: Kept) -> Served {
    let mut world = real::world().expect("the machine opens");
    world.net = Memory::new();
    let config = Config::default();
    let home = tempfile::tempdir().expect("there is room");
    let ground = Ground {
        home: home.path().join("home"),
        cwd: home.path().to_owned(),
        blocked_paths: Vec::new(),
        yolo: Yolo::Refused,
    };
    let models = Models::new(&world, &config, None).expect("there is a model");
    let logs = Logs::start(&world, home.path().join("logs"), Detail::default());
    let records =
        Records::open(&world, home.path(), &config, logs).await.expect("the home is ours");
    let pool = Pool::new(world.clone(), &config, models, ground, records).expect("the pool opens");
    let rpc = Rpc::new(pool, Arc::clone(&world.chance), 32);
    let (hub, journal) = (Hub::new(Arc::clone(&world.clock)), Arc::new(journal));
    let service = Service {
        rpc,
        auth: Auth::Off,
        hub: Arc::clone(&hub),
        activity: Activity::new(),
        journal: Arc::clone(&journal) as Arc<dyn Journal>,
    };
    let address = "127.0.0.1:1".parse().expect("it is an address");
    let listener = world.net.bind(address).await.expect("the net is ours");
    tokio::spawn(serve(listener, Arc::new(service), 100, CancellationToken::new()));
    let client = NexusClient::on(&world, address, None);
    for id in ["a", "b"] {
        let params: CreateAgentParams =
            serde_json::from_value(json!({"agent_id": id})).expect("they are params");
        client.create_agent(&params).await.expect("it is created");
    }
    Served { client, hub, journal, _home: home }
}

impl Served {
    fn commit(&self, of: &str, what: What) {
        let seq = self.journal.last_seq() + 1;
        let at = "2026-01-01T00:00:00Z".parse().expect("it is a time");
        let event = Event { seq: Some(seq), ..Event::new(&agent(of), at, what) };
        let committed = Committed { seq, json: event.json().into(), event };
        let mut events = self.journal.events.lock().expect("nothing under this lock panics");
        events.push(committed.clone());
        drop(events);
        self.hub.publish(&[committed]);
    }

    fn queue(&self, of: &str) {
        self.commit(of, What::TurnQueued { position: 0 });
    }

    async fn open(&self, of: Option<&str>, after: Option<Seq>) -> Result<EventStream, ClientError> {
        self.client.open_events(of.map(agent).as_ref(), after).await
    }
}

fn agent(id: &str) -> AgentId {
    id.parse().expect("it is an id")
}

async fn seqs(stream: &mut EventStream, count: usize) -> Vec<Seq> {
    let mut seqs = Vec::new();
    for _ in 0..count {
        let event = stream.next().await.expect("the stream goes on").expect("it is an event");
        seqs.push(event.seq.expect("it is durable"));
    }
    seqs
}

fn refused(outcome: Result<EventStream, ClientError>) -> (u16, i64, String) {
    match outcome {
        Err(ClientError::Refused { status, error }) => (status.as_u16(), error.code, error.message),
        other => panic!("{other:?} is no refusal"),
    }
}

#[tokio::test]
async fn a_cursor_gives_what_is_kept_after_it_and_then_what_happens() {
    let server = start(Kept::default()).await;
    for of in ["a", "b", "a", "b", "a"] {
        server.queue(of);
    }
    let mut own = server.open(Some("a"), Some(1)).await.expect("it opens");
    let mut all = server.open(None, Some(0)).await.expect("it opens");
    let mut live = server.open(None, None).await.expect("it opens");
    let mut newest = server.open(Some("a"), Some(5)).await.expect("it opens");
    assert_eq!(seqs(&mut own, 2).await, [3, 5]);
    for of in ["b", "a"] {
        server.queue(of);
    }
    assert_eq!(seqs(&mut own, 1).await, [7]);
    assert_eq!(seqs(&mut all, 7).await, [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(seqs(&mut live, 2).await, [6, 7]);
    assert_eq!(seqs(&mut newest, 1).await, [7]);
    let above = (400, -32602, "Invalid cursor: the newest event is 7".to_owned());
    assert_eq!(refused(server.open(None, Some(8)).await), above);
}

#[tokio::test]
async fn what_is_no_longer_kept_is_told_first() {
    let server = start(Kept { forgotten: 3, ..Kept::default() }).await;
    for _ in 0..5 {
        server.queue("a");
    }
    let mut stream = server.open(Some("a"), Some(1)).await.expect("it opens");
    let gap = stream.next().await.expect("it goes on").expect("it is an event");
    assert_eq!((gap.what, gap.seq), (What::StreamGap { from: 2, to: 3 }, None));
    assert_eq!(seqs(&mut stream, 2).await, [4, 5]);
}

#[tokio::test]
async fn the_stream_of_an_agent_that_is_gone_has_what_is_kept_and_ends() {
    let server = start(Kept::default()).await;
    server.queue("gone");
    server.queue("a");
    server.commit("gone", What::AgentDestroyed { parent_agent_id: None });
    for (after, expected) in [(0, &[1, 3][..]), (1, &[3]), (2, &[3]), (3, &[])] {
        let mut stream = server.open(Some("gone"), Some(after)).await.expect("it opens");
        assert_eq!(seqs(&mut stream, expected.len()).await, expected);
        assert!(stream.next().await.is_none(), "nothing follows");
    }
    let missing = (404, -32602, "Agent not found: gone".to_owned());
    assert_eq!(refused(server.open(Some("gone"), None).await), missing);
    let never = (404, -32602, "Agent not found: never".to_owned());
    assert_eq!(refused(server.open(Some("never"), Some(0)).await), never);
    let as_a = server.client.clone().acting_as(&agent("a"));
    let foreign = refused(as_a.open_events(Some(&agent("gone")), Some(0)).await);
    assert_eq!((foreign.0, foreign.1), (403, -32003));
}

#[tokio::test]
async fn a_journal_that_fails_ends_streams_and_opens_none_of_the_gone() {
    let server = start(Kept { fails: true, ..Kept::default() }).await;
    server.queue("a");
    let mut stream = server.open(Some("a"), Some(0)).await.expect("it opens");
    assert!(stream.next().await.is_none());
    let told = (500, -32000, "cannot read the kept events".to_owned());
    assert_eq!(refused(server.open(Some("gone"), Some(0)).await), told);
}
