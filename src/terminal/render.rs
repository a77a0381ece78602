//! One finished block of markdown as lines. Pure.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::line::{Line, Tone, cells};
use super::table::table;

/// Lines are as long as they are; only tables have to know how wide the screen is.
pub fn render(block: &str, width: usize) -> Vec<Line> {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut rendering = Rendering { width, ..Rendering::default() };
    for event in Parser::new_ext(block, options) {
        rendering.on(event);
    }
    rendering.end_line();
    rendering.lines
}

#[derive(Debug, Default)]
struct Rendering {
    width: usize,
    lines: Vec<Line>,
    line: Option<Line>,
    tones: Vec<Tone>,
    /// Those that are open.
    lists: Vec<List>,
    quotes: usize,
    links: Vec<String>,
    /// The rows of the one that is open.
    table: Option<Vec<Vec<Line>>>,
    code: bool,
}

#[derive(Debug)]
struct List {
    /// The number of the next item, where they have numbers.
    next: Option<u64>,
    /// The cells before the text of an item.
    hang: usize,
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
                self.lists.push(List { next: first, hang: 0 });
            }
            Tag::Item => self.item(),
            Tag::Emphasis => self.tones.push(Tone::Emphasis),
            Tag::Strong => self.tones.push(Tone::Strong),
            Tag::Strikethrough => self.tones.push(Tone::Dim),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.tones.push(Tone::Link);
                self.links.push(dest_url.into_string());
            }
            Tag::Table(_) => self.table = Some(Vec::new()),
            Tag::TableHead | Tag::TableRow => {
                self.table.iter_mut().for_each(|rows| rows.push(Vec::new()));
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
                let rows = self.table.iter_mut().filter_map(|rows| rows.last_mut());
                rows.for_each(|row| row.push(cell.clone()));
            }
            TagEnd::Table => {
                let rows = self.table.take().unwrap_or_default();
                self.lines.extend(table(&rows, self.width));
            }
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
        let items: usize = self.lists.iter().map(|list| list.hang).sum();
        format!("{}{}", "│ ".repeat(self.quotes), " ".repeat(items))
    }

    fn item(&mut self) {
        self.end_line();
        let Some(list) = self.lists.last_mut() else {
            return;
        };
        let mark = match &mut list.next {
            Some(number) => {
                *number += 1;
                format!("{}. ", *number - 1)
            }
            None => "• ".to_owned(),
        };
        // What goes on below the item, and what is within it, stands below its text.
        list.hang = 0;
        let margin = self.margin();
        let hang = cells(&mark);
        if let Some(list) = self.lists.last_mut() {
            list.hang = hang;
        }
        let line = Line::of(Tone::Dim, &format!("{margin}{mark}"));
        self.line = Some(line.hanging(cells(&margin) + hang));
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
}
