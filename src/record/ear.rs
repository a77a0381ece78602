//! What models are shown and answer: an attempt becomes one note when it begins, one for each piece of the
//! answer as it comes, so that a kill loses none, and one when it ends.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use tokio::time::Instant;

use super::Recorder;
use super::note::{Answer, AnswerEnd, Head, Number, Piece, What};
use crate::id::AgentId;
use crate::message::Usage;
use crate::provider::script::View;
use crate::provider::{Ear, FinishReason, Hearing, ModelEvent, ProviderError};

impl Ear for Recorder {
    fn asks(&self, agent: &AgentId, sent: &Request<Bytes>) -> Box<dyn Hearing> {
        let number = self.number();
        if self.is_on() {
            self.note(What::Asked(number, agent.clone(), View::of(sent)));
        }
        let (asked, recorder) = (Instant::now(), self.clone());
        let state = State::Open { usage: None, finish: None };
        let head = Head::Missing;
        Box::new(Attempt { recorder, number, asked, head, first: None, last: None, state })
    }
}

struct Attempt {
    recorder: Recorder,
    number: Number,
    asked: Instant,
    head: Head,
    /// When the first event came.
    first: Option<Instant>,
    /// And the last one: what is waited for after it is the end, not a pause between two pieces.
    last: Option<Instant>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open {
        usage: Option<Usage>,
        finish: Option<FinishReason>,
    },
    /// Its end is told.
    Over,
}

impl Attempt {
    fn tell(&mut self, end: AnswerEnd) {
        let State::Open { usage, finish } = std::mem::replace(&mut self.state, State::Over) else {
            return;
        };
        let delay = self.first.map_or(Duration::ZERO, |first| first - self.asked);
        let took = self.first.zip(self.last).map_or(Duration::ZERO, |(first, last)| last - first);
        let answer = Answer { usage, finish, end, delay, took };
        self.recorder.note(What::Answered(self.number, answer));
    }

    fn said(&self, piece: Piece) {
        self.recorder.note(What::Said(self.number, piece));
    }
}

impl Hearing for Attempt {
    fn opened(&mut self) {
        self.head = Head::Came;
    }

    fn event(&mut self, event: &ModelEvent) {
        let now = Instant::now();
        self.first.get_or_insert(now);
        self.last = Some(now);
        let State::Open { usage, finish } = &mut self.state else { return };
        match event {
            ModelEvent::Text(text) => self.said(Piece::Says(text.clone())),
            ModelEvent::Reasoning(text) => self.said(Piece::Thinks(text.clone())),
            ModelEvent::ToolCallStarted { index, id: _, name } => {
                self.said(Piece::Calls { index: *index, tool: name.clone() });
            }
            ModelEvent::ToolCallDelta { index, arguments } => {
                self.said(Piece::Arguments { index: *index, text: arguments.clone() });
            }
            ModelEvent::Usage(used) => *usage = Some(*used),
            // A turn hears of those from above the attempts.
            ModelEvent::Retry(_) => {}
            ModelEvent::Finished(why) => *finish = Some(*why),
        }
    }

    fn broke(&mut self, error: &ProviderError, said: Option<&str>, asked_for: Option<Duration>) {
        let (fault, status, said) = (error.fault, error.status, said.map(str::to_owned));
        let head = self.head;
        self.tell(AnswerEnd::Broke { fault, status, said, retry_after: asked_for, head });
    }

    fn unsent(&mut self) {
        if self.state != State::Over {
            self.state = State::Over;
            self.recorder.note(What::Unasked(self.number));
        }
    }

    fn ended(&mut self) {
        self.tell(AnswerEnd::Whole);
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        // A reader that has the finish does not read on.
        let is_whole = matches!(self.state, State::Open { finish: Some(_), .. });
        self.tell(if is_whole { AnswerEnd::Whole } else { AnswerEnd::Dropped });
    }
}
