//! The store on the real disk: the same as in the simulation, as far as a sound disk can show it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use nexus3::code::{Code, ErrorObject};
use nexus3::event::{Audience, Committed, Event, Seq, What};
use nexus3::hub::Scope;
use nexus3::id::{AgentId, RequestId};
use nexus3::limits::MESSAGES_LOADED_MAX;
use nexus3::message::Message;
use nexus3::store::{
    AgentRecord, Closed, Kept, Opened, Options, Recipe, Store, StoreError, Sync, Write,
};
use nexus3::world::{Access, World, real};

#[derive(Default)]
struct Heard {
    /// Held to add or to copy.
    seqs: Mutex<Vec<Seq>>,
}

impl Audience for Heard {
    fn publish(&self, events: &[Committed]) {
        let mut seqs = self.seqs.lock().expect("nothing panics under it");
        seqs.extend(events.iter().map(|event| event.seq));
    }
}

fn world() -> World {
    real::world().expect("this machine can be used")
}

fn home() -> (tempfile::TempDir, PathBuf) {
    let home = tempfile::tempdir().expect("a temporary directory is made");
    let path = home.path().join("nexus3.db");
    (home, path)
}

async fn open(world: &World, path: &Path, heard: &Arc<Heard>) -> Result<Opened, StoreError> {
    let options = Options {
        path: path.to_owned(),
        sync: Sync::Full,
        kept: Kept { per_agent: 10_000, days: 30 },
        interrupted: ErrorObject::new(Code::Outside, "the server stopped"),
    };
    Store::open(world, options, Arc::clone(heard) as Arc<dyn Audience>).await
}

fn agent_id(number: u64) -> AgentId {
    AgentId::parse(&format!("agent{number}")).expect("it is an id")
}

fn created(number: u64) -> Write {
    let recipe = Recipe {
        preset: "sandboxed".into(),
        cwd: "/".into(),
        root: None,
        write_paths: vec![],
        disabled_tools: vec![],
        enabled_tools: vec![],
        session_allowances: None,
        ceiling: None,
        model: "m".into(),
        system_prompt: "".into(),
        system_prompt_path: None,
    };
    let (id, created_at) = (agent_id(number), "2025-01-01T00:00:00.000Z".into());
    let record = AgentRecord { id, parent: None, depth: 0, created_at, recipe };
    Write::AgentCreated { number, record: Box::new(record) }
}

fn said(agent: u64, index: u64, text: &str) -> Write {
    let message = Arc::new(Message::User { content: text.into(), meta: None });
    Write::Message { agent, index, message }
}

fn event(world: &World, agent: u64) -> Write {
    let what = What::TurnQueued { position: 0 };
    Write::Event(Event::new(&agent_id(agent), world.clock.now(), what))
}

