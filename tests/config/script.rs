//! A model that is written down in a file.

use serde_json::json;

use crate::support::{Person, ran};

#[test]
fn a_script_answers_for_a_model() {
    let person = Person::new();
    person.write("team.toml", "[[model]]\nwhen = \"Hello\"\nsays = \"Hello yourself.\"\n");
    let provider = json!({
        "type": "script", "script": person.at("team.toml"), "models": {"m": {"id": "m-1"}},
    });
    person.write_home("config.json", &json!({"providers": {"p": provider}}).to_string());
    let server = person.serve(&[]);
    assert_eq!(server.rpc(&person, &["create", "scout"]), ran(0, "scout\n", ""));
    let answer = server.rpc(&person, &["send", "scout", "Hello"]);
    assert_eq!(answer, ran(0, "Hello yourself.\n", ""));
}
