//! What is in force, and who said so.

use serde_json::json;

use crate::support::{Person, ran};

#[test]
fn every_value_is_shown_with_its_source_and_no_secret() {
    let mut person = Person::new();
    person.write_home(
        "config.json",
        "{\n  \"providers\": {\"p\": {\"type\": \"openai\", \"api_key_env\": \"SOME_KEY\",\n  \
         \"headers\": {\"x-token\": \"canary\"}, \"models\": {\"m\": {\"id\": \"x\"}}}},\n  \
         \"server\": {\"port\": 9}\n}\n",
    );
    person.write("p/.nexus3/config.json", r#"{"max_messages": 5, "server": {"port": 1}}"#);
    person.go("p");
    person.set("SOME_KEY", "canary");
    person.set("NEXUS3_TURN_TIMEOUT", "60");
    person.set("NEXUS3_TURN_TIMOUT", "canary");
    let shown = person.run(&["config", "show"]);
    assert_eq!(shown.code, 0, "{shown:?}");
    assert_eq!(shown.stderr.lines().count(), 2, "{shown:?}");
    assert!(!format!("{shown:?}").contains("canary"), "{shown:?}");
    let home = person.home.path().display().to_string();
    let place = person.at("p").display().to_string();
    insta::assert_snapshot!(
        "show",
        shown.stdout.replace(&home, "[home]").replace(&place, "[project]")
    );
    let json = person.run(&["config", "show", "--json"]);
    assert_eq!((json.code, json.stderr.as_str()), (0, ""));
    let value = json.json();
    assert_eq!(value["config"]["server"]["port"], 9);
    assert_eq!(value["sources"]["server.port"], format!("{home}/config.json:4"));
    assert_eq!(value["sources"]["max_messages"], format!("{place}/.nexus3/config.json:1"));
    assert_eq!(value["sources"]["turn_timeout"], "NEXUS3_TURN_TIMEOUT");
    assert_eq!(value["sources"]["skill_timeout"], "built in");
    assert_eq!(value["ignored"].as_array().map(Vec::len), Some(2));
    assert!(!json.stdout.contains("canary"), "{json:?}");
}

#[test]
fn another_file_stands_in_for_that_of_the_home() {
    let person = Person::new();
    person.write_home("config.json", "this is none");
    person.write("team.json", r#"{"server": {"port": 77}}"#);
    let shown = person.run(&["config", "show", "--json", "--config", "team.json"]).json();
    assert_eq!(shown["config"]["server"]["port"], json!(77));
    let missing = person.run(&["config", "show", "--config", "none.json"]);
    let path = person.at("none.json").display().to_string();
    let told = format!("error: there is no configuration file {path}\n");
    assert_eq!(missing, ran(1, "", &told));
    assert_eq!(person.run(&["config", "show"]).code, 1);
}

/// Editors read the file; the program prints what its types say.
#[test]
fn the_schema_in_the_repository_is_the_one_of_the_types() {
    let printed = Person::new().run(&["config", "schema"]);
    let shipped = include_str!("../../src/config/config.schema.json");
    let mend = "run `nexus3 config schema > src/config/config.schema.json`";
    assert!(printed == ran(0, shipped, ""), "{mend}");
}
