//! The screen as bytes for a terminal. What is finished is written once and scrolls away; only the foot
//! is drawn again, in place, in one write that the terminal shows at once. Pure.

use crossterm::cursor::{Hide, MoveTo, MoveToColumn, MoveUp, Show};
use crossterm::queue;
use crossterm::style::{Attribute, Color, Print, SetAttribute, SetForegroundColor};
use crossterm::terminal::{BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate};

use super::line::{Line, Tone};
use super::screen::Foot;

/// Whether tones have colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colours {
    On,
    Off,
}

#[derive(Debug)]
pub struct Painter {
    colours: Colours,
    columns: u16,
    /// What stands there now.
    shown: Option<Foot>,
    state: State,
}

/// Whether what was drawn still stands as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Whole,
    /// The terminal has another size: it may have broken rows, or lost those at its end.
    Torn,
}

impl Painter {
    pub fn new(colours: Colours, columns: u16) -> Self {
        Self { colours, columns, shown: None, state: State::Whole }
    }

    pub fn resized(&mut self, columns: u16) {
        self.columns = columns;
        self.state = State::Torn;
    }

    /// Prints what is finished above the foot. Nothing where nothing changed.
    pub fn paint(&mut self, finished: &[Line], foot: &Foot) -> Vec<u8> {
        let whole = self.state == State::Whole;
        if whole && finished.is_empty() && self.shown.as_ref() == Some(foot) {
            return Vec::new();
        }
        self.state = State::Whole;
        let mut out = Vec::new();
        let bytes = &mut out;
        let written = queue!(bytes, BeginSynchronizedUpdate, Hide);
        written.expect("a vector takes whatever is written");
        self.to_top(bytes);
        if !whole {
            // Rows that the terminal broke are still known to it as one line, however they are written
            // over: it would join them again, and what is counted from them would be wrong.
            clear_below(bytes);
        }
        let width = usize::from(self.columns.max(2)) - 1;
        let shown = self.shown.take().filter(|_| whole).unwrap_or_default();
        let mut before = shown.rows.iter().map(Line::cells);
        for row in finished.iter().flat_map(|line| line.wrapped(width)) {
            self.row(bytes, &row, before.next());
            put(bytes, Print("\r\n"));
        }
        for (index, row) in foot.rows.iter().enumerate() {
            if index > 0 {
                put(bytes, Print("\r\n"));
            }
            self.row(bytes, row, before.next());
        }
        if foot.rows.last().is_none_or(Line::is_empty) {
            clear_below(bytes);
        } else {
            put(bytes, Clear(ClearType::FromCursorDown));
        }
        let below = foot.rows.len().saturating_sub(foot.cursor.0 + 1);
        move_up(bytes, below);
        put(bytes, MoveToColumn(u16::try_from(foot.cursor.1).unwrap_or(0)));
        let written = queue!(bytes, Show, EndSynchronizedUpdate);
        written.expect("a vector takes whatever is written");
        self.shown = Some(foot.clone());
        out
    }

    /// Clears the screen, because somebody asked for it. The foot goes first: a terminal may keep what
    /// it clears among the lines above.
    pub fn clear(&mut self) -> Vec<u8> {
        let mut out = self.leave();
        put(&mut out, Clear(ClearType::All));
        put(&mut out, MoveTo(0, 0));
        out
    }

    /// Takes the foot away; what is written next stands in its place.
    pub fn leave(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        self.to_top(&mut out);
        clear_below(&mut out);
        put(&mut out, Show);
        self.shown = None;
        out
    }

    /// To the first row of the foot that stands there. A terminal that became narrower has broken its
    /// rows.
    fn to_top(&self, bytes: &mut Vec<u8>) {
        if let Some(shown) = &self.shown {
            let columns = usize::from(self.columns.max(1));
            let taken = |row: &Line| row.cells().div_ceil(columns).max(1);
            let above = shown.rows.iter().take(shown.cursor.0).map(taken).sum::<usize>();
            move_up(bytes, above + shown.cursor.1 / columns);
        }
        put(bytes, MoveToColumn(0));
    }

