//! The text of running turns without repetitions: whatever a stream tells twice, or all at once in a
//! snapshot, becomes the piece that was not told yet. Pure.

use std::collections::BTreeMap;

use crate::event::{Event, What};
use crate::id::{AgentId, RequestId};

#[derive(Debug, Default)]
pub(super) struct Splice {
    /// How many characters of which turn's text were told; an agent has one turn at a time.
    told: BTreeMap<AgentId, (RequestId, usize)>,
}

impl Splice {
    /// The event as it goes on from what was told; `None` where it says nothing new.
    pub(super) fn on(&mut self, mut event: Event) -> Option<Event> {
        let (Some(agent), request) = (&event.agent_id, &event.request_id) else {
            return Some(event);
        };
        if event.what.is_terminal() || matches!(event.what, What::AgentDestroyed { .. }) {
            self.told.remove(agent);
            return Some(event);
        }
        let (text, begins) = if let What::ContentChunk { text, offset } = &event.what {
            (text, *offset)
        } else if let What::TurnSnapshot { text, .. } = &event.what {
            (text, 0)
        } else {
            return Some(event);
        };
        let request = request.as_ref()?;
        let told = match self.told.get(agent) {
            Some((of, told)) if of == request => *told,
            Some(_) | None => 0,
        };
        let fresh: String = text.chars().skip(told.saturating_sub(begins)).collect();
        if fresh.is_empty() {
            return None;
        }
        let offset = told.max(begins);
        let end = offset + fresh.chars().count();
        self.told.insert(agent.clone(), (request.clone(), end));
        event.what = What::ContentChunk { text: fresh, offset };
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(request: &str, what: What) -> Event {
        let agent = AgentId::parse("a").unwrap();
        let at = "2026-01-01T00:00:00Z".parse().unwrap();
        Event::new(&agent, at, what).of(&RequestId::parse(request).unwrap())
    }

    fn chunk(request: &str, text: &str, offset: usize) -> Event {
        event(request, What::ContentChunk { text: text.to_owned(), offset })
    }

    fn snapshot(request: &str, text: &str) -> Event {
        let offset = text.chars().count();
        event(request, What::TurnSnapshot { text: text.to_owned(), offset })
    }

    #[test]
    fn a_text_is_told_once_whatever_comes_twice() {
        let mut splice = Splice::default();
        for (comes, told) in [
            (chunk("r", "Grüß", 0), Some(chunk("r", "Grüß", 0))),
            (snapshot("r", "Grüß"), None),
            (snapshot("r", "Grüße, "), Some(chunk("r", "e, ", 4))),
            (chunk("r", "e, du", 4), Some(chunk("r", "du", 7))),
            (chunk("r", "du", 7), None),
            (chunk("r", "!", 9), Some(chunk("r", "!", 9))),
        ] {
            assert_eq!(splice.on(comes), told);
        }
    }

    #[test]
    fn a_reader_that_comes_late_is_told_all_of_it() {
        let mut splice = Splice::default();
        assert_eq!(splice.on(snapshot("r", "so far")), Some(chunk("r", "so far", 0)));
        assert_eq!(splice.on(chunk("r", " and on", 6)), Some(chunk("r", " and on", 6)));
    }

    #[test]
    fn the_next_turn_begins_anew() {
        let mut splice = Splice::default();
        splice.on(chunk("r", "one", 0));
        // Also where the end of the one before was missed.
        assert_eq!(splice.on(chunk("s", "two", 0)), Some(chunk("s", "two", 0)));
        let started = event("s", What::ThinkingStarted {});
        assert_eq!(splice.on(started.clone()), Some(started));
    }
}
