//! What a recording holds: more than it has room for cuts it off where it is, and says so in its first
//! lines.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use http::Request;
use nexus3::config::Config;
use nexus3::id::AgentId;
use nexus3::limits::{RECORD_BYTES_MAX, RECORD_QUEUE_NOTES_MAX};
use nexus3::provider::Secrets;
use nexus3::record::{LeftOut, Prepared, Recorder, Setting};
use nexus3::world::real;
use serde_json::{Map, json};
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
    recorder.closed().await;
    let text = std::fs::read_to_string(path).unwrap();
    text.parse::<toml::Table>().unwrap();
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn more_notes_than_may_wait_cut_it_off() {
    let home = private_home();
    let (prepared, path) = prepared(&home);
    let recorder = prepared.recorder.clone();
    for _ in 0..=RECORD_QUEUE_NOTES_MAX {
        recorder.left_out(LeftOut::Request(503));
    }
    begin(prepared, &home);
    let text = closed(&recorder, &path).await;
    assert!(text.contains(CUT), "{}", &text[..500]);
    let told = format!(": {RECORD_QUEUE_NOTES_MAX} requests with HTTP 503.");
    assert!(text.contains(&told), "{}", &text[..500]);
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

#[tokio::test(flavor = "multi_thread")]
async fn more_bytes_than_it_holds_cut_it_off_and_it_says_so() {
    const SHOWN: usize = 4 * 1024 * 1024;
    let home = private_home();
    let (prepared, path) = prepared(&home);
    let recorder = prepared.recorder.clone();
    begin(prepared, &home);
    let body = json!({ "messages": [{ "role": "user", "content": "x".repeat(SHOWN) }] });
    let request = Request::post("/v1/chat/completions");
    let request = request.body(Bytes::from(body.to_string())).unwrap();
    let (ear, agent) = (recorder.ear(), AgentId::parse("a").unwrap());
    let mut asked = 0;
    // It is told as fast as it is taken, so that the bound of what waits is not the one that is met.
    while recorder.is_on() && asked < 2 * RECORD_BYTES_MAX / SHOWN {
        drop(ear.asks(&agent, &request));
        asked += 1;
        recorder.taken().await;
    }
    assert_eq!(asked, RECORD_BYTES_MAX / SHOWN, "with what each takes besides, these are too many");
    call(&recorder);
    let text = closed(&recorder, &path).await;
    assert!(text.contains(CUT), "{}", &text[..500]);
    assert_eq!(text.matches("[[model]]").count(), asked, "what was told is in it");
    assert!(!text.contains("[[step]]"), "what came later is not");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_replay_could_not_be_refused_for_is_told_at_the_top() {
    let home = private_home();
    let (prepared, path) = prepared(&home);
    let recorder = prepared.recorder.clone();
    begin(prepared, &home);
    for what in
        [LeftOut::Request(503), LeftOut::Entry, LeftOut::Request(408), LeftOut::Request(503)]
    {
        recorder.left_out(what);
    }
    let text = closed(&recorder, &path).await;
    let told = "\n# Refused, and not here since a replay could not be refused for the same: 1 request \
                with HTTP 408, 2 requests with HTTP 503, 1 entry of a batch.\n";
    assert!(text.contains(told), "{text}");
}
