//! What models said, as entries of a script: in the order in which they were asked, since that is the
//! order in which a script answers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Map, Value};

use super::order::{Moment, exact, rounded};
use crate::config::ProviderConfig;
use crate::limits::RECORD_CHUNKS_MAX;
use crate::provider::script::{After, Ask, Chunks, ScriptUsage, Stall, Time, Times, View};
use crate::provider::{Fault as Failure, FinishReason};
use crate::record::form::{Fault, Model, Yes};
use crate::record::hidden::Hidden;
use crate::record::note::{Answer, AnswerEnd, Head, Number, Piece};
use crate::record::text::fits_toml;

/// What is closer together came at once.
const PAUSE_MIN: Duration = Duration::from_millis(2);
const DELAY_MIN: Duration = Duration::from_millis(10);

/// How long a server waits for a model, which some keep waiting without a word, and longer than a script
/// can: what they send meanwhile says nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    pub(super) delay_max: Duration,
    pause_max: Duration,
}

impl Patience {
    /// That of the least patient provider.
    pub(super) fn of<'c>(providers: &(impl Iterator<Item = &'c ProviderConfig> + Clone)) -> Self {
        let least = |time: fn(&ProviderConfig) -> f64| {
            let times = providers.clone().map(time).filter(|time| *time > 0.0);
            let least = times.fold(f64::INFINITY, f64::min);
            // Half of it, since networks take their time, too.
            Duration::try_from_secs_f64(least / 2.0).unwrap_or(Duration::MAX)
        };
        Self {
            delay_max: least(|provider| provider.request_timeout),
            pause_max: least(|provider| provider.stream_idle_timeout),
        }
    }
}

#[derive(Debug)]
pub(super) struct Answers {
    pub(super) patience: Patience,
    /// How often a model could not be reached at all.
    unreached: u64,
    entries: Vec<Entry>,
    open: BTreeMap<Number, Open>,
    /// What each agent's model was shown last.
    shown: BTreeMap<String, View>,
    /// What was shown to nobody, and will be again.
    unshown: BTreeMap<String, String>,
}

#[derive(Debug)]
struct Entry {
    model: Model,
    state: State,
    asked: Moment,
    /// When its first word came, or the last one where all came at once.
    came: Option<Moment>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Or the recording ends within it.
    Open(Number),
    Answered,
    /// Nobody was asked.
    Void,
}

/// An answer that is still coming.
#[derive(Debug)]
struct Open {
    entry: usize,
    heard: Heard,
}

/// What has come of an answer.
#[derive(Debug, Default)]
struct Heard {
    thinks: Vec<String>,
    says: Vec<String>,
    /// Indices, names and arguments, as text.
    calls: Vec<(usize, String, String)>,
}

impl Heard {
    fn add(&mut self, piece: Piece) {
        match piece {
            Piece::Thinks(text) => self.thinks.push(text),
            Piece::Says(text) => self.says.push(text),
            Piece::Calls { index, tool } => self.calls.push((index, tool, String::new())),
            Piece::Arguments { index, text } => {
                if let Some(call) = self.calls.iter_mut().find(|(of, ..)| *of == index) {
                    call.2.push_str(&text);
                }
            }
        }
    }

    /// Puts it into an entry; how many pieces there are.
    fn put(&self, model: &mut Model, hidden: &Hidden) -> u64 {
        let asks = self.calls.iter().map(|(_, tool, arguments)| ask(tool, arguments, hidden));
        model.asks = asks.collect();
        model.thinks = chunks_of(&self.thinks, hidden);
        model.says = chunks_of(&self.says, hidden);
        let count = |chunks: &Option<Chunks>| match chunks {
            None => 0,
            Some(Chunks::One(_)) => 1,
            Some(Chunks::Many(pieces)) => pieces.len(),
        };
        (count(&model.thinks) + count(&model.says) + model.asks.len()) as u64
    }
}

impl Answers {
    pub(super) fn new(patience: Patience) -> Self {
        Self {
            patience,
            unreached: 0,
            entries: Vec::new(),
            open: BTreeMap::new(),
            shown: BTreeMap::new(),
            unshown: BTreeMap::new(),
        }
    }

    /// What goes another way in a replay.
    pub(super) fn unlike(&self) -> Option<String> {
        let why = "there it closes the connection without an answer";
        let count = self.unreached;
        (count > 0)
            .then(|| format!("Attempts at a model that could not be reached: {count}; {why}."))
    }

