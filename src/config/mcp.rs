//! MCP servers as `mcp.json` and `mcp_connect` write them, checked once. Values of variables and
//! headers are secrets: nothing shows them, and whatever a server says is told without them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use http::{HeaderName, HeaderValue, Uri};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::source::{Position, position};
use super::words::{self, shown_key};
use super::{HeaderText, Source, syntax};
use crate::limits::{MCP_SERVER_NAME_CHARS_MAX, MCP_SERVERS_MAX};

/// A server that is started, or one that is reached by a URL.
#[derive(Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "an object with a `command` or a `url`")]
pub struct McpServerForm {
    /// `stdio` or `http`; follows from the rest.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The program that is started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Variables besides those that every program gets.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Where it runs. Default: the project's directory, else the server's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Where it is reached by streamable HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
}

/// What is to be connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum McpServer {
    Stdio {
        command: String,
        args: Vec<String>,
        env: BTreeMap<String, HeaderText>,
        /// Absolute, or relative to where our own server works.
        cwd: Option<PathBuf>,
    },
    Http {
        url: Uri,
        headers: BTreeMap<String, HeaderText>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum McpConfigError {
    #[error(
        "`{name}` is no name for an MCP server: it has letters, digits, `-` and single `_` between \
         them, and at most {MCP_SERVER_NAME_CHARS_MAX} characters"
    )]
    Name { name: String },
    #[error("there must be either a `command` or a `url`")]
    Neither,
    #[error("`{key}` does not go with a `{with}`")]
    Misplaced { key: &'static str, with: &'static str },
    #[error("the older HTTP+SSE transport is not supported, only stdio and streamable HTTP are")]
    Unsupported,
    #[error("there is no transport `{kind}`; there are `stdio` and `http`")]
    Kind { kind: String },
    #[error("`url` must be an http or https URL with a host, and no name or password in it")]
    Url,
    #[error("`{name}` is no header that can be sent")]
    Header { name: String },
    #[error("`{name}` is no variable that can be set")]
    Variable { name: String },
    #[error("there is no key {}, {hint}", shown_key(key))]
    Key { key: String, hint: String },
    #[error(
        "`type`, `command`, `cwd` and `url` must be strings, `args` a list of them, `env` and `headers` \
         objects of them"
    )]
    Form,
}

/// What a file offers: its servers in order, each with what is wrong with it.
pub type Offered = BTreeMap<String, Result<McpServer, McpConfigError>>;

/// Reads a file; `base` is what relative directories in it are relative to. What is wrong with one server
/// takes no other along. Told without the text, in which a secret may stand.
pub(super) fn read(source: &Source, base: Option<&Path>) -> Result<Offered, String> {
    let file = syntax::plain(&source.text).map_err(|(problem, offset)| {
        let Position { line, column } = position(&source.text, offset);
        format!("line {line}, column {column}: {problem}")
    })?;
    let form = "it must be {\"mcpServers\": {name: {\"command\": …} or {\"url\": …}}}";
    let Value::Object(mut file) = file else { return Err(form.to_owned()) };
    let servers = file.shift_remove(SERVERS);
    if let Some(key) = file.keys().next() {
        return Err(format!("there is no key {}: {form}", shown_key(key)));
    }
    let Some(Value::Object(servers)) = servers else { return Err(form.to_owned()) };
    if servers.len() > MCP_SERVERS_MAX {
        return Err(format!("it names more than {MCP_SERVERS_MAX} servers"));
    }
    let server = |(name, entry): (String, Value)| {
        let server = check_name(&name).and_then(|()| McpServer::of(form_of(entry)?, base));
        (name, server)
    };
    Ok(servers.into_iter().map(server).collect())
}

const SERVERS: &str = "mcpServers";
const KEYS: [&str; 7] = ["type", "command", "args", "env", "cwd", "url", "headers"];

