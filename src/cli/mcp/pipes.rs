//! Stdin and stdout as a transport: a line is a message. The two are read and written on threads of
//! their own, since they may be anything, which then end with the program.

use std::io::{self, BufRead, Write};
use std::thread;

use rmcp::RoleServer;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::mpsc;

use crate::limits::MCP_MESSAGES_WAITING_MAX;

type Given = RxJsonRpcMessage<RoleServer>;
type Taken = TxJsonRpcMessage<RoleServer>;

pub(super) struct Pipes {
    from_host: mpsc::Receiver<Given>,
    to_host: Option<mpsc::Sender<Taken>>,
    /// Written out once all of it is.
    written: mpsc::Receiver<()>,
}

pub(super) fn open() -> Pipes {
    let (to_us, from_host) = mpsc::channel(MCP_MESSAGES_WAITING_MAX);
    let (to_host, mut from_us) = mpsc::channel::<Taken>(MCP_MESSAGES_WAITING_MAX);
    let (done, written) = mpsc::channel(1);
    thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            // What is no message is not answered: nobody would know to what.
            if let Ok(message) = serde_json::from_str(&line)
                && to_us.blocking_send(message).is_err()
            {
                break;
            }
        }
    });
    thread::spawn(move || {
        // Held until all is written.
        let _done = done;
        while let Some(message) = from_us.blocking_recv() {
            let mut line = serde_json::to_vec(&message).expect("messages have only string keys");
            line.push(b'\n');
            let mut out = io::stdout().lock();
            if out.write_all(&line).and_then(|()| out.flush()).is_err() {
                break;
            }
        }
    });
    Pipes { from_host, to_host: Some(to_host), written }
}

impl Transport<RoleServer> for Pipes {
    type Error = io::Error;

    fn send(&mut self, message: Taken) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let to_host = self.to_host.clone();
        async move {
            let broken = || io::Error::from(io::ErrorKind::BrokenPipe);
            to_host.ok_or_else(broken)?.send(message).await.map_err(|_| broken())
        }
    }

    async fn receive(&mut self) -> Option<Given> {
        self.from_host.recv().await
    }

    async fn close(&mut self) -> io::Result<()> {
        self.to_host = None;
        self.written.recv().await;
        Ok(())
    }
}
