//! The guide in `scenarios/README.md` says what is so: its files are those beside it, and its commands, run
//! one after another, print what it shows.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the test reads the guide and runs its commands"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use regex::Regex;

/// Stands for anything, in a line or between lines.
const ANYTHING: &str = "…";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("sim lies in the project")
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn guide() -> String {
    read("scenarios/README.md")
}

/// The blocks of a language, each with the line before it that is not empty.
fn blocks<'a>(guide: &'a str, language: &str) -> Vec<(&'a str, &'a str)> {
    let fence = format!("```{language}\n");
    let mut found = Vec::new();
    let mut rest = guide;
    while let Some((before, after)) = rest.split_once(&fence) {
        let (block, after) = after.split_once("```\n").expect("a block ends");
        found.push((before.trim_end().lines().last().unwrap_or_default(), block));
        rest = after;
    }
    found
}

/// The scenarios of the guide, by name.
fn files() -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join("scenarios")).expect("the folder is there");
    let paths = entries.map(|entry| entry.expect("a folder can be listed").path());
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().display().to_string();
        name.starts_with("guide_") && path.extension().is_some_and(|found| found == "toml")
    };
    let mut files: Vec<PathBuf> = paths.filter(is_ours).collect();
    files.sort();
    files
}

#[test]
fn the_scenarios_of_the_guide_are_the_files_beside_it() {
    let guide = guide();
    let mut shown: Vec<String> = Vec::new();
    for (before, block) in blocks(&guide, "toml") {
        let (name, _) = before.trim_start_matches('[').split_once(']').expect("a file is named");
        assert_eq!(block, read(format!("scenarios/{name}")), "{name}");
        shown.push(name.to_owned());
    }
    let name = |path: &PathBuf| path.file_name().unwrap_or_default().display().to_string();
    shown.sort();
    assert_eq!(shown, files().iter().map(name).collect::<Vec<_>>(), "all of them are shown");
}

#[test]
fn the_links_of_the_guide_lead_somewhere() {
    let guide = guide();
    let links: Vec<&str> =
        guide.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect();
    assert!(links.len() > 5);
    for link in links {
        assert!(root().join("scenarios").join(link).exists(), "{link}");
    }
}

/// A folder with what the commands of the guide use.
fn workplace() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("there is room for a temporary directory");
    for name in ["scenarios", "snapshots"] {
        fs::create_dir(folder.path().join(name)).expect("a new folder takes a folder");
    }
    for file in files() {
        let name = file.file_name().expect("a file has a name");
        let snapshot = Path::new("snapshots").join(name).with_extension("snap");
        let copy = |from: PathBuf, to: PathBuf| fs::copy(from, to).expect("a file can be copied");
        copy(file.clone(), folder.path().join("scenarios").join(name));
        copy(root().join(&snapshot), folder.path().join(&snapshot));
    }
    folder
}

/// What a command prints, but for how fast it went.
fn printed(folder: &Path, command: &str) -> Vec<String> {
    let program = Path::new(env!("CARGO_BIN_EXE_nexus3-sim"));
    let programs = program.parent().expect("a program lies in a folder").display().to_string();
    let path = format!("{programs}:{}", std::env::var("PATH").unwrap_or_default());
    let output = Command::new("sh")
        .args(["-c", &format!("{{ {command}\n}} 2>&1")])
        .env("PATH", path)
        .current_dir(folder)
        .output()
        .expect("there is a shell");
    let text = String::from_utf8(output.stdout).expect("the program prints text");
    let is_speed = |line: &&str| line.contains(" runs/s");
    text.lines().filter(|line| !is_speed(line)).map(timeless).collect()
}

/// A line without its virtual time: it is not what the guide is about.
fn timeless(line: &str) -> String {
    let time = Regex::new(r"^ *\d+\.\d{3}s  ").expect("the pattern is one");
    time.replace(line, "").into_owned()
}

/// Whether lines are as shown, where what is left out may be anything.
fn fits(shown: &[String], found: &[String]) -> bool {
    match shown.split_first() {
        None => found.is_empty(),
        Some((line, rest)) if line.trim() == ANYTHING => {
            (0..=found.len()).any(|skipped| fits(rest, &found[skipped..]))
        }
        Some((line, rest)) => {
            found.split_first().is_some_and(|(first, more)| alike(line, first) && fits(rest, more))
        }
    }
}

fn alike(shown: &str, found: &str) -> bool {
    let pieces: Vec<String> = shown.split(ANYTHING).map(regex::escape).collect();
    let pattern = Regex::new(&format!("^{}$", pieces.join(".*"))).expect("the pattern is one");
    pattern.is_match(found)
}

#[test]
fn the_commands_of_the_guide_print_what_it_shows() {
    let guide = guide();
    let folder = workplace();
    let mut commands = 0;
    for (_, block) in blocks(&guide, "console") {
        for part in block.split("$ ").skip(1) {
            let (command, shown) = part.split_once('\n').expect("a command is a line");
            let shown: Vec<String> = shown.lines().map(timeless).collect();
            let found = printed(folder.path(), command);
            let (shown_text, found_text) = (shown.join("\n"), found.join("\n"));
            assert!(fits(&shown, &found), "{command}\n{found_text}\nand not\n{shown_text}");
            commands += 1;
        }
    }
    assert!(commands > 10, "{commands} commands were run");
}

#[test]
fn what_is_left_out_may_be_anything_and_the_rest_may_not() {
    let lines = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
    let found = lines(&["a", "b 1", "c"]);
    for shown in [&["a", "…", "c"][..], &["…"], &["a", "b …", "c"], &["…", "a", "b 1", "c", "…"]]
    {
        assert!(fits(&lines(shown), &found), "{shown:?}");
    }
    for shown in [&["a", "c"][..], &["…", "b"], &["a", "b …"], &["a", "b 2", "c"]] {
        assert!(!fits(&lines(shown), &found), "{shown:?}");
    }
}
