//! The hub's promises, one by one, and then all of them under any interleaving.

#[path = "stage_tests.rs"]
mod stage;

#[path = "splice_tests.rs"]
mod splice;

#[path = "moving_tests.rs"]
mod moving;

use std::future::poll_fn;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::time::{Instant, sleep};

use stage::{MemoryJournal, Stage, agent, parse, stream_of};

use super::*;
use crate::limits::STREAM_WRITE_BYTES_MAX;
use crate::sse::{PING, SseParser};

const KIB: usize = 1024;

#[tokio::test]
async fn a_stream_without_a_cursor_hears_what_happens_from_now_on() {
    let mut stage = Stage::new();
    stage.start("a", "before");
    stage.end("a");
    stage.publish();
    let mut own = stage.client(stream_of("a"), Start::Now);
    let mut all = stage.client(Scope::Everything, Start::Now);
    stage.start("a", "hi");
    stage.chunk("a", "x");
    stage.think("a");
    stage.start("b", "hi");
    stage.end("a");
    stage.publish();
    let of_a = ["turn_started", "content_chunk", "thinking_started", "turn_completed"];
    assert_eq!(own.read_all(), of_a);
    let of_all = [of_a[0], of_a[1], of_a[2], "turn_started", of_a[3]];
    assert_eq!(all.read_all(), of_all);
}

#[tokio::test]
async fn frames_are_shared_and_written_as_the_format_says() {
    let mut stage = Stage::new();
    let mut first = stage.subscribe(stream_of("a"), Start::Now).unwrap();
    let mut second = stage.subscribe(Scope::Everything, Start::Now).unwrap();
    let seq = stage.destroy("a");
    stage.publish();
    let (one, other) = (first.next().await.unwrap(), second.next().await.unwrap());
    assert_eq!(
        String::from_utf8_lossy(&one),
        format!(
            "id: {seq}\nevent: agent_destroyed\ndata: {{\"type\":\"agent_destroyed\",\
             \"parent_agent_id\":null,\"agent_id\":\"a\",\"at\":\"2026-01-01T00:00:00.000Z\",\
             \"seq\":{seq}}}\n\n"
        )
    );
    assert_eq!(one.as_ptr(), other.as_ptr());
}

#[tokio::test]
async fn a_stream_that_opens_in_a_turn_gets_its_text_first() {
    let mut stage = Stage::new();
    for name in ["a", "b"] {
        stage.start(name, "hi");
        stage.chunk(name, "äö");
    }
    for start in [Start::Now, Start::After(stage.journal.last_seq())] {
        let mut own = stage.client(stream_of("a"), start);
        let mut all = stage.client(Scope::Everything, start);
        // A replaying stream opens only once the journal has nothing more for it.
        assert_eq!(own.read_all(), ["turn_snapshot"]);
        assert_eq!(all.read_all(), ["turn_snapshot", "turn_snapshot"]);
        assert_eq!(all.texts, stage.turns);
        stage.chunk("a", "ü");
        assert_eq!(own.read_all(), ["content_chunk"]);
        assert_eq!(own.texts[&agent("a")].1, stage.turns[&agent("a")].1);
    }
}

#[tokio::test]
async fn a_cursor_replays_what_is_kept_and_then_goes_live() {
    let mut stage = Stage::new();
    for _ in 0..5 {
        stage.start("a", "hi");
        stage.start("b", "hi");
        stage.end("a");
        stage.end("b");
    }
    stage.publish();
    let mut client = stage.client(stream_of("a"), Start::After(4));
    stage.start("a", "hi");
    assert_eq!(client.read_all().len(), 10);
    stage.publish();
    stage.chunk("a", "x");
    stage.end("a");
    stage.publish();
    client.read_all();
    assert_eq!(client.seen, stage.kept(&stream_of("a"), 4));
}

