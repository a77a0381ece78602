//! The turn that runs, as it is shown while it does.

use std::time::Duration;

use jiff::Timestamp;

use crate::id::{ConfirmId, RequestId};
use crate::terminal::line::{Line, Tone};
use crate::terminal::markdown::Markdown;

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
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
    /// When we saw it begin, and when it did.
    pub since: Duration,
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
        Self { request, text, said: 0, tools, asked, over: 0, doing: Doing::Working, since, at }
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
        if let Some(took) = took(self.at, at) {
            self.since = self.since.min(now.saturating_sub(took));
        }
    }

    /// What of a piece of its text is not shown yet.
    pub fn fresh<'a>(&mut self, text: &'a str, offset: usize) -> &'a str {
        let known = self.said.saturating_sub(offset);
        let fresh = text.char_indices().nth(known).map_or("", |(at, _)| &text[at..]);
        self.said = self.said.max(offset + text.chars().count());
        fresh
    }

    /// What it does now, a line for each thing.
    pub fn activity(&self, now: Duration) -> Vec<Line> {
        let picture = now.as_millis() / PICTURE.as_millis();
        let picture = usize::try_from(picture).unwrap_or(0) % SPINNER.len();
        let line = |what: &str, since: Duration| {
            let took = seconds(now.saturating_sub(since));
            let line = Line::of(Tone::Loud, SPINNER[picture]).with(Tone::Dim, &format!(" {took} "));
            line.with(Tone::Dim, what)
        };
        if !self.tools.is_empty() {
            let tools = self.tools.iter();
            return tools.map(|tool| line(&tool.told(), tool.since)).collect();
        }
        let line = match &self.doing {
            Doing::Working => line("working · Esc cancels", self.since),
            Doing::Thinking(since) => line("thinking · Esc cancels", *since),
            Doing::Calling(name) => line(&format!("calls {name}"), self.since),
            Doing::Waiting(why) => line(why, self.since),
        };
        vec![line]
    }
}

impl Running {
    /// How far it is stands first: what follows may be cut.
    fn told(&self) -> String {
        let far = self.far.as_ref().map(|far| format!(" {far} ·")).unwrap_or_default();
        format!("{}{far} {}", self.name, self.params)
    }
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
