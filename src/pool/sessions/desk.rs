//! Who may do something to the sessions of a name: one at a time, so that a file, its row and its agent
//! are seen together. What is done to sessions of different names goes on side by side.
//!
//! It orders saving, loading, exporting, cloning, renaming and deleting, and bringing an agent back,
//! which looks at its file. Whoever needs more takes it in this order: the desk, then `restoring`, then
//! `families`. Nobody takes a second desk while it holds one; for two names there is `both`. So
//! nothing that finds agents (`Pool::find`) is called with a desk in hand.

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::id::AgentId;
use crate::limits::SESSION_DESKS;

#[derive(Debug)]
pub struct Desk {
    places: [Semaphore; SESSION_DESKS],
}

/// A name, or two, that nobody else does anything to until this is dropped.
#[derive(Debug)]
pub struct AtDesk<'d> {
    _places: [Option<SemaphorePermit<'d>>; 2],
}

impl Default for Desk {
    fn default() -> Self {
        Self { places: std::array::from_fn(|_| Semaphore::new(1)) }
    }
}

impl Desk {
    pub async fn at(&self, name: &AgentId) -> AtDesk<'_> {
        AtDesk { _places: [Some(self.take(place(name)).await), None] }
    }

    /// Both names at once, whichever is given first.
    pub async fn both(&self, one: &AgentId, other: &AgentId) -> AtDesk<'_> {
        let (one, other) = (place(one), place(other));
        let first = self.take(one.min(other)).await;
        let second = if one == other { None } else { Some(self.take(one.max(other)).await) };
        AtDesk { _places: [Some(first), second] }
    }

    async fn take(&self, place: usize) -> SemaphorePermit<'_> {
        self.places[place].acquire().await.expect("this semaphore is never closed")
    }
}

/// The place of a name. Names share places, which only makes some of them wait for others.
fn place(name: &AgentId) -> usize {
    let mixed = name
        .as_str()
        .bytes()
        .fold(0_usize, |mixed, byte| mixed.wrapping_mul(31).wrapping_add(usize::from(byte)));
    mixed % SESSION_DESKS
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn id(text: &str) -> AgentId {
        AgentId::parse(text).unwrap()
    }

    #[tokio::test]
    async fn a_name_is_used_by_one_at_a_time() {
        let desk = Desk::default();
        let first = desk.at(&id("a")).await;
        assert!(desk.at(&id("a")).now_or_never().is_none());
        assert!(desk.at(&id("b")).now_or_never().is_some());
        drop(first);
        assert!(desk.at(&id("a")).now_or_never().is_some());
    }

    #[tokio::test]
    async fn two_names_are_taken_in_one_order_even_where_they_share_a_place() {
        let desk = Desk::default();
        let both = desk.both(&id("b"), &id("a")).await;
        assert!(desk.both(&id("a"), &id("b")).now_or_never().is_none());
        drop(both);
        assert!(desk.both(&id("a"), &id("a")).now_or_never().is_some());
    }
}
