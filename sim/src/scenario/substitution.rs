//! `${name}` in the strings of a step: what a run has saved stands in its place. `$${` is a plain
//! `${`. Keys are left as they are.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{Action, Call, CallExpect, Confirm, FileSpec, Files, Raw, Step, Token, Typing, Watch};

/// Names that every run has: the client's last event, the server's token, the count of `repeat`, and where
/// the MCP servers are that are reached over HTTP.
pub const BUILT_IN: [&str; 4] = ["seq", "token", "n", "mcp"];

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nothing is saved as `{name}`")]
pub struct UnknownName {
    pub name: String,
}

/// What the names of a run stand for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Substitution {
    values: BTreeMap<String, Value>,
}

impl Substitution {
    pub fn set(&mut self, name: &str, value: Value) {
        self.values.insert(name.to_owned(), value);
    }

    /// The text with each name replaced. In a regular expression a value stands for itself.
    pub fn text(&self, text: &str) -> Result<String, UnknownName> {
        let mut replaced = String::with_capacity(text.len());
        for piece in pieces(text) {
            match piece {
                Piece::Plain(text) | Piece::Open(text) => replaced.push_str(text),
                Piece::Name(name) => {
                    let value = match self.get(name)? {
                        Value::String(text) => text.clone(),
                        other => other.to_string(),
                    };
                    let quoted = text.starts_with(super::REGEX_PREFIX);
                    replaced.push_str(&if quoted { regex::escape(&value) } else { value });
                }
            }
        }
        Ok(replaced)
    }

    /// The value with the names in all of its strings replaced. A string that is one name alone
    /// becomes what it stands for, so that a saved number stays a number.
    pub fn value(&self, value: &Value) -> Result<Value, UnknownName> {
        Ok(match value {
            Value::String(text) => match pieces(text).as_slice() {
                [Piece::Name(name)] => self.get(name)?.clone(),
                _ => self.text(text)?.into(),
            },
            Value::Array(items) => {
                items.iter().map(|item| self.value(item)).collect::<Result<_, _>>()?
            }
            Value::Object(members) => Value::Object(self.members(members)?),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        })
    }

    /// The step with the names in all of its strings replaced.
    pub fn step(&self, step: &Step) -> Result<Step, UnknownName> {
        let action = match &step.action {
            Action::Call(call) => Action::Call(self.call(call)?),
            Action::Watch(watch) => Action::Watch(self.watch(watch)?),
            Action::Confirm(confirm) => Action::Confirm(self.confirm(confirm)?),
            Action::Raw(Raw { bytes, expect_http, expect_body }) => Action::Raw(Raw {
                bytes: self.text(bytes)?,
                expect_http: *expect_http,
                expect_body: expect_body.as_ref().map(|body| self.value(body)).transpose()?,
            }),
            Action::Files(files) => Action::Files(self.files(files)?),
            Action::Type(Typing { agent, types, key, sees }) => Action::Type(Typing {
                agent: self.optional(agent.as_ref())?,
                types: self.optional(types.as_ref())?,
                key: key.clone(),
                sees: self.optional(sees.as_ref())?,
            }),
            Action::Unwatch
            | Action::Disconnect
            | Action::Sleep(_)
            | Action::Stop(_)
            | Action::Start { .. } => step.action.clone(),
        };
        Ok(Step { action, ..step.clone() })
    }

    fn confirm(&self, confirm: &Confirm) -> Result<Confirm, UnknownName> {
        let Confirm { tool, decision, agent, delay, headers, token, expect } = confirm;
        Ok(Confirm {
            tool: self.text(tool)?,
            decision: self.text(decision)?,
            agent: self.optional(agent.as_ref())?,
            delay: *delay,
            headers: self.headers(headers)?,
            token: self.token(token)?,
            expect: self.expect(expect.as_ref())?,
        })
    }

    fn watch(&self, watch: &Watch) -> Result<Watch, UnknownName> {
        let Watch { agent, after, pace, headers, token, expect_error, expect_http } = watch;
        Ok(Watch {
            agent: self.optional(agent.as_ref())?,
            after: self.optional(after.as_ref())?,
            pace: *pace,
            headers: self.headers(headers)?,
            token: self.token(token)?,
            expect_error: expect_error.as_ref().map(|error| self.members(error)).transpose()?,
            expect_http: *expect_http,
        })
    }

