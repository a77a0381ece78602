//! `bare`: hyper with keep-alive; reads and parses the body, gives a fixed answer.
//! With a schema it also makes a database first, as a server's first start does.

use super::{Journal, Yardstick, http};

pub(crate) async fn run(yardstick: &Yardstick) -> anyhow::Result<()> {
    if let Some(schema) = &yardstick.schema {
        let statements = std::fs::read_to_string(schema)?;
        Journal::open(&yardstick.home, &statements)?;
    }
    let reply = http::fixed(yardstick.reply_bytes);
    http::serve(yardstick.port, move |request| {
        let reply = reply.clone();
        async move {
            http::call(request.into_body()).await?;
            Ok(http::json(reply))
        }
    })
    .await
}
