//! Which events are kept: the last of each agent, not older than so many days, and the gap says
//! what is gone. And which decisions.

use std::collections::BTreeMap;
use std::time::Duration;

use nexus3::choice::Choice;
use nexus3::hub::{Page, Scope};
use nexus3::id::ConfirmId;
use nexus3::limits::{CONFIRMATIONS_KEPT_MAX, EVENTS_FORGOTTEN_AT_ONCE_MAX};
use nexus3::store::{AgentNumber, ConfirmationAsked, Kept, Options, Store, Write};

use super::support::{Heard, Host, agent_id, created, event, event_at, open, options, request_id};

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

fn keeping(per_agent: u64) -> Options {
    Options { kept: Kept { per_agent, days: 30 }, ..options() }
}

async fn page(store: &Store, agent: &str, after: u64) -> Page {
    store.events(&Scope::Agent(agent_id(agent)), after).await.expect("read")
}

fn seqs(page: &Page) -> Vec<u64> {
    page.events.iter().map(|event| event.seq).collect()
}

#[test]
fn the_last_events_of_each_agent_are_kept_and_the_gap_says_what_is_not() {
    let machine = Host::new();
    machine.live(async |world| {
        let store = open(&world, keeping(3), &Heard::new()).await.expect("it opens").store;
        // a: 1, 3, 4, 5, 6; b: 2.
        store.commit(vec![event("a", 0), event("b", 0), event("a", 1)]).await.expect("committed");
        store.commit(vec![event("a", 2), event("a", 3)]).await.expect("committed");
        let before = page(&store, "a", 0).await;
        assert_eq!((seqs(&before), before.gap), (vec![3, 4, 5], Some((1, 1))));
        store.commit(vec![event("a", 4)]).await.expect("committed");
        let after = page(&store, "a", 0).await;
        assert_eq!((seqs(&after), after.gap), (vec![4, 5, 6], Some((1, 3))));
        assert_eq!(page(&store, "a", 2).await.gap, Some((3, 3)));
        assert_eq!(page(&store, "a", 3).await.gap, None, "the cursor is past what is gone");
        let other = page(&store, "b", 0).await;
        assert_eq!((seqs(&other), other.gap), (vec![2], None));
        let all = store.events(&Scope::Everything, 0).await.expect("read");
        assert_eq!((seqs(&all), all.gap), (vec![2, 4, 5, 6], Some((1, 3))));
        store.close().await;
    });
    machine.live(async |world| {
        let store = open(&world, keeping(2), &Heard::new()).await.expect("it opens").store;
        store.commit(vec![event("a", 5)]).await.expect("committed");
        let fewer = page(&store, "a", 0).await;
        assert_eq!((seqs(&fewer), fewer.gap), (vec![6, 7], Some((1, 5))), "counted after a start");
        store.close().await;
    });
}

#[test]
fn a_failed_batch_does_not_spoil_the_count() {
    let machine = Host::new();
    machine.live(async |world| {
        let store = open(&world, keeping(3), &Heard::new()).await.expect("it opens").store;
        store.commit(vec![created(1, "a"), event("a", 0), event("a", 1)]).await.expect("committed");
        let refused = vec![event("a", 2), event("a", 3), created(2, "a")];
        store.commit(refused).await.expect_err("the id is taken");
        store.commit(vec![event("a", 4)]).await.expect("committed");
        let kept = page(&store, "a", 0).await;
        assert_eq!((seqs(&kept), kept.gap), (vec![1, 2, 3], None));
        store.close().await;
    });
}

#[test]
fn events_of_a_destroyed_agent_stay_until_they_are_too_old() {
    let machine = Host::new();
    machine.live(async |world| {
        let store = open(&world, options(), &Heard::new()).await.expect("it opens").store;
        store.commit(vec![created(1, "a"), event("a", 0)]).await.expect("committed");
        store.commit(vec![Write::AgentDestroyed { number: 1 }]).await.expect("committed");
        store.commit(vec![event_at("a", 1, "2025-01-11T00:00:00Z")]).await.expect("committed");
        assert_eq!(seqs(&page(&store, "a", 0).await), [1, 2]);
        machine.clock.jump(30 * DAY_MS);
        tokio::time::sleep(Duration::from_mins(61)).await;
        assert_eq!(seqs(&page(&store, "a", 0).await), [1, 2], "to the day, it is not too old");
        machine.clock.jump(1);
        tokio::time::sleep(Duration::from_mins(61)).await;
        let kept = page(&store, "a", 0).await;
        assert_eq!((seqs(&kept), kept.gap), (vec![2], Some((1, 1))));
        store.close().await;
    });
}

