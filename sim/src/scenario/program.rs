//! `[[program]]`: what happens when a tool runs a program.

use std::time::Duration;

use nexus3::provider::script::{Time, Times};
use nexus3::world::Exit;

use super::files::{self, FILE_BYTES_MAX, Files};
use super::form::{OutputForm, PieceForm, ProgramForm, RepeatedForm, RunForm, TakesForm};
use super::names::check_pattern;
use super::place::Place;

/// What happens when a tool runs a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    pub run: Run,
    /// How often it is run so.
    pub times: Times,
    pub stdout: String,
    pub stderr: String,
    pub exit: Exit,
    pub takes: Takes,
    pub writes: Files,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Run {
    Exactly(Vec<String>),
    /// A regular expression over the arguments, joined by spaces.
    Matching(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    Time(Time),
    Forever,
}

pub(super) fn program(place: &Place<'_>, form: ProgramForm) -> Program {
    let ProgramForm { run, times, stdout, stderr, exit, signal, takes, writes } = form;
    if let (Some(given), Some(_)) = (place.get("exit"), signal) {
        given.refuse_key("`exit` and `signal` are both given", "keep one of them");
    }
    Program {
        run: match run {
            RunForm::Exactly(arguments) => Run::Exactly(arguments),
            RunForm::Matching(pattern) => {
                if let Some(run) = place.get("run") {
                    check_pattern(&run, &pattern);
                }
                Run::Matching(pattern)
            }
        },
        times: times.unwrap_or(Times::Always),
        stdout: output(place, "stdout", stdout),
        stderr: output(place, "stderr", stderr),
        exit: match signal {
            Some(signal) => Exit::Signal(signal.into()),
            None => Exit::Code(exit.into()),
        },
        takes: match takes {
            None => Takes::Time(Time(Duration::ZERO)),
            Some(TakesForm::Time(time)) => Takes::Time(time),
            Some(TakesForm::Forever) => Takes::Forever,
        },
        writes: files::read(place, "writes", writes),
    }
}

/// The text of an output, whose pieces stand in it one after another.
fn output(place: &Place<'_>, key: &str, form: OutputForm) -> String {
    let pieces = match form {
        OutputForm::Whole(text) => return text,
        OutputForm::Pieces(pieces) => pieces,
    };
    let mut output = String::new();
    for piece in pieces {
        let (text, repeat) = match piece {
            PieceForm::Text(text) => (text, 1),
            PieceForm::Repeated(RepeatedForm { text, repeat }) => (text, repeat),
        };
        let repeat = usize::try_from(repeat).unwrap_or(usize::MAX);
        let bytes = text.len().saturating_mul(repeat).saturating_add(output.len());
        if bytes > FILE_BYTES_MAX {
            let message = format!("the output would have more than {FILE_BYTES_MAX} bytes");
            place.refuse_at(key, &message, "repeat less of it");
            break;
        }
        output.push_str(&text.repeat(repeat));
    }
    output
}
