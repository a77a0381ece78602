//! What programs did, as entries of a scenario: each is used once, in the order of their starts.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::order::rounded;
use crate::provider::script::Time;
use crate::record::form::{FILE_BYTES_MAX, File, Filler, Output, Program};
use crate::record::hidden::Hidden;
use crate::record::note::{Number, Ran, RanEnd};
use crate::tool::Kept;
use crate::world::Exit;

const FOREVER: &str = "forever";
/// What stands for what nobody kept.
const MISSING: &str = " ";
/// By how much the times of files lag behind the clock.
const LAG: SignedDuration = SignedDuration::from_millis(20);
const TAKES_MIN: Duration = Duration::from_millis(10);

#[derive(Debug, Default)]
pub(super) struct Runs {
    all: Vec<Run>,
    open: BTreeMap<Number, usize>,
    /// How many could not be started though they were there.
    unstarted: u64,
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
        self.open.insert(number, self.all.len());
        self.all.push(Run { program, started: now, ended: None, is_real: true });
    }

    pub(super) fn ended(&mut self, number: Number, ran: &Ran, hidden: &Hidden) {
        let Some(run) = self.open.remove(&number).map(|index| &mut self.all[index]) else {
            return;
        };
        let Ran { stdout, stderr, took, at, end } = ran;
        run.ended = Some(*at);
        let program = &mut run.program;
        program.stdout = said(stdout, hidden);
        program.stderr = said(stderr, hidden);
        match end {
            RanEnd::Exit(exit) => {
                match exit {
                    Exit::Code(0) => {}
                    Exit::Code(code) => program.exit = Some(*code),
                    Exit::Signal(signal) => program.signal = Some(*signal),
                }
                program.takes = (*took >= TAKES_MIN).then(|| Time(rounded(*took)).to_string());
            }
            RanEnd::Ended => {}
            RanEnd::NotThere => run.is_real = false,
            RanEnd::NotStarted => {
                run.is_real = false;
                self.unstarted += 1;
            }
        }
    }

    /// What goes another way in a replay.
    pub(super) fn unlike(&self) -> Option<String> {
        let why = "there are none of their names in a replay";
        let count = self.unstarted;
        (count > 0).then(|| format!("Programs that could not be started: {count}; {why}."))
    }

    pub(super) fn written(&self) -> impl Iterator<Item = &Program> {
        self.all.iter().filter(|run| run.is_real).map(|run| &run.program)
    }

    /// The program that has left something at this time, if one has.
    pub(super) fn author(&mut self, modified: Timestamp) -> Option<&mut BTreeMap<String, File>> {
        let wrote = |run: &&mut Run| {
            run.is_real
                && run.started - LAG <= modified
                && run.ended.is_none_or(|ended| modified <= ended)
        };
        self.all.iter_mut().rev().find(wrote).map(|run| &mut run.program.writes)
    }

    /// The last program that ran at this time or later.
    pub(super) fn since(&mut self, time: Timestamp) -> Option<&mut BTreeMap<String, File>> {
        let ran = |run: &&mut Run| run.is_real && run.ended.is_none_or(|ended| ended >= time);
        self.all.iter_mut().rev().find(ran).map(|run| &mut run.program.writes)
    }

    /// What a program has left under a name, the last one of them.
    pub(super) fn written_last(&self, name: &str) -> Option<&File> {
        self.all.iter().rev().find_map(|run| run.program.writes.get(name))
    }
}

/// What a program said. What is missing in the middle is as long as it was.
fn said(kept: &Kept, hidden: &Hidden) -> Output {
    let (head, between, tail) = kept.parts();
    let text = |bytes: &[u8]| hidden.text(&String::from_utf8_lossy(bytes));
    if between == 0 {
        return Output::Whole(text(&[head, tail].concat()));
    }
    let missing = Filler { text: MISSING, repeat: between.min(FILE_BYTES_MAX) };
    Output::Parts(text(&head), missing, text(&tail))
}
