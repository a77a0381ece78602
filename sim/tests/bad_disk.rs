//! A whole server whose disk comes and goes: whatever clients were told stays true, while the server
//! runs and after it was started again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nexus3::client::{ClientError, NexusClient};
use nexus3::config::Config;
use nexus3::event::{Event, Seq};
use nexus3::id::{AgentId, RequestId};
use nexus3::message::Message;
use nexus3::message::check_pairs;
use nexus3::policy::ceiling::Yolo;
use nexus3::rpc::method::{
    CreateAgentParams, GetMessagesParams, RequestStatus, SendParams, SendResult,
};
use nexus3::server::{Access, LogSettings, Resume, Server, Settings};
use nexus3_sim::disk::{Disk, Fault, Item, Switch};
use nexus3_sim::machine::{Acting, HOME, Machine, PROJECT, Raised, SplitMix, VirtualClock};
use nexus3_sim::pipes::Pipes;
use tokio::runtime::Builder;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout};

const SEEDS: u64 = 30;
const STEPS: usize = 60;
const AGENTS: [&str; 3] = ["a", "b", "c"];
const FAULTS: [Fault; 4] = [Fault::Full, Fault::ReadOnly, Fault::IoError, Fault::FsyncError];

type Key = (AgentId, RequestId);

/// What a client was told about its send.
#[derive(Clone, Debug, PartialEq)]
enum Told {
    Ended(SendResult),
    Taken,
    /// It was not taken, or its turn failed because of the disk: both are told in the same words.
    Storage,
}

struct Host {
    disk: Disk,
    clock: VirtualClock,
}

struct Running {
    client: NexusClient,
    signals: Arc<Raised>,
    serving: JoinHandle<()>,
}

impl Host {
    fn new() -> Self {
        let began = Instant::now();
        let clock = VirtualClock::new(move || began.elapsed());
        let disk = {
            let clock = clock.clone();
            Disk::new(move || nexus3::world::Clock::now(&clock))
        };
        disk.put(Path::new(PROJECT), Item::Dir { mode: 0o755 }).expect("there is nothing yet");
        Self { disk, clock }
    }

    async fn start(&self, seed: u64) -> Running {
        let signals: Arc<Raised> = Arc::default();
        let world = Machine {
            net: Arc::new(Pipes::new()),
            clock: self.clock.clone(),
            disk: self.disk.clone(),
            programs: Arc::new(Acting::new(Arc::new(self.disk.clone()), |_, _| None)),
            signals: Arc::clone(&signals),
            vars: [].into(),
        }
        .world(seed);
        let home = PathBuf::from(HOME);
        let settings = Settings {
            config: Config::default(),
            access: Access::TokenHolders,
            yolo: Yolo::Refused,
            resume: Resume::WhenAsked,
            logs: LogSettings::in_home(&home),
            home,
            record: None,
        };
        let server = Server::bind(world.clone(), settings).await.expect("the disk is fine now");
        let token = server.token().cloned();
        let client = NexusClient::on(&world, server.address(), token);
        Running { client, signals, serving: tokio::spawn(server.run()) }
    }

    fn heal(&self) {
        for fault in FAULTS {
            self.disk.set_fault(fault, Switch::Off);
        }
    }
}

impl Running {
    async fn stop(self) {
        self.signals.raise();
        self.serving.await.expect("the server ends in order");
    }
}

fn agent(name: &str) -> AgentId {
    AgentId::parse(name).expect("it is an id")
}

fn told(outcome: Result<SendResult, ClientError>) -> Told {
    match outcome {
        Ok(SendResult::Accepted { .. }) => Told::Taken,
        Ok(ended) => Told::Ended(ended),
        Err(ClientError::Rpc { error }) => {
            assert_eq!(error.data.expect("it has data")["kind"], "storage", "{}", error.message);
            Told::Storage
        }
        Err(other) => panic!("a client is always answered: {other}"),
    }
}

async fn send(client: NexusClient, key: Key, wait: bool, content: &str) -> (Key, Told) {
    let params = SendParams {
        content: content.to_owned(),
        request_id: Some(key.1.clone()),
        wait: Some(wait),
        ..SendParams::default()
    };
    let outcome = client.send(&key.0, &params).await;
    (key, told(outcome))
}

/// Plays at random with a server whose disk fails at random; returns what was told.
async fn play(host: &Host, client: &NexusClient, seed: u64) -> BTreeMap<Key, Told> {
    let mut chance = SplitMix::named(seed, "play");
    let mut pick = move |below: u64| chance.draw() % below;
    let mut sends = JoinSet::new();
    for number in 0..STEPS {
        let who = agent(AGENTS[usize::try_from(pick(3)).expect("it is small")]);
        match pick(10) {
            0..5 => {
                let content = match pick(3) {
                    0 => "Hello".to_owned(),
                    1 => format!("call echo {{\"message\": \"{number}\"}}"),
                    _ => format!("call sleep {{\"seconds\": 0.{}}}", pick(9) + 1),
                };
                let request = RequestId::parse(&format!("r{number}")).expect("it is an id");
                let (client, wait) = (client.clone(), pick(2) == 0);
                sends.spawn(async move { send(client, (who, request), wait, &content).await });
            }
            5 => drop(client.cancel(&who, None).await.expect("a cancel is answered")),
            6 | 7 => {
                let fault = FAULTS[usize::try_from(pick(4)).expect("it is small")];
                let switch = [Switch::Once, Switch::On][usize::try_from(pick(2)).expect("small")];
                host.disk.set_fault(fault, switch);
            }
            8 => host.heal(),
            _ => sleep(Duration::from_millis(pick(1500))).await,
        }
        sleep(Duration::from_millis(pick(5))).await;
    }
    host.heal();
    sends.join_all().await.into_iter().collect()
}

