//! When steps are made, told in notes.

use super::super::tests::Told;
use crate::record::note::Meaning;

#[test]
fn a_call_that_is_open_when_the_next_begins_goes_on_beside_it() {
    let mut told = Told::new();
    told.begins(0, 1, "send", Some("a")).begins(50, 2, "list_agents", None).ends(60, 2).ends(70, 1);
    told.begins(90, 3, "list_agents", None).ends(95, 3);
    assert_eq!(
        told.steps(),
        [
            "name=call 1 call=send agent=a background=true",
            "sleep=100ms",
            "call=list_agents",
            "after=call 1 call=list_agents"
        ]
    );
}

#[test]
fn what_came_after_an_event_waits_for_it_and_for_as_long_as_it_came_later() {
    let mut told = Told::new();
    told.begins(0, 1, "send", Some("a")).event(10, "turn_started", Meaning::TurnStarted);
    told.event(20, "tool_started", Meaning::None).event(30, "tool_started", Meaning::None);
    told.begins(2040, 2, "cancel", Some("a")).ends(2050, 2).ends(2050, 1);
    assert_eq!(
        told.steps(),
        [
            "call=send agent=a background=true",
            "on=event:tool_started nth=2 in_order=true agent=a sleep=2010ms",
            "call=cancel agent=a"
        ]
    );
}

#[test]
fn a_pause_of_a_person_is_kept_and_that_of_a_program_is_not() {
    let mut told = Told::new();
    told.begins(0, 1, "list_agents", None)
        .ends(5, 1)
        .begins(400, 2, "list_agents", None)
        .ends(410, 2);
    told.begins(60_000, 3, "list_agents", None).ends(60_010, 3);
    assert_eq!(
        told.steps(),
        ["call=list_agents", "call=list_agents", "sleep=59600ms", "call=list_agents"]
    );
}

#[test]
fn what_came_after_an_event_and_an_end_waits_for_both_and_for_what_stands_before_it() {
    let mut told = Told::new();
    told.begins(0, 1, "send", Some("a")).begins(10, 2, "send", Some("b"));
    told.ends(20, 1).event(30, "turn_started", Meaning::TurnStarted);
    told.begins(40, 3, "cancel", Some("a")).ends(50, 3).ends(60, 2);
    assert_eq!(
        told.steps(),
        [
            "name=call 1 call=send agent=a background=true",
            "sleep=100ms",
            "call=send agent=b background=true",
            "after=call 1 sleep=0s",
            "on=event:turn_started in_order=true call=cancel agent=a"
        ]
    );
}
