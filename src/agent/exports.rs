//! Tells whoever writes session files that an agent has something new to save. Nobody waits for it: an
//! agent's turn is over whether or not its file is written.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{mpsc, oneshot};

use crate::limits::EXPORT_QUEUE_MAX;
use crate::store::AgentNumber;

/// The way to whoever writes session files.
#[derive(Debug)]
pub struct Exports {
    followed: Followed,
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

/// Whether any agent has had a session file that follows it since the start. Until then what agents
/// do is nothing to save, and nobody is woken for it.
#[derive(Clone, Debug, Default)]
pub struct Followed(Arc<AtomicBool>);

impl Followed {
    pub fn note(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn is_noted(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl Exports {
    pub fn new(followed: Followed) -> (Self, mpsc::Receiver<ExportJob>) {
        let (queue, jobs) = mpsc::channel(EXPORT_QUEUE_MAX);
        (Self { followed, queue, missed: AtomicBool::new(false) }, jobs)
    }

    pub fn changed(&self, agent: AgentNumber) {
        if self.followed.is_noted() && self.queue.try_send(ExportJob::Changed(agent)).is_err() {
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
