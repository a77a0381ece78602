//! What a provider says is wrong: in a record of its answer, or as the body of an error status.
//! Pure. The wires differ little here, and servers that speak one quote errors of the other.

use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ErrorObject {
    pub(super) message: Option<String>,
    pub(super) kind: Option<String>,
    /// The HTTP status it would have had.
    pub(super) status: Option<u16>,
}

impl ErrorObject {
    /// Reads `{"error": {"message", "type", "code"}}`, `{"error": "text"}`, and the same fields
    /// without the wrapping.
    pub(super) fn of(value: &Value) -> Self {
        let object = value.get("error").filter(|error| !error.is_null());
        let object = object.unwrap_or(value);
        let text = |key: &str| object.get(key)?.as_str().map(str::to_owned);
        let kind = text("type");
        let told = object.get("code").and_then(status_code);
        Self {
            message: object
                .as_str()
                .map(str::to_owned)
                .or_else(|| text("message"))
                .or_else(|| text("detail")),
            status: told.or_else(|| kind.as_deref().and_then(status_of_kind)),
            kind,
        }
    }
}

fn status_code(code: &Value) -> Option<u16> {
    let number = match code {
        Value::Number(number) => number.as_u64()?.try_into().ok()?,
        Value::String(text) => text.parse().ok()?,
        _ => return None,
    };
    (400..600).contains(&number).then_some(number)
}

/// The names of Anthropic that stand for one status each.
fn status_of_kind(kind: &str) -> Option<u16> {
    match kind {
        "authentication_error" => Some(401),
        "billing_error" => Some(402),
        "permission_error" => Some(403),
        "not_found_error" => Some(404),
        "request_too_large" => Some(413),
        "rate_limit_error" => Some(429),
        "timeout_error" => Some(504),
        "overloaded_error" => Some(529),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_error_is_read_in_every_form_that_servers_send() {
        let read = |value: Value| {
            let ErrorObject { message, status, .. } = ErrorObject::of(&value);
            (message.unwrap_or_default(), status)
        };
        let busy = || "busy".to_owned();
        assert_eq!(read(json!({"error": {"message": "busy", "code": 503}})), (busy(), Some(503)));
        assert_eq!(read(json!({"error": {"message": "busy", "code": "429"}})), (busy(), Some(429)));
        assert_eq!(read(json!({"error": "busy"})), (busy(), None));
        assert_eq!(read(json!({"object": "error", "message": "busy", "code": 7})), (busy(), None));
        assert_eq!(read(json!({"detail": "busy"})), (busy(), None));
        let anthropic =
            json!({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}});
        assert_eq!(read(anthropic), (busy(), Some(529)));
        assert_eq!(read(json!({"error": null})), (String::new(), None));
    }
}
