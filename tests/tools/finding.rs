//! `glob` and `search_text` give what models of a few lines give, which look at every file and know
//! nothing of handles, walks or fast engines.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use regex::Regex;
use serde_json::json;

use crate::support::{Bench, CWD, disk, put_file};

/// Few names, so that they meet; some end up as a file here and a directory there.
const NAMES: [&str; 8] = ["a", "b", "ab", "a.b", "é", "Ü b", "-", "a\u{301}"];
const SEGMENTS: [&str; 10] = ["**", "*", "a*", "?", "a", "*b", "é", "?*", "a?b", "*\u{301}"];
const WORDS: [&str; 6] = ["apple", "Pie", "é", "  ", "a.b", "x"];
const PATTERNS: [&str; 8] = ["apple", "^Pie", "x$", "é|x", r"a\.b", r"(?i)pie", r"^\s*$", r"\bx\b"];

/// Files by their path, without any that would have to lie in another.
fn tree(
    content: impl Strategy<Value = String>,
) -> impl Strategy<Value = BTreeMap<PathBuf, String>> {
    let path = prop::collection::vec(prop::sample::select(&NAMES[..]), 1..4);
    let path = path.prop_map(|names| names.iter().collect::<PathBuf>());
    prop::collection::btree_map(path, content, 0..12).prop_map(|files| {
        let dirs: BTreeSet<PathBuf> = dirs(files.keys());
        files.into_iter().filter(|(path, _)| !dirs.contains(path)).collect()
    })
}

/// The directories that these lie in.
fn dirs<'a>(files: impl Iterator<Item = &'a PathBuf>) -> BTreeSet<PathBuf> {
    let above = files.flat_map(|path| path.ancestors().skip(1));
    above.filter(|dir| *dir != Path::new("")).map(Path::to_owned).collect()
}

fn on_disk(files: &BTreeMap<PathBuf, String>) -> nexus3_sim::disk::Disk {
    let disk = disk();
    for (path, content) in files {
        put_file(&disk, &format!("{CWD}/{}", path.display()), content);
    }
    disk
}

/// Whether a name matches one part of a glob: `*` any bytes, `?` any one.
fn name_matches(glob: &[u8], name: &[u8]) -> bool {
    match glob.split_first() {
        None => name.is_empty(),
        Some((b'*', rest)) => (0..=name.len()).any(|skip| name_matches(rest, &name[skip..])),
        Some((first, rest)) => match name.split_first() {
            Some((byte, others)) => (*first == b'?' || first == byte) && name_matches(rest, others),
            None => false,
        },
    }
}

/// `**` is any number of names, at the end of a glob at least one.
fn path_matches(glob: &[&str], path: &[&str]) -> bool {
    match glob.split_first() {
        None => path.is_empty(),
        Some((&"**", [])) => !path.is_empty(),
        Some((&"**", rest)) => (0..=path.len()).any(|skip| path_matches(rest, &path[skip..])),
        Some((first, rest)) => match path.split_first() {
            Some((name, others)) => {
                name_matches(first.as_bytes(), name.as_bytes()) && path_matches(rest, others)
            }
            None => false,
        },
    }
}

#[test]
fn glob_finds_what_a_naive_model_finds() {
    let bench = Bench::new();
    let segments = prop::collection::vec(prop::sample::select(&SEGMENTS[..]), 1..4);
    let runs =
        TestRunner::default().run(&(tree(Just(String::new())), segments), |(files, glob)| {
            let dirs = dirs(files.keys());
            let all: BTreeSet<&PathBuf> = files.keys().chain(&dirs).collect();
            let mut expected = String::new();
            for path in all {
                let names: Vec<&str> = path.iter().map(|name| name.to_str().unwrap()).collect();
                if path_matches(&glob, &names) {
                    let mark = if dirs.contains(path) { "/" } else { "" };
                    writeln!(expected, "{}{mark}", path.display()).unwrap();
                }
            }
            if expected.is_empty() {
                expected.push_str("[Nothing matches.]\n");
            }
            let arguments = json!({"pattern": glob.join("/")});
            prop_assert_eq!(bench.call(&on_disk(&files), "glob", arguments), Ok(expected));
            Ok(())
        });
    runs.unwrap();
}

/// The lines of one file that a search shows, with lines around each match, and how many
/// of them match.
fn search_file(path: &Path, content: &str, regex: &Regex, around: usize) -> (String, usize) {
    let lines: Vec<&str> = content.split_terminator('\n').collect();
    let hits: BTreeSet<usize> =
        (0..lines.len()).filter(|index| regex.is_match(lines[*index])).collect();
    let mut shown = String::new();
    let mut last = None;
    for (index, line) in lines.iter().enumerate() {
        if !hits.iter().any(|hit| hit.abs_diff(index) <= around) {
            continue;
        }
        if around > 0 && last.is_some_and(|last: usize| last + 1 < index) {
            shown.push_str("--\n");
        }
        last = Some(index);
        let mark = if hits.contains(&index) { ':' } else { '-' };
        writeln!(shown, "{}{mark}{}{mark}{line}", path.display(), index + 1)
            .expect("a string takes it");
    }
    (shown, hits.len())
}

fn plural(count: usize, end: &'static str) -> &'static str {
    if count == 1 { "" } else { end }
}

#[test]
fn search_finds_what_a_naive_model_finds() {
    let bench = Bench::new();
    let line = prop::collection::vec(prop::sample::select(&WORDS[..]), 0..3);
    let lines = prop::collection::vec(line.prop_map(|words| words.concat()), 0..8);
    let content = (lines, any::<bool>())
        .prop_map(|(lines, is_ended)| lines.join("\n") + if is_ended { "\n" } else { "" });
    let input = (tree(content), prop::sample::select(&PATTERNS[..]), 0..3_usize);
    let runs = TestRunner::default().run(&input, |(files, pattern, around)| {
        let regex = Regex::new(pattern).unwrap();
        let (mut expected, mut matches, mut matched_files) = (String::new(), 0, 0);
        for (path, content) in &files {
            let (shown, count) = search_file(path, content, &regex, around);
            expected.push_str(&shown);
            matches += count;
            matched_files += usize::from(count > 0);
        }
        let (es, s) = (plural(matches, "es"), plural(matched_files, "s"));
        match matches {
            0 => expected.push_str("[No matches.]\n"),
            _ => writeln!(expected, "[{matches} match{es} in {matched_files} file{s}.]").unwrap(),
        }
        let arguments =
            json!({"path": ".", "pattern": pattern, "context": around, "max_matches": 10_000});
        prop_assert_eq!(bench.call(&on_disk(&files), "search_text", arguments), Ok(expected));
        Ok(())
    });
    runs.unwrap();
}
