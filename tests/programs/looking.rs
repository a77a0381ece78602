//! `git` that only looks, in a repository whose configuration wants to start programs by every way
//! there is: none of them starts, and what is closed is not shown.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::confined::is_confining;
use crate::server::Server;

fn git(project: &Path, arguments: &[&str]) {
    let mut command = Command::new("git");
    command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", "/nonexistent");
    command.args(["-c", "user.name=x", "-c", "user.email=x@x", "-c", "init.defaultBranch=main"]);
    let done = command.args(arguments).current_dir(project).output().expect("git runs");
    assert!(done.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// A repository with two commits, a change that is not in one, and a trap at every corner. Each trap
/// makes a file of its name in `traps`.
fn hostile(project: &Path) {
    git(project, &["init", "-q"]);
    fs::create_dir(project.join("traps")).expect("a directory is made");
    fs::write(project.join(".gitignore"), "traps\n").expect("a file is written");
    fs::write(project.join("file.txt"), "one\n").expect("a file is written");
    fs::write(project.join("file.dat"), "one\n").expect("a file is written");
    git(project, &["add", "."]);
    git(project, &["commit", "-q", "-m", "first"]);
    git(project, &["tag", "v1"]);
    fs::write(project.join("file.txt"), "two\n").expect("a file is written");
    git(project, &["commit", "-q", "-a", "-m", "second"]);
    let attributes = "*.txt diff=trap filter=trap\n*.dat filter=other\n";
    fs::write(project.join(".gitattributes"), attributes).expect("a file is written");
    fs::write(project.join(".git/info/attributes"), attributes).expect("a file is written");
    fs::write(project.join("file.txt"), "three\n").expect("a file is written");
    fs::write(project.join("file.dat"), "two\n").expect("a file is written");
    let trap_that = |name: &str, then: &str| {
        let script = project.join(".git").join(name);
        let marker = project.join("traps").join(name);
        let text = format!("#!/bin/sh\ntouch '{}'\n{then}\n", marker.display());
        fs::write(&script, text).expect("a trap is written");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&script, mode).expect("it is executable");
        script.display().to_string()
    };
    let trap = |name: &str| trap_that(name, "exit 1");
    // Before there are hooks, which would be in the way.
    submodule(project, &trap("below"));
    let hooks = project.join(".git/hooks");
    fs::create_dir_all(&hooks).expect("a directory is made");
    for hook in ["post-index-change", "fsmonitor-watchman", "reference-transaction", "pre-commit"] {
        fs::rename(trap(hook), hooks.join(hook)).expect("a hook is put in its place");
    }
    let config = project.join(".git/config");
    let text = fs::read_to_string(&config).expect("it can be read");
    let text = format!(
        "{text}\n\tfsmonitor = {fsmonitor}\n\tpager = {pager}\n\teditor = {editor}\n\
         \tsshCommand = {ssh}\n\taskPass = {ask}\n\tuntrackedCache = true\n\
         [diff]\n\texternal = {external}\n\
         [diff \"trap\"]\n\tcommand = {driver}\n\ttextconv = {textconv}\n\
         [filter \"trap\"]\n\tclean = {clean}\n\tsmudge = {smudge}\n\
         [filter \"other\"]\n\tprocess = {process}\n\
         [pager]\n\tlog = {pager}\n\tstatus = {pager}\n\
         [alias]\n\tst = !{alias}\n\tstatus = !{alias}\n\tx = !{alias}\n\
         [log]\n\tshowSignature = true\n\
         [gpg]\n\tprogram = {gpg}\n\
         [extensions]\n\tpartialClone = evil\n\
         [remote \"evil\"]\n\turl = ext::{remote}\n\tpromisor = true\n\
         [protocol \"ext\"]\n\tallow = always\n\
         [credential]\n\thelper = {helper}\n",
        fsmonitor = trap("fsmonitor"),
        pager = trap("pager"),
        editor = trap("editor"),
        ssh = trap("ssh"),
        ask = trap("ask"),
        external = trap_that("external", "exit 0"),
        driver = trap("driver"),
        textconv = trap_that("textconv", "cat \"$1\""),
        clean = trap_that("clean", "cat"),
        smudge = trap_that("smudge", "cat"),
        process = trap("process"),
        alias = trap("alias"),
        gpg = trap("gpg"),
        remote = trap("remote"),
        helper = trap("helper"),
    );
    let text = text.replacen("[core]\n", "[core]\n\n", 1);
    // What was appended first belongs to `core`, wherever that stood.
    fs::write(&config, text.replace("\n\n\tfsmonitor", "\n[core]\n\tfsmonitor"))
        .expect("it is written");
}

/// A repository in the repository, whose own configuration wants to start something, and which is to be
/// looked into in spite of all.
fn submodule(project: &Path, trap: &str) {
    let below = project.join("below");
    fs::create_dir(&below).expect("a directory is made");
    git(&below, &["init", "-q"]);
    fs::write(below.join("file"), "one\n").expect("a file is written");
    git(&below, &["add", "."]);
    git(&below, &["commit", "-q", "-m", "first"]);
    let modules = "[submodule \"below\"]\n\tpath = below\n\turl = ./below\n\tignore = none\n";
    fs::write(project.join(".gitmodules"), modules).expect("a file is written");
    git(project, &["add", ".gitmodules"]);
    git(project, &["-c", "advice.addEmbeddedRepo=false", "add", "below"]);
    git(project, &["commit", "-q", "-m", "below", "--", ".gitmodules", "below"]);
    fs::write(below.join("file"), "two\n").expect("a file is written");
    git(&below, &["config", "filter.trap.clean", trap]);
    fs::write(below.join(".git/info/attributes"), "* filter=trap\n").expect("a file is written");
}

fn sprung(project: &Path) -> Vec<String> {
    let names = fs::read_dir(project.join("traps")).expect("it can be listed");
    let name = |entry: std::io::Result<fs::DirEntry>| entry.expect("it can be listed").file_name();
    names.map(|entry| name(entry).display().to_string()).collect()
}

/// Free calls, each of which would spring a trap where nothing is done about it.
const LOOKS: [&[&str]; 16] = [
    &["status"],
    &["status", "--short"],
    &["diff"],
    &["diff", "HEAD"],
    &["diff", "--cached"],
    &["diff", "--stat", "v1"],
    &["log", "-p"],
    &["log", "--format=%h %G?"],
    &["show", "HEAD"],
    &["show", "v1:file.txt"],
    &["blame", "file.txt"],
    &["grep", "-n", "o"],
    &["ls-files", "-m", "-o"],
    &["describe", "--tags", "--dirty"],
    &["cat-file", "-p", "0123456789012345678901234567890123456789"],
    &["stash", "list"],
];

#[tokio::test]
async fn a_repository_starts_nothing_when_it_is_looked_at() {
    let server = Server::start();
    let project = server.project();
    hostile(&project);
    let agent = server.create("scout", "trusted").await;
    for arguments in LOOKS {
        let told = server.tool(&agent, "git", json!({"args": arguments})).await;
        assert!(!told.contains("no_confirmer"), "git {arguments:?} is free: {told}");
        assert_eq!(sprung(&project), Vec::<String>::new(), "git {arguments:?}: {told}");
    }
    let told =
        server.tool(&agent, "git", json!({"args": ["log", "--oneline", "--no-decorate"]})).await;
    if is_confining(&server.base()).await {
        assert!(told.contains("second") && told.ends_with("exit code: 0"), "{told}");
    } else {
        assert!(told.contains("cannot keep it from starting other programs"), "{told}");
    }
    for (arguments, why) in [(["x"], "an alias"), (["commit"], "no looking")] {
        let told = server.tool(&agent, "git", json!({"args": arguments})).await;
        assert!(told.contains("no_confirmer"), "{why} is not free: {told}");
    }
    let told = server.tool(&agent, "exec", json!({"program": "true"})).await;
    assert!(told.contains("no_confirmer"), "{told}");
    assert_eq!(sprung(&project), Vec::<String>::new());
}

#[tokio::test]
async fn the_traps_spring_where_nothing_is_done_about_them() {
    let project = tempfile::tempdir().expect("a temporary directory is made");
    let project = project.path().canonicalize().expect("it exists");
    hostile(&project);
    for arguments in LOOKS {
        let mut command = Command::new("git");
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", "/nonexistent");
        command.args(arguments).current_dir(&project).output().expect("git runs");
    }
    let mut sprung = sprung(&project);
    sprung.sort();
    for trap in ["below", "clean", "fsmonitor", "process", "remote", "textconv"] {
        assert!(sprung.iter().any(|name| name == trap), "{trap} is not among {sprung:?}");
    }
}

#[tokio::test]
async fn a_repository_cannot_show_what_is_closed() {
    let server = Server::start();
    let project = server.project();
    git(&project, &["init", "-q"]);
    let worktree = server.base().display().to_string();
    git(&project, &["config", "core.worktree", &worktree]);
    let secret = server.token();
    let agent = server.create("scout", "trusted").await;
    let looking = ["grep", "--untracked", "nxk_", "--", ":/"];
    let told = server.tool(&agent, "git", json!({"args": looking})).await;
    assert!(!told.contains(secret.trim()), "the token was shown: {told}");
    // It is there for whoever may read it.
    let mut command = Command::new("git");
    let seen = command.args(looking).current_dir(&project).output().expect("git runs");
    let seen = String::from_utf8_lossy(&seen.stdout).into_owned();
    assert!(seen.contains(secret.trim()), "the way to it is open: {seen}");
}
