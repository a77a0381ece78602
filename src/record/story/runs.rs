//! What programs did, as entries of a scenario: each is used once, in the order of their starts.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::order::rounded;
use crate::provider::script::Time;
use crate::record::form::{File, Program};
use crate::record::hidden::Hidden;
use crate::record::note::{Number, Ran, RanEnd};
use crate::world::Exit;

const FOREVER: &str = "forever";
/// A shell tells of a signal so.
const SIGNALLED: i32 = 128;
/// By how much the times of files lag behind the clock.
const LAG: SignedDuration = SignedDuration::from_millis(20);
const TAKES_MIN: Duration = Duration::from_millis(10);

#[derive(Debug, Default)]
pub(super) struct Runs {
    runs: Vec<Run>,
    open: BTreeMap<Number, usize>,
}

#[derive(Debug)]
struct Run {
    program: Program,
    started: Timestamp,
    ended: Option<Timestamp>,
    /// What could not be started is no program of the scenario.
    is_real: bool,
}

impl Runs {
    pub(super) fn started(
        &mut self,
        number: Number,
        words: &[String],
        now: Timestamp,
        hidden: &Hidden,
    ) {
        let run = words.iter().map(|word| hidden.text(word)).collect();
        let takes = Some(FOREVER.to_owned());
        let program = Program { run, times: 1, takes, ..Program::default() };
        self.open.insert(number, self.runs.len());
        self.runs.push(Run { program, started: now, ended: None, is_real: true });
    }

    pub(super) fn ended(&mut self, number: Number, ran: &Ran, hidden: &Hidden) {
        let Some(run) = self.open.remove(&number).map(|index| &mut self.runs[index]) else {
            return;
        };
        let Ran { stdout, stderr, took, at, end } = ran;
        run.ended = Some(*at);
        let program = &mut run.program;
        program.stdout = hidden.text(&String::from_utf8_lossy(stdout));
        program.stderr = hidden.text(&String::from_utf8_lossy(stderr));
        match end {
            RanEnd::Exit(exit) => {
                let code = match exit {
                    Exit::Code(code) => *code,
                    Exit::Signal(signal) => SIGNALLED + signal,
                };
                program.exit = (code != 0).then_some(code);
                program.takes = (*took >= TAKES_MIN).then(|| Time(rounded(*took)).to_string());
            }
            RanEnd::Ended => {}
            RanEnd::NotStarted => run.is_real = false,
        }
    }

    pub(super) fn written(&self) -> impl Iterator<Item = &Program> {
        self.runs.iter().filter(|run| run.is_real).map(|run| &run.program)
    }

    /// The program that has left something at this time, if one has.
    pub(super) fn author(&mut self, modified: Timestamp) -> Option<&mut BTreeMap<String, File>> {
        let wrote = |run: &&mut Run| {
            run.is_real
                && run.started - LAG <= modified
                && run.ended.is_none_or(|ended| modified <= ended)
        };
        self.runs.iter_mut().rev().find(wrote).map(|run| &mut run.program.writes)
    }

    /// What a program has left under a name, the last one of them.
    pub(super) fn written_last(&self, name: &str) -> Option<&File> {
        self.runs.iter().rev().find_map(|run| run.program.writes.get(name))
    }

    /// The last program that has run.
    pub(super) fn last(&mut self) -> Option<&mut BTreeMap<String, File>> {
        self.runs.iter_mut().rev().find(|run| run.is_real).map(|run| &mut run.program.writes)
    }
}
