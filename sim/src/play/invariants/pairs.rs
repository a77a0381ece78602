//! The invariant `pairs`: every tool call in every conversation has exactly one result, in order. In
//! each model request as it arrived, in each session when its caller is told that it was saved, and in
//! what the server at rest says.

use nexus3::message::{Message, check_pairs};
use serde::Deserialize;

use super::saved::session;
use super::{Check, End, Invariant, Observation, Seen, conversation};
use crate::play::observed::Answer;

#[derive(Debug)]
pub struct Pairs;

impl Check for Pairs {
    fn invariant(&self) -> Invariant {
        Invariant::Pairs
    }

    fn on(&mut self, observation: &Observation, seen: &Seen<'_>) -> Vec<String> {
        let (told, messages) = match observation {
            Observation::Asked(request) => {
                let messages = conversation::read(&request.body).unwrap_or_default();
                (format!("{} asks a model", request.agent), messages)
            }
            Observation::Answered(Answer { method, result: Ok(result), .. })
                if method == "save_session" =>
            {
                let name = result["session_name"].as_str().unwrap_or_default();
                let saved = session(seen.disk, name).unwrap_or_default();
                let messages = Vec::<Message>::deserialize(&saved["messages"]);
                (format!("the session {name}"), messages.unwrap_or_default())
            }
            _ => return Vec::new(),
        };
        let broken = check_pairs(messages.iter()).err();
        broken.map(|broken| format!("{told}: {broken}")).into_iter().collect()
    }

    fn at_end(&mut self, _: &Seen<'_>, end: &End<'_>) -> Vec<String> {
        let all = end.survey.map(|survey| [&survey.conversations_before, &survey.conversations]);
        let conversations = all.into_iter().flatten().flatten();
        let broken = conversations.filter_map(|(agent, messages)| {
            let broken = check_pairs(messages.iter().map(AsRef::as_ref)).err()?;
            Some(format!("{agent}: {broken}"))
        });
        broken.collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::seen_tests::{Run, answered, asked, survey};
    use super::*;
    use crate::disk::Item;
    use crate::machine::HOME;

    fn call(id: &str) -> serde_json::Value {
        json!({"id": id, "type": "function", "function": {"name": "echo", "arguments": "{}"}})
    }

    #[test]
    fn a_model_request_with_an_unanswered_call_is_seen() {
        let run = Run::default();
        let check =
            |messages| Pairs.on(&asked("scout", &json!({"messages": messages})), &run.seen());
        let asks =
            json!({"role": "assistant", "content": null, "tool_calls": [call("a"), call("b")]});
        let result = |id| json!({"role": "tool", "tool_call_id": id, "content": "ok"});
        assert_eq!(check(json!([asks, result("a"), result("b")])), Vec::<String>::new());
        let open = "scout asks a model: b has no result";
        assert_eq!(check(json!([asks, result("a")])), [open]);
        let swapped = "scout asks a model: message 0 answers no call";
        assert_eq!(check(json!([result("a"), asks])), [swapped]);
    }

    #[test]
    fn a_conversation_at_rest_is_paired() {
        let run = Run::default();
        let asks = json!({"role": "assistant", "content": "", "tool_calls": [
            {"id": "c", "name": "echo", "arguments": {}}
        ]});
        let survey = survey("scout", &[asks]);
        let end = End { survey: Some(&survey), left_behind: None };
        assert_eq!(Pairs.at_end(&run.seen(), &end), ["scout: c has no result"]);
    }

    #[test]
    fn a_session_that_was_saved_is_paired() {
        let run = Run::default();
        let asks = json!({"role": "assistant", "content": "", "tool_calls": [
            {"id": "c", "name": "echo", "arguments": {}}
        ]});
        let content = json!({"messages": [asks]}).to_string().into_bytes();
        let path = format!("{HOME}/sessions/scout.json");
        run.disk.put(path.as_ref(), Item::File { content, mode: 0o600 }).unwrap();
        let told = answered("save_session", None, json!({"session_name": "scout"}));
        assert_eq!(Pairs.on(&told, &run.seen()), ["the session scout: c has no result"]);
    }
}
