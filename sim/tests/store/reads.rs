//! What was written comes back whole, page by page, and nothing else does.

use std::collections::BTreeMap;
use std::sync::Arc;

use nexus3::hub::Scope;
use nexus3::limits::{EVENTS_PAGE_MAX, MESSAGES_LOADED_MAX, STREAM_BUFFER_BYTES_MAX};
use nexus3::message::{Message, Usage};
use nexus3::store::{Opening, RequestRecord, Resident, Standing, Write};

use super::support::{
    Host, agent_id, calls, child, completed, created, event, put, queued, record, request_id,
    result, started, user,
};

#[test]
fn an_agent_is_loaded_as_it_was_written() {
    let machine = Host::new();
    let standing = Standing {
        halted_at_iteration_limit: true,
        last_iteration_count: 100,
        last_action_at: Some("2025-01-01T00:00:01.000Z".into()),
        token_usage: Usage { input_tokens: 3, output_tokens: 2 },
    };
    let conversation = [user("hi"), calls(&["c1"]), result("c1", "done"), calls(&[])];
    machine.serve(async |opened, _| {
        let mut writes = vec![created(1, "a"), child(2, "b", "a")];
        writes.extend((0..).zip(&conversation).map(|(index, said)| put(2, index, said.clone())));
        writes.extend([queued(2, "r1"), started(2, "r1"), completed(2, "r1"), queued(2, "r2")]);
        writes.push(Write::Standing { agent: 2, standing: standing.clone() });
        opened.store.commit(writes).await.expect("committed");
        let loaded =
            opened.store.load(2, MESSAGES_LOADED_MAX).await.expect("read").expect("it is there");
        assert_eq!(loaded.record, record("b", Some("a")));
        assert_eq!(loaded.standing, standing);
        assert_eq!((loaded.message_count, &*loaded.messages), (4, &conversation[..]));
        assert_eq!(loaded.requests, [request_id("r1")], "the other has not ended");
        let new =
            opened.store.load(1, MESSAGES_LOADED_MAX).await.expect("read").expect("it is there");
        assert_eq!((new.message_count, new.standing), (0, Standing::default()));
        assert_eq!(opened.store.load(3, MESSAGES_LOADED_MAX).await.expect("read"), None);
    });
    machine.serve(async |opened, _| {
        let (a, b) = (agent_id("a"), agent_id("b"));
        let (parent, exported) = (Some(a.clone()), false);
        let residents = [
            Resident { number: 1, id: a, parent: None, depth: 0, exported },
            Resident { number: 2, id: b, parent, depth: 1, exported },
        ];
        assert_eq!(opened.residents, residents);
        let loaded =
            opened.store.load(2, MESSAGES_LOADED_MAX).await.expect("read").expect("it is there");
        assert_eq!((loaded.standing, &*loaded.messages), (standing, &conversation[..]));
    });
}

#[test]
fn requests_are_found_where_they_stand() {
    Host::new().serve(async |opened, _| {
        let store = opened.store;
        let standing = async || {
            let found = store.request(1, &request_id("r")).await.expect("read");
            found.map(|RequestRecord { status, outcome, .. }| (status, outcome))
        };
        store.commit(vec![created(1, "a")]).await.expect("committed");
        assert_eq!(standing().await, None);
        store.commit(vec![queued(1, "r")]).await.expect("committed");
        assert_eq!(standing().await, Some(("queued".into(), None)));
        store.commit(vec![started(1, "r")]).await.expect("committed");
        assert_eq!(standing().await, Some(("running".into(), None)));
        store.commit(vec![completed(1, "r")]).await.expect("committed");
        let outcome = r#"{"completed":"r"}"#.to_owned();
        assert_eq!(standing().await, Some(("completed".into(), Some(outcome))));
        let found = store.request(1, &request_id("r")).await.expect("read").expect("it is there");
        assert_eq!(&*found.content, "content of r");
        let forgotten = Write::RequestForgotten { agent: 1, id: request_id("r") };
        store.commit(vec![forgotten]).await.expect("committed");
        assert_eq!(standing().await, None);
    });
}

#[test]
fn the_children_of_a_destroyed_agent_have_no_parent() {
    let machine = Host::new();
    machine.serve(async |opened, _| {
        let writes = vec![created(1, "a"), child(2, "b", "a"), child(3, "c", "b")];
        opened.store.commit(writes).await.expect("committed");
        opened.store.commit(vec![Write::AgentDestroyed { number: 1 }]).await.expect("committed");
        opened.store.commit(vec![created(4, "a")]).await.expect("the id is free");
    });
    machine.serve(async |opened, _| {
        let parents: Vec<_> =
            opened.residents.iter().map(|found| (found.number, found.parent.clone())).collect();
        assert_eq!(parents, [(2, None), (3, Some(agent_id("b"))), (4, None)]);
    });
}