#[tokio::test]
async fn events_that_are_no_longer_kept_are_told_as_a_gap() {
    let mut stage = Stage::new();
    for _ in 0..3 {
        stage.start("a", "hi");
        stage.end("a");
    }
    stage.publish();
    stage.forget_until(6);
    let mut stream = stage.subscribe(stream_of("a"), Start::After(2)).unwrap();
    let gap = parse(&stream.next().await.unwrap());
    assert_eq!((gap.what, gap.agent_id), (What::StreamGap { from: 4, to: 6 }, Some(agent("a"))));
    assert_eq!(parse(&stream.next().await.unwrap()).seq, Some(8));
    let mut all = stage.subscribe(Scope::Everything, Start::After(0)).unwrap();
    let gap = parse(&all.next().await.unwrap());
    assert_eq!((gap.what, gap.agent_id), (What::StreamGap { from: 2, to: 6 }, None));
}

#[tokio::test]
async fn a_reader_that_misses_chunks_gets_one_snapshot_after_what_was_before_them() {
    let mut stage = Stage::new();
    let mut client = stage.client(Scope::Everything, Start::Now);
    stage.start("a", "hi");
    for _ in 0..5 {
        stage.chunk("a", &"x".repeat(50 * KIB));
    }
    stage.tool("a", "");
    stage.chunk("a", &"y".repeat(50 * KIB));
    stage.think("a");
    stage.start("b", "hi");
    stage.tool("a", "");
    stage.chunk("b", "b");
    let of_a = ["turn_started", "tool_completed", "turn_started", "tool_completed"];
    let expected = [&of_a[..], &["turn_snapshot", "content_chunk"]].concat();
    assert_eq!(client.read_all(), expected);
    assert_eq!(client.texts, stage.turns);
}

#[tokio::test]
async fn a_turn_that_ended_meanwhile_needs_no_snapshot() {
    let mut stage = Stage::new();
    let mut client = stage.client(stream_of("a"), Start::Now);
    stage.start("a", "hi");
    for _ in 0..10 {
        stage.chunk("a", &"x".repeat(19 * KIB));
    }
    stage.cancel_waiting("a");
    for _ in 0..10 {
        stage.chunk("a", &"x".repeat(KIB * 9));
    }
    // Its text is too long for the buffer of a reader that has not read: the journal has it.
    stage.end("a");
    stage.start("a", "next");
    stage.chunk("a", "y");
    let names = client.read_all();
    let durable = ["turn_started", "turn_cancelled", "turn_completed", "turn_started"];
    assert_eq!(names, [&durable[..], &["turn_snapshot"]].concat());
    assert_eq!(client.texts, stage.turns);
}

#[tokio::test]
async fn durable_events_of_a_stuck_reader_wait_in_the_journal() {
    let mut stage = Stage::new();
    let mut client = stage.client(stream_of("a"), Start::Now);
    stage.start("a", "hi");
    for n in 0..20 {
        stage.tool("a", &"o".repeat(n * 10 * KIB));
        stage.chunk("a", "x");
        assert!(stage.buffered().iter().all(|bytes| *bytes <= STREAM_BUFFER_BYTES_MAX));
    }
    // Longer than any buffer.
    stage.tool("a", &"o".repeat(300 * KIB));
    stage.publish();
    assert_eq!(stage.buffered(), [0]);
    client.read_all();
    assert_eq!(client.seen, stage.kept(&stream_of("a"), 0));
    assert_eq!(client.texts, stage.turns);
    stage.chunk("a", "y");
    assert_eq!(client.read_all(), ["content_chunk"]);
}

#[tokio::test]
async fn a_turn_that_the_journal_ended_first_is_not_told_as_running() {
    let mut stage = Stage::new();
    stage.start("a", "hi");
    stage.chunk("a", "x");
    stage.end("a");
    // Committed, and not published yet.
    let mut client = stage.client(stream_of("a"), Start::After(0));
    assert_eq!(client.read_all(), ["turn_started", "turn_completed"]);
    stage.publish();
    assert_eq!(client.read_all(), [""; 0]);
    stage.start("a", "hi");
    stage.publish();
    assert_eq!(client.read_all(), ["turn_started"]);
}

