//! How many requests execute at the same time. A request that waits for a turn or a model gives its
//! place back meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Debug)]
pub struct Executing {
    count: AtomicUsize,
    max: usize,
}

/// A request's place among the executing ones; given back when dropped.
#[derive(Debug)]
pub struct Place {
    /// `None` for a request that does not count.
    counted: Option<Arc<Executing>>,
}

impl Executing {
    pub fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { count: AtomicUsize::new(0), max })
    }

    /// Takes a place; `None` when all are taken.
    pub fn enter(self: &Arc<Self>) -> Option<Place> {
        let more = |count| (count < self.max).then_some(count + 1);
        self.count.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).ok()?;
        Some(Place { counted: Some(Arc::clone(self)) })
    }
}

impl Place {
    pub fn exempt() -> Self {
        Self { counted: None }
    }

    /// Waits without holding the place. It is taken again afterwards even if others came meanwhile:
    /// what is left to do is to write an answer.
    pub async fn while_waiting<T>(&self, wait: impl Future<Output = T>) -> T {
        let Some(executing) = &self.counted else {
            return wait.await;
        };
        let _outside = Outside::new(executing);
        wait.await
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(executing) = &self.counted {
            executing.count.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// The time a request spends waiting; ends even if the wait is dropped.
struct Outside<'a>(&'a Executing);

impl<'a> Outside<'a> {
    fn new(executing: &'a Executing) -> Self {
        executing.count.fetch_sub(1, Ordering::AcqRel);
        Self(executing)
    }
}

impl Drop for Outside<'_> {
    fn drop(&mut self) {
        self.0.count.fetch_add(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn places_are_bounded_and_free_while_their_request_waits() {
        let executing = Executing::new(1);
        let place = executing.enter().unwrap();
        assert!(executing.enter().is_none());
        place.while_waiting(async { assert!(executing.enter().is_some()) }).await;
        assert!(executing.enter().is_none());
        drop(place);
        assert!(executing.enter().is_some());
    }
}