    /// A row, in place of one that took so many cells.
    fn row(&self, bytes: &mut Vec<u8>, row: &Line, before: Option<usize>) {
        // Some terminals remember how long a row was though its end is cleared, and break it as if it
        // still were when they become narrower. One that is cleared whole is forgotten.
        if before.is_some_and(|before| before > row.cells()) {
            put(bytes, Clear(ClearType::CurrentLine));
        }
        for span in &row.spans {
            let plain = self.colours == Colours::Off || span.tone == Tone::Plain;
            if plain {
                put(bytes, Print(&span.text));
                continue;
            }
            begin(bytes, span.tone);
            put(bytes, Print(&span.text));
            put(bytes, SetAttribute(Attribute::Reset));
        }
        put(bytes, Clear(ClearType::UntilNewLine));
    }
}

fn begin(bytes: &mut Vec<u8>, tone: Tone) {
    match tone {
        Tone::Plain => {}
        Tone::Strong => put(bytes, SetAttribute(Attribute::Bold)),
        Tone::Emphasis => put(bytes, SetAttribute(Attribute::Italic)),
        Tone::Heading => {
            put(bytes, SetAttribute(Attribute::Bold));
            put(bytes, SetForegroundColor(Color::DarkCyan));
        }
        Tone::Code => put(bytes, SetForegroundColor(Color::DarkCyan)),
        Tone::Link => put(bytes, SetAttribute(Attribute::Underlined)),
        Tone::Dim => put(bytes, SetAttribute(Attribute::Dim)),
        Tone::Good => put(bytes, SetForegroundColor(Color::DarkGreen)),
        Tone::Bad => put(bytes, SetForegroundColor(Color::DarkRed)),
        Tone::Loud => put(bytes, SetForegroundColor(Color::DarkYellow)),
        Tone::Alarm => {
            put(bytes, SetAttribute(Attribute::Bold));
            put(bytes, SetAttribute(Attribute::Reverse));
            put(bytes, SetForegroundColor(Color::DarkRed));
        }
        Tone::Own => {
            put(bytes, SetAttribute(Attribute::Bold));
            put(bytes, SetForegroundColor(Color::DarkBlue));
        }
    }
}

fn put(bytes: &mut Vec<u8>, command: impl crossterm::Command) {
    queue!(bytes, command).expect("a vector takes whatever is written");
}

/// Clears this row, from whose first column it is asked for, and those below. Some terminals take what is
/// cleared from their first cell on for a screen that somebody may want to see again, and keep it among
/// the lines above: so the row is cleared whole, and the others from its second column on.
fn clear_below(bytes: &mut Vec<u8>) {
    put(bytes, Clear(ClearType::CurrentLine));
    put(bytes, MoveToColumn(1));
    put(bytes, Clear(ClearType::FromCursorDown));
    put(bytes, MoveToColumn(0));
}