fn form_of(entry: Value) -> Result<McpServerForm, McpConfigError> {
    let unknown = entry.as_object().into_iter().flat_map(|entry| entry.keys());
    if let Some(key) = unknown.into_iter().find(|key| !KEYS.contains(&key.as_str())) {
        let hint = words::nearest(key, &KEYS, "there are");
        return Err(McpConfigError::Key { key: key.clone(), hint });
    }
    serde_json::from_value(entry).map_err(|_| McpConfigError::Form)
}

/// Names stand in the names of tools, between `__`, and must be told from them.
pub fn check_name(name: &str) -> Result<(), McpConfigError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let is_edge = |c: char| c.is_ascii_alphanumeric();
    let is_good = name.len() <= MCP_SERVER_NAME_CHARS_MAX
        && name.starts_with(is_edge)
        && name.ends_with(is_edge)
        && name.chars().all(plain)
        && !name.contains("__");
    if is_good { Ok(()) } else { Err(McpConfigError::Name { name: name.to_owned() }) }
}

impl McpServer {
    pub fn of(form: McpServerForm, base: Option<&Path>) -> Result<Self, McpConfigError> {
        let McpServerForm { kind, command, args, env, cwd, url, headers } = form;
        let wants = match kind.as_deref() {
            None => None,
            Some("stdio") => Some(Wants::Stdio),
            Some("http" | "streamable-http" | "streamableHttp") => Some(Wants::Http),
            Some("sse") => return Err(McpConfigError::Unsupported),
            Some(kind) => return Err(McpConfigError::Kind { kind: kind.to_owned() }),
        };
        let misplaced = |key, with| Err(McpConfigError::Misplaced { key, with });
        match (command, url, wants) {
            (Some(_), Some(_), _) => misplaced("url", "command"),
            (Some(command), None, None | Some(Wants::Stdio)) if !command.is_empty() => {
                if !headers.is_empty() {
                    return misplaced("headers", "command");
                }
                let relative = cwd.map(PathBuf::from);
                let cwd = match (base, relative) {
                    (Some(base), Some(cwd)) => Some(base.join(cwd)),
                    (Some(base), None) => Some(base.to_owned()),
                    (None, cwd) => cwd,
                };
                Ok(Self::Stdio { command, args, env: variables(env)?, cwd })
            }
            (None, Some(url), None | Some(Wants::Http)) => {
                if !args.is_empty() || !env.is_empty() || cwd.is_some() {
                    return misplaced("args, env, cwd", "url");
                }
                Ok(Self::Http { url: address(&url)?, headers: sendable(headers)? })
            }
            (Some(_) | None, None, _) | (None, Some(_), Some(Wants::Stdio)) => {
                Err(McpConfigError::Neither)
            }
        }
    }

    pub fn is_http(&self) -> bool {
        match self {
            Self::Stdio { .. } => false,
            Self::Http { .. } => true,
        }
    }

