//! The Anthropic wire: messages, streamed.
//! It knows no address and no key; `endpoint` does.

mod answer; // records to events
mod record; // the wire's own types
mod request; // the body

use self::answer::Answer;
use self::request::Marks;
use super::ModelRequest;
use super::wire::{self, Wire};
use crate::config::ProviderConfig;

#[derive(Debug)]
pub(super) struct Messages {
    marks: Marks,
}

impl Messages {
    pub(super) fn of(config: &ProviderConfig) -> Self {
        Self { marks: if config.prompt_caching { Marks::Set } else { Marks::None } }
    }
}

impl Wire for Messages {
    fn body(&self, request: &ModelRequest) -> Vec<u8> {
        request::body(request, self.marks)
    }

    fn answer(&self) -> Box<dyn wire::Answer> {
        Box::new(Answer::default())
    }
}
