//! What models are shown and answer: an attempt becomes one note when it begins, and one when it ends.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use tokio::time::Instant;

use super::Recorder;
use super::note::{Answer, AnswerEnd, Number, What};
use crate::id::AgentId;
use crate::provider::script::View;
use crate::provider::{Ear, Hearing, ModelEvent, ProviderError};

impl Ear for Recorder {
    fn asks(&self, agent: &AgentId, sent: &Request<Bytes>) -> Box<dyn Hearing> {
        let number = self.number();
        if self.is_on() {
            self.note(What::Asked(number, agent.clone(), View::of(sent)));
        }
        let (asked, recorder) = (Instant::now(), self.clone());
        Box::new(Attempt { recorder, number, asked, first: None, answer: Some(Heard::default()) })
    }
}

struct Attempt {
    recorder: Recorder,
    number: Number,
    asked: Instant,
    /// When the first event came.
    first: Option<Instant>,
    /// Until its end is told.
    answer: Option<Heard>,
}

#[derive(Default)]
struct Heard {
    thinks: Vec<String>,
    says: Vec<String>,
    /// By the index that the provider gives them.
    calls: Vec<(usize, String, String)>,
    usage: Option<crate::message::Usage>,
    finish: Option<crate::provider::FinishReason>,
}

impl Attempt {
    fn tell(&mut self, end: AnswerEnd) {
        let Some(Heard { thinks, says, calls, usage, finish }) = self.answer.take() else { return };
        let calls = calls.into_iter().map(|(_, name, arguments)| (name, arguments)).collect();
        let delay = self.first.map_or(Duration::ZERO, |first| first - self.asked);
        let took = self.first.map_or(Duration::ZERO, |first| first.elapsed());
        let answer = Answer { thinks, says, calls, usage, finish, end, delay, took };
        self.recorder.note(What::Answered(self.number, answer));
    }
}

impl Hearing for Attempt {
    fn event(&mut self, event: &ModelEvent) {
        self.first.get_or_insert_with(Instant::now);
        let Some(heard) = &mut self.answer else { return };
        match event {
            ModelEvent::Text(text) => heard.says.push(text.clone()),
            ModelEvent::Reasoning(text) => heard.thinks.push(text.clone()),
            ModelEvent::ToolCallStarted { index, id: _, name } => {
                heard.calls.push((*index, name.clone(), String::new()));
            }
            ModelEvent::ToolCallDelta { index, arguments } => {
                if let Some(call) = heard.calls.iter_mut().find(|(of, ..)| of == index) {
                    call.2.push_str(arguments);
                }
            }
            ModelEvent::Usage(usage) => heard.usage = Some(*usage),
            // A turn hears of those from above the attempts.
            ModelEvent::Retry(_) => {}
            ModelEvent::Finished(finish) => heard.finish = Some(*finish),
        }
    }

    fn broke(&mut self, error: &ProviderError, asked_for: Option<Duration>) {
        let (fault, status) = (error.fault, error.status);
        self.tell(AnswerEnd::Broke { fault, status, retry_after: asked_for });
    }

    fn unsent(&mut self) {
        if self.answer.take().is_some() {
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
        let is_whole = self.answer.as_ref().is_some_and(|heard| heard.finish.is_some());
        self.tell(if is_whole { AnswerEnd::Whole } else { AnswerEnd::Dropped });
    }
}
