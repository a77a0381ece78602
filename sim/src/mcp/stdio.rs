//! A scripted MCP server as a program: a line is a message.

use std::sync::Arc;

use nexus3::world::{BoxFuture, Exit};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::{Scripted, Step};
use crate::machine::{Act, Pipe, Stage};

/// Answers that wait to be written; a server that says more waits.
const WAITING_MAX: usize = 64;
/// What a server that gives up exits with.
const DIED: i32 = 70;

struct Program(Arc<Scripted>);

pub fn program(server: Arc<Scripted>) -> Arc<dyn Act> {
    Arc::new(Program(server))
}

impl Act for Program {
    fn play(&self, mut stage: Stage) -> BoxFuture<'static, Exit> {
        let server = Arc::clone(&self.0);
        Box::pin(async move {
            server.note("is started");
            let said = server.server.stderr.clone();
            // A reader that went away is the server's business.
            let _ = stage.stderr.lock().await.write_all(said.as_bytes()).await;
            let (dying, mut death) = mpsc::channel(1);
            let mut lines = BufReader::new(std::mem::replace(&mut stage.stdin, closed())).lines();
            loop {
                let line = tokio::select! {
                    // One that dies reads nothing more.
                    biased;
                    Some(()) = death.recv() => return Exit::Code(DIED),
                    line = lines.next_line() => line,
                };
                let Ok(Some(line)) = line else { return Exit::Code(0) };
                let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
                let steps = server.on(&message);
                if !steps.is_empty() {
                    stage.start(say(steps, Arc::clone(&stage.stdout), dying.clone()));
                }
            }
        })
    }
}

fn closed() -> tokio::io::DuplexStream {
    tokio::io::duplex(WAITING_MAX).0
}

async fn say(steps: Vec<Step>, stdout: Pipe, dying: mpsc::Sender<()>) {
    for step in steps {
        match step {
            Step::Wait(time) => sleep(time).await,
            Step::WaitForEver => std::future::pending().await,
            Step::Die => {
                let _ = dying.send(()).await;
                return;
            }
            Step::Say(message) => {
                let line = format!("{message}\n");
                if stdout.lock().await.write_all(line.as_bytes()).await.is_err() {
                    return;
                }
            }
        }
    }
}
