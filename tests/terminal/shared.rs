//! Several people and programs with one agent.

use serde_json::json;

use super::person::{Person, at_server};
use super::support::{Serving, ran};

fn two(server: &Serving) -> [Person; 2] {
    let people = [(80, 24), (60, 24)];
    let people =
        people.map(|(columns, rows)| at_server(server, &["--agent", "lead"], columns, rows));
    for person in &people {
        person.sees_text("trusted ·");
    }
    people
}

#[test]
fn all_see_the_same_in_the_same_order() {
    let server = Serving::start(&[]);
    server.rpc(&["create", "lead", "--preset", "trusted", "--cwd", "/"]);
    let [mut one, mut other] = two(&server);
    one.types("from one\r");
    one.sees_text("\"from one\"");
    assert_eq!(server.rpc(&["send", "lead", "from outside"]).code, 0);
    other.sees_text("\"from outside\"");
    other.types("from the other\r");
    let done = |screen: &str| screen.contains("\"from the other\"") && !screen.contains("Esc");
    let (one, other) = (one.sees(done), other.sees(done));
    let order = |screen: &str| -> Vec<usize> {
        let said = ["from one", "from outside", "from the other"];
        said.iter().map(|text| screen.find(text).expect("it was said")).collect()
    };
    assert!(order(&one).is_sorted() && order(&other).is_sorted());
    assert!(one.contains("\n› from one") && other.contains("\nterminal › from one"));
    assert!(one.contains("\ncli › from outside") && other.contains("\ncli › from outside"));
    assert!(one.contains("\nterminal › from the other") && other.contains("\n› from the other"));
}

#[test]
fn one_answers_and_the_question_of_the_other_goes_away() {
    let server = Serving::start(&[]);
    server.rpc(&["create", "lead", "--preset", "trusted", "--cwd", "/"]);
    let [mut one, mut other] = two(&server);
    one.types("call exec {\"program\":\"true\"}\r");
    one.sees_text("exec needs a confirmation");
    other.sees_text("exec needs a confirmation");
    // Whatever is pressed before anybody can have read the question is no answer; then there are numbers.
    other.sees_text("3 deny it");
    other.types("\x1b[A\r");
    for person in [&one, &other] {
        let gone = |screen: &str| {
            screen.contains("? exec true: denied by terminal") && !screen.contains("3 deny it")
        };
        person.sees(gone);
    }
    let listed = server.rpc(&["confirmations", "lead", "--json"]);
    assert_eq!(listed.json(), json!({"confirmations": []}));
    assert_eq!(server.rpc(&["shutdown"]), ran(0, "Server shutting down\n", ""));
    one.sees_text("no server");
    assert_eq!(server.ended().0, Some(0));
}