#[tokio::test]
async fn an_event_that_the_journal_told_first_comes_once() {
    let mut stage = Stage::new();
    stage.start("a", "hi");
    let mut replaying = stage.client(stream_of("a"), Start::After(0));
    let mut live = stage.client(stream_of("a"), Start::Now);
    assert_eq!(replaying.read_all(), ["turn_started"]);
    stage.publish();
    stage.tool("a", "");
    stage.publish();
    assert_eq!(replaying.read_all(), ["tool_completed"]);
    // It was published after this one was opened.
    assert_eq!(live.read_all(), ["turn_started", "tool_completed"]);
}

#[tokio::test]
async fn what_comes_after_the_end_of_its_turn_reaches_nobody() {
    let mut stage = Stage::new();
    stage.start("a", "hi");
    stage.publish();
    let (request, _) = stage.turns[&agent("a")].clone();
    stage.end("a");
    stage.publish();
    let mut client = stage.client(stream_of("a"), Start::Now);
    for what in
        [What::ContentChunk { text: "late".to_owned(), offset: 0 }, What::ThinkingStarted {}]
    {
        stage.hub.live(&agent("a"), &request, stage.hub.clock.now(), &what);
    }
    assert_eq!(client.read_all(), [""; 0]);
    assert!(stage.hub.state().running.is_empty());
}

#[tokio::test]
#[should_panic(expected = "a chunk follows the text before it")]
async fn a_chunk_out_of_place_is_a_defect_of_its_agent() {
    let mut stage = Stage::new();
    stage.start("a", "hi");
    stage.publish();
    let (request, _) = stage.turns[&agent("a")].clone();
    let what = What::ContentChunk { text: "x".to_owned(), offset: 1 };
    stage.hub.live(&agent("a"), &request, stage.hub.clock.now(), &what);
}

#[tokio::test]
async fn the_end_of_an_agent_is_the_end_of_its_streams() {
    let mut stage = Stage::new();
    let mut own = stage.client(stream_of("a"), Start::Now);
    let mut all = stage.client(Scope::Everything, Start::Now);
    let mut waiting = stage.client(stream_of("a"), Start::After(0));
    assert_eq!(waiting.read_all(), [""; 0]);
    stage.start("a", "hi");
    stage.chunk("a", "x");
    stage.end("a");
    stage.destroy("a");
    // Read from the journal before it is published.
    let mut early = stage.client(stream_of("a"), Start::After(0));
    assert_eq!(early.read(), None);
    assert_eq!(early.read().and_then(|event| event.seq), Some(2));
    stage.publish();
    for client in [&mut own, &mut early, &mut waiting] {
        assert_eq!(client.read_all().last(), Some(&"agent_destroyed"));
        assert!(client.is_over);
        assert_eq!(client.seen, stage.kept(&stream_of("a"), 0));
    }
    all.read_all();
    assert!(!all.is_over);
    // One of the same name is another agent, whose streams have what is kept of both.
    stage.start("a", "hi");
    stage.publish();
    let mut anew = stage.client(stream_of("a"), Start::After(0));
    let names = anew.read_all();
    assert_eq!(names[names.len() - 2..], ["turn_started", "turn_snapshot"]);
    assert!(!anew.is_over);
}

#[tokio::test]
async fn the_stream_of_one_that_is_gone_replays_and_ends() {
    let mut stage = Stage::new();
    stage.start("a", "hi");
    stage.end("a");
    let last = stage.destroy("a");
    stage.publish();
    for (cursor, count) in [(0, 3), (2, 2), (last, 0)] {
        let mut client = stage.client(stream_of("a"), Start::KeptOnly(cursor));
        assert_eq!(client.read_all().len(), count);
        assert!(client.is_over);
    }
}

#[tokio::test]
async fn stopping_is_the_last_event_of_every_stream() {
    let mut stage = Stage::new();
    let mut live = stage.client(stream_of("a"), Start::Now);
    let mut all = stage.client(Scope::Everything, Start::Now);
    stage.start("a", "hi");
    stage.end("a");
    stage.publish();
    let mut behind = stage.client(stream_of("a"), Start::After(0));
    stage.hub.stop();
    stage.hub.stop();
    stage.start("a", "too late");
    stage.publish();
    for client in [&mut live, &mut all] {
        assert_eq!(client.read_all(), ["turn_started", "turn_completed", "server_stopping"]);
        assert!(client.is_over);
    }
    assert_eq!(behind.read_all().last(), Some(&"server_stopping"));
    assert!(behind.is_over);
    let refused = stage.subscribe(stream_of("a"), Start::Now).unwrap_err();
    assert_eq!(refused, SubscribeError::Stopping);
}

