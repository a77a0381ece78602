//! A cancel takes effect at once, wherever the turn is: within 50 ms of virtual time, whatever the
//! seed makes of the network.

use nexus3_sim::play;
use nexus3_sim::scenario::Scenario;
use regex::Regex;

/// Where the turn is, and the scenario that cancels it there.
const WHERE: [(&str, &str); 9] = [
    ("queued", include_str!("../../scenarios/cancel_takes_a_send_out_of_the_queue.toml")),
    (
        "backing off",
        include_str!("../../scenarios/cancel_ends_the_wait_before_another_attempt.toml"),
    ),
    (
        "backing off, messages",
        include_str!(
            "../../scenarios/cancel_ends_the_wait_before_another_attempt_over_anthropic.toml"
        ),
    ),
    ("connecting", include_str!("../../scenarios/cancel_ends_a_turn_that_cannot_connect.toml")),
    (
        "connecting, messages",
        include_str!("../../scenarios/cancel_ends_a_turn_that_cannot_connect_over_anthropic.toml"),
    ),
    (
        "waiting for headers",
        include_str!("../../scenarios/cancel_ends_a_turn_before_its_first_word.toml"),
    ),
    (
        "waiting for headers, messages",
        include_str!(
            "../../scenarios/cancel_ends_a_turn_before_its_first_word_over_anthropic.toml"
        ),
    ),
    ("mid-stream", include_str!("../../scenarios/cancel_keeps_what_was_said.toml")),
    (
        "mid-stream, messages",
        include_str!("../../scenarios/cancel_keeps_what_was_said_over_anthropic.toml"),
    ),
];

/// What the server may take.
const ALLOWED_MS: u64 = 50;
/// What a message may take on the simulated network, and the tick at which a client notices.
const PASSAGE_MS: u64 = 50 + 5;

#[test]
fn a_cancel_ends_the_turn_at_once_wherever_it_is() {
    for (place, text) in WHERE {
        for seed in 0..4 {
            let scenario = Scenario::parse("cancel.toml", text).expect("it is sound");
            let played = play::play(&scenario, seed);
            assert!(played.failures.is_empty(), "{place}: {:?}", played.failures);
            let took = took_ms(&played.transcript);
            assert!(
                took <= ALLOWED_MS + 2 * PASSAGE_MS,
                "{place}, seed {seed}: the cancel took {took} ms\n{}",
                played.transcript
            );
        }
    }
}

/// How long a client waited for the answer to its cancel, which comes once it is durable.
fn took_ms(transcript: &str) -> u64 {
    let asked = Regex::new(r"(?m)^ *(\d+)\.(\d{3})s +(\w+) +→ cancel ").expect("it is sound");
    let asked = asked.captures(transcript).expect("the scenario cancels");
    let at = |captures: &regex::Captures<'_>| -> u64 {
        let number = |group: usize| captures[group].parse::<u64>().expect("it is a number");
        number(1) * 1000 + number(2)
    };
    let answer = format!(r#"(?m)^ *(\d+)\.(\d{{3}})s +{} +← \{{"cancelled":true"#, &asked[3]);
    let answer = Regex::new(&answer).expect("it is sound");
    let rest = &transcript[asked.get(0).expect("it matched").end()..];
    let answered = answer.captures(rest).expect("the cancel is answered");
    at(&answered) - at(&asked)
}
