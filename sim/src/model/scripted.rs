//! The script of a run and what was asked of it, shared by all connections of the model host.
//! It decides who answers; it never waits.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use bytes::Bytes;
use http::Request;
use nexus3::provider::script::{After, NoQuestion, Question, Reply, Script};

use super::observer::{Answered, Asked};

/// A script in use.
#[derive(Debug)]
pub struct Scripted {
    /// Model id → the alias that entries name.
    aliases: BTreeMap<String, String>,
    /// Guards what a request changes. Held while an entry is taken; nothing is awaited under it.
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    script: Script,
    requests: u64,
    calls: BTreeMap<String, u64>,
}

impl Scripted {
    /// `aliases` tells by which alias entries name a model whose id is in a request; an id that is
    /// not listed is its own alias.
    pub fn new(script: Script, aliases: BTreeMap<String, String>) -> Self {
        let state = State { script, requests: 0, calls: BTreeMap::new() };
        Self { aliases, state: Mutex::new(state) }
    }

    /// Whether connections are kept for the next request, as providers do. Where the script refuses
    /// connections none is: a kept one that is refused cannot be told from one that was given up.
    pub(super) fn keeps_connections(&self) -> bool {
        !self.state().script.refuses()
    }

    /// How often each agent has asked a model; a request without an agent is counted under "".
    /// Every request that arrived counts, also one that was answered with a fault.
    pub fn model_calls(&self) -> BTreeMap<String, u64> {
        self.state().calls.clone()
    }

    /// The entries that could have been used more often, by number, with how often.
    pub fn left_over(&self) -> Vec<(usize, u64)> {
        self.state().script.left_over()
    }

    /// Takes the entry that answers a request.
    pub(super) fn answer(&self, request: &Request<Bytes>) -> (Asked, Reply, Option<After>) {
        let question = match Question::read(request) {
            Ok(question) => question,
            Err(reason) => return self.refuse(reason),
        };
        let model = self.aliases.get(&question.model).unwrap_or(&question.model);
        let mut state = self.state();
        state.requests += 1;
        *state.calls.entry(question.agent.clone()).or_default() += 1;
        let taken = state.script.take(&question.agent, model, &question.last_message);
        let (answered, reply, after) = match taken {
            Some((number, entry)) => {
                let reply = Reply::new(&entry, &question);
                (Answered::Entry { number, fault: entry.fault.clone() }, reply, entry.after.clone())
            }
            None => (Answered::Unmatched, Reply::unmatched(&question), None),
        };
        let asked = Asked {
            number: state.requests,
            agent: question.agent.clone(),
            model: model.clone(),
            question: Some(question),
            answered,
        };
        (asked, reply, after)
    }

    /// The answer to a request that is none to a model.
    fn refuse(&self, reason: NoQuestion) -> (Asked, Reply, Option<After>) {
        let mut state = self.state();
        state.requests += 1;
        let asked = Asked {
            number: state.requests,
            agent: String::new(),
            model: String::new(),
            question: None,
            answered: Answered::Unreadable,
        };
        (asked, Reply::refused(reason), None)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it takes an entry")
    }
}
