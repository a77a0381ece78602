//! What sockets keep: bytes in order, both ways, with an end; and errors by their kinds.
//! Connecting and accepting always go on together: a simulated connection is made by both sides.

use std::io::ErrorKind;
use std::net::SocketAddr;

use futures_util::FutureExt;
use nexus3::world::{Stream, World};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{Place, must};

const PORTS_TRIED: usize = 3;

pub async fn net(world: &World, place: Place) {
    assert!(world.net.handles_max() > 0, "a process may have some handles");
    the_machine_chooses_ports_apart(world, place).await;
    a_taken_port_is_in_use(world, place).await;
    nobody_there_is_refused(world, place).await;
    bytes_come_back_and_the_end_is_seen(world, place).await;
    half_a_connection_can_be_closed(world, place).await;
    a_dropped_accept_loses_nobody(world, place).await;
    more_than_any_buffer_passes_both_ways(world, place).await;
    a_writer_waits_for_a_reader_that_does_not_read(world, place).await;
    a_waiting_writer_learns_that_its_reader_is_gone(world, place).await;
}

/// Two ends of one connection: who connected, and who accepted.
async fn pair(world: &World, place: Place) -> (Box<dyn Stream>, Box<dyn Stream>) {
    let (mut listener, address) = place.listen(world).await;
    let both = async { tokio::join!(world.net.connect(address), listener.accept()) };
    let (near, far) = must("a connection is made", both).await;
    (near.expect("a listener is reached"), far.expect("a connection is accepted"))
}

async fn the_machine_chooses_ports_apart(world: &World, place: Place) {
    let (first, first_address) = place.listen(world).await;
    let (_second, second_address) = place.listen(world).await;
    assert_ne!(first_address.port(), 0, "the chosen port is told");
    assert_ne!(first_address.port(), second_address.port(), "two listeners have two ports");
    let bound = first.local_addr().expect("a listener has an address");
    assert_eq!(bound.ip(), place.bind, "the address is the one asked for");
}

async fn a_taken_port_is_in_use(world: &World, place: Place) {
    let (listener, _) = place.listen(world).await;
    let taken = listener.local_addr().expect("a listener has an address");
    let error = world.net.bind(taken).await.err().expect("a port is bound once");
    assert_eq!(error.kind(), ErrorKind::AddrInUse, "a taken port is in use: {error}");
    drop(listener);
    let again = world.net.bind(taken).await;
    assert!(again.is_ok(), "a port is free once its listener is dropped: {:?}", again.err());
}

async fn nobody_there_is_refused(world: &World, place: Place) {
    for _ in 0..PORTS_TRIED {
        let (listener, address) = place.listen(world).await;
        drop(listener);
        let answer = must("a connection to nobody ends", world.net.connect(address)).await;
        // On a real machine somebody else may have got the port meanwhile.
        let Err(error) = answer else { continue };
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "nobody there refuses: {error}");
        return;
    }
    panic!("nobody accepts where nobody listens");
}

async fn bytes_come_back_and_the_end_is_seen(world: &World, place: Place) {
    let (mut near, mut far) = pair(world, place).await;
    for word in ["hello", "again"] {
        near.write_all(word.as_bytes()).await.expect("a connection takes bytes");
        near.flush().await.expect("a connection is flushed");
        let mut bytes = [0; 5];
        must("bytes arrive", far.read_exact(&mut bytes)).await.expect("bytes are read");
        far.write_all(&bytes).await.expect("the other side takes bytes too");
        must("an echo arrives", near.read_exact(&mut bytes)).await.expect("the echo is read");
        assert_eq!(bytes, word.as_bytes(), "the echo is what was sent");
    }
    drop(near);
    let count = must("the end arrives", far.read(&mut [0; 8])).await;
    assert_eq!(count.expect("a closed connection is no error"), 0, "a drop is the end of bytes");
}

