//! How far a running call is, for those who look on. Nobody waits for them: what they do not take in
//! time is left out.

use tokio::sync::mpsc;

/// What a call tells before it ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    pub progress: f64,
    /// What `progress` is at the end, where that is known.
    pub total: Option<f64>,
    pub message: Option<String>,
}

/// Where a call tells how far it is.
#[derive(Clone, Debug)]
pub struct Tell(Option<mpsc::Sender<Progress>>);

impl Tell {
    pub fn to(sender: mpsc::Sender<Progress>) -> Self {
        Self(Some(sender))
    }

    pub(super) fn nobody() -> Self {
        Self(None)
    }

    pub(super) fn tell(&self, progress: Progress) {
        if let Some(sender) = &self.0 {
            let _ = sender.try_send(progress);
        }
    }
}