    /// Whoever asks after the end of what is recorded hears nothing.
    pub(super) fn silence() -> Model {
        let fault = Fault { stall: Some(Stall::Headers), ..Fault::default() };
        Model { times: Some(Times::Always), fault: Some(fault), ..Model::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn asked(
        &mut self,
        number: Number,
        moment: Moment,
        (agent, view): (&str, Option<View>),
        hidden: &Hidden,
    ) {
        let before = self.shown.get(agent);
        let news = view.as_ref().map(|view| view.news(before)).unwrap_or_default();
        let shown = self.unshown.remove(agent).unwrap_or_else(|| hidden.text(&news));
        let model = Model { agent: agent.to_owned(), shown, ..Model::default() };
        let open = Open { entry: self.entries.len(), heard: Heard::default() };
        self.open.insert(number, open);
        let state = State::Open(number);
        self.entries.push(Entry { model, state, asked: moment, came: None });
        if let Some(view) = view {
            self.shown.insert(agent.to_owned(), view);
        }
    }

    pub(super) fn unasked(&mut self, number: Number) {
        let Some(open) = self.open.remove(&number) else { return };
        let entry = &mut self.entries[open.entry];
        entry.state = State::Void;
        let Model { agent, shown, .. } = &entry.model;
        self.unshown.insert(agent.clone(), shown.clone());
    }

    pub(super) fn said(&mut self, number: Number, moment: Moment, piece: Piece) {
        if let Some(open) = self.open.get_mut(&number) {
            open.heard.add(piece);
            self.entries[open.entry].came.get_or_insert(moment);
        }
    }

    pub(super) fn answered(
        &mut self,
        number: Number,
        moment: Moment,
        answer: &Answer,
        hidden: &Hidden,
    ) {
        let Some(Open { entry, heard }) = self.open.remove(&number) else { return };
        if matches!(answer.end, AnswerEnd::Broke { fault: Failure::Connect, .. }) {
            self.unreached += 1;
        }
        let Entry { model, state, came, .. } = &mut self.entries[entry];
        *state = State::Answered;
        let chunks = heard.put(model, hidden);
        model.usage = answer
            .usage
            .map(|usage| ScriptUsage { input: usage.input_tokens, output: usage.output_tokens });
        let delay = answer.delay.min(self.patience.delay_max);
        model.delay = (delay >= DELAY_MIN).then(|| Time(exact(delay)));
        let gaps = u32::try_from(chunks).unwrap_or(u32::MAX).saturating_sub(1);
        let pause = answer.took.checked_div(gaps).unwrap_or_default();
        let pause = pause.min(self.patience.pause_max);
        model.pause = (pause >= PAUSE_MIN).then(|| Time(exact(pause)));
        // How long it was silent in the end says nothing about its words.
        let fell_silent = match answer.end {
            AnswerEnd::Dropped => true,
            AnswerEnd::Broke { fault, .. } => matches!(fault, Failure::Stall | Failure::Timeout),
            AnswerEnd::Whole => false,
        };
        if model.pause.is_none() && !fell_silent {
            *came = Some(moment);
        }
        model.finish = match (answer.finish, model.asks.is_empty()) {
            (Some(FinishReason::Length), _) => Some("length"),
            (Some(FinishReason::Stop), false) => Some("stop"),
            (Some(FinishReason::ToolCalls), true) => Some("tool_calls"),
            (Some(FinishReason::Stop), true)
            | (Some(FinishReason::ToolCalls), false)
            | (None, _) => None,
        };
        model.fault = fault(&answer.end, chunks, hidden);
        let is_empty = model.says.is_none() && model.asks.is_empty() && model.fault.is_none();
        if is_empty {
            model.says = Some(Chunks::One(String::new()));
        }
    }

    /// When models spoke.
    pub(super) fn words(&self) -> BTreeSet<Moment> {
        self.entries.iter().filter_map(|entry| entry.came).collect()
    }

    /// One that is open has said what has come of it, and falls silent, however often it is asked.
    /// `after` tells what an answer waits for that came between these moments.
    pub(super) fn written(
        &self,
        hidden: &Hidden,
        after: impl Fn(Moment, Moment) -> Option<After>,
    ) -> impl Iterator<Item = Model> {
        self.entries.iter().filter_map(move |entry| {
            let mut model = entry.model.clone();
            model.after = entry.came.and_then(|came| after(entry.asked, came));
            match entry.state {
                State::Void => return None,
                State::Answered => {}
                State::Open(number) => {
                    let heard = self.open.get(&number).map(|open| &open.heard);
                    let chunks = heard.map_or(0, |heard| heard.put(&mut model, hidden));
                    model.times = Some(Times::Always);
                    model.fault = fault(&AnswerEnd::Dropped, chunks, hidden);
                }
            }
            Some(model)
        })
    }
}

fn ask(name: &str, arguments: &str, hidden: &Hidden) -> Ask {
    let (args, args_json) = match serde_json::from_str(arguments) {
        Ok(Value::Object(args)) if fits_toml(&args) => (hidden.members(&args), None),
        Ok(value) => (Map::new(), Some(hidden.value(&value).to_string())),
        // Models leave the arguments out when there are none.
        Err(_) if arguments.trim().is_empty() => (Map::new(), None),
        Err(_) => (Map::new(), Some(hidden.text(arguments))),
    };
    Ask { tool: hidden.text(name), args, args_json }
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

fn fault(end: &AnswerEnd, chunks: u64, hidden: &Hidden) -> Option<Fault> {
    let none = Fault::default();
    Some(match end {
        AnswerEnd::Whole => return None,
        AnswerEnd::Dropped if chunks == 0 => Fault { stall: Some(Stall::Headers), ..none },
        AnswerEnd::Dropped => Fault { stall: Some(Stall::Chunks(chunks)), ..none },
        AnswerEnd::Broke { fault, status, said, retry_after, head } => match fault {
            Failure::Auth | Failure::Status => Fault {
                status: status.or(Some(500)),
                message: said.as_deref().map(|said| hidden.text(said)),
                retry_after: retry_after.map(|time| Time(rounded(time))),
                ..none
            },
            Failure::Connect => Fault { refuse: Some(Yes), ..none },
            Failure::Timeout => Fault { stall: Some(Stall::Headers), ..none },
            Failure::Stall => Fault { stall: Some(Stall::Chunks(chunks)), ..none },
            Failure::Reset if *head == Head::Missing => Fault { refuse: Some(Yes), ..none },
            Failure::Reset => Fault { reset_after: Some(chunks), ..none },
            Failure::Eof => Fault { eof_without_finish: Some(Yes), ..none },
            // One that stands for a status is treated like it, as long as nothing of the answer came.
            Failure::ErrorInStream if chunks == 0 && status.is_some() => {
                let message = said.as_deref().map(|said| hidden.text(said));
                Fault { status: *status, message, ..none }
            }
            Failure::ErrorInStream => {
                let message = said.as_deref().map(|said| hidden.text(said));
                Fault { error_in_stream: Some(Yes), message, ..none }
            }
            Failure::BadJson => Fault { bad_json: Some(Yes), ..none },
            Failure::Empty => return None,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ProviderKind;
    use crate::provider::Secrets;

    fn broke(failure: Failure, status: Option<u16>, head: Head, chunks: u64) -> Value {
        let said = Some("busy".to_owned());
        let end = AnswerEnd::Broke { fault: failure, status, said, retry_after: None, head };
        let hidden = Hidden::of(Secrets::default(), std::iter::empty());
        serde_json::to_value(fault(&end, chunks, &hidden)).unwrap()
    }

    #[test]
    fn a_failure_is_replayed_as_the_one_it_was() {
        use serde_json::json;
        let closed = broke(Failure::Reset, None, Head::Missing, 0);
        assert_eq!(closed, json!({ "refuse": true }));
        assert_eq!(broke(Failure::Reset, None, Head::Came, 0), json!({ "reset_after": 0 }));
        assert_eq!(broke(Failure::Reset, None, Head::Came, 2), json!({ "reset_after": 2 }));
        let limited = json!({ "status": 529, "message": "busy" });
        assert_eq!(broke(Failure::Status, Some(529), Head::Missing, 0), limited);
        assert_eq!(broke(Failure::ErrorInStream, Some(529), Head::Came, 0), limited);
        let in_stream = json!({ "error_in_stream": true, "message": "busy" });
        assert_eq!(broke(Failure::ErrorInStream, None, Head::Came, 0), in_stream);
        assert_eq!(broke(Failure::ErrorInStream, Some(529), Head::Came, 1), in_stream);
    }

    #[test]
    fn a_model_keeps_nobody_waiting_longer_than_a_server_waits() {
        let providers = [60.0, 10.0].map(|seconds| ProviderConfig {
            request_timeout: seconds,
            stream_idle_timeout: 8.0,
            ..ProviderConfig::of(ProviderKind::Openai)
        });
        let mut answers = Answers::new(Patience::of(&providers.iter()));
        let hidden = Hidden::of(Secrets::default(), std::iter::empty());
        let now = Moment { place: 1, at: Duration::ZERO };
        answers.asked(1, now, ("a", None), &hidden);
        for text in ["one", "two"] {
            answers.said(1, now, Piece::Says(text.to_owned()));
        }
        let (delay, took) = (Duration::from_millis(90_500), Duration::from_secs(30));
        let answer = Answer { usage: None, finish: None, end: AnswerEnd::Whole, delay, took };
        answers.answered(1, now, &answer, &hidden);
        let model = answers.written(&hidden, |_, _| None).next().unwrap();
        let times = [model.delay, model.pause].map(|time| time.map(|time| time.to_string()));
        assert_eq!(times, [Some("5s".to_owned()), Some("4s".to_owned())]);
    }
}
