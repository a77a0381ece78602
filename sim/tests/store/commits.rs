//! What is committed together is durable together, told in order, and costs one sync.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use nexus3::hub::Scope;
use nexus3::limits::MESSAGES_LOADED_MAX;
use nexus3::store::{Kept, Options, Store, StoreError, Write};
use nexus3_sim::disk::OperationKind;

use super::support::{
    Heard, Host, completed, created, event, open, options, put, queued, started, user,
};

#[test]
fn events_are_published_in_the_order_of_their_seq_before_the_answer() {
    Host::new().serve(async |opened, heard| {
        assert_eq!((opened.last_seq, opened.next_number), (0, 1));
        let store = opened.store;
        store.commit(vec![created(1, "a"), event("a", 0), event("a", 1)]).await.expect("committed");
        assert_eq!(heard.seqs(), [1, 2]);
        assert_eq!(store.last_seq(), 2);
        let told: Vec<_> = heard.events().iter().map(|event| event.json.clone()).collect();
        assert!(told[1].ends_with(r#""seq":2}"#), "{}", told[1]);
        let page = store.events(&Scope::Everything, 0).await.expect("read");
        let kept: Vec<_> = page.events.iter().map(|event| event.json.clone()).collect();
        assert_eq!(kept, told, "what is kept is what was published");
    });
}

#[test]
fn seq_and_agent_numbers_go_on_over_restarts() {
    let machine = Host::new();
    machine.serve(async |opened, _| {
        opened.store.commit(vec![created(7, ".1"), event(".1", 0)]).await.expect("committed");
    });
    machine.serve(async |opened, heard| {
        assert_eq!((opened.last_seq, opened.next_number), (1, 8));
        opened.store.commit(vec![event("b", 0)]).await.expect("committed");
        assert_eq!(heard.seqs(), [2]);
    });
}

#[test]
fn commits_that_wait_together_are_synced_together() {
    const COMMITS: usize = 50;
    let machine = Host::new();
    let syncs = Arc::new(AtomicUsize::new(0));
    machine.serve(async |opened, heard| {
        let store = opened.store;
        store.commit(vec![created(1, "a")]).await.expect("committed");
        let counted = Arc::clone(&syncs);
        machine.disk.on_operation(move |operation| {
            if operation.kind == OperationKind::Sync {
                counted.fetch_add(1, Ordering::Relaxed);
            }
        });
        store.commit(vec![put(1, 0, user("alone"))]).await.expect("committed");
        let alone = syncs.swap(0, Ordering::Relaxed);
        let commit = |number| {
            let store = store.clone();
            tokio::spawn(async move { store.commit(vec![event("a", number)]).await })
        };
        let running: Vec<_> = (0..COMMITS).map(commit).collect();
        for commit in running {
            commit.await.expect("it ends").expect("committed");
        }
        machine.disk.on_operation(|_| ());
        let together = syncs.load(Ordering::Relaxed);
        assert!(alone > 0, "a commit is synced");
        assert!(together <= 2 * alone, "{together} syncs for {COMMITS}, {alone} for one");
        assert_eq!(heard.seqs().len(), COMMITS);
    });
}

#[test]
fn a_batch_that_fails_fails_each_of_its_members_and_leaves_nothing() {
    let machine = Host::new();
    machine.serve(async |opened, heard| {
        let store = opened.store;
        store.commit(vec![created(1, "a")]).await.expect("committed");
        // Two agents of one id: the database itself refuses it.
        let good = store.commit(vec![created(2, "b"), event("b", 0)]);
        let bad = store.commit(vec![created(3, "a"), event("a", 0)]);
        let (good, bad) = tokio::join!(good, bad);
        assert!(matches!(good, Err(StoreError::Write { .. })), "{good:?}");
        assert!(matches!(bad, Err(StoreError::Write { .. })), "{bad:?}");
        assert_eq!((heard.seqs(), store.last_seq()), (vec![], 0));
        assert_eq!(store.load(2, MESSAGES_LOADED_MAX).await.expect("read"), None);
        store.commit(vec![created(2, "b"), event("b", 0)]).await.expect("it was not its fault");
        assert_eq!(heard.seqs(), [1]);
    });
}

#[test]
fn what_was_asked_before_the_close_is_done_and_what_comes_after_is_refused() {
    let machine = Host::new();
    machine.live(async |world| {
        let heard = Arc::new(Heard::default());
        let store = open(&world, options(), &heard).await.expect("it opens").store;
        let before = store.commit(vec![created(1, "a"), event("a", 0)]);
        let (before, ()) = tokio::join!(before, store.close());
        before.expect("committed");
        let after = store.commit(vec![event("a", 1)]).await;
        assert!(matches!(after, Err(StoreError::Closed)), "{after:?}");
        let read = store.load(1, MESSAGES_LOADED_MAX).await;
        assert!(matches!(read, Err(StoreError::Closed)), "{read:?}");
        store.close().await;
    });
    assert_eq!(machine.file("/home/nexus3.db-wal"), None, "a clean stop leaves no log");
    machine.serve(async |opened, _| assert_eq!(opened.residents.len(), 1));
}

#[test]
fn what_comes_after_the_end_of_an_agent_changes_nothing() {
    Host::new().serve(async |opened, _| {
        let store = opened.store;
        store.commit(vec![created(1, "a"), put(1, 0, user("hi"))]).await.expect("committed");
        store.commit(vec![Write::AgentDestroyed { number: 1 }]).await.expect("committed");
        store.commit(vec![put(1, 1, user("late"))]).await.expect("committed");
        assert_eq!(store.load(1, MESSAGES_LOADED_MAX).await.expect("read"), None);
        assert_eq!(store.messages(1, 0, 10).await.expect("read"), []);
        store.commit(vec![created(2, "a")]).await.expect("its id is free");
    });
}

/// How many reads, writes and syncs of the disk a turn takes.
async fn cost_of_a_turn(machine: &Host, store: &Store, turn: u64) -> usize {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    machine.disk.on_operation(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    store.commit(a_turn(turn)).await.expect("committed");
    machine.disk.on_operation(|_| ());
    count.load(Ordering::Relaxed)
}

fn a_turn(turn: u64) -> Vec<Write> {
    let request = format!("r{turn}");
    vec![
        queued(1, &request),
        started(1, &request),
        put(1, 2 * turn, user("question")),
        put(1, 2 * turn + 1, user("answer")),
        completed(1, &request),
        event("a", 0),
        event("a", 1),
    ]
}

#[test]
fn a_turn_costs_the_same_however_long_the_history_is() {
    let machine = Host::new();
    machine.live(async |world| {
        let kept = Kept { per_agent: 100, days: 30 };
        let opened = open(&world, Options { kept, ..options() }, &Heard::new()).await;
        let store = opened.expect("it opens").store;
        store.commit(vec![created(1, "a")]).await.expect("committed");
        let mut costs = Vec::new();
        for turn in 0..2000 {
            match turn {
                100..110 | 1990.. => costs.push(cost_of_a_turn(&machine, &store, turn).await),
                _ => store.commit(a_turn(turn)).await.expect("committed"),
            }
        }
        let (early, late) = costs.split_at(10);
        let [early, late] = [early, late].map(|costs| costs.iter().sum::<usize>());
        // A tree that is twenty times as large may be a page deeper.
        assert!(late < 2 * early, "{late} operations late, {early} early");
        store.close().await;
    });
}
