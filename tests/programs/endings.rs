//! Programs that hide from their end: they are all gone after it. Each holds a pipe open that the
//! test reads, with all its descendants, wherever they went: the pipe ends when the last of them has.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use nexus3::id::AgentId;
use rustix::fs::{CWD, FileType, Mode, OFlags, fcntl_setfl, mknodat};
use rustix::process::Signal;
use serde_json::json;
use tokio::task::spawn_blocking;

use crate::must;
use crate::server::Server;

/// What they do; each says when all of it is there.
const HIDING: [(&str, &str); 5] = [
    ("background", "sleep 1000 & sleep 1000 & echo up >&9; wait"),
    ("session", "setsid sleep 1000 & echo up >&9; sleep 1000"),
    (
        "double_fork",
        "(setsid sh -c 'sleep 1000 & sleep 1000 & exit' &); (sleep 1000 &); echo up >&9; sleep 1000",
    ),
    (
        "bomb",
        "i=0; while [ $i -lt 50 ]; do (setsid sh -c 'sleep 1000 & (sleep 1000 &); wait' &); \
         i=$((i+1)); done; echo up >&9; sleep 1000",
    ),
    (
        "deaf",
        "trap '' TERM INT HUP; (setsid sleep 1000 &); echo up >&9; while :; do sleep 1000; done",
    ),
];

/// A pipe with a name, and what the test reads from it.
struct Life {
    path: PathBuf,
}

impl Life {
    fn new(directory: &Path, name: &str) -> Self {
        let path = directory.join(name);
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe is made");
        Self { path }
    }

    fn script(&self, what: &str) -> String {
        format!("exec 9>'{}'; {what}", self.path.display())
    }

    /// Waits until everything is there. What is returned ends when everything is gone.
    async fn up(&self) -> BufReader<File> {
        let path = self.path.clone();
        let opened = spawn_blocking(move || {
            let mut pipe = BufReader::new(File::open(path).expect("the pipe opens"));
            let mut line = String::new();
            pipe.read_line(&mut line).expect("the pipe can be read");
            assert_eq!(line, "up\n", "the program says that it is there");
            pipe
        });
        must("a program is there", opened).await.expect("reading does not panic")
    }
}

async fn gone(name: &str, mut pipe: BufReader<File>) {
    let ended = spawn_blocking(move || pipe.read_to_end(&mut Vec::new()));
    let left = must(&format!("{name}: all processes are gone"), ended).await;
    assert_eq!(left.expect("reading does not panic").expect("it can be read"), 0, "{name}");
}

/// Starts all that hide, each for an agent of its own, with a turn that nobody waits for.
async fn hidden(server: &Server) -> Vec<(&'static str, AgentId, BufReader<File>)> {
    let mut all = Vec::new();
    for (name, script) in HIDING {
        let agent = server.create(name, "yolo").await;
        let life = Life::new(&server.project(), name);
        let arguments = json!({"command": life.script(script), "timeout": 300});
        let content = format!("call shell_UNSAFE {arguments}");
        server.call(Some(&agent), "send", json!({"content": content, "wait": false})).await;
        all.push((name, agent, life.up().await));
    }
    all
}

#[tokio::test]
async fn nothing_is_left_after_a_timeout() {
    let server = Server::start();
    for (name, script) in HIDING {
        let agent = server.create(name, "yolo").await;
        let life = Life::new(&server.project(), name);
        let arguments = json!({"command": life.script(script), "timeout": 3});
        let (told, pipe) = tokio::join!(
            must("a turn ends", server.tool(&agent, "shell_UNSAFE", arguments)),
            life.up()
        );
        assert_eq!(told, "It did not end within 3 seconds and was ended.", "{name}");
        gone(name, pipe).await;
    }
}

#[tokio::test]
async fn nothing_is_left_after_the_end_of_the_program_itself() {
    let server = Server::start();
    let agent = server.create("scout", "yolo").await;
    let life = Life::new(&server.project(), "life");
    let script = life.script("setsid sleep 1000 & sleep 1000 & echo up >&9; echo done; exit 3");
    let arguments = json!({"command": script, "timeout": 300});
    let (told, pipe) = tokio::join!(
        must("a turn ends", server.tool(&agent, "shell_UNSAFE", arguments)),
        life.up()
    );
    assert_eq!(told, "stdout:\ndone\nexit code: 3");
    gone("left behind", pipe).await;
}

#[tokio::test]
async fn nothing_is_left_after_a_cancel() {
    let server = Server::start();
    for (name, agent, pipe) in hidden(&server).await {
        server.call(Some(&agent), "cancel", json!({})).await;
        gone(name, pipe).await;
    }
}

#[tokio::test]
async fn nothing_is_left_after_a_destroy() {
    let server = Server::start();
    for (name, agent, mut pipe) in hidden(&server).await {
        server.call(None, "destroy_agent", json!({"agent_id": agent})).await;
        // Not a moment later: nothing of an agent runs after it was destroyed.
        fcntl_setfl(pipe.get_ref(), OFlags::NONBLOCK).expect("a read need not wait");
        let read = pipe.read(&mut [0]).map_err(|error| error.kind());
        assert_eq!(read, Ok(0), "{name} is gone when the answer comes");
    }
}

#[tokio::test]
async fn nothing_is_left_after_a_stop() {
    let mut server = Server::start();
    let all = hidden(&server).await;
    server.signal(Signal::TERM);
    // Again, so that running turns get no time to end by themselves.
    server.signal(Signal::TERM);
    server.wait();
    for (name, _, pipe) in all {
        gone(name, pipe).await;
    }
}

#[tokio::test]
async fn nothing_is_left_after_the_server_is_killed() {
    let mut server = Server::start();
    let all = hidden(&server).await;
    server.signal(Signal::KILL);
    server.wait();
    for (name, _, pipe) in all {
        gone(name, pipe).await;
    }
}

#[tokio::test]
async fn a_signal_for_all_that_is_called_like_the_server_leaves_nothing() {
    let server = Server::start();
    let agent = server.create("scout", "yolo").await;
    let life = Life::new(&server.project(), "life");
    // Its parent is its supervisor, which answers for it.
    let signals = "for signal in TERM INT HUP QUIT ALRM USR1 USR2; do kill -$signal $PPID; done";
    let script = life.script(&format!("{signals}; setsid sleep 1000 & echo up >&9; echo done"));
    let arguments = json!({"command": script, "timeout": 300});
    let (told, pipe) = tokio::join!(
        must("a turn ends", server.tool(&agent, "shell_UNSAFE", arguments)),
        life.up()
    );
    assert_eq!(told, "stdout:\ndone\nexit code: 0");
    gone("left behind", pipe).await;
}
