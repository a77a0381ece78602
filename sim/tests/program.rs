//! `nexus3-sim` as a person meets it: what it says about wrong files, expectations and snapshots,
//! and with which exit code.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the tests start the simulation as a program and write the files it reads"
)]

mod folder;
mod running;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

use folder::Folder;

const GOOD: &str = r#"schema = 1
about = "An agent answers."
[[model]]
says = "Hello."
[[step]]
call = "create_agent"
params = { agent_id = "a" }
[[step]]
name = "ask"
call = "send"
agent = "a"
params = { content = "Hi" }
expect = { content = "Hello." }
"#;

#[test]
fn a_missing_snapshot_fails_until_it_is_blessed() {
    let folder = Folder::with("x.toml", GOOD);
    let (code, printed, _) = folder.run(&["run", "x.toml"]);
    assert_eq!(
        (code, printed.as_str()),
        (
            1,
            "FAILED x.toml seed 0\n  there is no snapshot snapshots/x.snap: read the transcript with \
             --trace, then keep it with --bless\n  look at it: nexus3-sim run x.toml --seed 0 --trace\n\
             0 passed, 1 failed\n"
        )
    );
    let blessed = folder.run(&["run", "x.toml", "--bless"]);
    assert_eq!((blessed.0, blessed.1.as_str()), (0, "ok     x.toml seed 0\n1 passed, 0 failed\n"));
    let again = folder.run(&["run", "x.toml"]);
    assert_eq!((again.0, again.1.as_str()), (0, "ok     x.toml seed 0\n1 passed, 0 failed\n"));
}

#[test]
fn a_difference_is_shown_at_its_first_line() {
    let folder = Folder::with("x.toml", GOOD);
    folder.run(&["run", "x.toml", "--bless"]);
    let path = folder.path().join("snapshots/x.snap");
    let kept = std::fs::read_to_string(&path).expect("it was blessed");
    folder.write("snapshots/x.snap", &kept.replace("\"content\":\"Hi\"", "\"content\":\"Ho\""));
    let (code, printed, _) = folder.run(&["run", "x.toml"]);
    assert_eq!(code, 1);
    assert!(printed.contains("the transcript differs from snapshots/x.snap at line "), "{printed}");
    assert!(printed.contains("\"content\":\"Ho\"") && printed.contains("\"content\":\"Hi\""));
    assert!(printed.contains("keep it with --bless if it is right"), "{printed}");
}

#[test]
fn a_wrong_expectation_names_step_line_and_difference_and_is_not_blessed() {
    let folder = Folder::with("x.toml", &GOOD.replace("\"Hello.\" }", "\"Bye.\" }"));
    let (code, printed, _) = folder.run(&["run", "x.toml", "--bless"]);
    assert_eq!(code, 1);
    let expected = "step 2 `ask` (line 8): ";
    assert!(printed.contains(expected), "{printed}");
    assert!(printed.contains("Bye.") && printed.contains("Hello."), "{printed}");
    assert!(!folder.path().join("snapshots/x.snap").exists(), "a bad run is not kept");
}

#[test]
fn a_wrong_file_is_told_with_its_place_before_anything_runs() {
    let folder = Folder::with("x.toml", &GOOD.replace("agent = \"a\"", "agnet = \"a\""));
    let (code, printed, told) = folder.run(&["run", "x.toml"]);
    assert_eq!((code, printed.as_str()), (2, ""));
    assert!(told.starts_with("x.toml:11:1: "), "{told}");
    assert!(told.contains("hint: ") && told.contains("agent"), "{told}");
    let (code, _, told) = folder.run(&["run", "missing.toml"]);
    assert_eq!(code, 2);
    assert!(told.starts_with("missing.toml: cannot be read"), "{told}");
    assert_eq!(folder.run(&["run"]).0, 2, "a command line without files");
}

#[test]
fn another_seed_is_held_to_expectations_but_not_to_the_snapshot() {
    let folder = Folder::with("x.toml", GOOD);
    let (code, printed, _) = folder.run(&["run", "x.toml", "--seed", "1..4"]);
    assert_eq!(code, 0, "{printed}");
    assert!(printed.ends_with("3 passed, 0 failed\n"), "{printed}");
}

