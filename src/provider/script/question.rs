//! What a script looks at in a chat completions request.
//! Pure. It reads requests that our own wire code wrote and those of any other client.

use http::HeaderMap;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// The header that names the agent that asks.
pub const AGENT_HEADER: &str = "x-nexus-agent";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Empty where the request does not say.
    pub agent: String,
    /// The model as it stands in the request.
    pub model: String,
    /// How many messages the model was shown, the system prompt included.
    pub messages: usize,
    /// Tool calls in these messages.
    pub calls: usize,
    /// The text of the last message.
    pub last_message: String,
    /// A hash of the messages as they were sent, the same on every machine and in every version.
    pub digest: u64,
}

/// The body of the request is no chat completions request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the request is no chat completions request")]
pub struct NoQuestion;

#[derive(Deserialize)]
struct WireRequest<'a> {
    model: String,
    #[serde(borrow)]
    messages: &'a RawValue,
}

#[derive(Deserialize)]
struct WireMessage<'a> {
    /// A text, null, or a list of parts; only the last message's is looked at.
    #[serde(default, borrow)]
    content: Option<&'a RawValue>,
    #[serde(default)]
    tool_calls: Option<Vec<serde::de::IgnoredAny>>,
}

impl Question {
    pub fn read(headers: &HeaderMap, body: &[u8]) -> Result<Self, NoQuestion> {
        let request: WireRequest<'_> = serde_json::from_slice(body).map_err(|_| NoQuestion)?;
        let messages: Vec<WireMessage<'_>> =
            serde_json::from_str(request.messages.get()).map_err(|_| NoQuestion)?;
        let agent = headers.get(AGENT_HEADER).and_then(|value| value.to_str().ok());
        Ok(Self {
            agent: agent.unwrap_or_default().to_owned(),
            model: request.model,
            messages: messages.len(),
            calls: messages.iter().flat_map(|message| &message.tool_calls).map(Vec::len).sum(),
            last_message: messages
                .last()
                .and_then(|last| last.content)
                .map(text)
                .unwrap_or_default(),
            digest: digest(request.messages.get().as_bytes()),
        })
    }
}

/// The text of a message's content; other clients send it in parts.
fn text(content: &RawValue) -> String {
    match serde_json::from_str(content.get()).unwrap_or_default() {
        Value::String(text) => text,
        Value::Array(parts) => parts.iter().filter_map(|part| part.get("text")?.as_str()).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

/// FNV-1a. The standard library's hasher may change with the compiler, and transcripts may not.
fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_is_read_by_agent_model_and_last_message() {
        let body = json!({"model": "m", "stream": true, "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "assistant", "content": null, "tool_calls": [{"id": "a"}, {"id": "b"}]},
            {"role": "tool", "content": "one", "tool_call_id": "a"},
            {"role": "user", "content": [{"type": "text", "text": "t"}, {"type": "text", "text": "wo"}]},
        ]});
        let headers =
            HeaderMap::from_iter([(AGENT_HEADER.parse().unwrap(), HeaderValue::from_static("w1"))]);
        let question = Question::read(&headers, body.to_string().as_bytes()).unwrap();
        let expected = Question {
            agent: "w1".to_owned(),
            model: "m".to_owned(),
            messages: 4,
            calls: 2,
            last_message: "two".to_owned(),
            digest: question.digest,
        };
        assert_eq!(question, expected);
    }

    #[test]
    fn the_digest_is_of_the_messages_alone() {
        let digest =
            |body: &str| Question::read(&HeaderMap::new(), body.as_bytes()).unwrap().digest;
        let hi = r#"{"role":"user","content":"hi"}"#;
        let first = digest(&format!(r#"{{"model":"m","messages":[{hi}]}}"#));
        assert_eq!(first, digest(&format!(r#"{{"messages":[{hi}],"model":"n"}}"#)));
        assert_ne!(first, digest(&format!(r#"{{"model":"m","messages":[{hi},{hi}]}}"#)));
        assert_eq!(super::digest(b"foobar"), 0x8594_4171_f739_67e8, "the hash is FNV-1a");
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for body in ["", "{}", "[]", r#"{"model":"m","messages":{}}"#] {
            let outcome = Question::read(&HeaderMap::new(), body.as_bytes());
            assert_eq!(outcome, Err(NoQuestion), "{body}");
        }
    }
}
