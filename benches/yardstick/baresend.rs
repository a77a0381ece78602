//! `baresend`: a `send` without agents: one streamed model call, the commits around it, a reply.

use std::sync::Arc;

use super::direct::{Model, request_body};
use super::store::{Grouping, Writer};
use super::{Yardstick, http};

pub(crate) async fn run(yardstick: &Yardstick) -> anyhow::Result<()> {
    let model = Arc::new(Model::new(yardstick.model)?);
    let grouping = if yardstick.group { Grouping::Grouped } else { Grouping::Single };
    let commits = yardstick.commits;
    let writer = if commits > 0 { Some(Writer::start(&yardstick.home, grouping)?) } else { None };
    let (reply, body) = (http::fixed(yardstick.reply_bytes), request_body(yardstick.request_bytes));
    http::serve(yardstick.port, move |request| {
        let (model, writer) = (Arc::clone(&model), writer.clone());
        let (reply, body) = (reply.clone(), body.clone());
        async move {
            let call = http::call(request.into_body()).await?;
            if call.method == "send" {
                // The first says that the message was accepted, the others how the turn ended.
                for nth in 0..commits {
                    if nth == 1 {
                        ask(&model, body.clone()).await?;
                    }
                    if let Some(writer) = &writer {
                        writer.commit().await?;
                    }
                }
                if commits < 2 {
                    ask(&model, body).await?;
                }
            }
            Ok(http::json(reply))
        }
    })
    .await
}

async fn ask(model: &Model, body: bytes::Bytes) -> anyhow::Result<()> {
    let mut text = String::new();
    model.call(body, |piece| text.push_str(piece)).await?;
    anyhow::ensure!(!text.is_empty(), "the model said nothing");
    Ok(())
}
