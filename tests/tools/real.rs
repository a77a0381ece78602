//! The same tools on the real disk, with everything in a directory of the test's own.

#![expect(clippy::disallowed_methods, reason = "the test prepares the directory it works in")]

use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::{fs, io};

use nexus3::tool::Tools;
use nexus3::tool::workplace::Workplace;
use nexus3::world::real;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{alone, confined_to, run};

struct Place {
    _dir: TempDir,
    tools: Tools,
    workplace: Arc<Workplace>,
}

impl Place {
    /// A working directory with a file, and links inside and out.
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("there is room for a temporary directory");
        let top = fs::canonicalize(dir.path()).expect("it is there");
        let cwd = top.join("work");
        fs::create_dir_all(cwd.join("src")).expect("a directory is made");
        fs::write(cwd.join("src/Grüße.txt"), "one apple\ntwo\n").expect("a file is written");
        fs::write(top.join("secret"), "apple").expect("a file is written");
        symlink("src", cwd.join("inside")).expect("a link is made");
        symlink("../secret", cwd.join("outside")).expect("a link is made");
        let world = real::world().expect("a test runs in a runtime");
        let tools = Tools::new();
        let workplace = tools.workplace(&world, &confined_to(cwd), alone());
        Self { _dir: dir, tools, workplace }
    }

    async fn call(&self, tool: &str, arguments: Value) -> Result<String, String> {
        run(&self.tools, &self.workplace, tool, arguments).await
    }
}

#[tokio::test]
async fn tools_work_on_the_real_disk() {
    let place = Place::new();
    let read = place.call("read_file", json!({"path": "inside/Grüße.txt"})).await;
    assert_eq!(read, Ok("     1\tone apple\n     2\ttwo\n".to_owned()));
    let listed = place.call("list_directory", json!({})).await;
    assert_eq!(listed, Ok("inside@\noutside@\nsrc/\n".to_owned()));
    let found = place.call("glob", json!({"pattern": "**/*.txt"})).await;
    assert_eq!(found, Ok("src/Grüße.txt\n".to_owned()));
    let found = place.call("search_text", json!({"pattern": "apple", "path": "."})).await;
    let expected = "src/Grüße.txt:1:one apple\n[1 match in 1 file.]\n[Skipped: 2 linked (inside, \
                    outside).]\n";
    assert_eq!(found, Ok(expected.to_owned()));
}

#[tokio::test]
async fn nothing_leads_out_on_the_real_disk() {
    let place = Place::new();
    for path in
        ["outside", "../secret", "inside/../../secret", "/etc/passwd", "/etc/none", "/root/x"]
    {
        let read = place.call("read_file", json!({"path": path})).await;
        assert_eq!(read, Err(format!("`{path}` is outside the working directory")));
    }
    let missing = place.call("read_file", json!({"path": "src/none"})).await;
    assert_eq!(missing, Err("`src/none` does not exist".to_owned()));
    let long = "x".repeat(300);
    let long_name = place.call("read_file", json!({"path": long})).await;
    assert_eq!(long_name, Err(format!("`{long}` has a name that is too long")));
    let through = place.call("read_file", json!({"path": "src/Grüße.txt/x"})).await;
    let expected = "`src/Grüße.txt/x` is not a directory, or leads through something that is none";
    assert_eq!(through, Err(expected.to_owned()));
}

const SWAPS: usize = 100_000;
const TRIES_MAX: usize = 10_000;

/// Takes away what is at `path`, a link or a directory that a call made meanwhile, until something else
/// is put there.
fn instead(path: &Path, put: impl Fn() -> io::Result<()>) {
    for _ in 0..TRIES_MAX {
        let is_dir = fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
        // It may be gone, or another by now: then the next try meets that.
        let _ = if is_dir { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        if put().is_ok() {
            return;
        }
    }
    panic!("a swap is never done");
}

/// A directory is there, then a link that leads out, then the directory again, as fast as the disk can.
#[tokio::test]
async fn nothing_outside_is_used_while_a_directory_is_swapped_for_a_link() {
    let dir = tempfile::tempdir().expect("there is room for a temporary directory");
    let top = fs::canonicalize(dir.path()).expect("it is there");
    let (cwd, outside) = (top.join("work"), top.join("outside"));
    for place in [&cwd.join("dir"), &outside] {
        fs::create_dir_all(place).expect("a directory is made");
        fs::write(place.join("file"), "text").expect("a file is written");
    }
    fs::write(outside.join("file"), "SECRET").expect("a file is written");
    let world = real::world().expect("a test runs in a runtime");
    let tools = Tools::new();
    let workplace = tools.workplace(&world, &confined_to(cwd.clone()), alone());
    let swapping = std::thread::spawn(move || {
        let (swapped, away) = (cwd.join("dir"), cwd.join("away"));
        for _ in 0..SWAPS {
            fs::rename(&swapped, &away).expect("it is moved away");
            instead(&swapped, || symlink("../outside", &swapped));
            instead(&swapped, || fs::rename(&away, &swapped));
        }
    });
    let (mut done, mut refused) = (0, 0);
    while !swapping.is_finished() || done == 0 {
        for (tool, arguments) in [
            ("read_file", json!({"path": "dir/file"})),
            ("write_file", json!({"path": "dir/file", "content": "mine"})),
            ("append_file", json!({"path": "dir/file", "content": "more"})),
            ("write_file", json!({"path": "dir/new/file", "content": "mine"})),
            ("search_text", json!({"path": "dir", "pattern": "SECRET"})),
            ("list_directory", json!({"path": "dir", "all": true})),
            (
                "rename",
                json!({"source": "dir/new/file", "destination": "dir/moved", "overwrite": true}),
            ),
        ] {
            match run(&tools, &workplace, tool, arguments).await {
                Ok(text) => {
                    assert!(!text.contains(":SECRET"), "{tool}: {text}");
                    assert!(!text.contains("\tSECRET"), "{tool}: {text}");
                    done += 1;
                }
                Err(_) => refused += 1,
            }
        }
    }
    swapping.join().expect("every swap succeeds");
    let left: Vec<_> =
        fs::read_dir(&outside).expect("it is there").map(|it| it.unwrap().file_name()).collect();
    assert_eq!(left, ["file"], "after {done} calls, and {refused} that were refused");
    assert_eq!(fs::read_to_string(outside.join("file")).expect("it is there"), "SECRET");
}
