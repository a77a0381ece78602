//! The body of a request: how much room it needs. Pure.

use super::ModelRequest;
use crate::message::Message;

/// About how long the body of a request will be.
pub(super) fn room(request: &ModelRequest) -> usize {
    // Keys, quotes and some escapes.
    const AROUND: usize = 96;
    let message = |message: &Message| match message {
        Message::User { content, .. } => content.len(),
        Message::Assistant { content, .. } | Message::Tool { content, .. } => content.len(),
    };
    let messages = request.messages.iter().map(|each| AROUND + message(each));
    let tools = request.tools.iter().map(|tool| {
        AROUND + tool.name.len() + tool.description.len() + tool.parameters.text().len()
    });
    let all = messages.chain(tools).sum::<usize>() + request.system.len() + 2 * AROUND;
    all + all / 32
}
