//! What somebody does at a terminal, and which calls may come of it.

use std::collections::BTreeMap;

use nexus3::rpc::method::Method;
use nexus3::terminal::commands::{self, Command, Typed};
use nexus3::terminal::key::Key;
use serde_json::{Map, Value};

use super::{Call, Token};

/// Messages that may come back to the line, with those that they were joined to.
const EARLIER_MAX: usize = 256;

/// What somebody does at a terminal, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Typing {
    /// Opens one on this agent; the one before is left.
    pub agent: Option<String>,
    /// A newline is Enter.
    pub types: Option<String>,
    /// By its name.
    pub key: Option<String>,
    /// Looks until this is on the screen.
    pub sees: Option<String>,
}

impl Typing {
    pub fn keys(&self) -> Vec<Key> {
        let text = self.types.as_deref().unwrap_or_default();
        let keys = text.chars().map(|c| if c == '\n' { Key::Enter } else { Key::Char(c) });
        keys.chain(self.key.as_deref().and_then(Key::named)).collect()
    }

    /// The calls that may come of it: what the invariants would else take for nobody's. A message goes to
    /// whomever the terminal follows; one that was not sent comes back to the line, so what is typed next
    /// may stand behind any of the messages before it, which `earlier` keeps.
    pub fn calls(&self, earlier: &mut Vec<String>) -> Vec<Call> {
        let mut calls = Vec::new();
        for line in self.types.as_deref().unwrap_or_default().lines() {
            let behind = earlier.iter().map(|text| format!("{text}{line}"));
            let texts: Vec<String> = std::iter::once(line.to_owned()).chain(behind).collect();
            for text in texts {
                calls.extend(call(&text));
                let is_message = matches!(commands::read(&text), Typed::Message(_));
                if is_message && earlier.len() < EARLIER_MAX {
                    earlier.push(text);
                }
            }
        }
        calls
    }
}

fn call(line: &str) -> Option<Call> {
    let (method, names, words): (_, &[&str], _) = match commands::read(line) {
        Typed::Message(content) => (Method::Send, &["content"], vec![content]),
        Typed::Command { command, words } => {
            let (method, names) = of(command)?;
            (method, names, words)
        }
        Typed::Unknown { .. } | Typed::Nothing => return None,
    };
    let values = words.into_iter().filter(|word| !word.starts_with("--")).map(Value::from);
    let members = names.iter().map(ToString::to_string).zip(values);
    let params: Map<String, Value> = members.filter(|(name, _)| !name.is_empty()).collect();
    Some(Call {
        method: method.name().to_owned(),
        agent: None,
        params: Some(params),
        headers: BTreeMap::new(),
        token: Token::Server,
        expect: None,
        expect_http: None,
        save: BTreeMap::new(),
    })
}

/// What a command calls, and what its words are called there, one after another. Those that make or end
/// nothing are nobody's business.
fn of(command: &Command) -> Option<(Method, &'static [&'static str])> {
    let call: (Method, &[&str]) = match command.name {
        "send" => (Method::Send, &["", "content"]),
        // Who is not there may be created.
        "create" | "agent" | "whisper" => (Method::CreateAgent, &["agent_id"]),
        "destroy" => (Method::DestroyAgent, &["agent_id"]),
        "save" => (Method::SaveSession, &["agent_id", "session_name"]),
        "load" => (Method::LoadSession, &["session_name", "agent_id"]),
        "clone" => (Method::CloneSession, &["src_session", "dest_session"]),
        "rename" => (Method::RenameSession, &["old_name", "new_name"]),
        "delete" => (Method::DeleteSession, &["session_name"]),
        _ => return None,
    };
    Some(call)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(lines: &str, earlier: &mut Vec<String>) -> Vec<String> {
        let (agent, key, sees) = (None, None, None);
        let typing = Typing { agent, types: Some(lines.to_owned()), key, sees };
        let calls = typing.calls(earlier).into_iter().filter(|call| call.method == "send");
        let contents = calls.filter_map(|call| call.params?["content"].as_str().map(str::to_owned));
        contents.collect()
    }

    #[test]
    fn a_line_may_stand_behind_messages_that_came_back() {
        let mut earlier = Vec::new();
        assert_eq!(said("one\n/save diary\n", &mut earlier), ["one", "one/save diary"]);
        let third = ["two", "onetwo", "one/save diarytwo"];
        assert_eq!(said("two\n", &mut earlier), third);
    }
}
