//! What was said, as a person reads it. Pure.

use serde_json::Value;

use super::output::plain;
use crate::message::Message;

/// One message of a conversation, with its number.
pub fn told(index: u64, message: &Message) -> String {
    let (who, text) = match message {
        Message::User { content, meta } => {
            let source = meta.as_ref().map(|meta| format!("user ({})", meta.source));
            (source.unwrap_or_else(|| "user".to_owned()), content.to_string())
        }
        Message::Assistant { content, tool_calls, .. } => {
            let calls = tool_calls.iter().map(|call| {
                let arguments = match &call.arguments {
                    Value::String(raw) => raw.clone(),
                    arguments => arguments.to_string(),
                };
                format!("→ {} {arguments}", call.name)
            });
            let spoken = Some(content.clone()).filter(|content| !content.is_empty());
            let lines: Vec<String> = spoken.into_iter().chain(calls).collect();
            ("assistant".to_owned(), lines.join("\n"))
        }
        Message::Tool { content, .. } => ("tool".to_owned(), content.clone()),
    };
    plain(&format!("#{index} {who}: {text}"))
}
