//! After what the steps of a recording are made, as keys of a step or of pauses before it.

use std::collections::BTreeSet;
use std::time::Duration;

use super::acts::Act;
use super::order::{Mark, Moment, Order, rounded};
use crate::provider::script::Time;
use crate::record::form::{Step, Yes};

/// A shorter pause tells nothing while nobody works, since it is a program's and not a person's.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// And while somebody works, since a network takes as long.
const PAUSE_AT_WORK_MIN: Duration = Duration::from_millis(100);

/// What the act of this place is called.
pub(super) fn name(index: usize) -> String {
    format!("call {}", index + 1)
}

/// After what each of some acts began, which stand in their order; `words` is when models spoke.
pub(super) fn of(acts: &[Act], order: &Order, words: &BTreeSet<Moment>) -> Vec<Trigger> {
    let ends = acts.iter().enumerate();
    let mut ends: Vec<_> = ends.filter_map(|(of, act)| Some((act.ended?, of))).collect();
    ends.sort_unstable();
    let mut over = 0;
    let trigger = |(index, act): (usize, &Act)| {
        while ends.get(over).is_some_and(|(ended, _)| *ended < act.began) {
            over += 1;
        }
        let Some(previous) = index.checked_sub(1).map(|index| &acts[index]) else {
            return Trigger::default();
        };
        // What the step before waits for in any case.
        let implied = if previous.is_open_at(act.began) {
            previous.began
        } else {
            previous.ended.unwrap_or(previous.began)
        };
        let last_end = over.checked_sub(1).map(|last| ends[last]);
        let last_end = last_end.filter(|(ended, _)| *ended > implied);
        let mut from = last_end.map_or(implied, |(ended, _)| ended);
        let event = order.event_between(from.place + 1, act.began.place);
        if let Some((moment, _)) = event {
            from = moment;
        }
        let mut pause = act.began.at.saturating_sub(from.at);
        // What a model has said is there before whoever has heard it goes on.
        let has_heard = words.range(from..act.began.max(from)).next().is_some();
        if has_heard {
            pause = pause.max(PAUSE_AT_WORK_MIN);
        }
        // Of two calls on their way at the same time the first has to be there first.
        let are_calls = [previous, act].iter().all(|act| act.step.call.is_some());
        if last_end.is_none() && event.is_none() && previous.is_open_at(act.began) && are_calls {
            pause = pause.max(PAUSE_AT_WORK_MIN);
        }
        let is_busy = act.at_work || over < index || has_heard;
        let least = if is_busy { PAUSE_AT_WORK_MIN } else { PAUSE_MIN };
        Trigger {
            end: last_end.map(|(_, of)| of),
            event: event.map(|(_, mark)| mark.clone()),
            pause: (pause >= least).then(|| rounded(pause)),
        }
    };
    acts.iter().enumerate().map(trigger).collect()
}

/// What a step waits for besides the step before it, and how long after all of that it is made.
#[derive(Default)]
pub(super) struct Trigger {
    /// The act whose end it waits for.
    pub(super) end: Option<usize>,
    event: Option<Mark>,
    pause: Option<Duration>,
}

impl Trigger {
    /// Has a step wait, for itself or in steps before it.
    pub(super) fn set(&self, step: &mut Step) -> Vec<Step> {
        let after = self.end.map(name);
        let pause =
            |time| Step { client: step.client.clone(), sleep: Some(Time(time)), ..Step::default() };
        let Some(mark) = &self.event else {
            let Some(time) = self.pause else {
                step.after = after;
                return Vec::new();
            };
            return vec![Step { after, ..pause(time) }];
        };
        let mut before = Vec::new();
        if after.is_some() {
            before.push(Step { after, ..pause(Duration::ZERO) });
        }
        // In a call of its own the agent is the one that is called.
        let is_of_another = step.agent.is_some() && step.agent != mark.agent;
        match self.pause.or(is_of_another.then_some(Duration::ZERO)) {
            Some(time) => {
                let mut pause = pause(time);
                mark.set(&mut pause);
                before.push(pause);
            }
            None => mark.set(step),
        }
        before
    }
}

impl Mark {
    fn set(&self, step: &mut Step) {
        step.on = Some(format!("event:{}", self.name));
        step.in_order = Some(Yes);
        if let Some(agent) = &self.agent {
            step.agent = Some(agent.clone());
        }
        step.nth = (self.nth > 1).then_some(self.nth);
    }
}

#[cfg(test)]
#[path = "trigger_tests.rs"]
mod tests;
