//! The foot of the screen: what is open, what goes on, what is asked, the input and the status.

use super::turn::{ended_by_escape, goes_on};
use super::{Core, Ends, Link, Sending};
use crate::limits::terminal::{COLUMNS_MIN, ROWS_MIN};
use crate::policy::Level;
use crate::rpc::method::{AgentSummary, TokenSummary};
use crate::terminal::clean::clean_line;
use crate::terminal::line::{Line, Tone, cells};
use crate::terminal::menu::By;
use crate::terminal::screen::Foot;

const ACTIVITIES_MAX: usize = 3;
const CANDIDATE_ROWS_MAX: usize = 4;
/// Messages that wait for their turn, one row each.
const SENDING_MAX: usize = 3;
/// Of the name of a model, in the status.
const MODEL_CELLS_MIN: usize = 2;

impl Core {
    pub fn foot(&self) -> Foot {
        let width = self.width();
        let rows = usize::from(self.rows.max(ROWS_MIN)) - 1;
        let (mut input, cursor) = self.input(width);
        let mut below = self.candidate_rows(width);
        below.push(self.status(width).cut(width));
        let mut left = rows - below.len().min(rows - 1);
        // Of a long input the part around the cursor is shown.
        let input_max =
            left.saturating_sub(if self.question.is_some() { left / 2 } else { 0 }).max(1);
        let first = (cursor.0 + 1).saturating_sub(input_max);
        input = input.into_iter().skip(first).take(input_max).collect();
        left -= input.len().min(left);
        let mut above = self.above(width, left);
        left -= above.len().min(left);
        let open = self.open_rows(width);
        let open_first = open.len().saturating_sub(left);
        let mut all: Vec<Line> = open.into_iter().skip(open_first).collect();
        all.append(&mut above);
        let cursor = (all.len() + cursor.0 - first, cursor.1);
        all.append(&mut input);
        all.append(&mut below);
        Foot { rows: all, cursor }
    }

    /// Of a row. The last column stays empty: a row that fills it would be broken by some terminals.
    pub(super) fn width(&self) -> usize {
        usize::from(self.columns.max(COLUMNS_MIN)) - 1
    }

    fn open_rows(&self, width: usize) -> Vec<Line> {
        let open = self.turn.as_ref().map(|turn| turn.text.open_lines()).unwrap_or_default();
        open.iter().flat_map(|line| line.wrapped(width)).collect()
    }

    /// Between the answer and the input, in at most so many rows.
    fn above(&self, width: usize, rows: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        if let Some(turn) = self.activity() {
            let mut doing = turn.activity(self.now, width);
            let more = doing.len().saturating_sub(ACTIVITIES_MAX);
            doing.truncate(ACTIVITIES_MAX);
            lines.extend(doing.iter().map(|line| line.cut(width)));
            if more > 0 {
                lines.push(Line::of(Tone::Dim, &format!("  and {more} more")));
            }
        }
        for command in self.commands.values() {
            let took = self.now.saturating_sub(command.since);
            let line = goes_on(&command.typed, took, self.now);
            // It is the turn that Esc is for, as long as there is one.
            let escape = self.turn.is_none() && command.by == Ends::Escape;
            lines.push(if escape { ended_by_escape(&line, width) } else { line.cut(width) });
        }
        let here = |sending: &&Sending| self.agent.as_ref() == Some(&sending.agent);
        for sending in self.sending.values().filter(here).take(SENDING_MAX) {
            let line = Line::of(Tone::Dim, "… ").with(Tone::Dim, &sending.content);
            lines.push(line.cut(width));
        }
        let more = self.sending.values().filter(here).count().saturating_sub(SENDING_MAX);
        if more > 0 {
            lines.push(Line::of(Tone::Dim, &format!("… and {more} more")));
        }
        lines.extend(self.alert().map(|alert| alert.cut(width)));
        lines.truncate(rows);
        if let Some((_, menu)) = &self.question {
            // What is asked is more important than what goes on.
            let numbers = self.editor.is_empty() && !self.question_is_young();
            let by = if numbers { By::Number } else { By::Arrows };
            let how = self.how_to_answer();
            let mut asked = menu.lines(width, rows - usize::from(how.is_some()).min(rows), by);
            let how = how.map(|how| Line::of(Tone::Dim, &format!("  {how}")).cut(width));
            asked.extend(how);
            lines.truncate(rows.saturating_sub(asked.len()));
            lines.extend(asked);
        }
        lines.truncate(rows);
        lines
    }

    /// The rows of the input, and where the cursor stands in them.
    fn input(&self, width: usize) -> (Vec<Line>, (usize, usize)) {
        let prompt = self.prompt();
        let hang = prompt.cells().min(width / 2);
        let (mut rows, mut cursor) = (Vec::new(), (0, 0));
        let mut begin = 0;
        for (index, text) in self.editor.text().split('\n').enumerate() {
            let mut row = if index == 0 { prompt.cut(hang) } else { margin(hang) };
            let mut used = row.cells();
            for (at, piece) in pieces(text) {
                if begin + at == self.editor.cursor() {
                    cursor = (rows.len(), used);
                }
                // A tab is shown as the spaces it stands for.
                let piece = clean_line(piece);
                if used + cells(&piece) > width {
                    rows.push(std::mem::replace(&mut row, margin(hang)));
                    used = hang;
                    if begin + at == self.editor.cursor() {
                        cursor = (rows.len(), used);
                    }
                }
                row.push(Tone::Plain, &piece);
                used += cells(&piece);
            }
            begin += text.len();
            if begin == self.editor.cursor() {
                cursor = (rows.len(), used.min(width));
            }
            begin += 1;
            rows.push(row);
        }
        (rows, cursor)
    }

