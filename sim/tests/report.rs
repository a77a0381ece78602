//! `--report` as a person meets it: the same page for the same runs, what failed first, the exit codes of a
//! run without it, and nothing half written.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the tests start the simulation as a program and read the files it writes"
)]

mod folder;

use std::path::Path;

use folder::Folder;
use serde_json::Value;

const GOOD: &str = r#"schema = 1
about = "An agent answers."
[[model]]
says = "Hello."
[[step]]
call = "create_agent"
params = { agent_id = "a" }
[[step]]
call = "send"
agent = "a"
params = { content = "Hi" }
expect = { content = "Hello." }
[[step]]
sleep = "3s"
[[fault]]
at = "1s"
kind = "crash"
for = "1s"
"#;

const LEAK: &str = r#"schema = 1
about = "An agent is called like a secret."
[env]
PLANTED_CANARY = "canary-0123456789"
[[model]]
says = "Hello."
times = "always"
[[step]]
call = "create_agent"
params = { agent_id = "canary-0123456789" }
[[step]]
call = "send"
agent = "canary-0123456789"
params = { content = "Hi" }
"#;

fn folder() -> Folder {
    let folder = Folder::with("good.toml", GOOD);
    folder.write("leak.toml", LEAK);
    folder
}

/// Exit code and stdout.
fn run(folder: &Folder, arguments: &[&str]) -> (i32, String) {
    let (code, printed, _) = folder.run(arguments);
    (code, printed)
}

fn read(folder: &Folder, name: &str) -> String {
    std::fs::read_to_string(folder.path().join(name)).expect("the page was written")
}

fn names(folder: &Folder) -> Vec<String> {
    let entries = std::fs::read_dir(folder.path()).expect("the folder is there");
    let name = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.expect("the folder can be listed").file_name().display().to_string()
    };
    let mut names: Vec<String> = entries.map(name).collect();
    names.sort();
    names
}

/// The data of a page.
fn data(page: &str) -> Value {
    let (_, rest) = page.split_once("id=\"report\">").expect("a page has its data");
    let (json, _) = rest.split_once("</script>").expect("the data ends");
    serde_json::from_str(json).expect("the data is JSON")
}

#[test]
fn a_report_changes_nothing_and_has_the_same_bytes_twice() {
    let folder = folder();
    let files = ["run", "leak.toml", "good.toml", "--seed", "3..5"];
    let plain = run(&folder, &files);
    assert_eq!(plain.0, 1, "a leak is a violation");
    for name in ["one.html", "other.html"] {
        let with = run(&folder, &[&files[..], &["--report", name]].concat());
        assert_eq!(with, plain, "what is printed, and the exit code");
    }
    assert_eq!(read(&folder, "one.html"), read(&folder, "other.html"));
}

#[test]
fn what_failed_comes_first_with_what_led_to_it_and_how_to_see_it_again() {
    let folder = folder();
    run(&folder, &["run", "good.toml", "leak.toml", "--seed", "3..5", "--report", "x.html"]);
    let page = data(&read(&folder, "x.html"));
    let told = |index: usize| {
        let run = &page["runs"][index];
        (run["file"].clone(), run["seed"].clone(), run["good"].clone())
    };
    let [first, last] = [told(0), told(3)];
    assert_eq!(first, ("leak.toml".into(), 3.into(), false.into()));
    assert_eq!(last, ("good.toml".into(), 4.into(), true.into()));
    let failed = &page["runs"][0];
    assert_eq!(failed["again"], "nexus3-sim run leak.toml --seed 3 --trace");
    assert_eq!(failed["failures"][0], "invariant window: a secret stands in the transcript");
    assert!(failed["led_to_it"].as_array().is_some_and(|lines| !lines.is_empty()));
    let crash = &page["runs"][3]["faults"][0];
    assert_eq!((&crash["name"], &crash["reach"]), (&"crash of server".into(), &"host".into()));
    assert_eq!(page["title"], "2 passed, 2 failed");
}

#[test]
fn a_sweep_tells_what_it_reached_and_shows_what_failed() {
    let folder = folder();
    let sweep = ["explore", "good.toml", "leak.toml", "--seeds", "0..4", "--profile", "crash"];
    let told = run(&folder, &[&sweep[..], &["--keep-going", "--report", "x.html"]].concat());
    assert_eq!(told.0, 1);
    let page = data(&read(&folder, "x.html"));
    let rows: Vec<(&str, &str)> = page["summary"]
        .as_array()
        .expect("there are rows")
        .iter()
        .map(|row| (row["name"].as_str().unwrap_or(""), row["told"].as_str().unwrap_or("")))
        .collect();
    for row in [("profile", "crash"), ("runs", "4"), ("violations", "2"), ("window", "2 runs")] {
        assert!(rows.contains(&row), "{row:?} is in {rows:?}");
    }
    assert!(page["summary"].to_string().contains("fault:"), "marks are counted");
    let runs = page["runs"].as_array().expect("there are runs");
    assert_eq!(runs.len(), 2, "those that failed");
    for run in runs {
        assert_eq!(run["file"], "leak.toml");
        assert!(run["items"].as_array().is_some_and(|items| items.len() > 3), "in full");
        let again = run["again"].as_str().expect("there is a command");
        let file = again.split(' ').nth(2).expect("the command names a file");
        assert!(folder.path().join(file).exists(), "{again}");
    }
}

#[test]
fn a_place_where_nothing_can_be_written_is_told_before_anything_runs() {
    let folder = folder();
    for place in ["nowhere/x.html", "."] {
        let ended = run(&folder, &["run", "good.toml", "--report", place]);
        assert_eq!(ended, (2, String::new()), "{place}");
        let ended = run(&folder, &["explore", "good.toml", "--seeds", "0..1", "--report", place]);
        assert_eq!(ended, (2, String::new()), "{place}");
    }
}

#[test]
fn a_page_is_there_as_a_whole_or_not_at_all() {
    let folder = folder();
    folder.write("x.html", "the one before");
    let before = names(&folder);
    folder.write("good.toml", &GOOD.replace("call = \"send\"", "call = 7"));
    assert_eq!(run(&folder, &["run", "good.toml", "--report", "x.html"]).0, 2);
    assert_eq!((read(&folder, "x.html").as_str(), names(&folder)), ("the one before", before));
    assert!(!Path::new("x.html").exists(), "and nothing lies elsewhere");
}

#[test]
fn operations_of_the_disk_that_were_struck_by_chance_are_marked() {
    let folder = folder();
    let struck = GOOD.replace(
        "at = \"1s\"\nkind = \"crash\"\nfor = \"1s\"\n",
        "rate = 0.5\nkind = \"fsync_lies\"\n",
    );
    folder.write("struck.toml", &struck);
    run(&folder, &["run", "struck.toml", "--seed", "1", "--report", "x.html"]);
    let page = data(&read(&folder, "x.html"));
    let faults = page["runs"][0]["faults"].as_array().expect("a run has its faults");
    let is_moment = |fault: &Value| fault["reach"] == "moment";
    assert!(!faults.is_empty() && faults.iter().all(is_moment), "{faults:?}");
}