#[test]
fn what_is_too_old_at_the_start_goes_in_slices() {
    let count = 2 * EVENTS_FORGOTTEN_AT_ONCE_MAX + 1;
    let machine = Host::new();
    machine.serve(async |opened, _| {
        let mut writes: Vec<_> = (0..count).map(|number| event("a", number)).collect();
        writes.push(event_at("a", count, "2025-02-01T00:00:00Z"));
        opened.store.commit(writes).await.expect("committed");
    });
    machine.clock.jump(31 * DAY_MS);
    machine.serve(async |opened, _| {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let kept = page(&opened.store, "a", 0).await;
        let gone = count as u64;
        assert_eq!((seqs(&kept), kept.gap), (vec![gone + 1], Some((1, gone))));
    });
}

const AGENT: AgentNumber = 1;

fn confirm_id(number: u64) -> ConfirmId {
    ConfirmId::parse(&format!("{number:016x}")).expect("it is a confirmation's id")
}

fn asked(number: u64) -> Write {
    let asked = ConfirmationAsked {
        id: confirm_id(number),
        request: request_id("r1"),
        tool: "exec".to_owned(),
        options: &[Choice::AllowOnce, Choice::Deny],
        expires_at: "2025-01-01T00:02:00.000Z".into(),
    };
    Write::ConfirmationRequested { agent: AGENT, asked: Box::new(asked) }
}

fn decided(number: u64) -> Write {
    let (id, by) = (confirm_id(number), "alice".to_owned());
    Write::ConfirmationResolved { agent: AGENT, id, decision: Choice::Deny, by }
}

async fn is_kept(store: &Store, number: u64) -> bool {
    let record = store.confirmation(AGENT, &confirm_id(number)).await.expect("read");
    record.is_some_and(|record| record.resolved.is_some())
}

#[test]
fn the_last_thousand_decisions_are_kept_whenever_they_were_asked_for() {
    let most = CONFIRMATIONS_KEPT_MAX as u64;
    let machine = Host::new();
    machine.serve(async |opened, _| {
        let store = opened.store;
        // The first is decided last, after as many others as are kept.
        store.commit(vec![created(AGENT, "a"), asked(0)]).await.expect("committed");
        let others = (1..=most).flat_map(|number| [asked(number), decided(number)]);
        store.commit(others.collect()).await.expect("committed");
        assert!(is_kept(&store, 1).await, "no more than these were decided");
        store.commit(vec![decided(0)]).await.expect("committed");
        assert!(is_kept(&store, 0).await, "it is the newest decision");
        assert!(!is_kept(&store, 1).await, "it is the oldest of one too many");
        assert!(is_kept(&store, 2).await && is_kept(&store, most).await);
        store.commit(vec![asked(most + 1), decided(most + 1)]).await.expect("committed");
        assert!(!is_kept(&store, 2).await);
        assert!(is_kept(&store, 0).await && is_kept(&store, 3).await);
    });
}

/// All events of an agent after a cursor, page by page.
async fn all(store: &Store, agent: &str, after: u64) -> Vec<u64> {
    let (mut found, mut after) = (Vec::new(), after);
    loop {
        let page = page(store, agent, after).await;
        found.extend(seqs(&page));
        if !page.more {
            return found;
        }
        after = *found.last().expect("a page that is not the last has an event");
    }
}

/// Some are told of often, some seldom; which one is next repeats only after a long time.
fn who(number: u64) -> &'static str {
    const OFTEN: [&str; 8] = ["a", "a", "b", "a", "c", "a", "b", "a"];
    let drawn = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    if drawn.is_multiple_of(331) {
        "seldom"
    } else {
        OFTEN[usize::try_from(drawn % 8).expect("it is small")]
    }
}

#[test]
fn an_agents_events_are_found_wherever_they_stand_among_others() {
    const EACH: u64 = 900;
    let machine = Host::new();
    let mut told: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    let mut seq = 0;
    // Counted anew after each start, also where another number is kept than before.
    for kept_max in [500, 500, 300, 700, 20] {
        machine.live(async |world| {
            let store =
                open(&world, keeping(kept_max), &Heard::new()).await.expect("it opens").store;
            for _ in 0..EACH / 3 {
                let batch: Vec<_> =
                    (seq + 1..=seq + 3).map(|number| (number, who(number))).collect();
                for (number, agent) in &batch {
                    let kept = told.entry(agent).or_default();
                    kept.push(*number);
                    let excess =
                        kept.len().saturating_sub(usize::try_from(kept_max).expect("it is small"));
                    kept.drain(..excess);
                }
                let writes = batch.iter().map(|(_, agent)| event(agent, 0)).collect();
                store.commit(writes).await.expect("committed");
                seq += 3;
            }
            for (agent, kept) in &told {
                for after in [0, seq / 2, seq - 300, seq - 1, seq] {
                    let expected: Vec<u64> =
                        kept.iter().copied().filter(|seq| *seq > after).collect();
                    assert_eq!(all(&store, agent, after).await, expected, "{agent} after {after}");
                }
            }
            store.close().await;
        });
    }
}