#[test]
fn the_same_seed_is_the_same_in_two_processes() {
    let folder = Folder::with("x.toml", GOOD);
    let (code, printed, told) = folder.run(&["twice", "x.toml"]);
    assert_eq!(code, 0, "{printed}{told}");
    assert!(printed.starts_with("same   x.toml ("), "{printed}");
}

#[test]
fn a_first_scenario_is_written_once_and_runs() {
    let folder = Folder::with("x.toml", GOOD);
    assert_eq!(folder.run(&["new", "mine"]).0, 0);
    let (code, _, told) = folder.run(&["new", "mine"]);
    assert_eq!(code, 2, "an existing file is not overwritten");
    assert!(told.contains("cannot write mine.toml"), "{told}");
    let (code, printed, told) = folder.run(&["run", "mine.toml", "--bless"]);
    assert_eq!(code, 0, "{printed}{told}");
}

#[test]
fn the_schema_is_json() {
    let folder = Folder::with("x.toml", GOOD);
    let (code, printed, _) = folder.run(&["schema"]);
    assert_eq!(code, 0);
    let schema: serde_json::Value = serde_json::from_str(&printed).expect("the schema is JSON");
    assert!(schema["properties"]["step"].is_object());
}

#[test]
fn crashes_are_the_same_in_one_process_and_in_several() {
    let folder = Folder::with("x.toml", GOOD);
    let (code, alone, _) = folder.run(&["crash", "x.toml", "--sample", "6"]);
    assert_eq!(code, 0, "{alone}");
    let (file, sum) = alone.split_once('\n').expect("a line for the file and one for all");
    assert!(file.starts_with("ok     x.toml: 6 of "), "{alone}");
    assert!(sum.starts_with("6 of ") && sum.ends_with(" points, 0 violations\n"), "{alone}");
    let together = folder.run(&["crash", "x.toml", "--sample", "6", "-j", "2"]);
    assert_eq!((together.0, together.1), (0, alone));
}

#[test]
fn seeds_come_to_the_same_in_one_process_and_in_several() {
    let folder = Folder::with("x.toml", GOOD);
    folder.write("y.toml", GOOD);
    // One that fails, so that what is found is compared too.
    folder.write("z.toml", &GOOD.replace("\"Hello.\" }", "\"Other.\" }"));
    let explored = |jobs: &str, profile: &str| {
        let more = ["--seeds", "0..24", "--keep-going", "--profile", profile, "-j", jobs];
        let (code, printed, _) =
            folder.run(&[["explore", "x.toml", "y.toml", "z.toml"].as_slice(), &more].concat());
        (code, printed)
    };
    for (profile, expected) in [("chaos", 0), ("quiet", 1)] {
        let alone = explored("1", profile);
        assert_eq!(alone.0, expected, "{}", alone.1);
        assert!(alone.1.contains("24 runs, "), "{}", alone.1);
        for jobs in ["2", "3"] {
            assert_eq!(explored(jobs, profile), alone);
        }
    }
}

#[test]
fn a_sweep_fails_at_marks_only_where_it_is_long_enough_to_promise_them() {
    let folder = Folder::with("x.toml", GOOD);
    let profile = "about = \"Nothing happens.\"\nreaches = [\"retry:late\"]\n\
                   promised = { runs = 3, scenarios = 1 }\n";
    folder.write("calm.toml", profile);
    let explored = |seeds: &str, more: &[&str]| {
        let given = ["explore", "x.toml", "--profile", "calm.toml", "--seeds", seeds];
        let (code, printed, _) = folder.run(&[given.as_slice(), more].concat());
        (code, printed.contains("mark   retry:late was never reached"))
    };
    assert_eq!(explored("0..2", &[]), (0, false));
    assert_eq!(explored("0..2", &["--marks"]), (1, true));
    assert_eq!(explored("0..3", &[]), (1, true));
    folder.write("calm.toml", &profile.replace("scenarios = 1", "scenarios = 2"));
    assert_eq!(explored("0..3", &[]), (0, false));
}

