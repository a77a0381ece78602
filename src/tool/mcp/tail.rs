//! The last lines that the program of a server wrote to its error output. Never longer than its
//! bounds, whatever is written.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until};

use crate::limits::{
    MCP_STDERR_LINE_BYTES_MAX, MCP_STDERR_LINE_CHARS_MAX, MCP_STDERR_LINES_KEPT,
    MCP_STDERR_PER_SECOND_MAX,
};

const READ_BYTES: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Tail(ArcSwap<VecDeque<String>>);

impl Tail {
    pub(super) fn lines(&self) -> Vec<String> {
        self.0.load().iter().cloned().collect()
    }

    /// Reads to the end, which may never come, and keeps what `hide` leaves of it. A program that floods
    /// takes neither the turn of what is done beside this nor more than its share of time.
    pub(super) async fn read(
        &self,
        mut pipe: impl AsyncRead + Unpin,
        hide: impl Fn(&str) -> String,
    ) {
        let mut bytes = [0; READ_BYTES];
        // Only the task of the connection writes.
        let mut lines = VecDeque::clone(&self.0.load());
        let mut line = Vec::new();
        let (mut since, mut count) = (Instant::now(), 0);
        while let Ok(read @ 1..) = pipe.read(&mut bytes).await {
            let mut pieces = bytes[..read].split(|byte| *byte == b'\n');
            extend(&mut line, pieces.next().unwrap_or_default());
            let has_lines = bytes[..read].contains(&b'\n');
            for piece in pieces {
                add(&mut lines, &line, &hide);
                line.clear();
                extend(&mut line, piece);
            }
            if has_lines {
                self.0.store(Arc::new(lines.clone()));
            }
            count += read;
            if since.elapsed() >= SECOND {
                (since, count) = (Instant::now(), read);
            }
            if count > MCP_STDERR_PER_SECOND_MAX {
                sleep_until(since + SECOND).await;
            } else {
                // What is always ready would leave nothing to others of its task.
                yield_now().await;
            }
        }
        if !line.is_empty() {
            add(&mut lines, &line, &hide);
            self.0.store(Arc::new(lines));
        }
    }
}

const SECOND: Duration = Duration::from_secs(1);

fn extend(line: &mut Vec<u8>, piece: &[u8]) {
    let room = MCP_STDERR_LINE_BYTES_MAX - line.len();
    line.extend_from_slice(&piece[..piece.len().min(room)]);
}

fn add(lines: &mut VecDeque<String>, line: &[u8], hide: impl Fn(&str) -> String) {
    let text = hide(String::from_utf8_lossy(line).trim_end());
    if lines.len() >= MCP_STDERR_LINES_KEPT {
        lines.pop_front();
    }
    lines.push_back(text.chars().take(MCP_STDERR_LINE_CHARS_MAX).collect());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_last_lines_are_kept_and_none_is_long() {
        let lines: Vec<String> = (1..=30).map(|n| format!("line {n}")).collect();
        let text = lines.join("\n") + "\n";
        let tail = Tail::default();
        tail.read(text.as_bytes(), str::to_owned).await;
        let kept = tail.lines();
        assert_eq!((kept.len(), kept[0].as_str(), kept[19].as_str()), (20, "line 11", "line 30"));
        tail.read("x".repeat(10_000).as_bytes(), str::to_owned).await;
        assert_eq!(tail.lines()[19].len(), MCP_STDERR_LINE_CHARS_MAX);
    }

    #[tokio::test]
    async fn what_is_hidden_is_hidden_before_a_line_is_cut() {
        let text = format!("{}a-secret\n", "x".repeat(MCP_STDERR_LINE_CHARS_MAX - 3));
        let tail = Tail::default();
        tail.read(text.as_bytes(), |line| line.replace("a-secret", "[redacted]")).await;
        assert!(tail.lines()[0].ends_with("x[re"), "{:?}", tail.lines());
    }

    #[tokio::test(start_paused = true)]
    async fn a_program_that_writes_without_end_takes_neither_the_turn_of_others_nor_all_time() {
        let tail = Tail::default();
        let other = tokio::spawn(std::future::ready(()));
        tokio::select! {
            biased;
            () = tail.read(tokio::io::repeat(b'\n'), str::to_owned) => panic!("it never ends"),
            done = other => done.unwrap(),
        }
        let began = Instant::now();
        let seconds = 5;
        let bytes = (seconds + 1) * u64::try_from(MCP_STDERR_PER_SECOND_MAX).unwrap();
        tail.read(tokio::io::repeat(b'\n').take(bytes), str::to_owned).await;
        assert!(began.elapsed() >= Duration::from_secs(seconds), "{:?}", began.elapsed());
    }
}
