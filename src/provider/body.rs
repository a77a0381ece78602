//! The body of a request: how much room it needs. Pure.

use super::ModelRequest;

/// About how long the body of a request will be.
pub(super) fn room(request: &ModelRequest) -> usize {
    // Keys, quotes and some escapes.
    const AROUND: usize = 96;
    let messages = AROUND * request.messages.len() + request.messages.bytes();
    let tools = request.tools.iter().map(|tool| {
        AROUND + tool.name.len() + tool.description.len() + tool.parameters.text().len()
    });
    let all = messages + tools.sum::<usize>() + request.system.len() + 2 * AROUND;
    all + all / 32
}
