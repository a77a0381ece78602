//! A cancel takes effect at once, wherever the turn is: within 50 ms of virtual time, whatever the
//! seed makes of the network.

use nexus3_sim::cli::Tracing;
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

/// From when the server reads the cancel until it answers it, which it does once the turn's end is
/// durable.
const ALLOWED_MS: u64 = 50;

#[test]
fn a_cancel_ends_the_turn_at_once_wherever_it_is() {
    for (place, text) in WHERE {
        for seed in 0..4 {
            let scenario = Scenario::parse("cancel.toml", text).expect("it is sound");
            let tracing = Tracing::default();
            let played = play::play_traced(&scenario, seed, Some(tracing.tracer()));
            assert!(played.failures.is_empty(), "{place}: {:?}", played.failures);
            assert!(played.transcript.contains(r#"← {"cancelled":true"#), "{}", played.transcript);
            let took = took_ms(&tracing.take());
            assert!(
                took <= ALLOWED_MS,
                "{place}, seed {seed}: the cancel took {took} ms\n{}",
                played.transcript
            );
        }
    }
}

/// How long a client's first cancel was with the server, as the simulated network saw it.
fn took_ms(traced: &str) -> u64 {
    let line = r#"(?m)^ *(\d+)\.(\d{3})s TRACE node\{name="server"\}: turmoil: "#;
    let read = Regex::new(&format!(r"{line}Recv src=(\S+) dst=\S+ protocol=TCP \[(.+)\]$"));
    let read = read.expect("it is sound");
    let mut requests = read.captures_iter(traced);
    let request = requests
        .find(|request| text(&request[4]).contains(r#""method":"cancel""#))
        .expect("the server reads a cancel");
    let answer = format!(r"{line}Send src=\S+ dst={} protocol=TCP \[", regex::escape(&request[3]));
    let answer = Regex::new(&answer).expect("it is sound");
    let rest = &traced[request.get(0).expect("it matched").end()..];
    at_ms(&answer.captures(rest).expect("the cancel is answered")) - at_ms(&request)
}

fn at_ms(line: &regex::Captures<'_>) -> u64 {
    let number = |group: usize| line[group].parse::<u64>().expect("it is a number");
    number(1) * 1000 + number(2)
}

/// Bytes as the network writes them down.
fn text(bytes: &str) -> String {
    let byte = |hex: &str| u8::from_str_radix(hex.trim_start_matches("0x"), 16).expect("a byte");
    String::from_utf8_lossy(&bytes.split(", ").map(byte).collect::<Vec<u8>>()).into_owned()
}
