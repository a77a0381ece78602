//! What a scenario file may say, what is told about one that is wrong, and that the schema says the
//! same.

use proptest::prelude::*;
use serde_json::json;

use super::*;

const EXAMPLE: &str = include_str!("fixtures/example.toml");
const START: &str = "schema = 1\nabout = \"x\"\n";

fn problems(text: &str) -> String {
    match Scenario::parse("s.toml", text) {
        Ok(_) => "none".to_owned(),
        Err(problems) => {
            problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
        }
    }
}

/// The problems of a file that starts well; its own lines count from 3.
fn told(rest: &str) -> String {
    problems(&format!("{START}{rest}"))
}

#[test]
fn print() {
    println!("{}", serde_json::to_string_pretty(&schema()).unwrap());
    println!("{}", problems(EXAMPLE));
    println!("{}", problems(&first("x")));
}
