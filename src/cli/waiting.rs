//! A message sent from the command line, and the wait for its answer: a person sees that it goes on,
//! the first interrupt cancels the turn, a second one leaves.

use std::pin::pin;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::connection::Connection;
use super::{Failed, output};
use crate::id::AgentId;
use crate::rpc::method::{SendParams, SendResult};

const PROGRESS_AFTER: Duration = Duration::from_secs(2);
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// Waits for what takes time, and shows a person that it does.
pub async fn shown<T>(what: &str, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    let (start, mut pause) = (Instant::now(), PROGRESS_AFTER);
    let mut told = None;
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = sleep(pause) => {
                output::progress(&format!("{what}, {} s", start.elapsed().as_secs()));
                pause = PROGRESS_EVERY;
                told.get_or_insert_with(|| Progress);
            }
        }
    }
}

/// A line that tells of a wait. It goes with the wait, also where somebody interrupts it.
struct Progress;

impl Drop for Progress {
    fn drop(&mut self) {
        output::progress("");
    }
}

/// Sends and waits. The first signal cancels the turn; the caller of this leaves at the second.
pub async fn send(
    connection: &Connection,
    agent: &AgentId,
    params: &SendParams,
) -> Result<SendResult, Failed> {
    let client = &connection.client;
    let what = format!("waiting for {agent}");
    let mut sending = pin!(shown(&what, client.send(agent, params)));
    tokio::select! {
        biased;
        sent = &mut sending => return connection.answered(sent).await,
        () = connection.world.signals.stop() => {}
    }
    output::progress("");
    output::aside("cancelling the turn; interrupt again to leave at once");
    connection.answered(client.cancel(agent, params.request_id.clone()).await).await?;
    match connection.answered(sending.await).await? {
        SendResult::Cancelled { .. } => Err(Failed::Interrupted),
        // It was faster than the cancellation.
        sent @ (SendResult::Completed { .. } | SendResult::Accepted { .. }) => Ok(sent),
    }
}

/// Prints what came of a message. A turn that was cancelled has failed.
pub fn tell(connection: &Connection, sent: &SendResult) -> Result<(), Failed> {
    let text = match sent {
        SendResult::Completed { content, .. } => content.clone(),
        SendResult::Accepted { request_id, .. } => request_id.to_string(),
        SendResult::Cancelled { .. } => String::new(),
    };
    connection.show(sent, || text);
    judge(sent)
}

/// Whether a turn did what it was to.
pub fn judge(sent: &SendResult) -> Result<(), Failed> {
    match sent {
        SendResult::Cancelled { request_id, .. } => {
            output::note(format_args!("the turn was cancelled: {request_id}"));
            Err(Failed::Silently)
        }
        SendResult::Completed { .. } | SendResult::Accepted { .. } => Ok(()),
    }
}
