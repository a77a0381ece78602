//! What an agent does when a commit has ended: goes on where it is durable; where it is not, refuses
//! what was new, ends the turn in memory, and owes the rest to the disk until that takes it.

use std::sync::Arc;

use super::actor::Agent;
use super::handle::CompactError;
use super::outbox::{Entry, NotChanged, Then, Work};
use super::outcome::{Failure, Outcome};
use super::preamble::Preamble;
use super::renaming::NotRenamed;
use super::turn::{Input, Stop};
use super::work;
use crate::id::RequestId;
use crate::store::{StoreError, Write};

impl Agent {
    pub(super) fn on_committed(&mut self, entries: Vec<Entry>, result: Result<(), StoreError>) {
        match result {
            Ok(()) => {
                for entry in entries {
                    self.on_durable(entry);
                }
            }
            Err(error) => {
                tracing::warn!(agent = %self.id, %error, "cannot write down what happened");
                self.on_lost(entries, error);
            }
        }
    }

    fn on_durable(&mut self, entry: Entry) {
        for write in &entry.writes {
            if let Write::Message { index, message, .. } = write {
                self.messages_durable = usize::try_from(*index).expect("indexes are counts") + 1;
                self.shared.logs.message(&self.id, message);
            }
        }
        if self.running.is_none() && self.messages_durable == self.conversation.len() {
            self.messages_settled = self.messages_durable;
        }
        // Whoever is told finds the same in the published status.
        self.publish();
        let Entry { request, then, .. } = entry;
        let request = || request.as_ref().expect("this is about a request");
        match then {
            Then::Nothing => {}
            Then::Accept => self.requests.accept(request()),
            Then::Work(work) => {
                for work in work {
                    self.start_work(work);
                }
            }
            Then::End(outcome) => {
                let forgotten = self.requests.end(request(), outcome);
                self.forgotten.extend(forgotten);
            }
            Then::Recorded => {
                let forgotten = self.requests.record(request());
                self.forgotten.extend(forgotten);
            }
            Then::Answered(id) => self.on_answered(&id),
            Then::Cancelled(reply, cancelled) => drop(reply.send(cancelled)),
            Then::Model(model, reply) => {
                self.model = *model;
                self.publish();
                let _ = reply.send(Ok(()));
            }
            Then::Prompt(prompt, reply) => {
                let tools = Arc::clone(&self.preamble.tools);
                self.preamble = Arc::new(Preamble::new(prompt, None, tools));
                self.publish();
                let _ = reply.send(Ok(()));
            }
            Then::Compacted(compacted, reply) => {
                self.adopt(&compacted);
                let _ = reply.send(Ok(*compacted));
            }
            Then::Renamed(id, reply) => self.on_renamed(id, reply),
        }
    }

    fn start_work(&mut self, work: Work) {
        let (reports, shared) = (self.reports(), Arc::clone(&self.shared));
        match work {
            Work::Ask => {
                if let Err(exceeded) = self.account.may_go_on() {
                    return self.on_input(Input::Stop(Stop::Limit(exceeded)));
                }
                let running = self.running.as_ref().expect("only a running turn asks");
                let may_compact = running.turn.may_compact();
                let question = self.question(may_compact);
                let terms = (may_compact, self.account.metered());
                let by = (Arc::clone(&shared), Arc::clone(&self.model.provider));
                let ask = work::ask(by, question, terms, reports.clone());
                self.tasks.spawn(work::report(shared, reports, ask));
            }
            Work::Examine { index, call } => {
                let place = self.place_of_work();
                let examine = work::examine(Arc::clone(&shared), place, index, call);
                self.tasks.spawn(work::report(shared, reports, examine));
            }
            Work::Await(id) => self.confirmations.written(&id),
            Work::Decide { index, verdict } => self.on_input(Input::Decided { index, verdict }),
            Work::Run { index, call, permit } => {
                let place = self.place_of_work();
                let (shared_too, to) = (Arc::clone(&shared), reports.clone());
                let run = work::run_tool(shared_too, place, index, (call, permit), to);
                self.tasks.spawn(work::report(shared, reports, run));
                self.on_input(Input::ToolStarted { index });
            }
        }
    }

