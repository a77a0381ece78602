//! An agent that gets another id: what was kept by the old one is found by the new one, and nothing else is.

use nexus3::event::{Event, What};
use nexus3::hub::{Page, Scope};
use nexus3::limits::MESSAGES_LOADED_MAX;
use nexus3::store::{Kept, Options, Store, Write};

use super::support::{
    Heard, Host, agent_id, child, created, event, event_at, open, options, put, queued, user,
};

const BEFORE: &str = "2024-12-31T00:00:00Z";

fn renamed(number: u64, id: &str) -> Write {
    Write::AgentRenamed { number, id: agent_id(id) }
}

/// The event that the agents of `support` begin with.
fn begun(id: &str) -> Write {
    let at = "2025-01-01T00:00:00Z".parse().expect("it is a time");
    Write::Event(Event::new(&agent_id(id), at, What::AgentCreated { parent_agent_id: None }))
}

async fn page(store: &Store, agent: &str) -> Page {
    store.events(&Scope::Agent(agent_id(agent)), 0).await.expect("read")
}

async fn seqs(store: &Store, agent: &str) -> Vec<u64> {
    page(store, agent).await.events.iter().map(|event| event.seq).collect()
}

#[test]
fn all_of_an_agent_goes_along_and_its_old_id_is_free() {
    let machine = Host::new();
    machine.serve(async |opened, _| {
        let store = opened.store;
        let writes = vec![created(1, ".1"), begun(".1"), child(2, "kid", ".1"), event("kid", 0)];
        store.commit(writes).await.expect("committed");
        store.commit(vec![put(1, 0, user("hi")), queued(1, "r")]).await.expect("committed");
        store.commit(vec![renamed(1, "scout"), event("scout", 0)]).await.expect("committed");
        store.commit(vec![created(3, ".1"), begun(".1")]).await.expect("the id is free");
        let loaded = store.load(1, MESSAGES_LOADED_MAX).await.expect("read").expect("it is there");
        assert_eq!((loaded.record.id, loaded.message_count), (agent_id("scout"), 1));
        assert_eq!(seqs(&store, "scout").await, [1, 3]);
        assert_eq!(seqs(&store, ".1").await, [4]);
        let told = page(&store, "scout").await.events[0].json.contains(r#""agent_id":".1""#);
        assert!(told, "an event says what was so when it happened");
    });
    machine.serve(async |opened, _| {
        let found = |resident: &nexus3::store::Resident| {
            (resident.number, resident.id.clone(), resident.parent.clone())
        };
        let found: Vec<_> = opened.residents.iter().map(found).collect();
        let scout = agent_id("scout");
        let expected = [(1, scout.clone(), None), (2, agent_id("kid"), Some(scout))];
        assert_eq!(
            found, expected,
            "it outlives its server now, and the other temporary one does not"
        );
    });
}

#[test]
fn what_is_kept_of_an_earlier_agent_of_the_id_stays_where_it_is() {
    Host::new().serve(async |opened, _| {
        let store = opened.store;
        store.commit(vec![event_at(".1", 0, BEFORE)]).await.expect("committed");
        store.commit(vec![created(1, ".1"), begun(".1"), event(".1", 1)]).await.expect("committed");
        store.commit(vec![renamed(1, "scout")]).await.expect("committed");
        assert_eq!(seqs(&store, ".1").await, [1]);
        assert_eq!(seqs(&store, "scout").await, [2, 3]);
    });
}

#[test]
fn what_was_forgotten_is_a_gap_under_the_new_id_too() {
    Host::new().live(async |world| {
        let options = Options { kept: Kept { per_agent: 2, days: 30 }, ..options() };
        let store = open(&world, options, &Heard::new()).await.expect("it opens").store;
        let writes = vec![created(1, "a"), begun("a"), event("a", 0), event("a", 1), event("a", 2)];
        store.commit(writes).await.expect("committed");
        store.commit(vec![renamed(1, "b")]).await.expect("committed");
        let kept = page(&store, "b").await;
        assert_eq!((seqs(&store, "b").await, kept.gap), (vec![3, 4], Some((1, 2))));
        store.commit(vec![event("b", 3)]).await.expect("committed");
        assert_eq!(seqs(&store, "b").await, [4, 5], "they are counted together");
        store.close().await;
    });
}

#[test]
fn an_id_that_is_taken_is_refused_and_an_agent_that_is_gone_gets_none() {
    Host::new().serve(async |opened, _| {
        let store = opened.store;
        store.commit(vec![created(1, "a"), created(2, "b")]).await.expect("committed");
        store.commit(vec![renamed(1, "b")]).await.expect_err("somebody has it");
        store.commit(vec![Write::AgentDestroyed { number: 2 }]).await.expect("committed");
        store.commit(vec![renamed(2, "c"), renamed(1, "b")]).await.expect("committed");
        let loaded = store.load(1, MESSAGES_LOADED_MAX).await.expect("read").expect("it is there");
        assert_eq!(loaded.record.id, agent_id("b"));
    });
}
