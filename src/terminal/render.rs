//! One finished block of markdown as lines. Pure.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::line::{Line, Tone, cells};

/// Between the columns of a table.
const COLUMN_GAP: &str = " │ ";

pub fn render(block: &str) -> Vec<Line> {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut rendering = Rendering::default();
    for event in Parser::new_ext(block, options) {
        rendering.on(event);
    }
    rendering.end_line();
    rendering.lines
}

#[derive(Debug, Default)]
struct Rendering {
    lines: Vec<Line>,
    line: Option<Line>,
    tones: Vec<Tone>,
    /// The number of the next item, for each list that is open.
    lists: Vec<Option<u64>>,
    quotes: usize,
    links: Vec<String>,
    table: Option<Table>,
    code: bool,
}

#[derive(Debug, Default)]
struct Table {
    rows: Vec<Vec<Line>>,
}

impl Rendering {
    fn on(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Code(code) => self.put(Tone::Code, &code),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => self.text(&text),
            Event::SoftBreak | Event::HardBreak => self.break_line(),
            Event::Rule => {
                self.put(Tone::Dim, "────────");
                self.end_line();
            }
            Event::TaskListMarker(done) => self.put(Tone::Dim, if done { "☑ " } else { "☐ " }),
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => {
                self.put(Tone::Plain, &text);
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { .. } => self.tones.push(Tone::Heading),
            Tag::BlockQuote(_) => self.quotes += 1,
            Tag::CodeBlock(_) => {
                self.end_line();
                self.code = true;
            }
            Tag::List(first) => {
                self.end_line();
                self.lists.push(first);
            }
            Tag::Item => self.item(),
            Tag::Emphasis => self.tones.push(Tone::Emphasis),
            Tag::Strong => self.tones.push(Tone::Strong),
            Tag::Strikethrough => self.tones.push(Tone::Dim),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.tones.push(Tone::Link);
                self.links.push(dest_url.into_string());
            }
            Tag::Table(_) => self.table = Some(Table::default()),
            Tag::TableHead | Tag::TableRow => {
                self.table.iter_mut().for_each(|table| table.rows.push(Vec::new()));
            }
            Tag::TableCell => self.line = Some(Line::new()),
            // Whatever else there may be is shown as the text it has.
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock | TagEnd::Item => self.end_line(),
            TagEnd::Heading(_) => {
                self.tones.pop();
                self.end_line();
            }
            TagEnd::BlockQuote(_) => {
                self.end_line();
                self.quotes -= 1;
            }
            TagEnd::CodeBlock => {
                self.end_line();
                self.code = false;
            }
            TagEnd::List(_) => {
                self.end_line();
                self.lists.pop();
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.tones.pop();
            }
            TagEnd::Link | TagEnd::Image => self.end_link(),
            TagEnd::TableCell => {
                let cell = self.line.take().unwrap_or_default();
                let rows = self.table.iter_mut().filter_map(|table| table.rows.last_mut());
                rows.for_each(|row| row.push(cell.clone()));
            }
            TagEnd::Table => self.end_table(),
            // They ended nothing that was begun.
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        let tone = if self.code { Tone::Code } else { self.tone() };
        for (index, line) in text.split('\n').enumerate() {
            if index > 0 {
                self.break_line();
            }
            if !line.is_empty() {
                self.put(tone, line);
            }
        }
    }

    fn tone(&self) -> Tone {
        self.tones.last().copied().unwrap_or_default()
    }

    fn put(&mut self, tone: Tone, text: &str) {
        let margin = self.margin();
        let code = self.code;
        let line = self.line.get_or_insert_with(|| {
            let line = Line::of(Tone::Dim, &margin).hanging(cells(&margin));
            if code { line.with(Tone::Code, "  ") } else { line }
        });
        line.push(tone, text);
    }

    /// What stands before a line that begins here.
    fn margin(&self) -> String {
        let items = "  ".repeat(self.lists.len());
        format!("{}{items}", "│ ".repeat(self.quotes))
    }

    fn item(&mut self) {
        self.end_line();
        let mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                *number += 1;
                format!("{}. ", *number - 1)
            }
            Some(None) | None => "• ".to_owned(),
        };
        let outer = "  ".repeat(self.lists.len().saturating_sub(1));
        let margin = format!("{}{outer}", "│ ".repeat(self.quotes));
        let hang = cells(&margin) + cells(&mark);
        self.line = Some(Line::of(Tone::Dim, &format!("{margin}{mark}")).hanging(hang));
    }

    fn break_line(&mut self) {
        if self.table.is_none() {
            self.end_line();
        }
    }

    fn end_line(&mut self) {
        self.lines.extend(self.line.take());
    }

    fn end_link(&mut self) {
        self.tones.pop();
        let Some(target) = self.links.pop() else {
            return;
        };
        let said = self.line.as_ref().is_some_and(|line| line.text().ends_with(&target));
        if !said {
            self.put(Tone::Dim, &format!(" ({target})"));
        }
    }

    fn end_table(&mut self) {
        let Some(Table { rows }) = self.table.take() else {
            return;
        };
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let wide = |column| rows.iter().filter_map(|row| row.get(column)).map(Line::cells).max();
        let widths: Vec<usize> = (0..columns).map(|column| wide(column).unwrap_or(0)).collect();
        for (index, row) in rows.iter().enumerate() {
            let mut line = Line::new();
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                if column > 0 {
                    line.push(Tone::Dim, COLUMN_GAP);
                }
                for span in &cell.spans {
                    let tone = if index == 0 { Tone::Strong } else { span.tone };
                    line.push(tone, &span.text);
                }
                if column + 1 < columns {
                    line.push(Tone::Plain, &" ".repeat(width - cell.cells()));
                }
            }
            self.lines.push(line);
        }
    }
}