    /// Nothing of these is on disk. What was new is refused; what had happened is owed.
    fn on_lost(&mut self, entries: Vec<Entry>, error: StoreError) {
        let is_new = |entry: &&Entry| matches!(entry.then, Then::Accept);
        let refused: Vec<RequestId> =
            entries.iter().filter(is_new).filter_map(|entry| entry.request.clone()).collect();
        let (lost, mut owed): (Vec<Entry>, Vec<Entry>) = entries.into_iter().partition(|entry| {
            entry.request.as_ref().is_some_and(|request| refused.contains(request))
        });
        for request in &refused {
            self.refuse(request, &lost);
        }
        let mut turn_is_lost = false;
        let mut answers_lost = Vec::new();
        for entry in &mut owed {
            entry.then = match std::mem::replace(&mut entry.then, Then::Nothing) {
                Then::Nothing => Then::Nothing,
                Then::Recorded => Then::Recorded,
                Then::Work(_) => {
                    turn_is_lost = true;
                    Then::Nothing
                }
                Then::End(_) => {
                    self.end_in_memory(entry.request.as_ref(), &mut entry.writes);
                    Then::Recorded
                }
                Then::Answered(id) => {
                    entry.writes.clear();
                    answers_lost.push(id);
                    Then::Nothing
                }
                Then::Cancelled(reply, cancelled) => {
                    let _ = reply.send(cancelled);
                    Then::Nothing
                }
                Then::Model(_, reply) | Then::Prompt(_, reply) => {
                    entry.writes.clear();
                    let _ = reply.send(Err(NotChanged::Storage));
                    Then::Nothing
                }
                Then::Compacted(_, reply) => {
                    entry.writes.clear();
                    let _ = reply.send(Err(CompactError::Storage));
                    Then::Nothing
                }
                Then::Renamed(_, reply) => {
                    entry.writes.clear();
                    let _ = reply.send(Err(NotRenamed::Storage));
                    Then::Nothing
                }
                Then::Accept => panic!("what was new has been refused"),
            };
        }
        owed.retain(|entry| !entry.writes.is_empty());
        self.outbox.owe(owed, error);
        for id in &answers_lost {
            self.on_answer_lost(id);
        }
        if turn_is_lost && self.running.is_some() {
            self.on_input(Input::Stop(Stop::Storage));
        }
    }

    /// What is written before a request that has the name of one which is still to be forgotten.
    pub(super) fn forget_before(&mut self, id: &RequestId) -> Vec<Write> {
        let agent = self.facts.number;
        let same = self.forgotten.extract_if(.., |forgotten| forgotten == id);
        same.map(|id| Write::RequestForgotten { agent, id }).collect()
    }

    /// Forgets a request that could not be written down, with whatever was begun for it.
    fn refuse(&mut self, request: &RequestId, lost: &[Entry]) {
        self.take_queued(|queued| queued.request_id == *request);
        if self.running.as_ref().is_some_and(|running| running.request == *request) {
            self.running = None;
        }
        let later = self.outbox.drop_request(request);
        let of_request = |entry: &&Entry| entry.request.as_ref() == Some(request);
        let dropped = lost.iter().filter(of_request).chain(&later);
        let mut writes = dropped.flat_map(|entry| &entry.writes);
        if let Some(first) = writes.clone().find_map(message_index) {
            self.conversation.truncate(first);
        }
        self.forgotten.extend(writes.clone().find_map(forgotten));
        if writes.any(|write| matches!(write, Write::RequestStarted { .. })) {
            self.account.take_back_turn();
        }
        self.requests.refuse(request);
    }

    /// A turn whose end cannot be written has ended all the same, as failed.
    fn end_in_memory(&mut self, request: Option<&RequestId>, writes: &mut Vec<Write>) {
        let request = request.expect("only requests end");
        let partial = writes.iter().find_map(said).unwrap_or_default();
        writes.retain(|write| !is_end(write));
        let outcome = Outcome::Failed(Failure::Storage);
        writes.extend(self.journal().ended(request, &outcome, &partial));
        self.requests.end_unrecorded(request, outcome);
    }
}

fn message_index(write: &Write) -> Option<usize> {
    match write {
        Write::Message { index, .. } => Some(usize::try_from(*index).expect("indexes are counts")),
        _ => None,
    }
}

fn forgotten(write: &Write) -> Option<RequestId> {
    match write {
        Write::RequestForgotten { id, .. } => Some(id.clone()),
        _ => None,
    }
}

fn is_end(write: &Write) -> bool {
    match write {
        Write::RequestEnded { .. } => true,
        Write::Event(event) => event.what.is_terminal(),
        _ => false,
    }
}

/// The text that a turn's last event says it came to.
fn said(write: &Write) -> Option<String> {
    match write {
        Write::Event(event) => event.what.turn_text().map(str::to_owned),
        _ => None,
    }
}
