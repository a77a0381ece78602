//! A question with a few answers: a number answers at once, or arrows choose and Enter answers. Pure.

use super::key::Key;
use super::line::{Line, Tone};

/// Answers that have a number.
const NUMBERED_MAX: usize = 9;
/// Rows for answers of which one may tell of others.
const ITEMS_WITH_MORE_MIN: usize = 3;
/// The same for what is asked.
const ABOUT_WITH_MORE_MIN: usize = 2;
/// What is asked may have as many rows as this even where that is most of them.
const ABOUT_ROWS_MIN: usize = 6;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Menu {
    about: Vec<Line>,
    items: Vec<String>,
    /// None until somebody chose one: Enter alone answers nothing.
    chosen: Option<usize>,
}

/// What a key did to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Item(usize),
    /// Another one is chosen.
    Moved,
    /// The key is for somebody else.
    Ignored,
}

/// How it can be answered now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    Number,
    /// Numbers are text where there is some before them, or where nobody has read the question yet.
    Arrows,
}

impl Menu {
    pub fn new(about: Vec<Line>, items: Vec<String>) -> Self {
        assert!(!items.is_empty(), "a question has answers");
        Self { about, items, chosen: None }
    }

    /// With its first answer chosen, for questions that do no harm.
    #[must_use]
    pub fn on_first(mut self) -> Self {
        self.chosen = Some(0);
        self
    }

    /// What was chosen is not any more: the Enter after a text is meant for the text.
    pub fn choose_none(&mut self) {
        self.chosen = None;
    }

    /// Whether Enter answers.
    pub fn is_chosen(&self) -> bool {
        self.chosen.is_some()
    }

    pub fn on(&mut self, key: Key) -> Answer {
        let last = self.items.len() - 1;
        match key {
            Key::Char(c) => {
                let number = c.to_digit(10).and_then(|number| usize::try_from(number).ok());
                let item = number.and_then(|number| number.checked_sub(1));
                if let Some(item) = item.filter(|item| *item <= last) {
                    return Answer::Item(item);
                }
                self.choose_none();
                Answer::Ignored
            }
            Key::Up => {
                self.chosen =
                    Some(self.chosen.map_or(last, |at| at.checked_sub(1).unwrap_or(last)));
                Answer::Moved
            }
            Key::Down => {
                self.chosen = Some(self.chosen.map_or(0, |at| if at == last { 0 } else { at + 1 }));
                Answer::Moved
            }
            Key::Enter => self.chosen.map_or(Answer::Ignored, Answer::Item),
            Key::NewLine
            | Key::Tab
            | Key::Backspace
            | Key::Delete
            | Key::Left
            | Key::Right
            | Key::WordLeft
            | Key::WordRight
            | Key::Home
            | Key::End
            | Key::Escape
            | Key::Control(_)
            | Key::Alt(_) => Answer::Ignored,
        }
    }

    /// The question in at most so many rows: what is asked first, then the answers around the chosen.
    pub fn lines(&self, width: usize, rows: usize, by: By) -> Vec<Line> {
        let rows = rows.max(2);
        let about: Vec<Line> = self.about.iter().flat_map(|line| line.wrapped(width)).collect();
        let items_max = self.items.len().min((rows - about.len().min(rows / 2)).max(1));
        // However much there is to tell, what was said before is seen above it.
        let about_max = (rows - items_max).min((rows / 2).max(ABOUT_ROWS_MIN));
        let mut lines = cut(about, width, about_max);
        // A row tells of those that are not seen, where that leaves enough of the others.
        let hidden = self.items.len() > items_max && items_max >= ITEMS_WITH_MORE_MIN;
        let items_max = if hidden { items_max - 1 } else { items_max };
        let chosen = self.chosen.unwrap_or(0);
        let first = (chosen + 1).saturating_sub(items_max);
        for (index, item) in self.items.iter().enumerate().skip(first).take(items_max) {
            let mark = if self.chosen == Some(index) { "❯ " } else { "  " };
            let number = if by == By::Number && index < NUMBERED_MAX {
                format!("{} ", index + 1)
            } else {
                "  ".to_owned()
            };
            let tone = if self.chosen == Some(index) { Tone::Strong } else { Tone::Plain };
            let line = Line::of(Tone::Loud, mark).with(Tone::Dim, &number).with(tone, item);
            lines.push(line.cut(width));
        }
        if hidden {
            let more = format!("    … {} more, by the arrows", self.items.len() - items_max);
            lines.push(Line::of(Tone::Dim, &more).cut(width));
        }
        lines
    }
}

