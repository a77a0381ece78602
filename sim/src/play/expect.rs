//! What a step expects of its answer. Pure.

use serde_json::Value;

use super::client::Done;
use crate::scenario::{Call, CallExpect, REGEX_PREFIX, Raw, Watch, matches};

/// What of a call's answer is not as expected. A call that expects nothing must succeed, unless its
/// connection was meant to break.
pub fn call(call: &Call, done: &Done) -> Vec<String> {
    let (status, answer) = match done {
        Done::Answered { status, answer } => (*status, answer),
        Done::Unanswered
        | Done::Disconnected
        | Done::RawAnswer { .. }
        | Done::Confirmed { .. }
        | Done::Streaming => {
            let expected = call.expect.is_some() || call.expect_http.is_some();
            return if expected { vec!["there was no answer".to_owned()] } else { Vec::new() };
        }
    };
    let mut problems = Vec::new();
    if let Some(expected) = call.expect_http
        && expected != status
    {
        problems.push(format!("expected HTTP {expected}, found {status}"));
    }
    let mismatch = |expected: &Value, found: &Value| {
        matches(expected, found).err().map(|mismatch| mismatch.to_string())
    };
    match (&call.expect, answer) {
        (Some(CallExpect::Result(expected)), Ok(found)) => {
            problems.extend(mismatch(expected, found));
        }
        (Some(CallExpect::Error(expected)), Err(found)) => {
            let found = serde_json::to_value(found).expect("an error has only string keys");
            problems.extend(mismatch(&Value::Object(expected.clone()), &found));
        }
        (Some(CallExpect::Error(_)), Ok(_)) => {
            problems.push("expected an error, found a result".to_owned());
        }
        (None, Err(_)) if call.expect_http.is_some() => {}
        (None | Some(CallExpect::Result(_)), Err(error)) => {
            problems
                .push(format!("expected a result, found error {} {:?}", error.code, error.message));
        }
        (None, Ok(_)) => {}
    }
    problems
}

/// What of the answer to an opened stream is not as expected. One that expects nothing must be open,
/// unless its connection was meant to break.
pub fn watch(watch: &Watch, done: &Done) -> Vec<String> {
    let refused = watch.expect_error.is_some() || watch.expect_http.is_some_and(|http| http != 200);
    let (status, error) = match done {
        Done::Streaming if refused => return vec!["expected a refusal, found a stream".to_owned()],
        Done::Answered { status, answer: Err(error) } => (*status, error),
        Done::Unanswered | Done::Disconnected if refused => {
            return vec!["there was no answer".to_owned()];
        }
        Done::Streaming
        | Done::Confirmed { .. }
        | Done::Unanswered
        | Done::Disconnected
        | Done::RawAnswer { .. }
        | Done::Answered { answer: Ok(_), .. } => return Vec::new(),
    };
    let mut problems = Vec::new();
    if let Some(expected) = watch.expect_http
        && expected != status
    {
        problems.push(format!("expected HTTP {expected}, found {status}"));
    }
    if let Some(expected) = &watch.expect_error {
        let found = serde_json::to_value(error).expect("an error has only string keys");
        let mismatch = matches(&Value::Object(expected.clone()), &found).err();
        problems.extend(mismatch.map(|mismatch| mismatch.to_string()));
    }
    if !refused {
        problems.push(format!("expected a stream, found error {} {:?}", error.code, error.message));
    }
    problems
}

pub fn raw(raw: &Raw, done: &Done) -> Vec<String> {
    let Done::RawAnswer { status, body } = done else {
        let expected = raw.expect_http.is_some() || raw.expect_body.is_some();
        return if expected { vec!["there was no answer".to_owned()] } else { Vec::new() };
    };
    let mut problems = Vec::new();
    if let Some(expected) = raw.expect_http
        && Some(expected) != *status
    {
        let found = status.map_or("no answer".to_owned(), |status| format!("HTTP {status}"));
        problems.push(format!("expected HTTP {expected}, found {found}"));
    }
    let Some(expected) = &raw.expect_body else {
        return problems;
    };
    let as_text = expected.as_str().is_some_and(|text| text.starts_with(REGEX_PREFIX));
    let found = if as_text { Ok(body.as_str().into()) } else { serde_json::from_str(body) };
    match found {
        Ok(found) => {
            problems.extend(matches(expected, &found).err().map(|mismatch| mismatch.to_string()));
        }
        Err(_) => problems.push("the body is no JSON".to_owned()),
    }
    problems
}