    /// As the wire calls how it is reached.
    pub fn transport(&self) -> &'static str {
        match self {
            Self::Stdio { .. } => "stdio",
            Self::Http { .. } => "http",
        }
    }

    /// What nobody is shown of it, the longest first: one may be a part of another.
    pub fn secrets(&self) -> Vec<String> {
        let values = match self {
            Self::Stdio { env, .. } => env,
            Self::Http { headers, .. } => headers,
        };
        let mut secrets: Vec<String> =
            values.values().flat_map(|value| told_as(value.expose())).collect();
        // What is shorter is no secret, and would take common words along.
        secrets.retain(|secret| secret.len() >= SECRET_BYTES_MIN);
        secrets.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        secrets.dedup();
        secrets
    }

    /// A text without the secrets of this server.
    pub fn hide(&self, text: &str) -> String {
        let mut told = text.to_owned();
        for secret in self.secrets() {
            if told.contains(&secret) {
                told = told.replace(&secret, HIDDEN);
            }
        }
        told
    }

    /// A JSON value without them, wherever they stand in it.
    pub fn hide_in(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.hide(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.hide_in(item)),
            Value::Object(members) => members.values_mut().for_each(|member| self.hide_in(member)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// How somebody who knows a value may tell it: as it is, a line of it, what stands behind the word that says
/// how it is meant (`Bearer …`), and each of these inside a JSON string.
fn told_as(value: &str) -> Vec<String> {
    let mut told = vec![value.to_owned()];
    if let Some((scheme, rest)) = value.trim().split_once(' ')
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
        && !rest.trim().contains(char::is_whitespace)
    {
        told.push(rest.trim().to_owned());
    }
    if value.contains('\n') {
        told.extend(value.lines().map(|line| line.trim().to_owned()));
    }
    for plain in 0..told.len() {
        let escaped = Value::from(told[plain].as_str()).to_string();
        let inside = escaped[1..escaped.len() - 1].to_owned();
        if inside != told[plain] {
            told.push(inside);
        }
    }
    told
}

const HIDDEN: &str = "[redacted]";
const SECRET_BYTES_MIN: usize = 6;

enum Wants {
    Stdio,
    Http,
}

fn address(url: &str) -> Result<Uri, McpConfigError> {
    let uri: Uri = url.parse().map_err(|_| McpConfigError::Url)?;
    let is_web = matches!(uri.scheme_str(), Some("http" | "https"));
    // Credentials in a URL would be shown with it.
    let is_plain = uri.authority().is_some_and(|authority| !authority.as_str().contains('@'));
    if is_web && is_plain && uri.host().is_some_and(|host| !host.is_empty()) {
        Ok(uri)
    } else {
        Err(McpConfigError::Url)
    }
}

fn sendable(
    headers: BTreeMap<String, String>,
) -> Result<BTreeMap<String, HeaderText>, McpConfigError> {
    let checked = headers.into_iter().map(|(name, value)| {
        let is_name = HeaderName::try_from(&name).is_ok();
        if !is_name || HeaderValue::try_from(&value).is_err() {
            return Err(McpConfigError::Header { name });
        }
        Ok((name, HeaderText::from(value.as_str())))
    });
    checked.collect()
}

fn variables(
    env: BTreeMap<String, String>,
) -> Result<BTreeMap<String, HeaderText>, McpConfigError> {
    let checked = env.into_iter().map(|(name, value)| {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return Err(McpConfigError::Variable { name });
        }
        Ok((name, HeaderText::from(value.as_str())))
    });
    checked.collect()
}

/// Without values: they may be secrets.
impl fmt::Debug for McpServerForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpServerForm")
            .field("command", &self.command)
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn server(form: Value) -> Result<McpServer, McpConfigError> {
        McpServer::of(serde_json::from_value(form).unwrap(), None)
    }

    #[test]
    fn a_server_is_started_or_reached_and_never_both() {
        let stdio = server(json!({"command": "x", "args": ["a"], "type": "stdio"})).unwrap();
        assert_eq!(stdio.transport(), "stdio");
        let http = server(json!({"url": "https://x.example/mcp", "headers": {"A": "b"}})).unwrap();
        assert_eq!(http.transport(), "http");
        for (form, error) in [
            (json!({}), McpConfigError::Neither),
            (json!({"command": ""}), McpConfigError::Neither),
            (json!({"type": "stdio", "url": "http://x/"}), McpConfigError::Neither),
            (
                json!({"command": "x", "url": "http://x/"}),
                McpConfigError::Misplaced { key: "url", with: "command" },
            ),
            (json!({"type": "sse", "url": "http://x/"}), McpConfigError::Unsupported),
            (json!({"url": "ftp://x/"}), McpConfigError::Url),
            (json!({"url": "http://user:pass@x/"}), McpConfigError::Url),
            (
                json!({"url": "http://x/", "headers": {"a b": "c"}}),
                McpConfigError::Header { name: "a b".to_owned() },
            ),
            (
                json!({"command": "x", "env": {"A=": "c"}}),
                McpConfigError::Variable { name: "A=".to_owned() },
            ),
        ] {
            assert_eq!(server(form.clone()), Err(error), "{form}");
        }
    }

    fn file(text: &str) -> Result<Offered, String> {
        read(&Source { name: "mcp.json".to_owned(), text: text.to_owned() }, None)
    }

    #[test]
    fn a_file_may_have_comments_and_one_wrong_server_takes_no_other_along() {
        let offered = file(
            r#"{
                // Ours.
                "mcpServers": {
                    "good": {"command": "x"},
                    "off": {"command": "x", "disabled": true},
                    "near": {"comand": "x"},
                    "odd": {"command": "x", "args": "a-secret"},
                    "none": 5,
                },
            }"#,
        );
        let mut offered = offered.unwrap();
        assert_eq!(offered.remove("good"), Some(server(json!({"command": "x"}))));
        let told =
            offered.into_iter().map(|(name, server)| (name, server.unwrap_err().to_string()));
        let all = "there are: type, command, args, env, cwd, url, headers";
        let form = McpConfigError::Form.to_string();
        let expected = [
            ("near", "there is no key comand, did you mean `command`?"),
            ("none", &form),
            ("odd", &form),
            ("off", &format!("there is no key disabled, {all}")),
        ];
        let expected = expected.map(|(name, told)| (name.to_owned(), told.to_owned()));
        assert_eq!(told.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_file_that_is_none_is_told_without_its_text() {
        let form = "it must be {\"mcpServers\": {name: {\"command\": …} or {\"url\": …}}}";
        for (text, told) in [
            ("", "line 1, column 1: the file holds no value"),
            ("{\n\"mcpServers\": a-secret}", "line 2, column 15: this is no JSON value"),
            (r#"{"mcpServers": {"a": {}, "a": {}}}"#, "line 1, column 26: a stands there twice"),
            ("{}", form),
            ("[]", form),
            (r#"{"mcpServers": []}"#, form),
            (r#"{"mcpServers": {}, "inputs": []}"#, &format!("there is no key inputs: {form}")),
        ] {
            assert_eq!(file(text), Err(told.to_owned()), "{text}");
        }
    }

    #[test]
    fn names_can_be_told_from_those_of_tools() {
        for good in ["a", "my-files", "my_files", "A1"] {
            assert_eq!(check_name(good), Ok(()), "{good}");
        }
        let long = "a".repeat(MCP_SERVER_NAME_CHARS_MAX + 1);
        for bad in ["", "_a", "a_", "a__b", "a b", "ä", "a.b", &long] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn no_secret_of_a_server_is_shown() {
        let known = server(json!({"command": "x", "env": {"KEY": "hunter22", "N": "1"}})).unwrap();
        assert_eq!(known.hide("no hunter22 for 1"), "no [redacted] for 1");
        assert!(!format!("{known:?}").contains("hunter22"));
    }

    #[test]
    fn a_secret_is_hidden_however_it_is_told() {
        let form = json!({"url": "http://x/", "headers": {
            "A": "Bearer hunter22", "B": "hunter22-and-more", "C": "say \"hunter3\" twice"
        }});
        let known = server(form).unwrap();
        for (told, shown) in [
            ("no hunter22!", "no [redacted]!"),
            ("no Bearer hunter22!", "no [redacted]!"),
            // The longer one as a whole, not its beginning alone.
            ("no hunter22-and-more!", "no [redacted]!"),
            (r#"{"c": "say \"hunter3\" twice"}"#, r#"{"c": "[redacted]"}"#),
            ("a Bearer of twice", "a Bearer of twice"),
        ] {
            assert_eq!(known.hide(told), shown, "{told}");
        }
        let form = json!({"command": "x", "env": {"PEM": "BEGIN\nline-one\nline-two\nEND"}});
        let known = server(form).unwrap();
        assert_eq!(known.hide("at line-two of it"), "at [redacted] of it");
        let mut value = json!({"a": ["line-one"], "b": 1});
        known.hide_in(&mut value);
        assert_eq!(value, json!({"a": ["[redacted]"], "b": 1}));
    }
}