#[tokio::test]
async fn a_stream_ends_where_the_journal_fails() {
    let mut stage = Stage::with(MemoryJournal { broken: true, ..MemoryJournal::default() });
    stage.start("a", "hi");
    stage.publish();
    let mut client = stage.client(stream_of("a"), Start::After(0));
    assert_eq!(client.read_all(), [""; 0]);
    assert!(client.is_over);
}

#[tokio::test]
async fn places_are_limited_and_given_back() {
    let stage = Stage::new();
    let open = |name: &str| stage.subscribe(stream_of(name), Start::Now);
    let mut streams: Vec<Subscription> =
        (0..STREAMS_PER_AGENT_MAX).map(|_| open("a").unwrap()).collect();
    let too_many = SubscribeError::TooManyOfAgent { agent: agent("a") };
    assert_eq!(open("a").unwrap_err(), too_many);
    assert_eq!(stage.hub.has_room(&stream_of("a")), Err(too_many));
    for number in 0..STREAMS_MAX - STREAMS_PER_AGENT_MAX - 1 {
        streams.push(open(&format!("b{number}")).unwrap());
    }
    streams.push(stage.subscribe(Scope::Everything, Start::Now).unwrap());
    assert_eq!(open("c").unwrap_err(), SubscribeError::TooMany);
    let everything = stage.subscribe(Scope::Everything, Start::Now);
    assert_eq!(everything.unwrap_err(), SubscribeError::TooMany);
    assert_eq!(stage.hub.listeners(&agent("a")), STREAMS_PER_AGENT_MAX + 1);
    assert_eq!(stage.hub.listeners(&agent("c")), 1);
    drop(streams);
    assert_eq!(stage.hub.listeners(&agent("a")), 0);
    assert!(stage.hub.state().readers.is_empty());
    assert!(open("a").is_ok());
}

#[tokio::test(start_paused = true)]
async fn silence_is_broken_by_a_ping_every_15_seconds() {
    let mut stage = Stage::new();
    stage.start("a", "hi");
    stage.publish();
    let mut stream = stage.subscribe(stream_of("b"), Start::Now).unwrap();
    let mut busy = stage.subscribe(stream_of("a"), Start::Now).unwrap();
    let opened = Instant::now();
    for number in 1..=3 {
        assert_eq!(stream.next().await.unwrap(), PING);
        assert_eq!(opened.elapsed(), Duration::from_secs(15 * number));
    }
    for _ in 0..3 {
        // What there is to read is read, and the silence begins anew.
        while busy.next().await.unwrap() != PING {}
        let last = Instant::now();
        sleep(Duration::from_secs(10)).await;
        stage.chunk("a", "x");
        assert_eq!(parse(&busy.next().await.unwrap()).what.name(), "content_chunk");
        assert_eq!(busy.next().await.unwrap(), PING);
        assert_eq!(last.elapsed(), Duration::from_secs(25));
    }
}

#[tokio::test(start_paused = true)]
async fn a_waiting_reader_is_woken_by_everything_that_concerns_it() {
    let mut stage = Stage::new();
    let mut stream = stage.subscribe(stream_of("a"), Start::After(0)).unwrap();
    let opened = Instant::now();
    let reading = tokio::spawn(async move {
        let mut names = Vec::new();
        while let Some(frame) = stream.next().await {
            names.push(parse(&frame).what.name());
        }
        names
    });
    tokio::task::yield_now().await;
    stage.start("a", "hi");
    stage.publish();
    for text in ["x".to_owned(), "y".repeat(300 * KIB)] {
        sleep(Duration::from_secs(1)).await;
        stage.chunk("a", &text);
    }
    sleep(Duration::from_secs(1)).await;
    // Neither of them fits into any buffer.
    stage.tool("a", &"z".repeat(300 * KIB));
    stage.publish();
    sleep(Duration::from_secs(1)).await;
    stage.hub.stop();
    let names = reading.await.unwrap();
    assert_eq!(opened.elapsed(), Duration::from_secs(4), "nobody waited for a ping");
    assert_eq!(
        names,
        [
            "turn_started",
            "content_chunk",
            "turn_snapshot",
            "tool_completed",
            "turn_snapshot",
            "server_stopping"
        ]
    );
}

