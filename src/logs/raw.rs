//! A provider's traffic as lines of JSON.
//! Pure. The provider has freed it of secrets before it comes here.

use serde_json::{Map, Value, json};

use crate::id::RequestId;
use crate::provider::{Carried, Passed};

/// One line, with its end.
pub(super) fn line(at: &str, request: Option<&RequestId>, passed: Passed) -> String {
    let mut line = Map::new();
    line.insert("at".to_owned(), at.into());
    line.insert("direction".to_owned(), direction(&passed.carried).into());
    line.insert("provider".to_owned(), passed.provider.into());
    line.insert("model".to_owned(), passed.model.into());
    if let Some(request) = request {
        line.insert("request_id".to_owned(), request.as_str().into());
    }
    line.insert("exchange".to_owned(), passed.exchange.into());
    let fields = match passed.carried {
        Carried::Request { url, headers, body } => {
            json!({ "url": url, "headers": map(headers), "body": body })
        }
        Carried::Response { status, headers, body, end } => json!({
            "status": status,
            "headers": map(headers),
            "end": end.name(),
            "body": body,
        }),
        Carried::Error { fault, message } => json!({ "fault": fault.name(), "message": message }),
    };
    if let Value::Object(fields) = fields {
        line.extend(fields);
    }
    format!("{}\n", Value::Object(line))
}

fn direction(carried: &Carried) -> &'static str {
    match carried {
        Carried::Request { .. } => "request",
        Carried::Response { .. } => "response",
        Carried::Error { .. } => "error",
    }
}

fn map(headers: Vec<(String, String)>) -> Value {
    headers.into_iter().map(|(name, value)| (name, Value::String(value))).collect()
}
