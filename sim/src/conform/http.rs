//! What outgoing HTTP keeps: the request arrives as it was made, the answer as it was sent, and
//! what breaks is classified. The peer is a listener of the same world that speaks raw bytes, so
//! that it can also speak badly. Never looks at a library's words.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt};
use http::{Method, Request, StatusCode};
use nexus3::reach::Reach;
use nexus3::world::{
    Connection, Http, HttpBody, HttpError, HttpFault, HttpResponse, HttpTerms, Listener, Stream,
    World,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::oneshot;

use super::{Place, must};

pub async fn http(world: &World, place: Place) {
    the_request_arrives_as_it_was_made(world, place).await;
    the_answer_arrives_as_it_was_sent(world, place).await;
    an_error_status_is_an_answer(world, place).await;
    redirects_are_not_followed(world, place).await;
    bodies_end_where_they_say(world, place).await;
    a_body_arrives_while_it_is_sent(world, place).await;
    a_cut_body_is_broken(world, place).await;
    a_connection_without_an_answer_is_reset(world, place).await;
    nobody_there_cannot_be_connected(world, place).await;
    what_is_no_http_uri_is_refused(world).await;
    what_may_not_be_reached_is_never_asked(world).await;
    loopback_may_be_reached_on_all_terms(world, place).await;
    a_kept_connection_that_breaks_is_stale(world, place).await;
    a_fresh_connection_is_made_on_demand(world, place).await;
}

fn get(uri: &str) -> Request<Bytes> {
    Request::get(uri).body(Bytes::new()).expect("the suite's URIs are well formed")
}

/// Sends `request` to a fresh peer that answers with `answer` and closes. Returns what the peer
/// received with what came back.
async fn exchange(
    world: &World,
    place: Place,
    request: impl FnOnce(&str) -> Request<Bytes>,
    answer: &str,
) -> (String, Result<HttpResponse, HttpError>) {
    let (mut listener, address) = place.listen(world).await;
    let peer = async {
        let (mut stream, received) = accept(listener.as_mut()).await;
        stream.write_all(answer.as_bytes()).await.expect("the peer can answer");
        stream.shutdown().await.expect("the peer can close");
        received
    };
    let send = world.http.send(request(&format!("http://{address}")));
    let both = async { tokio::join!(peer, send) };
    must("an exchange ends", both).await
}

/// Accepts one connection and reads one whole request: its head, and the body the head declares.
async fn accept(listener: &mut dyn Listener) -> (Box<dyn Stream>, String) {
    let mut stream = listener.accept().await.expect("the client connects");
    let received = request(stream.as_mut()).await;
    (stream, received)
}

async fn request(stream: &mut dyn Stream) -> String {
    let mut received = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&received).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let declared = header(head, "content-length")
                .map_or(0, |length| length.parse().expect("a declared length is a number"));
            if body.len() == declared {
                return text;
            }
        }
        let count = stream.read_buf(&mut received).await.expect("the client sends its request");
        assert_ne!(count, 0, "the client sends all of its request: {text}");
    }
}

fn header<'a>(head: &'a str, wanted: &str) -> Option<&'a str> {
    head.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case(wanted))
        .map(|(_, value)| value.trim())
}

/// Reads a body to its end, or to where it breaks.
async fn drain(mut body: HttpBody) -> (Vec<u8>, Option<HttpFault>) {
    let mut content = Vec::new();
    while let Some(piece) = must("a body goes on", body.next()).await {
        match piece {
            Ok(bytes) => content.extend_from_slice(&bytes),
            Err(error) => return (content, Some(error.fault)),
        }
    }
    (content, None)
}

async fn the_request_arrives_as_it_was_made(world: &World, place: Place) {
    let make = |base: &str| {
        Request::builder()
            .method(Method::POST)
            .uri(format!("{base}/v1/chat?beta=1"))
            .header("x-nexus-agent", "boss")
            .header("content-type", "application/json")
            .body(Bytes::from_static(b"{\"stream\":true}"))
            .expect("the suite's request is well formed")
    };
    let answer = "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n";
    let (received, response) = exchange(world, place, make, answer).await;
    let (head, body) = received.split_once("\r\n\r\n").expect("a request has a head");
    assert!(head.starts_with("POST /v1/chat?beta=1 HTTP/1.1\r\n"), "method and target: {head}");
    assert_eq!(header(head, "x-nexus-agent"), Some("boss"), "a header arrives");
    assert_eq!(header(head, "content-type"), Some("application/json"), "and another");
    assert!(header(head, "host").is_some(), "the host is named");
    assert_eq!(header(head, "accept-encoding"), None, "no compression is asked for");
    assert_eq!(body, "{\"stream\":true}", "the body arrives whole");
    let response = response.expect("an answer without a body is an answer");
    assert_eq!(response.status, StatusCode::NO_CONTENT, "its status is told");
    assert_eq!(drain(response.body).await, (vec![], None), "its body is empty");
}