async fn half_a_connection_can_be_closed(world: &World, place: Place) {
    let (mut near, mut far) = pair(world, place).await;
    near.write_all(b"question").await.expect("a connection takes bytes");
    near.shutdown().await.expect("one direction can be closed");
    let mut question = Vec::new();
    must("the end of one direction arrives", far.read_to_end(&mut question))
        .await
        .expect("the other direction is no error");
    assert_eq!(question, b"question", "all bytes before the end arrive");

    far.write_all(b"answer").await.expect("the other direction is still open");
    drop(far);
    let mut answer = Vec::new();
    must("the answer arrives", near.read_to_end(&mut answer)).await.expect("the answer is read");
    assert_eq!(answer, b"answer", "the other direction works after the first has ended");
}

async fn a_dropped_accept_loses_nobody(world: &World, place: Place) {
    let (mut listener, address): (_, SocketAddr) = place.listen(world).await;
    assert!(listener.accept().now_or_never().is_none(), "nobody has come yet");
    let both = async { tokio::join!(world.net.connect(address), listener.accept()) };
    let (near, far) = must("a later accept sees the connection", both).await;
    assert!(near.is_ok() && far.is_ok(), "a dropped accept takes no connection with it");
}

async fn more_than_any_buffer_passes_both_ways(world: &World, place: Place) {
    const BYTES: usize = 4 * 1024 * 1024;
    let (near, far) = pair(world, place).await;
    let original: Vec<u8> = (0..=250).cycle().take(BYTES).collect();
    let (mut near_read, mut near_write) = tokio::io::split(near);
    let (mut far_read, mut far_write) = tokio::io::split(far);
    let send = async {
        near_write.write_all(&original).await.expect("a long text is taken");
        near_write.shutdown().await.expect("the text has an end");
    };
    let echo = async {
        tokio::io::copy(&mut far_read, &mut far_write).await.expect("a long text is echoed");
        far_write.shutdown().await.expect("the echo has an end");
    };
    let receive = async {
        let mut received = Vec::new();
        near_read.read_to_end(&mut received).await.expect("a long text is read");
        received
    };
    let all = async { tokio::join!(send, echo, receive) };
    let ((), (), received) = must("a long text passes", all).await;
    assert!(received == original, "a long text arrives in order, {} of {BYTES}", received.len());
}

/// More than any system keeps for a reader.
const TOO_MUCH: usize = 64 * 1024 * 1024;

/// Writes until nothing more is taken; returns how much was.
async fn fill(stream: &mut Box<dyn Stream>) -> usize {
    let piece = vec![7; 16 * 1024];
    // A system may have to look at a new connection before it takes the first byte.
    let first = must("the first bytes are taken", stream.write(&piece)).await;
    let mut taken = first.expect("a connection takes bytes");
    while let Some(count) = stream.write(&piece).now_or_never() {
        taken += count.expect("a connection takes bytes");
        assert!(taken < TOO_MUCH, "a writer waits for a reader that does not read");
    }
    taken
}

async fn a_writer_waits_for_a_reader_that_does_not_read(world: &World, place: Place) {
    let (mut near, mut far) = pair(world, place).await;
    let taken = fill(&mut near).await;
    let rest = vec![8; 1024 * 1024];
    let write = async {
        near.write_all(&rest).await.expect("a reader that reads again makes room");
        near.shutdown().await.expect("the bytes have an end");
    };
    let mut received = Vec::new();
    let read = async { far.read_to_end(&mut received).await.expect("all of it is read") };
    let both = async { tokio::join!(write, read) };
    must("a writer goes on when it is read from", both).await;
    assert_eq!(received.len(), taken + rest.len(), "what was taken before the wait is not lost");
    assert!(received[..taken].iter().all(|byte| *byte == 7), "nothing overtakes it");
}

async fn a_waiting_writer_learns_that_its_reader_is_gone(world: &World, place: Place) {
    let (mut near, far) = pair(world, place).await;
    fill(&mut near).await;
    drop(far);
    let rest = vec![8; TOO_MUCH];
    let written = must("a writer does not wait for nobody", near.write_all(&rest)).await;
    assert!(written.is_err(), "what nobody can read is not written");
}