#[test]
fn messages_come_in_pages() {
    Host::new().serve(async |opened, _| {
        let store = opened.store;
        let said: Vec<_> = (0..5).map(|index| user(&format!("message {index}"))).collect();
        let mut writes = vec![created(1, "a"), created(2, "b"), put(2, 0, user("another"))];
        writes.extend((0..).zip(&said).map(|(index, said)| put(1, index, said.clone())));
        store.commit(writes).await.expect("committed");
        let page = async |offset, limit| store.messages(1, offset, limit).await.expect("read");
        assert_eq!(page(0, 2).await, said[..2]);
        assert_eq!(page(3, 10).await, said[3..]);
        assert_eq!(page(5, 10).await, []);
        assert_eq!(page(0, 0).await, []);
        assert_eq!(page(u64::MAX, u64::MAX).await, []);
    });
}

#[test]
fn of_a_long_conversation_the_end_is_loaded_from_a_user_message_on() {
    Host::new().serve(async |opened, _| {
        let store = opened.store;
        let mut writes = vec![created(1, "a")];
        // Three messages a turn: the bound falls on a result, whose call would be missing.
        let turns = MESSAGES_LOADED_MAX as u64 / 3 + 2;
        for turn in 0..turns {
            let said = [user(&format!("turn {turn}")), calls(&["c"]), result("c", "done")];
            writes.extend((3 * turn..).zip(said).map(|(index, said)| put(1, index, said)));
        }
        store.commit(writes).await.expect("committed");
        let loaded = store.load(1, MESSAGES_LOADED_MAX).await.expect("read").expect("it is there");
        assert_eq!(loaded.message_count, 3 * turns);
        assert_eq!(loaded.messages.len(), MESSAGES_LOADED_MAX / 3 * 3);
        assert_eq!(loaded.messages[0], user("turn 2"));
        assert_eq!(loaded.messages.last(), Some(&result("c", "done")));
        assert_eq!(loaded.opening, Some(Opening::First(user("turn 0"))));
    });
}

#[test]
fn a_summary_stands_for_what_it_sums_up_and_goes_with_its_agent() {
    Host::new().serve(async |opened, _| {
        let store = opened.store;
        let mut writes = vec![created(1, "a")];
        for turn in 0..4 {
            let said = [user(&format!("turn {turn}")), calls(&["c"]), result("c", "done")];
            writes.extend((3 * turn..).zip(said).map(|(index, said)| put(1, index, said)));
        }
        store.commit(writes).await.expect("committed");
        let loaded = async |max| store.load(1, max).await.expect("read").expect("it is there");
        assert_eq!(loaded(12).await.opening, None);
        let summary =
            |upto, summary: &str| Write::Summary { agent: 1, upto, summary: summary.into() };
        let writes = vec![summary(3, "once"), summary(7, "twice")];
        store.commit(writes).await.expect("committed");
        let all = loaded(12).await;
        assert_eq!((all.message_count, all.opening), (12, Some(Opening::Summary("twice".into()))));
        assert_eq!(all.messages[0], calls(&["c"]), "it begins where the summary ends");
        assert_eq!(all.messages.len(), 5);
        let end = loaded(4).await;
        assert_eq!(end.opening, Some(Opening::Summary("twice".into())));
        assert_eq!((end.messages.len(), &end.messages[0]), (3, &user("turn 3")));
        assert_eq!(store.messages(1, 0, 20).await.expect("read").len(), 12, "all is still there");
        let gone = vec![Write::AgentDestroyed { number: 1 }, created(2, "a"), summary(1, "late")];
        store.commit(gone).await.expect("committed");
        let new = store.load(2, 12).await.expect("read").expect("it is there");
        assert_eq!((new.message_count, new.opening), (0, None));
    });
}

