//! An answer as it comes: finished blocks become lines that stay, the open one can still change. Pure.
//! Where a block ends is decided line by line, without looking back, so that an answer of any length
//! costs what it is long; `render` knows what is in a block.

use super::clean::clean;
use super::line::{Line, Tone};
use super::render::render;
use crate::limits::terminal::{OPEN_BLOCK_BYTES_MAX, OPEN_TABLE_BYTES_MAX};

/// Before a line of code.
const CODE_INDENT: &str = "  ";

#[derive(Debug)]
pub struct Markdown {
    /// Of the screen, in cells.
    width: usize,
    /// What is not finished: without the fence, where there is one.
    open: String,
    /// Where the first line begins that nobody looked at.
    looked: usize,
    fence: Option<Fence>,
    /// Whether an empty line is due before the next block.
    gap: Gap,
    place: Place,
}

/// Where a block stands: in a list, what is indented belongs to the item above it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Margin,
    List,
}

/// What encloses code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fence {
    of: char,
    length: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Gap {
    /// Nothing was said yet.
    #[default]
    Begin,
    None,
    Due,
}

impl Markdown {
    pub fn new(width: usize) -> Self {
        Self {
            width,
            open: String::new(),
            looked: 0,
            fence: None,
            gap: Gap::default(),
            place: Place::default(),
        }
    }

    /// The screen is as wide as that from now on.
    pub fn resize(&mut self, width: usize) {
        self.width = width;
    }

    /// Takes a piece of the answer, and gives the lines that are finished by it.
    pub fn push(&mut self, text: &str) -> Vec<Line> {
        self.open.push_str(&clean(text));
        let mut lines = Vec::new();
        while let Some(length) = self.open[self.looked..].find('\n') {
            let (start, end) = (self.looked, self.looked + length + 1);
            self.looked = end;
            self.line(start, end, &mut lines);
        }
        // A part of a table is none.
        let is_table = self.fence.is_none() && self.open.starts_with('|');
        let max = if is_table { OPEN_TABLE_BYTES_MAX } else { OPEN_BLOCK_BYTES_MAX };
        while self.open.len() > max {
            let end = cut_before(&self.open, OPEN_BLOCK_BYTES_MAX);
            self.finish_to(end, &mut lines);
        }
        lines
    }

    /// All that is open, because something else is shown next. The text goes on after it.
    pub fn pause(&mut self) -> Vec<Line> {
        let mut lines = Vec::new();
        self.finish_to(self.open.len(), &mut lines);
        lines
    }

    /// All that was left open. The next text is an answer of its own.
    pub fn finish(&mut self) -> Vec<Line> {
        let lines = self.pause();
        *self = Self::new(self.width);
        lines
    }

    /// The open block as it would be if it ended here, at its distance from the one before.
    pub fn open_lines(&self) -> Vec<Line> {
        let rendered = self.rendered(&self.open);
        let apart = self.gap == Gap::Due && !rendered.is_empty();
        apart.then(Line::new).into_iter().chain(rendered).collect()
    }

    fn line(&mut self, start: usize, end: usize, lines: &mut Vec<Line>) {
        let line = &self.open[start..end];
        if let Some(fence) = self.fence {
            let closes = fence_of(line).is_some_and(|(found, rest)| {
                found.of == fence.of && found.length >= fence.length && rest.is_empty()
            });
            if closes {
                self.finish_to(start, lines);
                self.drop_first_line();
                self.fence = None;
                self.gap = Gap::Due;
            } else {
                self.finish_to(end, lines);
            }
            return;
        }
        if let Some((fence, _)) = fence_of(line) {
            self.finish_to(start, lines);
            self.drop_first_line();
            self.begin(lines);
            self.fence = Some(fence);
        } else if line.trim().is_empty() {
            self.finish_to(start, lines);
            self.drop_first_line();
            if self.gap == Gap::None {
                self.gap = Gap::Due;
            }
        } else if line.starts_with('#') {
            self.finish_to(start, lines);
            let end = self.open.find('\n').map_or(self.open.len(), |at| at + 1);
            self.finish_to(end, lines);
        } else if start > 0 && begins_item(line) {
            self.finish_to(start, lines);
            self.looked = self.open.find('\n').map_or(0, |at| at + 1);
        }
    }

    fn finish_to(&mut self, end: usize, lines: &mut Vec<Line>) {
        if end > 0 {
            let rest = self.open.split_off(end);
            let block = std::mem::replace(&mut self.open, rest);
            let rendered = self.rendered(&block);
            if !rendered.is_empty() {
                self.begin(lines);
                lines.extend(rendered);
            }
            if self.fence.is_none() && indent(&block) == 0 {
                self.place = if begins_item(&block) { Place::List } else { Place::Margin };
            }
        }
        self.looked = self.looked.saturating_sub(end);
    }

    /// Keeps blocks apart that were written apart.
    fn begin(&mut self, lines: &mut Vec<Line>) {
        if self.gap == Gap::Due {
            lines.push(Line::new());
        }
        self.gap = Gap::None;
    }

    fn drop_first_line(&mut self) {
        let end = self.open.find('\n').map_or(self.open.len(), |at| at + 1);
        self.open.drain(..end);
        self.looked = 0;
    }

    fn rendered(&self, block: &str) -> Vec<Line> {
        if self.fence.is_none() {
            return match self.place {
                Place::Margin => render(block, self.width),
                Place::List => indented(block, self.width),
            };
        }
        let line = |line: &str| Line::of(Tone::Code, &format!("{CODE_INDENT}{line}")).hanging(2);
        block.lines().map(line).collect()
    }
}

/// The fence that a line is, and what stands behind it.
fn fence_of(line: &str) -> Option<(Fence, &str)> {
    let line = line.trim();
    let of = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let rest = line.trim_start_matches(of);
    let length = line.len() - rest.len();
    // Code within a line may begin like this too.
    let inline = of == '`' && rest.contains('`');
    (length >= 3 && !inline).then_some((Fence { of, length }, rest.trim()))
}

/// Whether a line begins an item of a list at its margin.
fn begins_item(line: &str) -> bool {
    let numbered = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = numbered.len() < line.len() && numbered.starts_with(". ");
    numbered || ["- ", "* ", "+ "].iter().any(|mark| line.starts_with(mark))
}

/// The spaces before a text.
fn indent(text: &str) -> usize {
    text.len() - text.trim_start_matches(' ').len()
}

/// A block within an item, below its text; by itself it would be code, or a list at the margin.
fn indented(block: &str, width: usize) -> Vec<Line> {
    let indent = indent(block);
    let own = |line: &str| {
        let spaces = self::indent(line).min(indent);
        format!("{}\n", &line[spaces..])
    };
    let block: String = block.lines().map(own).collect();
    let within = |inner: Line| {
        let mut line = Line::of(Tone::Plain, &" ".repeat(indent));
        inner.spans.iter().for_each(|span| line.push(span.tone, &span.text));
        line.hanging(indent + inner.hang)
    };
    render(&block, width.saturating_sub(indent)).into_iter().map(within).collect()
}

/// Where a text that is too long may be cut: after a line or a word where there is one.
fn cut_before(text: &str, max: usize) -> usize {
    let max = text.floor_char_boundary(max);
    let begin = &text[..max];
    begin.rfind('\n').or_else(|| begin.rfind(' ')).map_or(max, |at| at + 1)
}

#[cfg(test)]
#[path = "markdown_tests.rs"]
mod tests;
