//! The script of the README, as it stands there.

use std::path::Path;
use std::process::Command;

use super::support::ran::PROGRAM;
use super::support::{Serving, finished};

const MARK: &str = "# A lead with three workers";

/// The block of shell that begins with the mark.
fn script() -> String {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let readme = std::fs::read_to_string(readme).unwrap();
    let (_, block) = readme.split_once(MARK).expect("the README has the script");
    block.split("```").next().unwrap().to_owned()
}

#[test]
fn the_script_of_the_readme_runs_as_it_is_written() {
    let server = Serving::start(&[]);
    // Only the port is another: the usual one may be taken here.
    let line = format!("nexus3() {{ \"$P\" \"$@\" --port \"$PORT\"; }}\n{}", script());
    let mut command = Command::new("sh");
    command.args(["-c", &line]).env_clear().env("PATH", "/usr/bin:/bin").env("P", PROGRAM);
    command.env("PORT", &server.port).env("NEXUS3_HOME", server.home.path());
    let ran_script = finished(&mut command);
    assert_eq!((ran_script.code, ran_script.stderr.as_str()), (0, ""), "{}", ran_script.stdout);
    let lines: Vec<&str> = ran_script.stdout.lines().collect();
    for part in ["one", "two", "three"] {
        assert!(lines.contains(&part), "{part} was created: {lines:?}");
        let answer =
            format!("  \"content\": \"The tool `echo` answered: \\\"{part} is done\\\"\",");
        assert_eq!(lines.iter().filter(|line| **line == answer).count(), 1, "{lines:?}");
    }
    let read = lines
        .iter()
        .any(|line| line.contains("#3 assistant: The tool `echo` answered: \"two is done\""));
    assert!(read, "the results were read: {lines:?}");
    assert_eq!(lines.last(), Some(&"Server shutting down"));
    assert_eq!(server.ended(), (Some(0), String::new()));
}