    fn prompt(&self) -> Line {
        match (&self.agent, &self.whispering_from) {
            (Some(agent), Some(from)) => {
                let line = Line::of(Tone::Dim, from.agent.as_str()).with(Tone::Loud, " ⇢ ");
                line.with(Tone::Strong, agent.as_str()).with(Tone::Own, " › ")
            }
            (Some(agent), None) => Line::of(Tone::Strong, agent.as_str()).with(Tone::Own, " › "),
            (None, _) => Line::of(Tone::Own, "› "),
        }
    }

    fn candidate_rows(&self, width: usize) -> Vec<Line> {
        let text = self.candidates.join("  ");
        if text.is_empty() {
            return Vec::new();
        }
        let mut rows = Line::of(Tone::Dim, &text).wrapped(width);
        if rows.len() > CANDIDATE_ROWS_MAX {
            rows.truncate(CANDIDATE_ROWS_MAX - 1);
            rows.push(Line::of(Tone::Dim, &format!("… {} in all", self.candidates.len())));
        }
        rows
    }

    fn status(&self, width: usize) -> Line {
        if let Some(hint) = &self.hint {
            return Line::of(Tone::Loud, hint);
        }
        if let Some(hint) = self.hint_of_question() {
            return Line::of(Tone::Loud, hint);
        }
        if self.link == Link::Lost {
            return Line::of(Tone::Bad, "no server · trying again");
        }
        let Some(summary) = &self.summary else {
            let told = match (&self.agent, &self.wanted) {
                (Some(agent), _) => agent.to_string(),
                (None, Some(wanted)) => format!("looking for {wanted}"),
                (None, None) => "nobody · /agent NAME · /help".to_owned(),
            };
            return Line::of(Tone::Dim, &told);
        };
        about(summary, width)
    }
}

/// How much is said of the tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tokens {
    InWords,
    OfBudget,
    Used,
}

/// The agent, its model, its tokens, what it may do, and where it works, at least by the last name of
/// that. Where there is little room the budget goes first, then the end of the model's name.
fn about(summary: &AgentSummary, width: usize) -> Line {
    let cwd = summary.entry.cwd.to_string();
    let last = cwd.rfind('/').map_or("", |at| &cwd[at..]);
    let whole = facts(summary, Tokens::InWords, usize::MAX).with(Tone::Dim, &cwd);
    if whole.cells() <= width {
        return whole;
    }
    let needed = cells(&cwd).min(cells(last) + 1);
    let with_cwd = |line: Line| {
        let room = width.saturating_sub(line.cells());
        line.with(Tone::Dim, &ending(&cwd, room))
    };
    for tokens in [Tokens::OfBudget, Tokens::Used] {
        let line = facts(summary, tokens, usize::MAX);
        if line.cells() + needed <= width {
            return with_cwd(line);
        }
    }
    let rest = facts(summary, Tokens::Used, 0).cells() + needed;
    let model_max = width.saturating_sub(rest).max(MODEL_CELLS_MIN);
    with_cwd(facts(summary, Tokens::Used, model_max))
}

/// All that stands before the directory.
fn facts(summary: &AgentSummary, tokens: Tokens, model_max: usize) -> Line {
    let entry = &summary.entry;
    let mut line = Line::new();
    if entry.permission_level == Level::Yolo {
        line.push(Tone::Alarm, " YOLO ");
        line.push(Tone::Plain, " ");
    }
    let model = Line::of(Tone::Dim, &entry.model).cut(model_max).text();
    let model = if model_max == 0 { "" } else { &model };
    line.push(Tone::Dim, &format!("{} · {model}", entry.agent_id));
    if let Some(TokenSummary { total, budget }) = &summary.tokens {
        let (total, budget) = (thousands(*total), thousands(*budget));
        let told = match tokens {
            Tokens::InWords => format!(" · {total} of {budget} tokens"),
            Tokens::OfBudget => format!(" · {total}/{budget}"),
            Tokens::Used => format!(" · {total}"),
        };
        line.push(Tone::Dim, &told);
    }
    line.with(
        Tone::Dim,
        match entry.permission_level {
            Level::Yolo => " · ",
            Level::Trusted => " · trusted · ",
            Level::Sandboxed => " · sandboxed · ",
        },
    )
}

/// The end of a path, which tells more than its beginning.
fn ending(path: &str, room: usize) -> String {
    if cells(path) <= room {
        return path.to_owned();
    }
    let ends = path.char_indices().map(|(at, _)| &path[at..]).skip(1);
    let mut fits = ends.filter(|end| cells(end) < room);
    let whole = fits.clone().find(|end| end.starts_with('/'));
    format!("…{}", whole.or_else(|| fits.next()).unwrap_or_default())
}

fn margin(cells: usize) -> Line {
    Line::of(Tone::Plain, &" ".repeat(cells))
}

fn pieces(text: &str) -> impl Iterator<Item = (usize, &str)> {
    use unicode_segmentation::UnicodeSegmentation;
    text.grapheme_indices(true)
}

fn thousands(number: u64) -> String {
    match number {
        0..10_000 => number.to_string(),
        _ => format!("{}k", number / 1000),
    }
}