#[tokio::test]
async fn readers_that_never_read_hold_no_more_than_their_buffers() {
    let mut stage = Stage::new();
    let scopes = [stream_of("a"), Scope::Everything];
    let mut clients: Vec<stage::Client> =
        (0..64).map(|n| stage.client(scopes[n % 2].clone(), Start::Now)).collect();
    stage.start("a", "hi");
    stage.publish();
    let mut most = 0;
    for number in 0..100_000 {
        stage.chunk_unchecked("a", "0123456789", number * 10);
        if number % 1000 == 0 {
            most = most.max(stage.buffered().into_iter().max().unwrap());
            for client in &mut clients[32..62] {
                client.skip_all();
            }
            for client in &mut clients[62..] {
                client.read_all();
            }
        }
    }
    assert!(most <= STREAM_BUFFER_BYTES_MAX);
    assert!(most > STREAM_BUFFER_BYTES_MAX / 2, "the buffers were used: {most}");
    let text = "0123456789".repeat(100_000);
    for number in (0..32).chain(62..64) {
        let client = &mut clients[number];
        client.read_all();
        assert!(client.texts[&agent("a")].1 == text, "the whole text");
    }
}

#[tokio::test]
async fn a_reader_that_is_stuck_is_not_visited_until_it_reads_on() {
    let mut stage = Stage::new();
    let mut stuck = stage.client(stream_of("a"), Start::Now);
    let mut reading = stage.client(stream_of("a"), Start::Now);
    let hearing = |stage: &Stage| stage.hub.state().readers[&stream_of("a")].hearing.len();
    stage.start("a", "hi");
    for _ in 0..6 {
        stage.chunk("a", &"x".repeat(50 * KIB));
        reading.read_all();
    }
    assert_eq!(hearing(&stage), 1);
    assert_eq!(stuck.read_all(), ["turn_started", "turn_snapshot"]);
    assert_eq!(hearing(&stage), 2);
    stage.chunk("a", "y");
    assert_eq!(stuck.read_all(), ["content_chunk"]);
    assert_eq!(stuck.texts, stage.turns);
}

#[tokio::test]
async fn what_waits_is_written_together_up_to_a_bound() {
    let mut stage = Stage::new();
    let mut stream = stage.subscribe(stream_of("a"), Start::Now).unwrap();
    stage.start("a", "hi");
    for _ in 0..1000 {
        stage.chunk("a", "word ");
    }
    let mut records = Vec::new();
    let mut parser = SseParser::new(STREAM_BUFFER_BYTES_MAX);
    let mut pieces = 0;
    while let Some(piece) = poll_fn(|cx| stream.poll_some(cx)).now_or_never() {
        let piece = piece.unwrap();
        assert!(piece.len() <= STREAM_WRITE_BYTES_MAX);
        parser.push(&piece, &mut records).unwrap();
        pieces += 1;
    }
    assert_eq!(records.len(), 1001, "a turn begins and says a thousand words");
    assert!(pieces < 20, "{pieces} pieces");
}

#[tokio::test]
async fn a_stream_of_an_agent_hears_all_and_confirms_nothing() {
    let stage = Stage::new();
    let count = || (stage.hub.listeners(&agent("a")), stage.hub.confirmers(&agent("a")));
    let own = stage.subscribe(stream_of("a"), Start::Now).unwrap().of_an_agent();
    assert_eq!(count(), (1, 0));
    let client = stage.subscribe(Scope::Everything, Start::Now).unwrap();
    assert_eq!(count(), (2, 1));
    drop(own);
    assert_eq!(count(), (1, 1));
    drop(client);
    assert_eq!(count(), (0, 0));
}
