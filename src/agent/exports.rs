//! Tells whoever writes session files that an agent has something new to save. Nobody waits for it: an
//! agent's turn is over whether or not its file is written.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{mpsc, oneshot};

use crate::limits::EXPORT_QUEUE_MAX;
use crate::store::AgentNumber;

/// The way to whoever writes session files.
#[derive(Debug)]
pub struct Exports {
    queue: mpsc::Sender<ExportJob>,
    /// Somebody found the queue full: what there is to save is no longer known.
    missed: AtomicBool,
}

#[derive(Debug)]
pub enum ExportJob {
    /// The agent is not what it was.
    Changed(AgentNumber),
    /// Everything that waits is to be written at once.
    Finish(oneshot::Sender<()>),
}

impl Exports {
    pub fn new() -> (Self, mpsc::Receiver<ExportJob>) {
        let (queue, jobs) = mpsc::channel(EXPORT_QUEUE_MAX);
        (Self { queue, missed: AtomicBool::new(false) }, jobs)
    }

    pub fn changed(&self, agent: AgentNumber) {
        if self.queue.try_send(ExportJob::Changed(agent)).is_err() {
            self.missed.store(true, Ordering::Release);
        }
    }

    /// Whether changes were missed since this was last asked.
    pub fn take_missed(&self) -> bool {
        self.missed.swap(false, Ordering::AcqRel)
    }

    /// Waits until everything that waits is written, or could not be.
    pub async fn finish(&self) {
        let (done, is_done) = oneshot::channel();
        if self.queue.send(ExportJob::Finish(done)).await.is_ok() {
            // Without somebody who writes there is nothing to wait for.
            let _ = is_done.await;
        }
    }
}
