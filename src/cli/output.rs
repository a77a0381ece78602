//! Writing for people and programs: results to stdout, the rest to stderr.
//! A reader that went away (a closed pipe) is no error of ours.

use std::cell::RefCell;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::OnceLock;

use tokio::io::Interest;
use tokio::net::unix::pipe::Sender;

use super::layout;

/// Whether somebody still reads what is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    There,
    Gone,
}

tokio::task_local! {
    /// What a command writes that runs inside a terminal, whose screen is not its own.
    static KEPT: Kept;
}

struct Kept {
    text: RefCell<String>,
    width: usize,
}

/// Keeps what is written while something is done, instead of writing it. Lines are as wide as that.
pub async fn kept<T>(width: usize, work: impl Future<Output = T>) -> (T, String) {
    let kept = Kept { text: RefCell::default(), width };
    let work = async {
        let done = work.await;
        (done, KEPT.with(|kept| kept.text.take()))
    };
    KEPT.scope(kept, work).await
}

/// Whether somebody keeps what is written; then it is kept.
fn keep(text: std::fmt::Arguments<'_>) -> bool {
    let write = |kept: &Kept| std::fmt::Write::write_fmt(&mut *kept.text.borrow_mut(), text);
    KEPT.try_with(write).is_ok()
}

/// Why results could not be written, though somebody wants to have them.
static LOST: OnceLock<io::Error> = OnceLock::new();

/// What was lost of the results so far: a full disk must not look like a whole file.
pub fn lost() -> Option<&'static io::Error> {
    noted(io::stdout().lock().flush());
    LOST.get()
}

fn noted(written: io::Result<()>) -> Reader {
    match written {
        Ok(()) => Reader::There,
        Err(error) => {
            if error.kind() != io::ErrorKind::BrokenPipe {
                LOST.get_or_init(|| error);
            }
            Reader::Gone
        }
    }
}

pub fn line(text: impl std::fmt::Display) {
    if keep(format_args!("{text}\n")) {
        return;
    }
    noted(writeln!(io::stdout().lock(), "{text}"));
}

/// Writes text as it is, at once.
pub fn text(text: &str) -> Reader {
    if keep(format_args!("{text}")) {
        return Reader::There;
    }
    let mut stdout = io::stdout().lock();
    noted(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()))
}

/// Returns once nobody reads what is written, also while there is nothing to write. Never where that
/// cannot be told, as of a file.
pub async fn reader_gone() {
    // Unchecked: it stays a blocking one for those who write, and may be no pipe.
    let watched = io::stdout().as_fd().try_clone_to_owned();
    if let Ok(watched) = watched.and_then(Sender::from_owned_fd_unchecked)
        && watched.ready(Interest::ERROR).await.is_ok()
    {
        return;
    }
    std::future::pending::<()>().await;
}

pub fn json(value: &impl serde::Serialize) {
    let text = serde_json::to_string_pretty(value).expect("results have only string keys");
    line(text);
}

pub fn note(text: impl std::fmt::Display) {
    if keep(format_args!("{text}\n")) {
        return;
    }
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Tells what matters only while something goes on: nothing where it is kept to be read afterwards.
pub fn aside(text: &str) {
    if KEPT.try_with(|_| ()).is_err() {
        note(text);
    }
}

/// Replaces the line that a person is looking at. Nothing where nobody looks.
pub fn progress(text: &str) {
    if KEPT.try_with(|_| ()).is_ok() {
        return;
    }
    let mut stderr = io::stderr().lock();
    if stderr.is_terminal() {
        let size = terminal_size::terminal_size_of(&stderr);
        let columns = size.map_or(usize::MAX, |(columns, _)| usize::from(columns.0));
        // A line that is broken over two could not be replaced.
        let text: String = text.chars().take(columns.saturating_sub(1)).collect();
        let _ = write!(stderr, "\r\x1b[K{text}").and_then(|()| stderr.flush());
    }
}

/// What to do about an error. It is told after the error and what caused it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Hint(pub String);

/// The error and, indented below it, what caused it and what can be done.
pub fn error(error: &anyhow::Error) {
    let hint = error.downcast_ref::<Hint>();
    let mut causes = error.chain().skip(usize::from(hint.is_some()));
    if let Some(first) = causes.next() {
        note(format_args!("error: {first}"));
    }
    for cause in causes {
        note(format_args!("  because: {cause}"));
    }
    if let Some(hint) = hint {
        note(format_args!("  hint: {hint}"));
    }
}

/// The columns of the terminal that results are written to, if it is one.
pub fn width() -> Option<usize> {
    if let Ok(width) = KEPT.try_with(|kept| kept.width) {
        return Some(width);
    }
    let size = terminal_size::terminal_size_of(io::stdout())?;
    Some(usize::from(size.0.0))
}

/// A table as wide as there is room for.
pub fn table<const N: usize>(head: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    layout::table(head, &rows.collect::<Vec<_>>(), width())
}

/// A text after its start, as wide as there is room for.
pub fn hung(start: &str, text: &str) -> String {
    layout::hung(start, text, width())
}

/// Facts, as wide as there is room for.
pub fn facts<N: AsRef<str>>(facts: &[(N, String)]) -> String {
    layout::facts(facts, width())
}

/// Text that somebody else wrote, without what would move a terminal's cursor or colour it.
pub fn plain(text: &str) -> String {
    let shown = |c: char| if c.is_control() && c != '\n' && c != '\t' { '\u{fffd}' } else { c };
    text.chars().map(shown).collect()
}
