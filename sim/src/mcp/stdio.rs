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
                    Some(exit) = death.recv() => return exit,
                    line = lines.next_line() => line,
                };
                let Ok(Some(line)) = line else { return Exit::Code(0) };
                let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
                let steps = server.on(&message);
                if !steps.is_empty() {
                    let server = Arc::clone(&server);
                    stage.start(say(server, steps, Arc::clone(&stage.stdout), dying.clone()));
                }
            }
        })
    }
}

fn closed() -> tokio::io::DuplexStream {
    tokio::io::duplex(WAITING_MAX).0
}

async fn say(server: Arc<Scripted>, steps: Vec<Step>, stdout: Pipe, dying: mpsc::Sender<Exit>) {
    for step in steps {
        let step = match step {
            Step::Tell(news) => match server.for_listeners(news) {
                Some(news) => Step::Say(news),
                None => continue,
            },
            step => step,
        };
        match step {
            Step::Wait(time) => sleep(time).await,
            Step::WaitForEver => std::future::pending().await,
            Step::Die(exit) => {
                let _ = dying.send(exit).await;
                return;
            }
            // A pipe does not break and go on.
            Step::Tell(_) | Step::Break => {}
            // Programs have no such answers, which is checked when a scenario is read.
            Step::Refuse(_) => return,
            Step::Say(message) => {
                let line = format!("{message}\n");
                if stdout.lock().await.write_all(line.as_bytes()).await.is_err() {
                    return;
                }
            }
        }
    }
}
