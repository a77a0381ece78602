//! What the last server left open is closed at the next start: once, with its events, and so that
//! every conversation can go on.

use nexus3::event::{Ended, What};
use nexus3::hub::Scope;
use nexus3::limits::MESSAGES_LOADED_MAX;
use nexus3::store::{Closed, Write};
use nexus3_sim::disk::CrashMode;

use super::support::{
    Heard, Host, agent_id, calls, child, completed, created, failed_result, interrupted, open,
    options, put, queued, request_id, result, started, tool_started, user,
};

const UNKNOWN: &str =
    "outcome_unknown: the server stopped while this ran; whether it had an effect is not known.";
const NOT_RUN: &str = "Not run: the server stopped before it.";

/// A life that commits this and is cut off.
fn cut_off_after(machine: &Host, writes: Vec<Write>) {
    machine.live(async |world| {
        let opened = open(&world, options(), &Heard::new()).await.expect("it opens");
        opened.store.commit(writes).await.expect("committed");
        machine.disk.power_off();
    });
    machine.crash(CrashMode::LoseAll, 0);
}

#[test]
fn open_requests_are_interrupted_once() {
    let machine = Host::new();
    let writes = vec![
        created(1, "a"),
        queued(1, "ended"),
        started(1, "ended"),
        completed(1, "ended"),
        queued(1, "running"),
        started(1, "running"),
        queued(1, "waiting"),
    ];
    cut_off_after(&machine, writes);
    machine.serve(async |opened, heard| {
        let closed = Closed { dormant: 1, requests: 2, ..Closed::default() };
        assert_eq!(opened.closed, closed);
        let told: Vec<_> = heard.events().into_iter().map(|committed| committed.event).collect();
        let ended = Ended {
            reason: "interrupted".into(),
            error: Some(interrupted()),
            partial: String::new(),
        };
        for (event, id) in told.iter().zip(["running", "waiting"]) {
            assert_eq!(event.what, What::TurnInterrupted(ended.clone()));
            assert_eq!(event.agent_id, Some(agent_id("a")));
            assert_eq!(event.request_id, Some(request_id(id)));
            let kept = opened.store.request(1, &request_id(id)).await.expect("read");
            let kept = kept.expect("it is there");
            assert_eq!(kept.status, "interrupted");
            assert_eq!(kept.outcome.as_deref(), Some("\"interrupted\""));
        }
        assert_eq!((heard.seqs(), opened.last_seq), (vec![1, 2], 2));
        let kept = opened.store.events(&Scope::Everything, 0).await.expect("read");
        assert_eq!(kept.events.len(), 2, "they are durable");
        let ended = opened.store.request(1, &request_id("ended")).await.expect("read");
        assert_eq!(ended.expect("it is there").status, "completed");
    });
    machine.serve(async |opened, heard| {
        assert_eq!((opened.closed, heard.seqs()), (Closed::default(), vec![]), "not twice");
        assert_eq!(opened.residents.len(), 1);
    });
}

#[test]
fn every_open_call_gets_a_result_in_its_place() {
    let machine = Host::new();
    let said = [user("do it"), calls(&["c1", "c2", "c3"]), result("c1", "done")];
    let mut writes = vec![created(1, "a"), queued(1, "r"), started(1, "r")];
    writes.extend((0..).zip(&said).map(|(index, said)| put(1, index, said.clone())));
    writes.extend([tool_started(1, "r", "c1"), tool_started(1, "r", "c2")]);
    writes.push(Write::ToolEnded { agent: 1, request: request_id("r"), tool_id: "c1".into() });
    cut_off_after(&machine, writes);
    for start in ["first", "second"] {
        machine.serve(async |opened, _| {
            let calls = (opened.closed.calls_unknown, opened.closed.calls_not_run);
            assert_eq!(calls, if start == "first" { (1, 1) } else { (0, 0) });
            let found = opened.store.messages(1, 0, 10).await.expect("read");
            let added = [failed_result("c2", UNKNOWN), failed_result("c3", NOT_RUN)];
            assert_eq!(found, [&said[..], &added].concat(), "{start} start");
        });
    }
}

#[test]
fn a_call_that_ended_without_a_kept_result_is_not_known() {
    let machine = Host::new();
    let writes = vec![
        created(1, "a"),
        queued(1, "r"),
        started(1, "r"),
        put(1, 0, user("do it")),
        put(1, 1, calls(&["c1"])),
        tool_started(1, "r", "c1"),
        Write::ToolEnded { agent: 1, request: request_id("r"), tool_id: "c1".into() },
    ];
    cut_off_after(&machine, writes);
    machine.serve(async |opened, _| {
        let found = opened.store.messages(1, 2, 10).await.expect("read");
        assert_eq!(found, [failed_result("c1", UNKNOWN)]);
    });
}

#[test]
fn an_id_that_a_model_uses_again_is_not_taken_for_the_earlier_call() {
    let machine = Host::new();
    let writes = vec![
        created(1, "a"),
        queued(1, "r"),
        started(1, "r"),
        put(1, 0, user("do it")),
        put(1, 1, calls(&["c"])),
        tool_started(1, "r", "c"),
        Write::ToolEnded { agent: 1, request: request_id("r"), tool_id: "c".into() },
        put(1, 2, result("c", "done")),
        put(1, 3, calls(&["c"])),
    ];
    cut_off_after(&machine, writes);
    machine.serve(async |opened, _| {
        let found = opened.store.messages(1, 4, 10).await.expect("read");
        assert_eq!(found, [failed_result("c", NOT_RUN)]);
    });
}

#[test]
fn conversations_without_open_calls_are_left_alone() {
    let machine = Host::new();
    let mut writes = vec![created(1, "empty"), created(2, "asked"), created(3, "answered")];
    for agent in 1..=3 {
        writes.extend([queued(agent, "r"), started(agent, "r")]);
    }
    writes.push(put(2, 0, user("hi")));
    writes.extend([put(3, 0, user("hi")), put(3, 1, calls(&["c"])), put(3, 2, result("c", "x"))]);
    cut_off_after(&machine, writes);
    machine.serve(async |opened, _| {
        let closed = Closed { dormant: 3, requests: 3, ..Closed::default() };
        assert_eq!(opened.closed, closed);
        for (agent, count) in [(1, 0), (2, 1), (3, 3)] {
            assert_eq!(opened.store.messages(agent, 0, 10).await.expect("read").len(), count);
        }
    });
}

#[test]
fn temporary_agents_are_orphaned_and_their_children_have_no_parent() {
    let machine = Host::new();
    let writes = vec![created(1, ".1"), child(2, "b", ".1"), child(3, ".2", "b")];
    cut_off_after(&machine, writes);
    machine.serve(async |opened, _| {
        let closed = Closed { dormant: 1, orphaned: 2, ..Closed::default() };
        assert_eq!(opened.closed, closed);
        let residents: Vec<_> =
            opened.residents.iter().map(|found| (found.number, found.parent.clone())).collect();
        assert_eq!(residents, [(2, None)]);
        assert_eq!(
            opened.store.load(1, MESSAGES_LOADED_MAX).await.expect("read"),
            None,
            "it cannot be restored"
        );
        opened.store.commit(vec![created(4, ".1")]).await.expect("its id is free");
        opened.store.commit(vec![Write::AgentRestored { number: 2 }]).await.expect("committed");
    });
    machine.serve(async |opened, _| {
        let closed = Closed { dormant: 1, orphaned: 1, ..Closed::default() };
        assert_eq!(opened.closed, closed, "the restored one was active again");
    });
}