fn move_up(bytes: &mut Vec<u8>, rows: usize) {
    if rows > 0 {
        put(bytes, MoveUp(u16::try_from(rows).unwrap_or(u16::MAX)));
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU16;

    use super::*;

    fn foot(rows: &[&str], cursor: (usize, usize)) -> Foot {
        Foot { rows: rows.iter().map(|row| Line::of(Tone::Dim, row)).collect(), cursor }
    }

    /// What a terminal shows after these.
    fn shown(screen: &mut vt100::Parser, bytes: &[u8]) -> String {
        screen.process(bytes);
        screen.screen().contents()
    }

    #[test]
    fn finished_lines_stand_once_above_the_foot() {
        let cells = |number| NonZeroU16::new(number).unwrap();
        let mut screen = vt100::Parser::new(cells(5), cells(20), 100);
        let mut painter = Painter::new(Colours::On, 20);
        let first = painter.paint(&[], &foot(&["› ", "status"], (0, 2)));
        assert_eq!(shown(&mut screen, &first), "› \nstatus");
        assert_eq!(screen.screen().cursor_position(), (0, 2));
        let lines = [Line::of(Tone::Good, "one"), Line::of(Tone::Plain, "two words and more")];
        let next = painter.paint(&lines, &foot(&["open", "› x", "status"], (1, 3)));
        assert_eq!(shown(&mut screen, &next), "one\ntwo words and more\nopen\n› x\nstatus");
        let smaller = painter.paint(&[], &foot(&["› ", "status"], (0, 2)));
        assert_eq!(shown(&mut screen, &smaller), "one\ntwo words and more\n› \nstatus");
        assert_eq!(shown(&mut screen, &painter.leave()), "one\ntwo words and more");
    }

    #[test]
    fn what_is_cleared_has_no_foot() {
        let mut painter = Painter::new(Colours::Off, 20);
        painter.paint(&[], &foot(&["open", "› ", "status"], (1, 2)));
        let cleared = String::from_utf8(painter.clear()).unwrap();
        assert_eq!(cleared, "\x1b[1A\x1b[1G\x1b[2K\x1b[2G\x1b[J\x1b[1G\x1b[?25h\x1b[2J\x1b[1;1H");
    }

    #[test]
    fn a_row_is_cleared_whole_where_a_longer_one_stood() {
        let mut painter = Painter::new(Colours::Off, 20);
        painter.paint(&[], &foot(&["a longer row", "› "], (1, 2)));
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let shorter = text(painter.paint(&[], &foot(&["row", "› x"], (1, 3))));
        assert!(shorter.contains("\x1b[2Krow\x1b[K\r\n› x\x1b[K"), "{shorter:?}");
        let said = [Line::of(Tone::Plain, "a")];
        let above = text(painter.paint(&said, &foot(&["row", "› x"], (1, 3))));
        assert!(above.contains("\x1b[2Ka\x1b[K\r\nrow\x1b[K\r\n› x\x1b[K"), "{above:?}");
    }

    #[test]
    fn rows_that_were_broken_are_cleared_before_they_are_drawn_again() {
        let mut painter = Painter::new(Colours::Off, 20);
        let shown = foot(&["a row of eighteen.", "› "], (1, 2));
        painter.paint(&[], &shown);
        let clears = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().matches("\x1b[J").count();
        assert_eq!(clears(painter.paint(&[Line::of(Tone::Plain, "said")], &shown)), 1);
        painter.resized(10);
        let again = painter.paint(&[], &shown);
        assert!(
            again.starts_with(b"\x1b[?2026h\x1b[?25l\x1b[2A\x1b[1G\x1b[2K\x1b[2G\x1b[J"),
            "{again:?}"
        );
        assert_eq!(clears(again), 2);
    }

    /// Some terminals keep all that is cleared from the first cell of the screen on.
    #[test]
    fn no_foot_at_the_top_is_kept_among_the_lines_above() {
        let cells = |number| NonZeroU16::new(number).unwrap();
        let mut screen = vt100::Parser::new(cells(5), cells(20), 100);
        let mut painter = Painter::new(Colours::Off, 20);
        let same = foot(&["› ", "status"], (0, 2));
        let mut written = painter.paint(&[], &same);
        for _ in 0..2 {
            written.extend(painter.clear());
            written.extend(painter.paint(&[], &same));
        }
        painter.resized(20);
        written.extend(painter.paint(&[], &same));
        written.extend(painter.paint(&[], &Foot::default()));
        written.extend(painter.leave());
        let written = String::from_utf8(written).unwrap();
        let (before_each, last) = written.rsplit_once("\x1b[J").unwrap();
        for piece in before_each.split("\x1b[J") {
            screen.process(piece.as_bytes());
            assert_ne!(screen.screen().cursor_position(), (0, 0), "{written:?}");
            screen.process(b"\x1b[J");
        }
        screen.process(last.as_bytes());
        assert_eq!(screen.screen().contents(), "");
    }

    #[test]
    fn nothing_is_written_where_nothing_changed() {
        let mut painter = Painter::new(Colours::Off, 20);
        let same = foot(&["› "], (0, 2));
        let first = painter.paint(&[], &same);
        assert!(!String::from_utf8_lossy(&first).contains("\x1b[2m"), "no colours were wanted");
        assert_eq!(painter.paint(&[], &same), b"");
        painter.resized(30);
        assert!(!painter.paint(&[], &same).is_empty(), "another size may have torn it");
        assert_eq!(painter.paint(&[], &same), b"");
    }
}
