//! The shape of the code, held by tests: headers, sizes, the import table, ordered `select!`s, who may
//! lift a ban, and that the README's links lead somewhere.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test reads the files it judges, and fails where it cannot"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The modules of `src/` from the ground up: each may import only what stands before it.
const IMPORT_ORDER: &[&str] = &[
    "limits", "activity", "causes", "reach", "id", "json", "code", "sse", "message", "messages",
    "choice", "event", "world", "hub", "config", "policy", "tool", "provider", "home", "session",
    "store", "logs", "record", "agent", "pool", "rpc", "http", "server", "client", "terminal",
    "cli", "main",
];

const FILE_LINES_MAX: usize = 500;
/// The registry, the hub, a played script, and the budgets, which all agents of a family share.
const LOCKS_MAX: usize = 4;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All Rust files below a folder, sorted, with their text.
fn sources(folder: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut open = vec![root().join(folder)];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && path.file_name().unwrap() != "target" {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path.strip_prefix(root()).unwrap().to_owned(), text));
            }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "{folder} has sources");
    found
}

fn product() -> Vec<(PathBuf, String)> {
    [sources("src"), sources("sim/src")].concat()
}

fn is_test(path: &Path) -> bool {
    path.to_str().unwrap().ends_with("_tests.rs")
}

/// The text before the unit tests.
fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]").next().unwrap()
}

#[test]
fn every_file_opens_with_what_it_is_for() {
    for folder in ["src", "sim", "tests", "benches"] {
        for (path, text) in sources(folder) {
            assert!(text.starts_with("//! "), "{} has no header", path.display());
        }
    }
}

#[test]
fn files_are_short() {
    for (path, text) in product() {
        let lines = without_tests(&text).lines().count();
        assert!(lines <= FILE_LINES_MAX, "{} has {lines} lines", path.display());
    }
}

/// The module at the top of `src/` that a file belongs to.
fn module(path: &Path) -> String {
    let inside = path.strip_prefix("src").unwrap().with_extension("");
    inside.components().next().unwrap().as_os_str().to_str().unwrap().to_owned()
}

/// The modules that a text names by `crate::…`.
fn imports(text: &str) -> Vec<&str> {
    text.split("crate::")
        .skip(1)
        .map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap())
        .collect()
}

#[test]
fn imports_go_downward_only() {
    let rank: BTreeMap<&str, usize> =
        IMPORT_ORDER.iter().enumerate().map(|(rank, name)| (*name, rank)).collect();
    for (path, text) in sources("src") {
        let own = module(&path);
        if own == "lib" {
            continue;
        }
        let own_rank =
            *rank.get(own.as_str()).unwrap_or_else(|| panic!("{own} is not in the table"));
        for imported in imports(&text) {
            let Some(imported_rank) = rank.get(imported) else {
                panic!("{} imports crate::{imported}, which is not in the table", path.display());
            };
            assert!(
                *imported_rank <= own_rank,
                "{} imports crate::{imported}, which stands above {own}",
                path.display()
            );
        }
    }
}

#[test]
fn the_import_test_sees_every_spelling() {
    // A grouped import gives an empty name, which is not in the table and so refused.
    let text =
        "use crate::rpc::x;\nuse crate::{http};\nlet y = crate::pool::z();\npub(crate) fn f() {}";
    assert_eq!(imports(text), ["rpc", "", "pool"]);
}

#[test]
fn every_select_has_an_order() {
    for (path, text) in product() {
        for (index, _) in text.match_indices("select! {") {
            let first = text[index..].lines().skip(1).find(|line| !line.trim().starts_with("//"));
            let first = first.map(str::trim);
            assert_eq!(first, Some("biased;"), "a select! in {} is not biased", path.display());
        }
    }
}

#[test]
fn only_the_real_machine_and_the_command_line_lift_the_bans() {
    let mut lifted: Vec<String> = product()
        .into_iter()
        .filter(|(_, text)| text.contains("clippy::disallowed_"))
        .map(|(path, _)| path.display().to_string())
        .collect();
    lifted.sort();
    let expected = [
        "sim/src/cli/mod.rs",
        "src/cli/mod.rs",
        // The library's trait asks for a `HashMap`.
        "src/tool/mcp/http.rs",
        "src/world/real/mod.rs",
    ];
    assert_eq!(lifted, expected);
}

#[test]
fn the_server_cannot_tell_where_it_runs() {
    for (path, text) in sources("src") {
        for line in text.lines().filter(|line| line.contains("cfg(") || line.contains("cfg!(")) {
            let line = line.trim();
            assert_eq!(line, "#[cfg(test)]", "{} has conditional code", path.display());
        }
    }
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    assert!(!manifest.contains("[features]"), "there are no cargo features");
}

#[test]
fn locks_are_few_and_say_what_they_guard() {
    let mut locks = Vec::new();
    for (path, text) in sources("src").into_iter().filter(|(path, _)| !is_test(path)) {
        let lines: Vec<&str> = without_tests(&text).lines().collect();
        for (index, line) in lines.iter().enumerate() {
            let field = line.contains("Mutex<") || line.contains("RwLock<");
            if field && line.trim().ends_with(',') {
                assert!(
                    lines[index - 1].trim().starts_with("///"),
                    "the lock in {} has no doc",
                    path.display()
                );
                locks.push(path.clone());
            }
        }
    }
    assert!(locks.len() <= LOCKS_MAX, "{locks:?}");
}

#[test]
fn links_of_the_readme_lead_somewhere() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    assert!(readme.lines().count() <= 200, "the README is at most 200 lines");
    let links: Vec<&str> = readme
        .split("](")
        .skip(1)
        .map(|rest| rest.split([')', '#']).next().unwrap())
        .filter(|link| !link.is_empty() && !link.contains("://"))
        .collect();
    assert!(!links.is_empty(), "the README walks through the files");
    for link in links {
        assert!(root().join(link).exists(), "the README links to {link}");
    }
}
