//! The turn that runs, as it is shown while it does.

use std::time::Duration;

use jiff::Timestamp;

use crate::id::{ConfirmId, RequestId};
use crate::terminal::line::{Line, Tone, cells};
use crate::terminal::markdown::Markdown;

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const ESCAPE: &str = " · Esc cancels";
const PICTURE: Duration = Duration::from_millis(120);

#[derive(Debug)]
pub struct Turn {
    pub request: RequestId,
    pub text: Markdown,
    /// Characters of its text that are shown, those before its calls among them.
    pub said: usize,
    pub tools: Vec<Running>,
    /// Calls that wait for an answer, in words.
    pub asked: Vec<(ConfirmId, String)>,
    /// Calls of the batch that are over, those that were denied among them.
    pub over: usize,
    pub doing: Doing,
    /// When we saw it begin, how long it had gone on by then, and when it began.
    pub since: Duration,
    pub before: Duration,
    pub at: Option<Timestamp>,
}

#[derive(Debug)]
pub struct Running {
    pub id: String,
    pub name: String,
    pub params: String,
    /// How far it is, where its server tells.
    pub far: Option<String>,
    pub since: Duration,
    pub at: Option<Timestamp>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Doing {
    Working,
    Thinking(Duration),
    /// The model writes a call of this tool.
    Calling(String),
    /// The model is asked again.
    Waiting(String),
}

impl Turn {
    pub fn new(width: usize, request: RequestId, since: Duration, at: Option<Timestamp>) -> Self {
        let (text, tools, asked) = (Markdown::new(width), Vec::new(), Vec::new());
        let (said, over, before, doing) = (0, 0, Duration::ZERO, Doing::Working);
        Self { request, text, said, tools, asked, over, doing, since, before, at }
    }

    /// Which call an answer was for, where that is known.
    pub fn answered(&mut self, confirm_id: &ConfirmId) -> Option<String> {
        let place = self.asked.iter().position(|(asked, _)| asked == confirm_id)?;
        Some(self.asked.remove(place).1)
    }

    /// The one that an agent was in when we came; so much of its text is shown already.
    pub fn running(width: usize, request: RequestId, since: Duration, said: usize) -> Self {
        Self { said, ..Self::new(width, request, since, None) }
    }

    /// Something was told of it that happened at a time: by then it had gone on for so long, however late
    /// it is told.
    pub fn gone_on_until(&mut self, now: Duration, at: Option<Timestamp>) {
        let seen = now.saturating_sub(self.since);
        let took = took(self.at, at).unwrap_or_default();
        self.before = self.before.max(took.saturating_sub(seen));
    }

    /// What of a piece of its text is not shown yet.
    pub fn fresh<'a>(&mut self, text: &'a str, offset: usize) -> &'a str {
        let known = self.said.saturating_sub(offset);
        let fresh = text.char_indices().nth(known).map_or("", |(at, _)| &text[at..]);
        self.said = self.said.max(offset + text.chars().count());
        fresh
    }

    /// What it does now, a line for each thing, the first of which says how it is ended.
    pub fn activity(&self, now: Duration, width: usize) -> Vec<Line> {
        let took = now.saturating_sub(self.since) + self.before;
        let since = |then: Duration| now.saturating_sub(then);
        let mut lines: Vec<Line> =
            self.tools.iter().map(|tool| goes_on(&tool.told(), since(tool.since), now)).collect();
        if lines.is_empty() {
            lines.push(match &self.doing {
                Doing::Working | Doing::Calling(_) if !self.asked.is_empty() => {
                    goes_on("wants an answer", took, now)
                }
                Doing::Working => goes_on("working", took, now),
                Doing::Thinking(then) => goes_on("thinking", since(*then), now),
                Doing::Calling(name) => goes_on(&format!("calls {name}"), took, now),
                Doing::Waiting(why) => goes_on(why, took, now),
            });
        }
        if let Some(first) = lines.first_mut() {
            *first = ended_by_escape(first, width);
        }
        lines
    }
}

impl Running {
    /// How far it is stands first: what follows may be cut.
    fn told(&self) -> String {
        let far = self.far.as_ref().map(|far| format!(" {far} ·")).unwrap_or_default();
        format!("{}{far} {}", self.name, self.params)
    }
}

/// The same line with how to end what it tells of.
pub fn ended_by_escape(line: &Line, width: usize) -> Line {
    line.cut(width.saturating_sub(cells(ESCAPE))).with(Tone::Dim, ESCAPE)
}

/// Something that has gone on for so long.
pub fn goes_on(what: &str, took: Duration, now: Duration) -> Line {
    let picture = now.as_millis() / PICTURE.as_millis();
    let picture = usize::try_from(picture).unwrap_or(0) % SPINNER.len();
    let took = seconds(took);
    let line = Line::of(Tone::Loud, SPINNER[picture]).with(Tone::Dim, &format!(" {took} "));
    line.with(Tone::Dim, what)
}

/// How far something is, in words.
pub fn far(progress: f64, total: Option<f64>, message: Option<&str>) -> String {
    let number = match total.filter(|total| *total > 0.0) {
        Some(total) => format!("{:.0} %", (progress / total * 100.0).clamp(0.0, 100.0)),
        None => progress.to_string(),
    };
    match message {
        Some(message) => format!("{number} {message}"),
        None => number,
    }
}

/// How long something took, by the server's clock.
pub fn took(from: Option<Timestamp>, to: Option<Timestamp>) -> Option<Duration> {
    let (from, to) = from.zip(to)?;
    Duration::try_from(to.duration_since(from)).ok()
}

pub fn seconds(time: Duration) -> String {
    let (whole, tenths) = (time.as_secs(), time.subsec_millis() / 100);
    match whole {
        0..60 => format!("{whole}.{tenths} s"),
        _ => format!("{} min {:02} s", whole / 60, whole % 60),
    }
}
