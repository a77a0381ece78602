//! What a model is shown, for people: a request of either wire as blocks of text, and what of it is new
//! since the request before. Recordings keep it, and replays compare with it.
//! Pure. What differs in every run (times, drawn ids) is masked.

use std::sync::LazyLock;

use bytes::Bytes;
use http::Request;
use regex::Regex;
use serde_json::Value;

use super::Wire;

/// A request to a model, a block for each thing it is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    blocks: Vec<Block>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Block {
    of: Of,
    text: String,
}

/// Whose words a block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    Model,
    /// The names of tools.
    Server,
    Others,
}

/// Dates and times as they are written to models, ids that a server draws, and how many tokens an agent is
/// told to have, which depends on where it works.
static DIFFERS: LazyLock<Regex> = LazyLock::new(|| {
    let date = r"\b\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?Z?)?\b";
    let (id, tokens) = (r"\b[0-9a-f]{16}\b", r#""tokens":\{"total":\d+"#);
    Regex::new(&format!("{date}|{id}|{tokens}")).expect("the pattern is fixed")
});
const MASK: &str = "<…>";

impl View {
    /// None for a request that is none to a model.
    pub fn of(request: &Request<Bytes>) -> Option<Self> {
        let wire = Wire::of(request)?;
        Self::read(wire, request.body())
    }

    /// None for what is no body of such a request.
    pub fn read(wire: Wire, body: &[u8]) -> Option<Self> {
        let body: Value = serde_json::from_slice(body).ok()?;
        let mut view = Self::default();
        view.tools(&body["tools"]);
        match wire {
            Wire::Openai => view.completions(&body["messages"]),
            Wire::Anthropic => {
                view.add("system", &text(&body["system"]));
                view.messages(&body["messages"]);
            }
        }
        Some(view)
    }

    /// What is shown here and was not `before`, without what the model itself has said at its beginning:
    /// that is its answer to the request before.
    pub fn news(&self, before: Option<&Self>) -> String {
        let (offered, blocks) = self.parts();
        let (known_offer, known) = before.map_or((None, &[][..]), Self::parts);
        let same = blocks.iter().zip(known).take_while(|(new, old)| new == old).count();
        let new = blocks[same..].iter().skip_while(|block| block.of == Of::Model);
        // Other tools alone make nothing else new.
        let new = offered.filter(|_| offered != known_offer).into_iter().chain(new);
        let texts: Vec<&str> = new.map(|block| block.text.as_str()).collect();
        texts.join("\n")
    }

    /// What tools it is offered, and all that is said.
    fn parts(&self) -> (Option<&Block>, &[Block]) {
        match self.blocks.split_first() {
            Some((offered, said)) if offered.of == Of::Server => (Some(offered), said),
            Some(_) | None => (None, &self.blocks),
        }
    }

    /// A text without what differs in every run.
    pub fn masked(text: &str) -> String {
        DIFFERS.replace_all(text, MASK).into_owned()
    }

    /// How long all of it is.
    pub fn bytes(&self) -> usize {
        self.blocks.iter().map(|block| block.text.len()).sum()
    }

    fn add(&mut self, who: &str, what: &str) {
        if !what.is_empty() {
            let of = match who {
                "assistant" => Of::Model,
                "tools" => Of::Server,
                _ => Of::Others,
            };
            self.blocks.push(Block { of, text: Self::masked(&format!("{who}: {what}")) });
        }
    }

    fn call(&mut self, name: &Value, arguments: &Value) {
        // One wire writes them as a text, the other as they are; spaces tell nothing.
        let written = arguments.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
        let arguments = written.as_ref().unwrap_or(arguments);
        let text = format!("calls {}: {arguments}", name.as_str().unwrap_or_default());
        self.blocks.push(Block { of: Of::Model, text: Self::masked(&text) });
    }

    fn tools(&mut self, tools: &Value) {
        let name = |tool: &Value| {
            let name = tool.get("function").unwrap_or(tool).get("name")?;
            name.as_str().map(str::to_owned)
        };
        let names: Vec<String> = items(tools).iter().filter_map(name).collect();
        self.add("tools", &names.join(", "));
    }

    fn completions(&mut self, messages: &Value) {
        for message in items(messages) {
            let who = message["role"].as_str().unwrap_or_default();
            self.add(who, &text(&message["content"]));
            for call in items(&message["tool_calls"]) {
                self.call(&call["function"]["name"], &call["function"]["arguments"]);
            }
        }
    }

    fn messages(&mut self, messages: &Value) {
        for message in items(messages) {
            let who = message["role"].as_str().unwrap_or_default();
            if message["content"].is_string() {
                self.add(who, &text(&message["content"]));
            }
            for block in items(&message["content"]) {
                match block["type"].as_str().unwrap_or_default() {
                    "tool_use" => self.call(&block["name"], &block["input"]),
                    "tool_result" => self.add("tool", &text(&block["content"])),
                    _ => self.add(who, block["text"].as_str().unwrap_or_default()),
                }
            }
        }
    }
}

fn items(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}

/// The text of a content, which comes whole or in parts.
fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn view(path: &str, body: &Value) -> View {
        let request = Request::post(path).body(Bytes::from(body.to_string())).unwrap();
        View::of(&request).unwrap()
    }

    #[test]
    fn both_wires_show_the_same_of_a_conversation() {
        let completions = json!({
            "tools": [{"type": "function", "function": {"name": "read_file"}}],
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Read it"},
                {"role": "assistant", "content": null, "tool_calls": [
                    {"id": "call_1", "function": {"name": "read_file", "arguments": "{\"path\": \"a\"}"}},
                ]},
                {"role": "tool", "tool_call_id": "call_1", "content": "three apples"},
            ],
        });
        let messages = json!({
            "tools": [{"name": "read_file"}],
            "system": [{"type": "text", "text": "Be brief."}],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "Read it"}]},
                {"role": "assistant", "content": [
                    {"type": "tool_use", "id": "call_1", "name": "read_file", "input": {"path": "a"}},
                ]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "call_1", "content": "three apples"},
                ]},
            ],
        });
        let first = view("/v1/chat/completions", &completions);
        assert_eq!(first, view("/v1/messages", &messages));
        let shown = "tools: read_file\nsystem: Be brief.\nuser: Read it\n\
                     calls read_file: {\"path\":\"a\"}\ntool: three apples";
        assert_eq!(first.news(None), shown);
    }

    #[test]
    fn news_are_what_others_say_since_the_request_before() {
        let ask = |messages: Value| view("/chat/completions", &json!({ "messages": messages }));
        let before = ask(json!([{"role": "user", "content": "Hi"}]));
        let after = ask(json!([
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "Hello."},
            {"role": "user", "content": "It is 2026-11-17T14:39:13.250Z, 0123456789abcdef"},
        ]));
        assert_eq!(after.news(Some(&before)), "user: It is <…>, <…>");
        assert_eq!(before.news(Some(&after)), "");
    }

    #[test]
    fn other_tools_alone_make_nothing_else_new() {
        let ask = |tools: Value, messages: Value| {
            view("/chat/completions", &json!({ "tools": tools, "messages": messages }))
        };
        let (hi, more) =
            (json!({"role": "user", "content": "Hi"}), json!({"role": "user", "content": "More"}));
        let before = ask(json!([{"name": "echo"}]), json!([hi]));
        let after = ask(json!([{"name": "echo"}, {"name": "find"}]), json!([hi, more]));
        assert_eq!(after.news(Some(&before)), "tools: echo, find\nuser: More");
    }

    #[test]
    fn what_differs_in_every_run_is_masked_and_words_are_not() {
        assert_eq!(View::masked("Date: 2026-11-17\nv1.2-3, 12345"), "Date: <…>\nv1.2-3, 12345");
        assert_eq!(View::masked(r#"{"tokens":{"total":7,"budget":9}}"#), r#"{<…>,"budget":9}}"#);
    }
}
