//! The rows about time, under a virtual clock: each limit is met to the second.
//! They run on a network in memory; see `memory` for why. One shows a slow sender on real sockets.

use std::time::Duration;

use nexus3::config::Config;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::memory::{Memory, WIRE_BYTES};
use super::support::server::{Running, start_with};
use super::{create, good, good_answer, refusal};

const TOO_SLOW: &str = "Request not received within 30 seconds";

async fn start() -> Running {
    start_configured(|_| ()).await
}

async fn start_configured(change: impl FnOnce(&mut Config)) -> Running {
    start_with(|world, config| {
        world.net = Memory::new();
        change(config);
    })
    .await
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[tokio::test(start_paused = true)]
async fn half_a_head_gets_408_after_30_seconds() {
    let server = start().await;
    let mut client = server.connect().await;
    sleep(seconds(50)).await;
    let first_byte = Instant::now();
    // Bytes that trickle in do not buy time.
    for byte in [b"P", b"O", b"S"] {
        client.write(byte).await;
        sleep(seconds(9)).await;
    }
    let answer = client.read().await;
    assert_eq!(first_byte.elapsed(), seconds(30));
    assert_eq!(answer.told(), refusal(408, -32600, TOO_SLOW));
    assert_eq!(answer.header("connection"), Some("close"));
    assert_eq!(client.read_to_end().await, b"");
    assert_eq!(first_byte.elapsed(), seconds(30));
}

#[tokio::test]
async fn a_slow_sender_on_a_real_socket_gets_408() {
    let server = start_with(|_, _| ()).await;
    let mut client = server.connect().await;
    assert_eq!(client.exchange(&server.post("/rpc", good())).await.told(), good_answer());
    client.write(b"POST /rpc HTTP/1.1\r\nHo").await;
    // The bytes lie in the server's socket. From here on time passes only while nothing is ready.
    tokio::time::pause();
    let answer = client.read().await;
    assert_eq!(answer.told(), refusal(408, -32600, TOO_SLOW));
    assert_eq!(client.read_to_end().await, b"");
}

#[tokio::test(start_paused = true)]
async fn half_a_body_gets_408_after_30_seconds_from_its_first_byte() {
    let server = start().await;
    let mut client = server.connect().await;
    // The second request of a connection has its own time.
    for _ in 0..2 {
        sleep(seconds(40)).await;
        assert_eq!(client.exchange(&server.post("/rpc", good())).await.told(), good_answer());
    }
    let request = server.post("/rpc", good()).bytes();
    let (head, rest) = request.split_at(25);
    let first_byte = Instant::now();
    client.write(head).await;
    sleep(seconds(14)).await;
    client.write(&rest[..rest.len() - 2]).await;
    sleep(seconds(14)).await;
    client.write(&rest[rest.len() - 2..rest.len() - 1]).await;
    let answer = client.read().await;
    assert_eq!(first_byte.elapsed(), seconds(30));
    assert_eq!(answer.told(), refusal(408, -32600, TOO_SLOW));
    assert_eq!(answer.header("connection"), Some("close"));
    assert_eq!(client.read_to_end().await, b"");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_ends_within_30_seconds_is_answered() {
    let server = start().await;
    let mut client = server.connect().await;
    let request = server.post("/rpc", good()).bytes();
    for _ in 0..3 {
        client.write(&request[..30]).await;
        sleep(seconds(29)).await;
        client.write(&request[30..]).await;
        assert_eq!(client.read().await.told(), good_answer());
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_is_closed_after_75_seconds_without_a_word() {
    let server = start().await;
    let mut client = server.connect().await;
    let opened = Instant::now();
    assert_eq!(client.read_to_end().await, b"");
    assert_eq!(opened.elapsed(), seconds(75));
}

#[tokio::test(start_paused = true)]
async fn every_answer_starts_the_idle_time_anew() {
    let server = start().await;
    let mut client = server.connect().await;
    for request in [server.request("GET", "/healthz"), server.post("/rpc", good())] {
        for _ in 0..3 {
            sleep(seconds(74)).await;
            assert_eq!(client.exchange(&request).await.status, 200);
        }
    }
    let answered = Instant::now();
    assert_eq!(client.read_to_end().await, b"");
    assert_eq!(answered.elapsed(), seconds(75));
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_waits_for_its_turn_is_not_idle() {
    let server = start().await;
    create(&server, "a").await;
    let began = Instant::now();
    let params = json!({"content": r#"call sleep {"seconds": 110}"#});
    let answer = server.call("/agent/a", "send", params).await;
    assert_eq!(answer["result"]["finish_reason"], "stop");
    assert_eq!(began.elapsed(), seconds(110));
}

#[tokio::test(start_paused = true)]
async fn an_unwanted_body_that_does_not_come_is_waited_for_one_second() {
    let server = start().await;
    let table = [
        (server.post("/x", "body"), 404),
        (server.post("/rpc", "body").without("Authorization"), 401),
        (server.post("/rpc", "body").with("Content-Length", "2000000"), 413),
    ];
    for (request, status) in table {
        let mut client = server.connect().await;
        let began = Instant::now();
        client.write(&request.head()).await;
        let answer = client.read().await;
        assert_eq!((answer.status, answer.header("connection")), (status, Some("close")));
        assert_eq!(began.elapsed(), seconds(1));
        assert_eq!(client.read_to_end().await, b"");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_asks_first_is_refused_at_once() {
    let server = start().await;
    let asking = server.post("/rpc", "body").header("Expect", "100-continue");
    for (request, status) in [
        (asking.clone().without("Authorization"), 401),
        (asking.with("Content-Length", "2000000"), 413),
    ] {
        let mut client = server.connect().await;
        let began = Instant::now();
        client.write(&request.head()).await;
        assert_eq!(client.read().await.status, status);
        assert_eq!(began.elapsed(), seconds(0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_does_not_read_its_answer_is_cut_off_after_30_seconds() {
    let server = start_configured(|config| config.server.max_connections = 1).await;
    let ask = r#"{"jsonrpc":"2.0","id":1,"method":"rpc.discover"}"#;
    let batch = format!("[{}]", vec![ask; 64].join(","));
    let mut client = server.connect().await;
    let asked = Instant::now();
    client.write(&server.post("/rpc", batch).bytes()).await;
    // A reader that is slow but reads is waited for.
    for _ in 0..3 {
        sleep(seconds(25)).await;
        assert!(client.read_more().await.is_some());
    }
    sleep(seconds(29)).await;
    let health = server.request("GET", "/healthz");
    assert_eq!(server.connect().await.exchange(&health).await.status, 503);
    sleep(seconds(2)).await;
    assert_eq!(server.connect().await.exchange(&health).await.status, 200);
    assert_eq!(asked.elapsed(), seconds(3 * 25 + 31));
    let rest = client.read_to_end().await.len();
    assert!(rest <= 3 * 16 * 1024 + WIRE_BYTES, "only what was on the wire is left: {rest}");
}

#[tokio::test(start_paused = true)]
async fn a_connection_too_many_that_stays_is_told_and_closed() {
    let server = start_configured(|config| config.server.max_connections = 1).await;
    let mut first = server.connect().await;
    assert_eq!(first.exchange(&server.post("/rpc", good())).await.told(), good_answer());
    let mut second = server.connect().await;
    let connected = Instant::now();
    assert_eq!(second.read().await.status, 503);
    // One that asks nothing is told all the same, but not before it had a moment to ask.
    assert_eq!(connected.elapsed(), seconds(1));
    sleep(Duration::from_millis(999)).await;
    second.write(b"x").await;
    sleep(Duration::from_millis(2)).await;
    assert!(second.try_write(b"x").await.is_err());
}
