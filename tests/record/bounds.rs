//! What a recording holds: more than it has room for cuts it off where it is, and says so in its first
//! lines.

use std::path::{Path, PathBuf};

use nexus3::config::Config;
use nexus3::limits::RECORD_QUEUE_NOTES_MAX;
use nexus3::provider::Secrets;
use nexus3::record::{Prepared, Recorder, Setting};
use nexus3::world::real;
use serde_json::Map;
use tempfile::TempDir;

use super::home::private_home;

const CUT: &str = "# It is cut here: more happened than a recording holds.";

fn prepared(home: &TempDir) -> (Prepared, PathBuf) {
    let path = home.path().join("recording.toml");
    (Recorder::prepare(&real::world().unwrap(), path.clone()), path)
}

fn begin(prepared: Prepared, home: &TempDir) {
    let setting = Setting {
        flags: Vec::new(),
        config: Config::default(),
        found: None,
        home: home.path().to_owned(),
        cwd: home.path().to_owned(),
    };
    prepared.begin(setting, &Secrets::default()).unwrap();
}

/// One call, which is refused.
fn call(recorder: &Recorder) {
    recorder.call(("alice", None), Some("a"), "send", Map::new()).refused(404, -32602);
}

/// The file once it is closed, which must be whole.
async fn closed(recorder: &Recorder, path: &Path) -> String {
    recorder.close().await;
    let text = std::fs::read_to_string(path).unwrap();
    text.parse::<toml::Table>().unwrap();
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn more_notes_than_may_wait_cut_it_off() {
    let home = private_home();
    let (prepared, path) = prepared(&home);
    let recorder = prepared.recorder.clone();
    // Each call is two notes: its beginning and its end.
    for _ in 0..=RECORD_QUEUE_NOTES_MAX / 2 {
        call(&recorder);
    }
    begin(prepared, &home);
    let text = closed(&recorder, &path).await;
    assert!(text.contains(CUT), "{}", &text[..500]);
    assert_eq!(text.matches("call = \"send\"").count(), RECORD_QUEUE_NOTES_MAX / 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_fits_is_whole() {
    let home = private_home();
    let (prepared, path) = prepared(&home);
    let recorder = prepared.recorder.clone();
    begin(prepared, &home);
    call(&recorder);
    assert!(!closed(&recorder, &path).await.contains(CUT));
}
