//! The timer of whatever is due next at one agent. It is set anew only where that changes: the loop
//! waits again with every piece of an answer, and a new timer takes the lock of all of them.

use std::pin::Pin;

use tokio::time::{Instant, Sleep, sleep_until};

#[derive(Debug, Default)]
pub struct Alarm {
    timer: Option<Pin<Box<Sleep>>>,
}

impl Alarm {
    /// Waits until then; for ever where nothing is due. Dropping the wait loses nothing.
    pub async fn at(&mut self, deadline: Option<Instant>) {
        let Some(deadline) = deadline else {
            self.timer = None;
            return std::future::pending().await;
        };
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if timer.deadline() != deadline {
            timer.as_mut().reset(deadline);
        }
        timer.await;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_goes_off_at_the_deadline_that_it_was_told_last() {
        let (mut alarm, start) = (Alarm::default(), Instant::now());
        let after = |seconds| Some(start + Duration::from_secs(seconds));
        for told in [after(5), after(9), None, after(3), after(4)] {
            assert!(alarm.at(told).now_or_never().is_none());
        }
        alarm.at(after(4)).await;
        assert_eq!(start.elapsed(), Duration::from_secs(4));
        assert!(alarm.at(after(4)).now_or_never().is_some(), "what is due stays due");
        alarm.at(after(6)).await;
        assert_eq!(start.elapsed(), Duration::from_secs(6));
    }
}