#[test]
fn events_come_in_pages_of_bounded_rows_and_bytes() {
    Host::new().serve(async |opened, _| {
        let store = opened.store;
        let count = EVENTS_PAGE_MAX + 3;
        let writes = (0..count).map(|number| event("a", number)).collect();
        store.commit(writes).await.expect("committed");
        let first = store.events(&Scope::Everything, 0).await.expect("read");
        assert_eq!((first.events.len(), first.more, first.gap), (EVENTS_PAGE_MAX, true, None));
        let last = first.events.last().expect("it has events").seq;
        let second = store.events(&Scope::Everything, last).await.expect("read");
        assert_eq!((second.events.len(), second.more), (3, false));
        assert_eq!(second.events[0].seq, last + 1);
        assert_eq!(second.events[0].name, "turn_queued");
        let beyond = store.events(&Scope::Everything, u64::MAX).await.expect("read");
        assert_eq!(beyond, nexus3::hub::Page::default());

        let long = "x".repeat(STREAM_BUFFER_BYTES_MAX);
        let started = |content: &str| {
            let what = nexus3::event::What::TurnStarted {
                content: content.into(),
                source: "test".into(),
                source_agent_id: None,
            };
            let at = "2025-01-01T00:00:00Z".parse().expect("it is a time");
            Write::Event(nexus3::event::Event::new(&agent_id("b"), at, what))
        };
        store.commit(vec![started(&long), started(&long)]).await.expect("committed");
        let page = store.events(&Scope::Agent(agent_id("b")), 0).await.expect("read");
        assert_eq!((page.events.len(), page.more), (1, true), "one is read however long it is");
    });
}

#[test]
fn an_agents_events_are_its_own() {
    Host::new().serve(async |opened, _| {
        let store = opened.store;
        let writes = vec![event("a", 0), event("b", 1), event("a", 2)];
        store.commit(writes).await.expect("committed");
        let seqs = async |scope: Scope, after| {
            let page = store.events(&scope, after).await.expect("read");
            page.events.iter().map(|event| event.seq).collect::<Vec<_>>()
        };
        assert_eq!(seqs(Scope::Agent(agent_id("a")), 0).await, [1, 3]);
        assert_eq!(seqs(Scope::Agent(agent_id("a")), 1).await, [3]);
        assert_eq!(seqs(Scope::Agent(agent_id("b")), 0).await, [2]);
        assert_eq!(seqs(Scope::Agent(agent_id("c")), 0).await, [0; 0]);
        assert_eq!(seqs(Scope::Everything, 1).await, [2, 3]);
    });
}

#[test]
fn a_conversation_is_found_wherever_it_stands_among_others() {
    // Of every hundred messages so many are each agent's; the last one hardly ever says anything.
    let who = |number: u64| match number * 37 % 100 {
        0..60 => 1,
        60..99 => 2,
        _ => 3,
    };
    let machine = Host::new();
    let mut said: BTreeMap<u64, Vec<Arc<Message>>> = BTreeMap::new();
    for half in 0..2 {
        machine.serve(async |opened, _| {
            let store = opened.store;
            if half == 0 {
                let agents = vec![created(1, "a"), created(2, "b"), created(3, "c")];
                store.commit(agents).await.expect("committed");
            }
            for number in half * 1500..(half + 1) * 1500 {
                let message = user(&number.to_string());
                let conversation = said.entry(who(number)).or_default();
                let write = put(who(number), conversation.len() as u64, Arc::clone(&message));
                conversation.push(message);
                store.commit(vec![write]).await.expect("committed");
            }
            for (agent, conversation) in &said {
                let count = conversation.len();
                for offset in [0, 1, count / 2, count - 1, count, count + 7] {
                    let page = store.messages(*agent, offset as u64, 40).await.expect("read");
                    let expected: Vec<_> = conversation.iter().skip(offset).take(40).collect();
                    assert_eq!(page.iter().collect::<Vec<_>>(), expected, "{agent} from {offset}");
                }
                let loaded = store.load(*agent, 50).await.expect("read").expect("it is there");
                assert_eq!(loaded.message_count, count as u64);
                assert_eq!(loaded.messages, conversation[count.saturating_sub(50)..]);
            }
        });
    }
    machine.serve(async |opened, _| {
        let store = opened.store;
        store.commit(vec![put(2, 1, user("instead"))]).await.expect("committed");
        assert_eq!(store.messages(2, 1, 1).await.expect("read"), [user("instead")]);
        store.commit(vec![Write::AgentDestroyed { number: 1 }]).await.expect("committed");
        assert_eq!(store.messages(1, 0, 2000).await.expect("read"), []);
        let others = store.messages(2, 2, 2000).await.expect("read");
        assert_eq!(others, said[&2][2..], "those of others stay");
        let further = said[&2].len() as u64;
        store.commit(vec![put(2, further, user("on"))]).await.expect("committed");
        assert_eq!(store.messages(2, further, 2).await.expect("read"), [user("on")]);
    });
}