/// What the server says must be what clients were told.
async fn check(client: &NexusClient, told: &BTreeMap<Key, Told>, after: &str) {
    for ((who, request), told) in told {
        let known = client.get_request(who, request.clone()).await;
        let shown = format!("{who} {request} {after}: {told:?}, and {known:?}");
        match (told, known) {
            (Told::Ended(ended), Ok(known)) => {
                assert_eq!(known.result.as_ref(), Some(ended), "{shown}");
            }
            (Told::Taken, Ok(known)) => {
                let open = [RequestStatus::Queued, RequestStatus::Running];
                assert!(!open.contains(&known.status), "{shown}");
            }
            (Told::Storage, Ok(known)) => {
                let data = known.error.and_then(|error| error.data).expect("it failed");
                assert_eq!(data["kind"], "storage", "{shown}");
            }
            (Told::Storage, Err(ClientError::Rpc { error })) => {
                assert_eq!(error.code, -32602, "{shown}");
            }
            (Told::Ended(_) | Told::Taken | Told::Storage, Err(_)) => panic!("{shown}"),
        }
    }
}

async fn conversations(client: &NexusClient) -> BTreeMap<AgentId, Vec<Arc<Message>>> {
    let mut conversations = BTreeMap::new();
    for who in AGENTS.map(agent) {
        let params = GetMessagesParams { offset: None, limit: Some(2000) };
        let page = client.get_messages(&who, &params).await.expect("the disk is fine");
        assert_eq!(page.total, page.messages.len(), "{who}");
        let messages: Vec<_> = page.messages.into_iter().map(|numbered| numbered.message).collect();
        check_pairs(messages.iter().map(AsRef::as_ref)).expect("a conversation is paired");
        conversations.insert(who, messages);
    }
    conversations
}

/// Every kept event, read by cursor.
async fn journal(client: &NexusClient, last: Seq) -> Vec<Event> {
    let mut events = client.open_events(None, Some(0)).await.expect("the stream opens");
    let mut read: Vec<Event> = Vec::new();
    while read.last().and_then(|event| event.seq) != Some(last) {
        let event = timeout(Duration::from_mins(1), events.next()).await.expect("there is more");
        read.push(event.expect("the stream goes on").expect("the stream is whole"));
    }
    read
}

fn check_events(events: &[Event], told: &BTreeMap<Key, Told>) {
    let numbers: Vec<Seq> = events.iter().filter_map(|event| event.seq).collect();
    assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
    for ((who, request), told) in told {
        let of = |event: &&Event| {
            event.agent_id.as_ref() == Some(who) && event.request_id.as_ref() == Some(request)
        };
        let names: Vec<&str> = events.iter().filter(of).map(|event| event.what.name()).collect();
        let terminal = events.iter().filter(of).filter(|event| event.what.is_terminal()).count();
        match told {
            Told::Ended(_) | Told::Taken => assert_eq!(terminal, 1, "{who} {request}: {names:?}"),
            Told::Storage => assert!(
                terminal == usize::from(!names.is_empty()),
                "{who} {request}: a request that was not taken leaves no trace: {names:?}"
            ),
        }
    }
}

async fn survive(seed: u64) {
    let host = Host::new();
    let server = host.start(seed).await;
    for name in AGENTS {
        let params =
            CreateAgentParams { agent_id: Some(name.to_owned()), ..CreateAgentParams::default() };
        server.client.create_agent(&params).await.expect("the disk is fine");
    }
    let told = play(&host, &server.client, seed).await;
    // What was owed is written within moments, and what runs ends.
    sleep(Duration::from_mins(1)).await;
    check(&server.client, &told, "while it runs").await;
    let before = conversations(&server.client).await;
    server.stop().await;
    let server = host.start(seed + 1).await;
    check(&server.client, &told, "after a restart").await;
    assert_eq!(conversations(&server.client).await, before, "seed {seed}");
    let events = journal(&server.client, last_seq(&server.client).await).await;
    check_events(&events, &told);
    server.stop().await;
}

/// The number of the newest event, as a cursor above it tells.
async fn last_seq(client: &NexusClient) -> Seq {
    let Err(ClientError::Refused { error, .. }) = client.open_events(None, Some(Seq::MAX)).await
    else {
        panic!("no event has this number");
    };
    error.message.rsplit(' ').next().and_then(|number| number.parse().ok()).expect("it says which")
}

#[test]
fn what_clients_were_told_stays_true_on_a_disk_that_comes_and_goes() {
    for seed in 0..SEEDS {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime starts").block_on(survive(seed));
    }
}
