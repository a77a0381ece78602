//! The real machine keeps the contract of every seam, and what only the real machine can show.
//! The same suites run against the simulated one.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use http::Request;
use nexus3::world::{Access, Confinement, HttpFault, Kind, Program, World, real};
use nexus3_sim::conform::{self, Cast, Place, Stop};
use rustix::fs::{CWD, FileType, Mode};
use tempfile::TempDir;
use tokio::io::AsyncReadExt;

const LOOPBACK: Place = {
    let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
    Place { bind: address, reach: address }
};

fn world() -> World {
    real::world().expect("the machine opens")
}

/// An empty directory, and its path without links on the way.
fn scratch(world: &World) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a temporary directory is made");
    let path = world.fs.canonical(directory.path()).expect("it exists");
    (directory, path)
}

#[tokio::test]
async fn the_real_clock_keeps_the_contract() {
    conform::clock(&world()).await;
}

#[tokio::test]
async fn the_real_chance_keeps_the_contract() {
    conform::chance(&world()).await;
}

#[tokio::test]
async fn the_real_sockets_keep_the_contract_of_net() {
    conform::net(&world(), LOOPBACK).await;
}

#[tokio::test]
async fn the_real_client_keeps_the_contract_of_http() {
    conform::http(&world(), LOOPBACK).await;
}

#[tokio::test]
async fn the_real_disk_keeps_the_contract_of_fs_by_openat2() {
    let mut world = world();
    let Some(fs) = real::fs_by_openat2() else {
        return;
    };
    world.fs = fs;
    let (_directory, path) = scratch(&world);
    conform::fs(&world, &path).await;
}

#[tokio::test]
async fn the_real_disk_keeps_the_contract_of_fs_by_walking() {
    let mut world = world();
    world.fs = real::fs_by_walking();
    let (_directory, path) = scratch(&world);
    conform::fs(&world, &path).await;
}

#[tokio::test]
async fn pipes_sockets_and_devices_are_refused_without_waiting() {
    let mut world = world();
    let (_directory, path) = scratch(&world);
    rustix::fs::mknodat(CWD, path.join("pipe"), FileType::Fifo, Mode::RWXU, 0)
        .expect("a pipe is made");
    let _socket =
        std::os::unix::net::UnixListener::bind(path.join("socket")).expect("a socket is made");
    for fs in real::fs_by_openat2().into_iter().chain([real::fs_by_walking()]) {
        world.fs = fs;
        let dir = world.fs.dir(&path).expect("the directory opens");
        let devices = world.fs.dir(Path::new("/dev")).expect("a machine has devices");
        for access in [Access::Read, Access::Write, Access::Create { mode: 0o600 }] {
            for (dir, name) in [(&dir, "pipe"), (&dir, "socket"), (&devices, "null")] {
                let error = dir.open(Path::new(name), access).err().expect("it is no file");
                assert_eq!(error.kind(), ErrorKind::InvalidInput, "{name} {access:?}: {error}");
                let stat = dir.stat(Path::new(name)).expect("it is there");
                assert_eq!(stat.kind, Kind::Other, "{name} is something else");
            }
        }
    }
}

#[tokio::test]
async fn the_real_threads_keep_the_contract_of_blocking() {
    conform::blocking(&world()).await;
}

#[tokio::test]
async fn the_real_databases_keep_the_contract_of_sqlite() {
    let world = world();
    let (_directory, path) = scratch(&world);
    conform::sqlite(&world, &path).await;
}

#[tokio::test]
async fn the_real_processes_keep_the_contract_of_programs() {
    let programs = real::programs_by(env!("CARGO_BIN_EXE_nexus3").into());
    let world = World { programs, ..world() };
    let (_directory, path) = scratch(&world);
    let program = |words: &[&str]| Program {
        program: words[0].into(),
        arguments: words[1..].iter().map(OsString::from).collect(),
        directory: path.clone(),
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        confinement: Confinement::None,
    };
    let shell = |script: &str| program(&["/bin/sh", "-c", script]);
    let cast = Cast {
        environment: program(&["/usr/bin/env"]),
        directory: program(&["/bin/pwd", "-P"]),
        found: program(&["true"]),
        fails: shell("printf out; printf err >&2; exit 7"),
        copies: program(&["/bin/cat"]),
        waits: shell("echo ready; exec sleep 1000000"),
        waits_with_child: shell("sleep 1000000 & echo ready; wait"),
        leaves_child: shell("sleep 1000000 & echo ready"),
        leaves_session: shell("setsid sleep 1000000 & echo ready"),
        ignores_termination: shell("trap '' TERM; echo ready; while :; do sleep 1000000; done"),
    };
    conform::programs(&world, &cast, &path).await;
}

#[tokio::test]
async fn a_peer_that_speaks_no_tls_cannot_be_connected() {
    let world = world();
    let any = SocketAddr::new(LOOPBACK.bind, 0);
    let mut listener = world.net.bind(any).await.expect("a port is bound");
    let address = listener.local_addr().expect("it has an address");
    let request = Request::get(format!("https://{address}/")).body(Bytes::new());
    let peer = async {
        let mut stream = listener.accept().await.expect("the client connects");
        let greeting = stream.read_u8().await.expect("the client speaks first");
        assert_eq!(greeting, 0x16, "it opens a TLS handshake");
    };
    let send = world.http.send(request.expect("the request is well formed"));
    let ((), answer) = tokio::join!(peer, send);
    let error = answer.expect_err("a closed connection shakes no hands");
    assert_eq!(error.fault, HttpFault::Connect, "no handshake is no connection: {error:?}");
    assert!(!error.detail.contains("https:"), "a URL may hold a key: {}", error.detail);
}

#[tokio::test]
async fn an_address_in_another_spelling_is_the_same_address() {
    for host in ["2852039166", "0xa9.0xfe.0xa9.0xfe", "0251.0376.0251.0376", "169.254.43518"] {
        let request = Request::get(format!("http://{host}/")).body(Bytes::new());
        let answer = world().http.send(request.expect("the request is well formed")).await;
        let error = answer.expect_err("nobody is asked there");
        assert_eq!(error.fault, HttpFault::Forbidden, "{host}: {error:?}");
    }
}

/// The only test here that raises signals, and the only one that waits for them.
#[tokio::test]
async fn the_real_signals_keep_the_contract() {
    use rustix::process::{Signal, getpid, kill_process};
    conform::signals(&world(), |stop| {
        let signal = match stop {
            Stop::Terminate => Signal::TERM,
            Stop::Interrupt => Signal::INT,
        };
        kill_process(getpid(), signal).expect("a process can signal itself");
    })
    .await;
}

#[tokio::test]
async fn the_real_environment_keeps_the_contract() {
    conform::environment(&world()).await;
}