fn mode(world: &World, path: &Path) -> u32 {
    let (dir, name) = (path.parent().expect("it has one"), path.file_name().expect("it has one"));
    let dir = world.fs.dir(dir).expect("it is there");
    dir.stat(Path::new(name)).expect("it is there").mode
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_agents_at_once_find_all_they_committed_after_a_restart() {
    const AGENTS: u64 = 20;
    const MESSAGES: u64 = 20;
    let (world, (_home, path)) = (world(), home());
    let heard = Arc::new(Heard::default());
    let store = open(&world, &path, &heard).await.expect("it opens").store;
    let live = |agent| {
        let (store, world) = (store.clone(), world.clone());
        tokio::spawn(async move {
            store.commit(vec![created(agent)]).await.expect("committed");
            for index in 0..MESSAGES {
                let writes = vec![said(agent, index, &"x".repeat(3000)), event(&world, agent)];
                store.commit(writes).await.expect("committed");
                let found = store.messages(agent, index, 10).await.expect("read");
                assert_eq!(found.len(), 1, "what was committed is read");
            }
        })
    };
    let agents: Vec<_> = (1..=AGENTS).map(live).collect();
    for agent in agents {
        agent.await.expect("an agent ends");
    }
    let told = heard.seqs.lock().expect("nothing panics under it").clone();
    assert_eq!(told, (1..=AGENTS * MESSAGES).collect::<Vec<_>>());
    store.close().await;

    let opened = open(&world, &path, &heard).await.expect("it opens again");
    assert_eq!(opened.residents.len() as u64, AGENTS);
    assert_eq!((opened.last_seq, opened.next_number), (AGENTS * MESSAGES, AGENTS + 1));
    for agent in 1..=AGENTS {
        let loaded = opened
            .store
            .load(agent, MESSAGES_LOADED_MAX)
            .await
            .expect("read")
            .expect("it is there");
        assert_eq!(loaded.message_count, MESSAGES);
        let page = opened.store.events(&Scope::Agent(agent_id(agent)), 0).await.expect("read");
        assert_eq!(page.events.len() as u64, MESSAGES);
    }
    opened.store.close().await;
}

#[tokio::test]
async fn only_the_owner_can_read_the_files_and_a_clean_stop_leaves_one() {
    let (world, (home, path)) = (world(), home());
    let store = open(&world, &path, &Arc::default()).await.expect("it opens").store;
    store.commit(vec![created(1)]).await.expect("committed");
    let log = home.path().join("nexus3.db-wal");
    assert_eq!((mode(&world, &path), mode(&world, &log)), (0o600, 0o600));
    let second = open(&world, &path, &Arc::default()).await;
    assert!(matches!(second, Err(StoreError::Open { .. })), "it has one owner: {second:?}");
    store.close().await;
    let dir = world.fs.dir(home.path()).expect("it is there");
    let names: Vec<_> = dir.list().expect("it is listed").into_iter().map(|e| e.name).collect();
    assert_eq!(names, ["nexus3.db"]);
}

#[tokio::test]
async fn a_store_that_was_dropped_without_a_close_is_recovered() {
    let (world, (_home, path)) = (world(), home());
    let request = RequestId::parse("r").expect("it is an id");
    let store = open(&world, &path, &Arc::default()).await.expect("it opens").store;
    let queued = Write::RequestQueued { agent: 1, id: request.clone(), content: "hi".into() };
    store.commit(vec![created(1), queued]).await.expect("committed");
    // What a killed process leaves: the files as they are.
    let from = world.fs.dir(path.parent().expect("it has one")).expect("it is there");
    let copies = tempfile::tempdir().expect("a temporary directory is made");
    let to = world.fs.dir(copies.path()).expect("it is there");
    for entry in from.list().expect("it is listed") {
        let name = Path::new(&entry.name);
        let file = from.open(name, Access::Read).expect("it is there");
        let content = file.read_all(1 << 30).expect("it is read");
        to.replace(name, &content, 0o600, ".temp").expect("it is copied");
    }
    store.close().await;
    let path = copies.path().join("nexus3.db");
    let opened = open(&world, &path, &Arc::default()).await.expect("it opens");
    let closed = Closed { dormant: 1, requests: 1, ..Closed::default() };
    assert_eq!((opened.closed, opened.set_aside), (closed, None));
    let found = opened.store.request(1, &request).await.expect("read").expect("it is there");
    assert_eq!(found.status, "interrupted");
    opened.store.close().await;
}

#[tokio::test]
async fn a_file_that_is_no_database_is_set_aside() {
    let (world, (home, path)) = (world(), home());
    let dir = world.fs.dir(home.path()).expect("it is there");
    dir.replace(Path::new("nexus3.db"), b"no database", 0o644, ".temp").expect("it is put");
    let opened = open(&world, &path, &Arc::default()).await.expect("it opens");
    let aside = opened.set_aside.expect("it was set aside");
    let name = aside.file_name().and_then(|name| name.to_str()).expect("it has a name").to_owned();
    assert!(name.starts_with("nexus3.db.corrupt-2") && !name.contains(':'), "{name}");
    let file = dir.open(Path::new(&name), Access::Read).expect("it is there");
    assert_eq!(file.read_all(100).expect("it is read"), b"no database");
    opened.store.close().await;
}