async fn the_answer_arrives_as_it_was_sent(world: &World, place: Place) {
    // The body is no gzip at all: it must not be touched, whatever the header says.
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Two: a\r\nx-two: b\r\n\
                  content-encoding: gzip\r\nconnection: close\r\n\r\nhello";
    let (_, response) = exchange(world, place, get, answer).await;
    let response = response.expect("a plain answer is an answer");
    assert_eq!(response.status, StatusCode::OK, "the status is told");
    let two: Vec<_> = response.headers.get_all("x-two").iter().collect();
    assert_eq!(two, ["a", "b"], "a repeated header keeps all values in order");
    assert_eq!(response.headers["content-encoding"], "gzip", "no header is taken away");
    assert_eq!(drain(response.body).await, (b"hello".to_vec(), None), "the body is untouched");
}

async fn an_error_status_is_an_answer(world: &World, place: Place) {
    let answer = "HTTP/1.1 429 Too Many Requests\r\nretry-after: 2\r\ncontent-length: 4\r\n\
                  connection: close\r\n\r\nslow";
    let (_, response) = exchange(world, place, get, answer).await;
    let response = response.expect("an error status is no broken exchange");
    assert_eq!(response.status, StatusCode::TOO_MANY_REQUESTS, "the status is told");
    assert_eq!(response.headers["retry-after"], "2", "so are its headers");
    assert_eq!(drain(response.body).await, (b"slow".to_vec(), None), "so is its body");
}

async fn redirects_are_not_followed(world: &World, place: Place) {
    let (mut listener, address) = place.listen(world).await;
    let uri = format!("http://{address}/first");
    let peer = async {
        let (mut stream, _) = accept(listener.as_mut()).await;
        let answer = format!(
            "HTTP/1.1 302 Found\r\nlocation: http://{address}/second\r\ncontent-length: 0\r\n\
             connection: close\r\n\r\n"
        );
        stream.write_all(answer.as_bytes()).await.expect("the peer can answer");
    };
    let both = async { tokio::join!(peer, world.http.send(get(&uri))) };
    let ((), response) = must("a redirect is answered", both).await;
    let response = response.expect("a redirect is an answer");
    assert_eq!(response.status, StatusCode::FOUND, "a redirect is the caller's to follow");
    assert!(listener.accept().now_or_never().is_none(), "nobody asked for the second address");
}

async fn bodies_end_where_they_say(world: &World, place: Place) {
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n\
                   5\r\nhello\r\n7\r\n, world\r\n0\r\n\r\n";
    let (_, response) = exchange(world, place, get, chunked).await;
    let body = response.expect("a chunked answer is an answer").body;
    assert_eq!(drain(body).await, (b"hello, world".to_vec(), None), "chunks are joined");

    let until_closed = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nto the end";
    let (_, response) = exchange(world, place, get, until_closed).await;
    let body = response.expect("an answer without a length is an answer").body;
    assert_eq!(drain(body).await, (b"to the end".to_vec(), None), "closing ends such a body");
}

async fn a_body_arrives_while_it_is_sent(world: &World, place: Place) {
    let (mut listener, address) = place.listen(world).await;
    let uri = format!("http://{address}/");
    let (head_seen, head_was_seen) = oneshot::channel();
    let (first_seen, first_was_seen) = oneshot::channel();
    let peer = async {
        let (mut stream, _) = accept(listener.as_mut()).await;
        let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n";
        stream.write_all(head.as_bytes()).await.expect("the peer sends a head");
        head_was_seen.await.expect("the client is there");
        stream.write_all(b"5\r\nfirst\r\n").await.expect("the peer sends a chunk");
        first_was_seen.await.expect("the client is still there");
        stream.write_all(b"4\r\nlast\r\n0\r\n\r\n").await.expect("the peer sends the end");
    };
    let client = async {
        let response = world.http.send(get(&uri)).await.expect("a head alone is an answer");
        head_seen.send(()).expect("the peer waits for this");
        let mut body = response.body;
        let first = body.next().await.expect("a body goes on").expect("a chunk arrives");
        assert_eq!(first, "first", "a chunk arrives before the next is sent");
        first_seen.send(()).expect("the peer waits for this too");
        assert_eq!(drain(body).await, (b"last".to_vec(), None), "the rest arrives");
    };
    must("a streamed answer passes", async { tokio::join!(peer, client) }).await;
}

async fn a_cut_body_is_broken(world: &World, place: Place) {
    for head in ["content-length: 100\r\n\r\n", "transfer-encoding: chunked\r\n\r\n7\r\n"] {
        let answer = format!("HTTP/1.1 200 OK\r\nconnection: close\r\n{head}partial");
        let (_, response) = exchange(world, place, get, &answer).await;
        let (content, fault) = drain(response.expect("the head arrived").body).await;
        assert_eq!(content, b"partial", "what came before the cut is delivered: {head}");
        assert_eq!(fault, Some(HttpFault::Broken), "a body that is too short is broken: {head}");
    }
}

async fn a_connection_without_an_answer_is_reset(world: &World, place: Place) {
    for answer in ["", "HTTP/1.1 200 OK\r\nconte", "no HTTP at all\r\n\r\n"] {
        let (_, response) = exchange(world, place, get, answer).await;
        let error = response.expect_err("half a head is no answer");
        assert_eq!(error.fault, HttpFault::Reset, "`{answer}` is no answer: {error:?}");
    }
}

