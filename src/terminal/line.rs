//! Lines as they are shown: spans of text, each in a tone, broken by the cells they take. Pure.
//! Whatever becomes a span has been cleaned.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::clean::clean_line;

/// How a text is shown; which colours that are is for `paint` to say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    #[default]
    Plain,
    Strong,
    Emphasis,
    Heading,
    Code,
    Link,
    Dim,
    Good,
    Bad,
    Loud,
    /// What nobody may overlook.
    Alarm,
    Own,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    pub text: String,
    pub tone: Tone,
}

/// One line, as long as it is; `hang` cells stand before what goes on below it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    pub spans: Vec<Span>,
    pub hang: usize,
}

impl Line {
    pub fn new() -> Self {
        Self::default()
    }

    /// One line in one tone; of others' text, which is cleaned here.
    pub fn of(tone: Tone, text: &str) -> Self {
        Self::new().with(tone, text)
    }

    #[must_use]
    pub fn with(mut self, tone: Tone, text: &str) -> Self {
        self.push(tone, text);
        self
    }

    #[must_use]
    pub fn hanging(mut self, hang: usize) -> Self {
        self.hang = hang;
        self
    }

    pub fn push(&mut self, tone: Tone, text: &str) {
        let text = clean_line(text);
        match self.spans.last_mut() {
            Some(last) if last.tone == tone => last.text.push_str(&text),
            Some(_) | None if text.is_empty() => {}
            Some(_) | None => self.spans.push(Span { text, tone }),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    pub fn cells(&self) -> usize {
        self.spans.iter().map(|span| cells(&span.text)).sum()
    }

    pub fn text(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }

    /// As much of it as fits, with a mark where it was cut.
    #[must_use]
    pub fn cut(&self, width: usize) -> Self {
        if self.cells() <= width {
            return self.clone();
        }
        let mut cut = Self::new();
        let mut room = width.saturating_sub(1);
        for span in &self.spans {
            let kept = fitting(&span.text, room);
            room -= cells(kept);
            cut.push(span.tone, kept);
            if kept.len() < span.text.len() {
                break;
            }
        }
        cut.with(Tone::Dim, "…")
    }

    /// The rows it takes, none wider than that: broken at spaces where there are any.
    pub fn wrapped(&self, width: usize) -> Vec<Self> {
        if self.cells() <= width {
            return vec![Self { spans: self.spans.clone(), hang: 0 }];
        }
        let hang = if self.hang + 8 <= width { self.hang } else { 0 };
        let mut wrap = Wrap { rows: vec![Self::new()], used: 0, width, hang };
        // What is not divided by a space stays together, also where its tone changes.
        let mut word: Vec<(Tone, &str)> = Vec::new();
        for span in &self.spans {
            for piece in span.text.split_inclusive(' ') {
                let text = piece.trim_end_matches(' ');
                if !text.is_empty() {
                    word.push((span.tone, text));
                }
                if text.len() < piece.len() {
                    wrap.word(&std::mem::take(&mut word));
                    wrap.piece(span.tone, &piece[text.len()..]);
                }
            }
        }
        wrap.word(&word);
        wrap.rows
    }
}

struct Wrap {
    rows: Vec<Line>,
    used: usize,
    width: usize,
    hang: usize,
}

impl Wrap {
    /// A word in one row, or where it is wider than one, in pieces.
    fn word(&mut self, word: &[(Tone, &str)]) {
        let wide = word.iter().map(|(_, text)| cells(text)).sum::<usize>();
        if self.used + wide > self.width && self.hang + wide <= self.width {
            self.next_row();
        }
        for (tone, text) in word {
            text.split_word_bounds().for_each(|piece| self.piece(*tone, piece));
        }
    }

    fn piece(&mut self, tone: Tone, word: &str) {
        let wide = cells(word);
        if self.used + wide <= self.width {
            return self.put(tone, word, wide);
        }
        // A space at the end of a row is the break.
        if word.trim().is_empty() {
            return self.next_row();
        }
        if self.hang + wide <= self.width {
            self.next_row();
            return self.put(tone, word, wide);
        }
        for piece in word.graphemes(true) {
            let wide = cells(piece);
            if self.used + wide > self.width {
                self.next_row();
            }
            self.put(tone, piece, wide);
        }
    }

    fn put(&mut self, tone: Tone, text: &str, wide: usize) {
        let begins = self.rows.len() > 1 && self.used == self.hang;
        if begins && text.trim().is_empty() {
            return;
        }
        self.rows.last_mut().expect("there is one from the start").push(tone, text);
        self.used += wide;
    }

    fn next_row(&mut self) {
        self.rows.push(Line::of(Tone::Plain, &" ".repeat(self.hang)));
        self.used = self.hang;
    }
}

/// The cells that a text takes on a terminal.
pub fn cells(text: &str) -> usize {
    text.width()
}

/// The longest beginning of a text that takes no more cells than these.
pub fn fitting(text: &str, room: usize) -> &str {
    let mut used = 0;
    for (at, piece) in text.grapheme_indices(true) {
        used += cells(piece);
        if used > room {
            return &text[..at];
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rows(line: &Line, width: usize) -> Vec<String> {
        line.wrapped(width).iter().map(Line::text).collect()
    }

    #[test]
    fn a_line_is_broken_at_spaces_and_by_cells() {
        let line = Line::of(Tone::Plain, "one two three").hanging(2);
        assert_eq!(rows(&line, 40), ["one two three"]);
        assert_eq!(rows(&line, 10), ["one two ", "  three"]);
        let tones = Line::of(Tone::Plain, "say ").with(Tone::Strong, "{json}").with(Tone::Dim, ",");
        assert_eq!(rows(&tones, 10), ["say ", "{json},"]);
        let path = Line::of(Tone::Plain, "in /a/very/long/path");
        assert_eq!(rows(&path, 10), ["in /a/very", "/long/path"]);
        let long = Line::of(Tone::Plain, "漢字漢字漢字");
        assert_eq!(rows(&long, 5), ["漢字", "漢字", "漢字"]);
    }

    #[test]
    fn a_cut_line_says_so() {
        let line = Line::of(Tone::Good, "one ").with(Tone::Plain, "two");
        assert_eq!(line.cut(7), line);
        assert_eq!(line.cut(6).text(), "one t…");
        assert_eq!(line.cut(0).text(), "…");
    }

    proptest! {
        #[test]
        fn no_row_is_wider_than_the_terminal(text in "\\PC{0,80}", width in 4usize..40, hang in 0usize..6) {
            let line = Line::of(Tone::Plain, &text).hanging(hang);
            for row in line.wrapped(width) {
                prop_assert!(row.cells() <= width, "{:?}", row.text());
            }
            prop_assert!(line.cut(width).cells() <= width);
        }
    }
}
