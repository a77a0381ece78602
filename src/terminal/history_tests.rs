//! What is kept of what was typed, on a real disk: the file, its mode, its bounds, and two who write.

use std::ffi::OsString;

use tempfile::TempDir;

use super::*;
use crate::world::real;

fn home() -> (TempDir, History) {
    let dir = tempfile::tempdir().unwrap();
    let history = History::new(real::world().unwrap(), dir.path().to_owned());
    (dir, history)
}

/// The home, as somebody else sees it.
fn seen(home: &TempDir) -> Arc<dyn Dir> {
    real::world().unwrap().fs.dir(home.path()).unwrap()
}

fn put(home: &TempDir, content: &str) {
    seen(home).replace(Path::new(NAME), content.as_bytes(), 0o600, "put").unwrap();
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(ToString::to_string).collect()
}

#[test]
fn secrets_and_what_begins_with_a_space_are_not_kept() {
    assert!(is_kept("Hello\nyou"));
    assert!(is_kept("what does --environment do?"));
    assert!(!is_kept(" a secret of mine"));
    assert!(!is_kept("\n"));
    assert!(!is_kept("/mcp connect x --mcp-url http://localhost --header=Authorization=abc"));
    assert!(!is_kept("/mcp connect x --command y --env KEY=abc"));
    assert!(!is_kept("the token is (nxk_0123)"));
    assert!(!is_kept(&"x".repeat(HISTORY_ENTRY_BYTES_MAX + 1)));
}

#[tokio::test]
async fn what_is_typed_comes_back_for_its_owner_alone() {
    let (dir, history) = home();
    assert_eq!(history.recall().await, texts(&[]));
    history.remember(texts(&["one", "two\nlines \"quoted\""])).await.unwrap();
    history.remember(texts(&["two\nlines \"quoted\"", "three"])).await.unwrap();
    assert_eq!(history.recall().await, texts(&["one", "two\nlines \"quoted\"", "three"]));
    assert_eq!(seen(&dir).stat(Path::new(NAME)).unwrap().mode & 0o777, 0o600);
    let entries = seen(&dir).list().unwrap();
    let mut names: Vec<OsString> = entries.into_iter().map(|entry| entry.name).collect();
    names.sort();
    assert_eq!(names, ["history", "history.lock"], "nothing else is left");
}

#[tokio::test]
async fn lines_of_others_and_a_torn_end_do_no_harm() {
    let (dir, history) = home();
    put(&dir, "\"one\"\nnot ours\n{}\n\"two\"\n\"thr");
    assert_eq!(history.recall().await, texts(&["one", "two"]));
    history.remember(texts(&["three"])).await.unwrap();
    assert_eq!(history.recall().await, texts(&["one", "two", "three"]));
}

#[tokio::test]
async fn only_the_newest_are_kept() {
    let (dir, history) = home();
    let long = "x".repeat(HISTORY_ENTRY_BYTES_MAX);
    history.remember(vec![long; 3 * HISTORY_BYTES_MAX / HISTORY_ENTRY_BYTES_MAX]).await.unwrap();
    let many = (0..2 * TYPED_KEPT_MAX).map(|number| number.to_string()).collect();
    history.remember(many).await.unwrap();
    let kept = history.recall().await;
    assert_eq!(kept.len(), TYPED_KEPT_MAX);
    assert_eq!(kept.last(), Some(&(2 * TYPED_KEPT_MAX - 1).to_string()));
    assert!(seen(&dir).stat(Path::new(NAME)).unwrap().len <= HISTORY_BYTES_MAX as u64);
    // A file that somebody made too long is read from its end.
    let line = format!("{}\n", serde_json::to_string(&"y".repeat(1000)).unwrap());
    put(&dir, &line.repeat(HISTORY_BYTES_MAX / 500));
    history.remember(texts(&["last"])).await.unwrap();
    let kept = history.recall().await;
    assert!(kept.len() > 100 && kept.last().is_some_and(|text| text == "last"), "{}", kept.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn terminals_at_once_keep_what_all_of_them_typed() {
    const TERMINALS: usize = 4;
    const EACH: usize = 10;
    let (_dir, history) = home();
    let mut terminals = tokio::task::JoinSet::new();
    for terminal in 0..TERMINALS {
        let history = history.clone();
        terminals.spawn(async move {
            for number in 0..EACH {
                history.remember(vec![format!("{terminal} {number}")]).await.unwrap();
            }
        });
    }
    terminals.join_all().await;
    let kept = history.recall().await;
    assert_eq!(kept.len(), TERMINALS * EACH);
    for terminal in 0..TERMINALS {
        let start = format!("{terminal} ");
        let own: Vec<&String> = kept.iter().filter(|text| text.starts_with(&start)).collect();
        let expected: Vec<String> =
            (0..EACH).map(|number| format!("{terminal} {number}")).collect();
        assert_eq!(own, expected.iter().collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn without_a_home_nothing_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let history = History::new(real::world().unwrap(), dir.path().join("nowhere"));
    history.remember(texts(&["one"])).await.unwrap();
    assert_eq!(history.recall().await, texts(&[]));
    assert_eq!(seen(&dir).list().unwrap(), []);
}
