//! What happened in a run, one line each, made for reading and comparing: virtual time, who, what.
//! It holds no wall time, no address and no library's words. Whoever wants values instead of lines
//! finds them in the story, which has a moment for each line and for some that are none.

use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::story::{Happening, Keep, Moment};
use crate::digest::Digest;

/// How much of a JSON value stands in a line: so much of its beginning, and so much of its end,
/// where the newest is.
const HEAD_CHARS: usize = 240;
const TAIL_CHARS: usize = 240;
const WHO_WIDTH: usize = 8;

/// Shared by everybody who has something to tell. Cloning shares it.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    /// Held for one line at a time; nothing is awaited under it.
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    lines: Vec<String>,
    order: Digest,
    /// `None` where nobody wants it.
    moments: Option<Vec<Moment>>,
}

impl Transcript {
    pub fn keeping(keep: Keep) -> Self {
        let moments = match keep {
            Keep::Lines => None,
            Keep::Story => Some(Vec::new()),
        };
        Self { state: Arc::new(Mutex::new(State { moments, ..State::default() })) }
    }

    /// A line, of something without parts.
    pub fn note(&self, at: Duration, who: &str, what: &str) {
        self.tell(at, who, what, || Happening::Noted(what.to_owned()));
    }

    /// A line, and the same as a value where somebody wants it.
    pub fn tell(&self, at: Duration, who: &str, what: &str, happening: impl FnOnce() -> Happening) {
        self.line(at, who, what);
        self.happened(at, who, happening);
    }

    /// Something that is no line of its own.
    pub fn happened(&self, at: Duration, who: &str, happening: impl FnOnce() -> Happening) {
        if let Some(moments) = &mut self.state().moments {
            moments.push(Moment { at, who: who.to_owned(), what: happening() });
        }
    }

    /// What happened as values; `None` where nobody wanted it.
    pub fn moments(&self) -> Option<Vec<Moment>> {
        self.state().moments.clone()
    }

    fn line(&self, at: Duration, who: &str, what: &str) {
        let mut line = format!("{:>9}  {who:WHO_WIDTH$}  ", seconds(at));
        for (index, piece) in what.lines().enumerate() {
            if index > 0 {
                // What follows stands below what it belongs to.
                let _ = write!(line, "\n{:>9}  {:WHO_WIDTH$}    ", "", "");
            }
            line.push_str(piece);
        }
        let mut state = self.state();
        state.lines.push(line);
        // Who did what kind of thing after whom, without times, names and contents.
        state.order.add(who.as_bytes());
        let kind = what.split_whitespace().filter(|word| !word.starts_with(['{', '[', '"']));
        for word in kind.take(2) {
            state.order.add(word.as_bytes());
        }
    }

    /// A line of the end state.
    pub fn end(&self, what: &str, how: &str) {
        self.state().lines.push(format!("{:>9}  {what:WHO_WIDTH$}  {how}", "end"));
    }

    /// The lines after the first `count`.
    pub fn since(&self, count: usize) -> Vec<String> {
        self.state().lines.get(count..).unwrap_or_default().to_vec()
    }

    pub fn text(&self) -> String {
        let mut text = self.state().lines.join("\n");
        text.push('\n');
        text
    }

    /// A number that stands for the order in which things happened.
    pub fn order(&self) -> u64 {
        self.state().order.number()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Virtual time with milliseconds.
pub fn seconds(time: Duration) -> String {
    format!("{}.{:03}s", time.as_secs(), time.subsec_millis())
}

/// A value on one line, its middle left out where it is long, with its length told.
pub fn shown(value: &impl serde::Serialize) -> String {
    let text = serde_json::to_string(value).expect("what is shown has only string keys");
    shortened(&text)
}

pub fn shortened(text: &str) -> String {
    let head = text.char_indices().nth(HEAD_CHARS);
    let tail = text.char_indices().nth_back(TAIL_CHARS - 1);
    match (head, tail) {
        (Some((head, _)), Some((tail, _))) if head < tail => {
            format!("{}… ({} bytes) …{}", &text[..head], text.len(), &text[tail..])
        }
        _ => text.to_owned(),
    }
}
