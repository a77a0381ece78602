//! What a model is shown of a text: numbered lines around what changed, or around what it looked for.
//! Always bounded, in lines and in the length of each; it never shows a whole file.

use std::fmt;
use std::ops::Range;

use super::endings::line_feeds;
use crate::limits::{
    SNIPPET_CONTEXT_LINES, SNIPPET_LINE_CHARS_MAX, SNIPPET_LINES_MAX, SNIPPET_NUMBERS_MAX,
    SNIPPET_SPANS_MAX,
};

/// The lines around each of `spans`, which are in order, as they are in `body`.
pub(super) fn around(body: &str, spans: &[Range<usize>]) -> String {
    if body.is_empty() {
        return "The file is empty now.".to_owned();
    }
    let regions = regions(body, &spans[..spans.len().min(SNIPPET_SPANS_MAX)]);
    let mut shown = Vec::new();
    for region in &regions {
        if !shown.is_empty() {
            shown.push("…".to_owned());
        }
        shown.extend(region_lines(body, region));
    }
    if let Some(more @ 1..) = spans.len().checked_sub(SNIPPET_SPANS_MAX) {
        shown.push(format!("… and {more} more places"));
    }
    shown.join("\n")
}

/// A run of lines, by the numbers of its first and its last.
struct Region {
    first: usize,
    last: usize,
}

/// The numbers of the lines to show, those that touch as one.
fn regions(body: &str, spans: &[Range<usize>]) -> Vec<Region> {
    let mut regions: Vec<Region> = Vec::new();
    let (mut line, mut counted) = (1, 0);
    for span in spans {
        line += line_feeds(&body[counted..span.start]);
        counted = span.start;
        // The line feed at the end of a span still belongs to its last line.
        let inside = body[span.clone()].strip_suffix('\n').unwrap_or(&body[span.clone()]);
        let first = line.saturating_sub(SNIPPET_CONTEXT_LINES).max(1);
        let last = line + line_feeds(inside) + SNIPPET_CONTEXT_LINES;
        match regions.last_mut() {
            Some(before) if first <= before.last + 1 => before.last = before.last.max(last),
            Some(_) | None => regions.push(Region { first, last }),
        }
    }
    regions
}

/// The lines of a region; of a long one the first and the last.
fn region_lines(body: &str, region: &Region) -> Vec<String> {
    let lines = || (1..).zip(body.lines()).skip(region.first - 1);
    let count = lines().take(region.last + 1 - region.first).count();
    let told = |(number, line): (usize, &str)| numbered_line(number, line);
    if count <= SNIPPET_LINES_MAX {
        return lines().take(count).map(told).collect();
    }
    let half = SNIPPET_LINES_MAX / 2;
    let left_out = format!("… {} lines", count - 2 * half);
    let head = lines().take(half).map(told);
    let tail = lines().take(count).skip(count - half).map(told);
    head.chain([left_out]).chain(tail).collect()
}

/// Some lines with their numbers, the first of which is `first`.
pub(super) fn numbered<'a>(first: usize, lines: impl IntoIterator<Item = &'a str>) -> String {
    let mut lines = (first..).zip(lines);
    let mut shown: Vec<String> = lines
        .by_ref()
        .take(SNIPPET_LINES_MAX)
        .map(|(number, line)| numbered_line(number, line))
        .collect();
    if lines.next().is_some() {
        shown.push("…".to_owned());
    }
    shown.join("\n")
}

fn numbered_line(number: usize, line: &str) -> String {
    format!("{number}\t{}", cut(line))
}

/// A line, or as much of it as is shown.
pub(super) fn cut(line: &str) -> String {
    match line.char_indices().nth(SNIPPET_LINE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

/// The number of the line that holds the byte at `offset`.
pub(super) fn line_at(body: &str, offset: usize) -> usize {
    1 + line_feeds(&body[..offset])
}

/// Lines by their numbers; of many the first ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineNumbers(Vec<usize>);

impl LineNumbers {
    /// The lines of what begins at `offsets`, which are in order.
    pub(super) fn of(body: &str, offsets: impl IntoIterator<Item = usize>) -> Self {
        let (mut line, mut counted) = (1, 0);
        let number = |offset: usize| {
            line += line_feeds(&body[counted..offset]);
            counted = offset;
            line
        };
        // One more than is shown tells that there are more.
        Self(offsets.into_iter().take(SNIPPET_NUMBERS_MAX + 1).map(number).collect())
    }
}

impl fmt::Display for LineNumbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = &self.0[..self.0.len().min(SNIPPET_NUMBERS_MAX)];
        let shown: Vec<String> = shown.iter().map(ToString::to_string).collect();
        let plural = if self.0.len() == 1 { "" } else { "s" };
        let more = if self.0.len() > shown.len() { " and more" } else { "" };
        write!(f, "line{plural} {}{more}", shown.join(", "))
    }
}

#[cfg(test)]
#[path = "snippet_tests.rs"]
mod tests;