/// What is asked, in so many rows: what is not seen is told of, lest anybody answers to half of it.
fn cut(mut about: Vec<Line>, width: usize, rows: usize) -> Vec<Line> {
    if about.len() > rows && rows >= ABOUT_WITH_MORE_MIN {
        let more = about.len() - (rows - 1);
        about.truncate(rows - 1);
        let told = format!("  … {more} more rows: Ctrl-O shows them");
        about.push(Line::of(Tone::Loud, &told).cut(width));
    }
    about.truncate(rows);
    about
}

#[cfg(test)]
mod tests {
    use super::*;

    fn menu() -> Menu {
        let about = vec![Line::of(Tone::Loud, "Run it?")];
        Menu::new(about, ["once", "always", "never"].map(str::to_owned).to_vec())
    }

    #[test]
    fn enter_alone_answers_nothing() {
        let mut menu = menu();
        assert_eq!(menu.on(Key::Enter), Answer::Ignored);
        assert_eq!(menu.on(Key::Char('x')), Answer::Ignored);
        assert_eq!(menu.on(Key::Char('4')), Answer::Ignored);
        assert_eq!(menu.on(Key::Char('0')), Answer::Ignored);
        assert_eq!(menu.on(Key::Char('3')), Answer::Item(2));
        assert_eq!(menu.on(Key::Up), Answer::Moved);
        assert_eq!(menu.on(Key::Enter), Answer::Item(2));
        assert_eq!(menu.on(Key::Down), Answer::Moved);
        assert_eq!(menu.on(Key::Enter), Answer::Item(0));
    }

    #[test]
    fn the_chosen_answer_is_seen_in_few_rows() {
        let mut menu = menu();
        let shown = |menu: &Menu| -> Vec<String> {
            menu.lines(20, 2, By::Number).iter().map(Line::text).collect()
        };
        assert_eq!(shown(&menu), ["Run it?", "  1 once"]);
        menu.on(Key::Up);
        assert_eq!(shown(&menu), ["Run it?", "❯ 3 never"]);
    }

    #[test]
    fn what_is_asked_and_not_seen_is_told_of() {
        let about = (1..=9).map(|row| Line::of(Tone::Plain, &format!("row {row}"))).collect();
        let menu = Menu::new(about, ["yes", "no"].map(str::to_owned).to_vec());
        let shown = |rows| -> Vec<String> {
            menu.lines(40, rows, By::Number).iter().map(Line::text).collect()
        };
        let more = "  … 7 more rows: Ctrl-O shows them";
        assert_eq!(shown(5), ["row 1", "row 2", more, "  1 yes", "  2 no"]);
        assert_eq!(shown(18)[8..], ["row 9", "  1 yes", "  2 no"]);
        assert_eq!(shown(16).len(), 10, "half of them is enough");
        assert_eq!(shown(3), ["row 1", "  1 yes", "  2 no"]);
    }

    #[test]
    fn enter_after_a_text_answers_nothing() {
        let items = vec!["create it".to_owned(), "leave it".to_owned()];
        let mut menu = Menu::new(vec![Line::of(Tone::Loud, "It is not there.")], items).on_first();
        assert_eq!(menu.on(Key::Char('p')), Answer::Ignored);
        assert_eq!(menu.on(Key::Enter), Answer::Ignored);
        assert_eq!(menu.on(Key::Down), Answer::Moved);
        assert_eq!(menu.on(Key::Enter), Answer::Item(0));
    }

    #[test]
    fn answers_that_are_not_seen_are_told_of() {
        let items = (1..=6).map(|number| format!("agent {number}")).collect();
        let mut menu = Menu::new(vec![Line::of(Tone::Loud, "Who?")], items).on_first();
        let shown = |menu: &Menu| -> Vec<String> {
            menu.lines(40, 4, By::Number).iter().map(Line::text).collect()
        };
        let more = "    … 4 more, by the arrows";
        assert_eq!(shown(&menu), ["Who?", "❯ 1 agent 1", "  2 agent 2", more]);
        menu.on(Key::Up);
        assert_eq!(shown(&menu), ["Who?", "  5 agent 5", "❯ 6 agent 6", more]);
        assert_eq!(menu.lines(40, 7, By::Number).len(), 7);
    }
}
