//! After what a step of a recording is made, as keys of the step or of a pause before it.

use std::time::Duration;

use super::order::Mark;
use crate::provider::script::Time;
use crate::record::form::Step;

/// What the act of this place is called.
pub(super) fn name(index: usize) -> String {
    format!("call {}", index + 1)
}

/// After what a step is made, and how long after.
pub(super) struct Trigger {
    pub(super) since: Since,
    pub(super) pause: Option<Duration>,
}

impl Trigger {
    /// Has a step wait, for itself or in a step before it.
    pub(super) fn set(&self, step: &mut Step) -> Option<Step> {
        let pause = match (&self.since, &self.pause) {
            (_, Some(pause)) => Some(*pause),
            // In a call of its own the agent is the one that is called.
            (Since::Event(mark), None) if step.agent.is_some() && step.agent != mark.agent => {
                Some(Duration::ZERO)
            }
            (Since::Event(_) | Since::Before | Since::End(_), None) => None,
        };
        let mut sleep = pause.map(|pause| Step {
            client: step.client.clone(),
            sleep: Some(Time(pause)),
            ..Step::default()
        });
        let waiting = sleep.as_mut().unwrap_or(step);
        match &self.since {
            Since::Before => {}
            Since::End(of) => waiting.after = Some(name(*of)),
            Since::Event(mark) => mark.set(waiting),
        }
        sleep
    }
}

/// What a step waits for.
pub(super) enum Since {
    /// The step before, as every step does.
    Before,
    /// The end of this act.
    End(usize),
    Event(Mark),
}

impl Mark {
    fn set(&self, step: &mut Step) {
        step.on = Some(format!("event:{}", self.name));
        if let Some(agent) = &self.agent {
            step.agent = Some(agent.clone());
        }
        step.nth = (self.nth > 1).then_some(self.nth);
    }
}