#[test]
fn one_point_is_told_with_its_transcript() {
    let folder = Folder::with("x.toml", GOOD);
    let (code, printed, _) = folder.run(&["crash", "x.toml", "--point", "75"]);
    assert_eq!(code, 0, "{printed}");
    assert!(printed.contains("  fault     point 75: "), "{printed}");
    assert!(printed.ends_with("ok     x.toml seed 0 point 75\n"), "{printed}");
    assert_eq!(folder.run(&["crash", "x.toml", "--point", "75"]).1, printed);
}

const FAILING: &str = r#"schema = 1
about = "An agent answers, among others."
[files]
"/project/notes.txt" = "many words"
[[model]]
agent = "a"
says = "Hello."
[[model]]
agent = "b"
says = "Nothing."
[[step]]
call = "create_agent"
params = { agent_id = "b", preset = "trusted" }
[[step]]
call = "create_agent"
params = { agent_id = "a", cwd = "/project" }
[[step]]
sleep = "1234ms"
[[step]]
call = "send"
agent = "b"
params = { content = "A long story" }
[[step]]
call = "send"
agent = "a"
params = { content = "Hi, what is the matter?" }
expect = { content = "Good bye." }
"#;

#[test]
fn a_failing_scenario_is_made_small_and_still_fails() {
    let folder = Folder::with("x.toml", FAILING);
    let (code, small, told) = folder.run(&["shrink", "x.toml"]);
    assert_eq!(code, 0, "{told}");
    assert_eq!(
        small,
        "schema = 1\nabout = \"An agent answers, among others.\"\n\n[[model]]\nsays = \"Hello.\"\n\n\
         [[step]]\ncall = \"create_agent\"\nparams = { agent_id = \"a\" }\n\n[[step]]\ncall = \"send\"\n\
         agent = \"a\"\nparams = { content = \"H\" }\nexpect = { content = \"Good bye.\" }\n"
    );
    assert!(told.contains("8 lines of steps and faults, before 17; "), "{told}");
    folder.write("small.toml", &small);
    assert_eq!(folder.run(&["run", "small.toml", "--seed", "0"]).0, 1, "it still fails");
    assert_eq!(folder.run(&["shrink", "x.toml"]).1, small, "and comes out the same again");
}

#[test]
fn what_does_not_fail_is_not_made_small() {
    let folder = Folder::with("x.toml", GOOD);
    let (code, printed, told) = folder.run(&["shrink", "x.toml"]);
    assert_eq!((code, printed.as_str()), (2, ""));
    assert_eq!(told, "x.toml does not fail so: there is nothing to make small\n");
}

#[test]
fn the_model_of_a_scenario_answers_over_a_real_socket() {
    let text = r#"schema = 1
about = "An agent reads a file."
[files]
"/project/notes.txt" = "three apples"
"/etc/other" = "not here"
[[model]]
agent = "a"
asks = [{ tool = "read_file", args = { path = "/project/notes.txt" } }]
[[step]]
call = "list_agents"
"#;
    let folder = Folder::with("x.toml", text);
    let root = folder.path().join("place");
    let mut command = Command::new(env!("CARGO_BIN_EXE_nexus3-sim"));
    let command = command.args(["model", "x.toml", "--port", "0", "--root"]).arg(&root);
    let (_running, config) = running::model(command.current_dir(folder.path()));
    let base = config["providers"]["sim"]["base_url"].as_str().expect("there is a provider");
    let address = base.trim_start_matches("http://").trim_end_matches("/v1");
    let mut stream = TcpStream::connect(address).expect("the model listens");
    let body = r#"{"model":"default","messages":[{"role":"user","content":"Hi"}]}"#;
    let length = body.len();
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: model\r\nconnection: close";
    write!(stream, "{head}\r\nx-nexus-agent: a\r\ncontent-length: {length}\r\n\r\n{body}")
        .expect("the model reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the model answers in text");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    let root = root.canonicalize().expect("the directory was made");
    assert!(answer.contains(&format!("{}/notes.txt", root.display())), "{answer}");
    let notes = std::fs::read_to_string(root.join("notes.txt")).expect("the file was put there");
    assert_eq!(notes, "three apples");
}
