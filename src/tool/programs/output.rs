//! What is kept of what a program says, and what its caller is told of it. Memory stays bounded
//! however much is said: the beginning and the end are kept.

use std::collections::VecDeque;
use std::fmt::Write;
use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};

use super::super::{ToolOutput, WITHDRAWN};
use crate::limits::{
    PROGRAM_OUTPUT_HALF_BYTES, RESULT_BYTES_MAX, RESULT_LINES_MAX, RESULT_NOTES_BYTES_MAX,
};
use crate::world::Exit;

const PIECE_BYTES: usize = 16 * 1024;
/// Lines of both outputs: the rest is for what is written around them.
const LINES: usize = RESULT_LINES_MAX - 10;

/// The beginning and the end of an output.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    /// How much was between them.
    between: u64,
}

/// How a program ended.
#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    Exit(Exit),
    /// It was ended after this time.
    Late(Duration),
    /// It was ended since its agent may no longer do what it did.
    Withdrawn,
}

#[derive(Debug)]
pub(super) struct Told {
    pub(super) output: Kept,
    pub(super) errors: Kept,
    pub(super) end: End,
}

impl Kept {
    /// Reads a pipe to its end.
    pub(super) async fn read(&mut self, mut pipe: impl AsyncRead + Unpin) -> io::Result<()> {
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            match pipe.read(&mut piece).await? {
                0 => return Ok(()),
                count => self.add(&piece[..count]),
            }
        }
    }

    /// Takes in what comes next.
    pub fn add(&mut self, piece: &[u8]) {
        let room = PROGRAM_OUTPUT_HALF_BYTES - self.head.len();
        let (head, tail) = piece.split_at(room.min(piece.len()));
        self.head.extend_from_slice(head);
        self.tail.extend(tail);
        let over = self.tail.len().saturating_sub(PROGRAM_OUTPUT_HALF_BYTES);
        self.tail.drain(..over);
        self.between += over as u64;
    }

    /// The beginning, how many bytes are missing after it, and the end.
    pub fn parts(&self) -> (Vec<u8>, u64, Vec<u8>) {
        (self.head.clone(), self.between, self.tail.iter().copied().collect())
    }

    pub fn is_empty(&self) -> bool {
        self.head.is_empty()
    }

    /// How many bytes are kept.
    pub fn len(&self) -> usize {
        self.head.len() + self.tail.len()
    }

    /// How long the text may become, in which what stands for bytes that are no text is longer than they.
    fn text_len(&self) -> usize {
        let length = |bytes: &[u8]| String::from_utf8_lossy(bytes).len();
        let (one, other) = self.tail.as_slices();
        length(&self.head) + length(one) + length(other)
    }

    fn lines(&self) -> usize {
        // The last one may have no end.
        self.head.iter().chain(&self.tail).filter(|byte| **byte == b'\n').count() + 1
    }

    /// The text in at most so many bytes and lines, with a note where some are missing. Bytes that
    /// are no text are replaced.
    fn text(mut self, bytes_max: usize, lines_max: usize) -> String {
        let (head, tail) = (String::from_utf8_lossy(&self.head), self.tail.make_contiguous());
        if self.between == 0 {
            let all = [&self.head[..], tail].concat();
            let all = String::from_utf8_lossy(&all);
            if all.len() <= bytes_max && all.lines().count() <= lines_max {
                return all.into_owned();
            }
            let (first, last) = halves(&all, &all, bytes_max / 2, lines_max / 2);
            let missing = all.len().saturating_sub(first.len() + last.len());
            return joined(first, missing as u64, last);
        }
        let tail = String::from_utf8_lossy(tail);
        let (first, last) = halves(&head, &tail, bytes_max / 2, lines_max / 2);
        let missing = head.len() + tail.len() - first.len() - last.len();
        joined(first, self.between + missing as u64, last)
    }
}

/// The beginning of one text and the end of another, each within the bounds.
fn halves<'t>(head: &'t str, tail: &'t str, bytes: usize, lines: usize) -> (&'t str, &'t str) {
    let first = &head[..head.floor_char_boundary(bytes)];
    let ends = first.match_indices('\n').nth(lines.saturating_sub(1));
    let first = ends.map_or(first, |(end, _)| &first[..=end]);
    let last = &tail[tail.ceil_char_boundary(tail.len().saturating_sub(bytes))..];
    let begins =
        last.strip_suffix('\n').unwrap_or(last).rmatch_indices('\n').nth(lines.saturating_sub(1));
    let last = begins.map_or(last, |(begin, _)| &last[begin + 1..]);
    (first, last)
}

fn joined(first: &str, missing: u64, last: &str) -> String {
    let line = if first.ends_with('\n') { "" } else { "\n" };
    format!(
        "{first}{line}[{missing} bytes are left out here. Let the program write to a file to see \
         them all.]\n{last}"
    )
}

/// What one of two outputs gets of a whole: half, and what the other does not need.
fn share(own: usize, other: usize, whole: usize) -> usize {
    own.min((whole / 2).max(whole.saturating_sub(other)))
}

