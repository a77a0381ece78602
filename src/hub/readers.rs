//! The readers of one scope, told apart by whether they hear live events now: one that does not,
//! since it is stuck or reads the journal, costs a live event nothing.
//! Pure: it never waits and wakes nobody; the hub does both.

use std::collections::BTreeMap;
use std::task::Waker;

use bytes::Bytes;

use super::Scope;
use super::reader::{Durable, Reader};
use crate::id::AgentId;

/// Readers by the numbers the hub gave them; each is in one of the two maps.
#[derive(Debug, Default)]
pub(super) struct Readers {
    pub(super) hearing: BTreeMap<u64, Reader>,
    /// None of these hears a live event before it has read on.
    deaf: BTreeMap<u64, Reader>,
}

impl Readers {
    pub(super) fn len(&self) -> usize {
        self.hearing.len() + self.deaf.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn numbers(&self) -> impl Iterator<Item = u64> {
        self.hearing.keys().chain(self.deaf.keys()).copied()
    }

    /// Takes others in, which have numbers of their own.
    pub(super) fn join(&mut self, others: Self) {
        self.hearing.extend(others.hearing);
        self.deaf.extend(others.deaf);
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Reader> {
        self.hearing.values_mut().chain(self.deaf.values_mut())
    }

    pub(super) fn insert(&mut self, scope: &Scope, number: u64, reader: Reader) {
        let side = if reader.hears_live(scope) { &mut self.hearing } else { &mut self.deaf };
        side.insert(number, reader);
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<Reader> {
        self.hearing.remove(&number).or_else(|| self.deaf.remove(&number))
    }

    /// Lets one of them do something, after which it may hear or have stopped to.
    pub(super) fn with<T>(
        &mut self,
        scope: &Scope,
        number: u64,
        act: impl FnOnce(&mut Reader) -> T,
    ) -> Option<T> {
        let (reader, heard) = match self.hearing.get_mut(&number) {
            Some(reader) => (reader, true),
            None => (self.deaf.get_mut(&number)?, false),
        };
        let done = act(reader);
        if reader.hears_live(scope) != heard {
            let reader = self.remove(number).expect("it was there just now");
            self.insert(scope, number, reader);
        }
        Some(done)
    }

    /// Gives those who hear it a live event, which is written only if there are any.
    pub(super) fn push_live(
        &mut self,
        scope: &Scope,
        agent: &AgentId,
        mut frame: impl FnMut() -> Bytes,
        woken: &mut Vec<Waker>,
    ) {
        let mut lost = false;
        for reader in self.hearing.values_mut().filter(|reader| reader.hears_live_of(agent)) {
            woken.extend(reader.push_live(agent, frame()));
            lost |= !reader.hears_live(scope);
        }
        if lost {
            let stuck = self.hearing.extract_if(.., |_, reader| !reader.hears_live(scope));
            self.deaf.extend(stuck);
        }
    }

    /// Gives a durable event to all; who does not hear it notes that the journal has more.
    pub(super) fn push_durable(
        &mut self,
        scope: &Scope,
        event: &Durable<'_>,
        woken: &mut Vec<Waker>,
    ) {
        for reader in self.iter_mut() {
            woken.extend(reader.push_durable(scope, event));
        }
        let (hearing, deaf) = (&mut self.hearing, &mut self.deaf);
        let changed: Vec<_> = deaf.extract_if(.., |_, reader| reader.hears_live(scope)).collect();
        deaf.extend(hearing.extract_if(.., |_, reader| !reader.hears_live(scope)));
        hearing.extend(changed);
    }
}
