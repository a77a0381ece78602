//! Conversations that come from outside: what is missing is said to be missing, what makes no sense is
//! refused. Pure.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::limits::TOOL_CALLS_PER_MESSAGE_MAX;
use crate::message::{Message, ToolMeta, check_pairs};

const MISSING: &str = "outcome_unknown: the session file has no result of this call.";

/// The messages with a result for every call, directly after it and in order.
pub(super) fn mended(messages: Vec<Arc<Message>>) -> Result<Vec<Arc<Message>>, String> {
    let mut mended: Vec<Arc<Message>> = Vec::with_capacity(messages.len());
    let mut open: VecDeque<String> = VecDeque::new();
    for (index, message) in messages.into_iter().enumerate() {
        match &*message {
            Message::Tool { .. } => {
                open.pop_front();
            }
            Message::User { .. } => mended.extend(open.drain(..).map(without_result)),
            Message::Assistant { tool_calls, .. } => {
                mended.extend(open.drain(..).map(without_result));
                if tool_calls.len() > TOOL_CALLS_PER_MESSAGE_MAX {
                    return Err(format!(
                        "message {index} calls more than {TOOL_CALLS_PER_MESSAGE_MAX} tools"
                    ));
                }
                open.extend(tool_calls.iter().map(|call| call.id.clone()));
            }
        }
        mended.push(message);
    }
    mended.extend(open.into_iter().map(without_result));
    check_pairs(mended.iter().map(AsRef::as_ref))?;
    Ok(mended)
}

fn without_result(tool_call_id: String) -> Arc<Message> {
    let meta = Some(ToolMeta { error: true });
    Arc::new(Message::Tool { content: MISSING.to_owned(), tool_call_id, meta })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(messages: Value) -> Result<Vec<Value>, String> {
        let messages = serde_json::from_value(messages).unwrap();
        let mended = mended(messages)?;
        Ok(mended.iter().map(|message| serde_json::to_value(message).unwrap()).collect())
    }

    fn call(id: &str) -> Value {
        json!({"id": id, "name": "echo", "arguments": {}})
    }

    fn result(id: &str) -> Value {
        json!({"role": "tool", "content": "x", "tool_call_id": id})
    }

    fn missing(id: &str) -> Value {
        json!({"role": "tool", "content": MISSING, "tool_call_id": id, "meta": {"error": true}})
    }

    #[test]
    fn a_call_without_a_result_gets_one_that_says_so() {
        let asks =
            json!({"role": "assistant", "content": "", "tool_calls": [call("a"), call("b")]});
        let says = json!({"role": "user", "content": "and?"});
        let given = json!([asks, result("a"), says, asks]);
        let expected =
            vec![asks.clone(), result("a"), missing("b"), says, asks, missing("a"), missing("b")];
        assert_eq!(read(given), Ok(expected));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        assert_eq!(read(json!([result("a")])), Err("message 0 answers no call".to_owned()));
        let empty = json!([{"role": "assistant", "content": ""}]);
        assert_eq!(read(empty), Err("message 0 is empty".to_owned()));
        let asks = json!({"role": "assistant", "content": "", "tool_calls": [call("a")]});
        let swapped = read(json!([asks, result("b")]));
        assert_eq!(swapped, Err("message 1 answers b, not a".to_owned()));
        let many = vec![call("a"); TOOL_CALLS_PER_MESSAGE_MAX + 1];
        let many = json!([{"role": "assistant", "content": "", "tool_calls": many}]);
        assert_eq!(read(many), Err("message 0 calls more than 128 tools".to_owned()));
    }
}
