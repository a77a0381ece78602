//! The last lines that the program of a server wrote to its error output. Never longer than its
//! bounds, whatever is written.

use std::collections::VecDeque;
use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::limits::{MCP_STDERR_LINE_CHARS_MAX, MCP_STDERR_LINES_KEPT};

const READ_BYTES: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Tail(ArcSwap<VecDeque<String>>);

impl Tail {
    pub(super) fn lines(&self) -> Vec<String> {
        self.0.load().iter().cloned().collect()
    }

    fn add(&self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        let text: String = text.trim_end().chars().take(MCP_STDERR_LINE_CHARS_MAX).collect();
        let mut lines = VecDeque::clone(&self.0.load());
        if lines.len() >= MCP_STDERR_LINES_KEPT {
            lines.pop_front();
        }
        lines.push_back(text);
        // Only the task of the connection writes.
        self.0.store(Arc::new(lines));
    }

    /// Reads to the end, which may never come.
    pub(super) async fn read(&self, mut pipe: impl AsyncRead + Unpin) {
        let mut bytes = [0; READ_BYTES];
        let mut line = Vec::new();
        loop {
            let count = match pipe.read(&mut bytes).await {
                Ok(0) | Err(_) => break,
                Ok(count) => count,
            };
            for byte in &bytes[..count] {
                match byte {
                    b'\n' => {
                        self.add(&line);
                        line.clear();
                    }
                    // Each character has at most four bytes.
                    _ if line.len() < 4 * MCP_STDERR_LINE_CHARS_MAX => line.push(*byte),
                    _ => {}
                }
            }
        }
        if !line.is_empty() {
            self.add(&line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_last_lines_are_kept_and_none_is_long() {
        let lines: Vec<String> = (1..=30).map(|n| format!("line {n}")).collect();
        let text = lines.join("\n") + "\n";
        let tail = Tail::default();
        tail.read(text.as_bytes()).await;
        let kept = tail.lines();
        assert_eq!((kept.len(), kept[0].as_str(), kept[19].as_str()), (20, "line 11", "line 30"));
        tail.read("x".repeat(10_000).as_bytes()).await;
        assert_eq!(tail.lines()[19].len(), MCP_STDERR_LINE_CHARS_MAX);
    }
}