    fn headers(
        &self,
        headers: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, String>, UnknownName> {
        headers.iter().map(|(name, value)| Ok((name.clone(), self.text(value)?))).collect()
    }

    fn token(&self, token: &Token) -> Result<Token, UnknownName> {
        Ok(match token {
            Token::Text(text) => Token::Text(self.text(text)?),
            Token::Server => Token::Server,
            Token::Without => Token::Without,
        })
    }

    fn call(&self, call: &Call) -> Result<Call, UnknownName> {
        let Call { method, agent, params, headers, token, expect, expect_http, save } = call;
        Ok(Call {
            method: self.text(method)?,
            agent: self.optional(agent.as_ref())?,
            params: params.as_ref().map(|params| self.members(params)).transpose()?,
            headers: self.headers(headers)?,
            token: self.token(token)?,
            expect: self.expect(expect.as_ref())?,
            expect_http: *expect_http,
            save: save.clone(),
        })
    }

    fn expect(&self, expect: Option<&CallExpect>) -> Result<Option<CallExpect>, UnknownName> {
        Ok(match expect {
            Some(CallExpect::Result(value)) => Some(CallExpect::Result(self.value(value)?)),
            Some(CallExpect::Error(error)) => Some(CallExpect::Error(self.members(error)?)),
            None => None,
        })
    }

    fn files(&self, files: &Files) -> Result<Files, UnknownName> {
        let replace = |spec: &FileSpec| {
            Ok(match spec {
                FileSpec::Text { text, repeat, mode } => {
                    FileSpec::Text { text: self.text(text)?, repeat: *repeat, mode: *mode }
                }
                FileSpec::Bytes { .. }
                | FileSpec::Directory { .. }
                | FileSpec::Symlink(_)
                | FileSpec::Remove => spec.clone(),
            })
        };
        files.iter().map(|(path, spec)| Ok((path.clone(), replace(spec)?))).collect()
    }

    fn members(&self, members: &Map<String, Value>) -> Result<Map<String, Value>, UnknownName> {
        members.iter().map(|(key, value)| Ok((key.clone(), self.value(value)?))).collect()
    }

    fn optional(&self, text: Option<&String>) -> Result<Option<String>, UnknownName> {
        text.map(|text| self.text(text)).transpose()
    }

    fn get(&self, name: &str) -> Result<&Value, UnknownName> {
        self.values.get(name).ok_or_else(|| UnknownName { name: name.to_owned() })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    Plain(&'a str),
    Name(&'a str),
    /// A `${` that never closes.
    Open(&'a str),
}

pub(super) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let (before, from) = rest.split_at(start);
        if before.ends_with('$') {
            // The first `$` of `$${` is left out, and the brace is plain.
            pieces.push(Piece::Plain(&before[..start - 1]));
            pieces.push(Piece::Plain(&from[..2]));
            rest = &from[2..];
            continue;
        }
        pieces.push(Piece::Plain(before));
        let Some(end) = from.find('}') else {
            pieces.push(Piece::Open(from));
            rest = "";
            break;
        };
        pieces.push(Piece::Name(&from[2..end]));
        rest = &from[end + 1..];
    }
    pieces.push(Piece::Plain(rest));
    pieces.retain(|piece| *piece != Piece::Plain(""));
    pieces
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn names() -> Substitution {
        let mut names = Substitution::default();
        names.set("first", json!("a.b"));
        names.set("count", json!(3));
        names.set("n", json!("2"));
        names
    }

    #[test]
    fn names_in_strings_are_replaced_and_keys_are_not() {
        let value = json!({ "${n}": ["r${n}", "${n}", 1], "id": "${first}-${count}" });
        let replaced = json!({ "${n}": ["r2", "2", 1], "id": "a.b-3" });
        assert_eq!(names().value(&value), Ok(replaced));
    }

    #[test]
    fn a_name_alone_keeps_its_type() {
        assert_eq!(names().value(&json!("${count}")), Ok(json!(3)));
        assert_eq!(names().text("${count}"), Ok("3".to_owned()));
    }

    #[test]
    fn a_value_in_a_regular_expression_stands_for_itself() {
        assert_eq!(names().text("re:^${first}$"), Ok(r"re:^a\.b$".to_owned()));
    }

    #[test]
    fn a_doubled_dollar_and_an_open_brace_are_plain() {
        assert_eq!(names().text("$${n} ${n} $ ${"), Ok("${n} 2 $ ${".to_owned()));
    }

    #[test]
    fn an_unknown_name_is_an_error() {
        let error = names().value(&json!(["${second}"])).unwrap_err();
        assert_eq!(error.to_string(), "nothing is saved as `second`");
    }
}
