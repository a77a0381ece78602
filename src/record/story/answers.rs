//! What models said, as entries of a script: in the order in which they were asked, since that is the
//! order in which a script answers.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};

use super::order::rounded;
use crate::limits::RECORD_CHUNKS_MAX;
use crate::provider::script::{Ask, Chunks, ScriptUsage, Stall, Time, Times, View};
use crate::provider::{Fault as Failure, FinishReason};
use crate::record::form::{Fault, Model, Yes};
use crate::record::hidden::Hidden;
use crate::record::note::{Answer, AnswerEnd, Number};

/// What is closer together came at once.
const PAUSE_MIN: Duration = Duration::from_millis(2);
const DELAY_MIN: Duration = Duration::from_millis(10);

#[derive(Debug, Default)]
pub(super) struct Answers {
    entries: Vec<Entry>,
    open: BTreeMap<Number, usize>,
    /// What each agent's model was shown last.
    shown: BTreeMap<String, View>,
    /// What was shown to nobody, and will be again.
    unshown: BTreeMap<String, String>,
}

#[derive(Debug)]
struct Entry {
    model: Model,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    Answered,
    /// Nobody was asked.
    Void,
}

impl Answers {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn asked(
        &mut self,
        number: Number,
        agent: &str,
        view: Option<View>,
        hidden: &Hidden,
    ) {
        let before = self.shown.get(agent);
        let news = view.as_ref().map(|view| view.news(before)).unwrap_or_default();
        let shown = self.unshown.remove(agent).unwrap_or_else(|| hidden.text(&news));
        let model = Model { agent: agent.to_owned(), shown, ..Model::default() };
        self.open.insert(number, self.entries.len());
        self.entries.push(Entry { model, state: State::Open });
        if let Some(view) = view {
            self.shown.insert(agent.to_owned(), view);
        }
    }

    pub(super) fn unasked(&mut self, number: Number) {
        let Some(entry) = self.open.remove(&number).map(|index| &mut self.entries[index]) else {
            return;
        };
        entry.state = State::Void;
        let Model { agent, shown, .. } = &entry.model;
        self.unshown.insert(agent.clone(), shown.clone());
    }

    pub(super) fn answered(&mut self, number: Number, answer: &Answer, hidden: &Hidden) {
        let Some(entry) = self.open.remove(&number).map(|index| &mut self.entries[index]) else {
            return;
        };
        entry.state = State::Answered;
        let model = &mut entry.model;
        let asks: Vec<Ask> = answer.calls.iter().map(|call| ask(call, hidden)).collect();
        let chunks = answer.thinks.len() + answer.says.len() + asks.len();
        model.thinks = chunks_of(&answer.thinks, hidden);
        model.says = chunks_of(&answer.says, hidden);
        model.usage = answer
            .usage
            .map(|usage| ScriptUsage { input: usage.input_tokens, output: usage.output_tokens });
        model.delay = (answer.delay >= DELAY_MIN).then(|| Time(rounded(answer.delay)));
        let gaps = u32::try_from(chunks).unwrap_or(u32::MAX).saturating_sub(1);
        let pause = answer.took.checked_div(gaps).unwrap_or_default();
        model.pause = (pause >= PAUSE_MIN).then(|| Time(rounded(pause)));
        model.finish = match (answer.finish, asks.is_empty()) {
            (Some(FinishReason::Length), _) => Some("length"),
            (Some(FinishReason::Stop), false) => Some("stop"),
            (Some(FinishReason::ToolCalls), true) => Some("tool_calls"),
            (Some(FinishReason::Stop), true)
            | (Some(FinishReason::ToolCalls), false)
            | (None, _) => None,
        };
        model.fault = fault(&answer.end, chunks as u64);
        if answer.calls.iter().any(|(_, arguments)| arguments_of(arguments).is_none()) {
            model.fault.get_or_insert_default().bad_arguments = Some(Yes);
        }
        model.asks = asks;
        let is_empty = model.says.is_none() && model.asks.is_empty() && model.fault.is_none();
        if is_empty {
            model.says = Some(Chunks::One(String::new()));
        }
    }

    /// One that is open has said nothing that is known: it stays silent, however often it is asked.
    pub(super) fn written(&self) -> impl Iterator<Item = Model> {
        self.entries.iter().filter(|entry| entry.state != State::Void).map(|entry| {
            let mut model = entry.model.clone();
            if entry.state == State::Open {
                model.times = Some(Times::Always);
                model.fault = Some(Fault { stall: Some(Stall::Headers), ..Fault::default() });
            }
            model
        })
    }
}

fn ask((name, arguments): &(String, String), hidden: &Hidden) -> Ask {
    let args = arguments_of(arguments).unwrap_or_default();
    Ask { tool: hidden.text(name), args: hidden.members(&args) }
}

/// Models leave the arguments out when there are none.
fn arguments_of(text: &str) -> Option<Map<String, Value>> {
    if text.trim().is_empty() { Some(Map::new()) } else { serde_json::from_str(text).ok() }
}

fn chunks_of(pieces: &[String], hidden: &Hidden) -> Option<Chunks> {
    let mut pieces = hidden.pieces(pieces);
    // Neighbours are joined where there are too many to be read.
    while pieces.len() > RECORD_CHUNKS_MAX {
        pieces = pieces.chunks(2).map(<[String]>::concat).collect();
    }
    match pieces.len() {
        0 => None,
        1 => pieces.pop().map(Chunks::One),
        _ => Some(Chunks::Many(pieces)),
    }
}

fn fault(end: &AnswerEnd, chunks: u64) -> Option<Fault> {
    let none = Fault::default();
    Some(match end {
        AnswerEnd::Whole => return None,
        AnswerEnd::Dropped if chunks == 0 => Fault { stall: Some(Stall::Headers), ..none },
        AnswerEnd::Dropped => Fault { stall: Some(Stall::Chunks(chunks)), ..none },
        AnswerEnd::Broke { fault, status, retry_after } => match fault {
            Failure::Auth | Failure::Status => Fault {
                status: status.or(Some(500)),
                retry_after: retry_after.map(|time| Time(rounded(time))),
                ..none
            },
            Failure::Connect => Fault { refuse: Some(Yes), ..none },
            Failure::Timeout => Fault { stall: Some(Stall::Headers), ..none },
            Failure::Stall => Fault { stall: Some(Stall::Chunks(chunks)), ..none },
            Failure::Reset if chunks == 0 => Fault { refuse: Some(Yes), ..none },
            Failure::Reset => Fault { reset_after: Some(chunks), ..none },
            Failure::Eof => Fault { eof_without_finish: Some(Yes), ..none },
            Failure::ErrorInStream => Fault { error_in_stream: Some(Yes), ..none },
            Failure::BadJson => Fault { bad_json: Some(Yes), ..none },
            Failure::Empty => return None,
        },
    })
}