async fn nobody_there_cannot_be_connected(world: &World, place: Place) {
    let (listener, address) = place.listen(world).await;
    drop(listener);
    let uri = format!("http://{address}/");
    let answer = must("a request to nobody ends", world.http.send(get(&uri))).await;
    let error = answer.expect_err("nobody answers where nobody listens");
    assert_eq!(error.fault, HttpFault::Connect, "nobody there is no connection: {error:?}");
}

async fn what_is_no_http_uri_is_refused(world: &World) {
    for uri in ["/only/a/path", "ftp://127.0.0.1/file"] {
        let answer = must("a wrong request ends", world.http.send(get(uri))).await;
        let error = answer.expect_err("only http and https can be sent to");
        assert_eq!(error.fault, HttpFault::Request, "`{uri}` cannot be sent: {error:?}");
    }
}

async fn what_may_not_be_reached_is_never_asked(world: &World) {
    let never = [
        "http://169.254.169.254/latest/meta-data",
        "http://[fd00:ec2::254]/",
        "http://[::ffff:169.254.169.254]/",
        "http://100.100.100.200:8080/",
        "http://0.0.0.0:1/",
    ];
    let private = ["http://10.0.0.1/", "http://192.168.1.1:8000/v1", "http://[fe80::1]/"];
    let terms = HttpTerms { reach: Reach::Private, ..HttpTerms::default() };
    let leave = Arc::clone(&world.http).with(&terms);
    let asked = never.iter().flat_map(|uri| [(&world.http, uri), (&leave, uri)]);
    for (http, uri) in asked.chain(private.iter().map(|uri| (&world.http, uri))) {
        let answer = must("a request to nowhere ends", http.send(get(uri))).await;
        let error = answer.expect_err("nobody is asked there");
        assert_eq!(error.fault, HttpFault::Forbidden, "`{uri}` is out of reach: {error:?}");
    }
}

async fn loopback_may_be_reached_on_all_terms(world: &World, place: Place) {
    for reach in [Reach::Public, Reach::Private] {
        let terms = HttpTerms { reach, ..HttpTerms::default() };
        let http = Arc::clone(&world.http).with(&terms);
        let (mut listener, address) = place.listen(world).await;
        let (_stream, answer) =
            first(http.as_ref(), listener.as_mut(), &format!("http://{address}/")).await;
        assert_eq!(answer, b"first", "this machine answers: {reach:?}");
    }
}

/// The first exchange with a peer, which leaves its connection open.
async fn first(
    http: &dyn Http,
    listener: &mut dyn Listener,
    uri: &str,
) -> (Box<dyn Stream>, Vec<u8>) {
    let peer = async {
        let (mut stream, _) = accept(listener).await;
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nfirst";
        stream.write_all(answer).await.expect("the peer can answer");
        stream
    };
    let client = async {
        let response = http.send(get(uri)).await.expect("the peer answers");
        let (content, fault) = drain(response.body).await;
        assert_eq!(fault, None, "the body is whole");
        content
    };
    let both = must("a first exchange passes", async { tokio::join!(peer, client) }).await;
    // A client may take its connection back in a task of its own, which has nothing to wait for.
    for _ in 0..16 {
        tokio::task::yield_now().await;
    }
    both
}

async fn a_kept_connection_that_breaks_is_stale(world: &World, place: Place) {
    let cases = [("", HttpFault::Stale), ("no HTTP at all\r\n\r\n", HttpFault::Reset)];
    for (answer, fault) in cases {
        let (mut listener, address) = place.listen(world).await;
        let uri = format!("http://{address}/");
        let (mut stream, _) = first(world.http.as_ref(), listener.as_mut(), &uri).await;
        let peer = async move {
            request(stream.as_mut()).await;
            stream.write_all(answer.as_bytes()).await.expect("the peer can answer");
            stream.shutdown().await.expect("the peer can close");
        };
        let both = async { tokio::join!(peer, world.http.send(get(&uri))) };
        let ((), response) = must("the second request takes the same connection", both).await;
        let error = response.expect_err("it was not answered");
        assert_eq!(error.fault, fault, "after `{answer}` on a kept connection: {error:?}");
    }
}

async fn a_fresh_connection_is_made_on_demand(world: &World, place: Place) {
    let (mut listener, address) = place.listen(world).await;
    let uri = format!("http://{address}/");
    let (kept, _) = first(world.http.as_ref(), listener.as_mut(), &uri).await;
    let peer = async {
        let (mut stream, _) = accept(listener.as_mut()).await;
        stream.shutdown().await.expect("the peer can close");
    };
    let mut again = get(&uri);
    again.extensions_mut().insert(Connection::Fresh);
    let both = async { tokio::join!(peer, world.http.send(again)) };
    let ((), response) = must("another connection is made", both).await;
    let error = response.expect_err("it was not answered");
    assert_eq!(error.fault, HttpFault::Reset, "a fresh connection is never stale: {error:?}");
    drop(kept);
}