impl Told {
    /// What the caller gets: both outputs, where there are any, and how it ended.
    pub(super) fn output(self) -> ToolOutput {
        const BYTES: usize = RESULT_BYTES_MAX - RESULT_NOTES_BYTES_MAX;
        let (of_output, of_errors) = (self.output.lines(), self.errors.lines());
        let bytes = share(self.errors.text_len(), self.output.text_len(), BYTES);
        let lines = share(of_errors, of_output, LINES);
        let mut told = String::new();
        for (name, kept, bytes, lines) in [
            ("stdout", self.output, BYTES - bytes, LINES - lines),
            ("stderr", self.errors, bytes, lines),
        ] {
            if !kept.is_empty() {
                let _ = writeln!(told, "{name}:");
                told.push_str(&kept.text(bytes, lines));
                if !told.ends_with('\n') {
                    told.push('\n');
                }
            }
        }
        match self.end {
            End::Exit(Exit::Code(code)) => {
                let _ = write!(told, "exit code: {code}");
                Ok(told)
            }
            End::Exit(Exit::Signal(signal)) => {
                let _ = write!(told, "ended by signal {signal}");
                Ok(told)
            }
            End::Late(after) => {
                let seconds = after.as_secs_f64();
                let _ = write!(told, "It did not end within {seconds} seconds and was ended.");
                Err(told)
            }
            End::Withdrawn => {
                told.push_str(WITHDRAWN);
                Err(told)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(text: &str) -> Kept {
        let mut kept = Kept::default();
        text.as_bytes().chunks(1000).for_each(|piece| kept.add(piece));
        kept
    }

    fn told(output: &str, errors: &str, end: End) -> ToolOutput {
        Told { output: kept(output), errors: kept(errors), end }.output()
    }

    #[test]
    fn both_outputs_and_the_end_are_told() {
        let exit = |code| End::Exit(Exit::Code(code));
        assert_eq!(told("", "", exit(0)), Ok("exit code: 0".to_owned()));
        let both = "stdout:\na\nstderr:\nb\nexit code: 7";
        assert_eq!(told("a", "b\n", exit(7)), Ok(both.to_owned()));
        let killed = told("", "b", End::Exit(Exit::Signal(9)));
        assert_eq!(killed, Ok("stderr:\nb\nended by signal 9".to_owned()));
        let late = "stdout:\na\nIt did not end within 1.5 seconds and was ended.";
        assert_eq!(told("a", "", End::Late(Duration::from_millis(1500))), Err(late.to_owned()));
    }

    #[test]
    fn the_beginning_and_the_end_of_a_long_output_are_kept() {
        let line = |number: usize| format!("{number:0999}\n");
        let all: String = (0..5000).map(line).collect();
        let long = kept(&all);
        assert_eq!(long.len(), 2 * PROGRAM_OUTPUT_HALF_BYTES, "memory is bounded");
        let text = told(&all, &all, End::Exit(Exit::Code(0))).unwrap();
        assert!(text.len() <= RESULT_BYTES_MAX, "{}", text.len());
        for (output, rest) in [("stdout:\n", "stderr:\n"), ("stderr:\n", "exit code: 0")] {
            let part = text.split(output).nth(1).unwrap().split(rest).next().unwrap();
            assert!(part.starts_with(&line(0)) && part.ends_with(&line(4999)), "{output}");
            let (first, last) = part.split_once("bytes are left out here").unwrap();
            let missing: usize = first.rsplit_once('[').unwrap().1.trim().parse().unwrap();
            let first = first.rsplit_once('[').unwrap().0.trim_end_matches('\n');
            let last = last.split_once("]\n").unwrap().1;
            let gap = all.len() - missing - first.len() - last.len();
            assert!(gap <= 1, "all that is missing is counted, up to the end of a line");
        }
    }

    #[test]
    fn one_output_has_the_room_that_the_other_leaves() {
        let text = "x".repeat(900 * 1024);
        let whole = told(&text, "e", End::Exit(Exit::Code(0))).unwrap();
        assert_eq!(whole, format!("stdout:\n{text}\nstderr:\ne\nexit code: 0"));
        let lines = "\n".repeat(20_000);
        let cut = told(&lines, "", End::Exit(Exit::Code(0))).unwrap();
        assert!(cut.lines().count() <= RESULT_LINES_MAX, "{}", cut.lines().count());
    }

    #[test]
    fn a_character_is_never_cut_and_other_bytes_are_replaced() {
        let (first, last) = halves("éé", "éé", 3, 10);
        assert_eq!((first, last), ("é", "é"));
        let mut kept = Kept::default();
        kept.add(b"a\xff\n");
        assert_eq!(kept.text(100, 100), "a\u{fffd}\n");
    }

    #[test]
    fn bytes_that_are_no_text_have_room_for_what_stands_for_them() {
        let mut errors = Kept::default();
        errors.add(b"\xc3");
        let told = Told { output: kept("a\n"), errors, end: End::Exit(Exit::Code(0)) }.output();
        assert_eq!(told, Ok("stdout:\na\nstderr:\n\u{fffd}\nexit code: 0".to_owned()));
    }
}
