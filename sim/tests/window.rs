//! A window of 2,000 tokens is kept over two hundred turns with tools, whether or not the server
//! crashes in between: the invariants look at every request that the model host receives.

use nexus3_sim::play;
use nexus3_sim::scenario::Scenario;

const TWENTY_FIVE_TURNS: &str =
    include_str!("../../scenarios/window_of_two_thousand_tokens_is_never_exceeded.toml");

/// The scenario, eight times as long.
fn two_hundred_turns() -> Scenario {
    let mut text = TWENTY_FIVE_TURNS.to_owned();
    for (short, long) in [
        ("repeat = 25", "repeat = 200"),
        ("total = 125,", "total = 1000,"),
        ("model_calls = { scout = 50 }", "model_calls = { scout = 400 }"),
    ] {
        assert!(text.contains(short), "the scenario has {short}");
        text = text.replace(short, long);
    }
    Scenario::parse("window.toml", &text).expect("it is sound")
}

#[test]
fn no_request_of_two_hundred_turns_exceeds_its_window() {
    let played = play::play(&two_hundred_turns(), 0);
    assert_eq!((played.failures, played.turns), (Vec::new(), 400));
}

#[test]
fn nor_does_one_after_a_crash() {
    let scenario = two_hundred_turns();
    let points = play::play_crashing(&scenario, 0, None, None).points;
    for quarter in 1..4 {
        let crashed = play::play_crashing(&scenario, 0, Some(points / 4 * quarter), None);
        assert_eq!(crashed.failures, Vec::<String>::new(), "point {}", points / 4 * quarter);
        assert!(crashed.turns > 390, "the rest is played: {}", crashed.turns);
    }
}
