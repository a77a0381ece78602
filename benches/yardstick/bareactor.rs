//! `bareactor`: what an agent costs at the very least: a task that waits on a channel.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use anyhow::Context as _;
use tokio::sync::mpsc;

use super::{Yardstick, http};

const INBOX_MAX: usize = 64;

/// The inboxes of all actors; never held across an await.
type Inboxes = Arc<Mutex<BTreeMap<String, mpsc::Sender<u64>>>>;

pub(crate) async fn run(yardstick: &Yardstick) -> anyhow::Result<()> {
    let reply = http::fixed(yardstick.reply_bytes);
    let inboxes = Inboxes::default();
    http::serve(yardstick.port, move |request| {
        let (reply, inboxes) = (reply.clone(), Arc::clone(&inboxes));
        async move {
            let call = http::call(request.into_body()).await?;
            match call.method.as_str() {
                "create_agent" => {
                    let id = id_of(&call)?;
                    let (inbox, messages) = mpsc::channel(INBOX_MAX);
                    tokio::spawn(actor(messages));
                    inboxes.lock().expect("nobody panics with it").insert(id, inbox);
                }
                "destroy_agent" => {
                    let id = id_of(&call)?;
                    inboxes.lock().expect("nobody panics with it").remove(&id);
                }
                _ => {}
            }
            Ok(http::json(reply))
        }
    })
    .await
}

/// Ends when its inbox is dropped.
async fn actor(mut messages: mpsc::Receiver<u64>) {
    let mut total = 0_u64;
    while let Some(message) = messages.recv().await {
        total = std::hint::black_box(total.wrapping_add(message));
    }
}

fn id_of(call: &http::Call) -> anyhow::Result<String> {
    let id = call.params["agent_id"].as_str();
    Ok(id.context("the call names no agent")?.to_owned())
}
