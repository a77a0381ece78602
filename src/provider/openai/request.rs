//! The body of a chat completions request.
//! Pure. It uses only what OpenAI, OpenRouter, Ollama and vLLM all understand:
//!
//! - the system prompt is the first message, with the role `system`;
//! - `stream_options.include_usage` asks for the token counts, which come in the last chunk;
//! - an answer's length is bounded by `max_tokens`, except at OpenAI itself, whose newer models
//!   refuse that name and want `max_completion_tokens`, which Ollama would pass over in silence;
//! - `tools` is left out where there are none, since OpenAI refuses an empty list, and so is
//!   `tool_choice`, whose default is to let the model choose;
//! - a model is asked to think by `reasoning_effort`, except at OpenRouter, which has `reasoning` for
//!   all the models behind it;
//! - the part that stays the same is marked only for OpenRouter's models of Anthropic: the others
//!   find it by themselves;
//! - no sampling parameters: several models refuse any but their own.

use crate::json::{List, Object};
use crate::message::{Message, ToolCall, ToolDefinition};
use crate::messages::{Block, Part};
use crate::provider::ModelRequest;
use crate::provider::body;
use crate::provider::names::{self, Ids};

/// How hard a model thinks that is asked to.
const EFFORT: &str = "medium";
/// How OpenRouter names the models that want marks.
const MARKED_MODELS: &str = "anthropic/";

/// What servers of this wire call differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dialect {
    pub(super) length: LengthField,
    pub(super) thinking: ThinkingField,
    pub(super) marks: Marks,
}

/// What the bound of an answer's length is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LengthField {
    MaxTokens,
    MaxCompletionTokens,
    /// `max_tokens`, which models that think refuse.
    ByModel,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThinkingField {
    ReasoningEffort,
    Reasoning,
}

/// Whether the part of a request that stays the same is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marks {
    Never,
    WhereWanted,
}

/// Whether what one message says is marked as the end of a part that stays the same.
#[derive(Clone, Copy, Debug)]
enum Mark {
    Without,
    With,
}

/// Returns the request as JSON.
pub(super) fn body(request: &ModelRequest, dialect: Dialect) -> Vec<u8> {
    Object::build(body::room(request), |body| {
        body.text("model", &request.model);
        body.list("messages", |list| put_messages(list, request, dialect.marks));
        if !request.tools.is_empty() {
            body.list("tools", |list| {
                for tool in &*request.tools {
                    list.object(|wire| put_tool(wire, tool));
                }
            });
        }
        body.value("stream", &true);
        body.object("stream_options", |options| options.value("include_usage", &true));
        let length = match (dialect.length, request.reasoning) {
            (LengthField::MaxTokens, _) | (LengthField::ByModel, false) => "max_tokens",
            (LengthField::MaxCompletionTokens, _) | (LengthField::ByModel, true) => {
                "max_completion_tokens"
            }
        };
        body.value(length, &request.output_tokens_max);
        match (request.reasoning, dialect.thinking) {
            (false, _) => {}
            (true, ThinkingField::ReasoningEffort) => body.text("reasoning_effort", EFFORT),
            (true, ThinkingField::Reasoning) => {
                body.object("reasoning", |reasoning| reasoning.value("enabled", &true));
            }
        }
    })
}

/// Where marks are wanted, the system prompt and the newest message of the user have them: what comes
/// before each stays the same.
fn put_messages(list: &mut List<'_>, request: &ModelRequest, marks: Marks) {
    let (first, newest) = match marks {
        Marks::WhereWanted if request.model.starts_with(MARKED_MODELS) => {
            let is_user = |message: &Message| matches!(message, Message::User { .. });
            let users = request.messages.iter().enumerate().filter(|(_, message)| is_user(message));
            (Mark::With, users.last().map(|(nth, _)| nth))
        }
        Marks::WhereWanted | Marks::Never => (Mark::Without, None),
    };
    if !request.system.is_empty() {
        list.object(|wire| {
            wire.word("role", "system");
            put_content(wire, &request.system, first);
        });
    }
    let (mut ids, mut nth) = (Ids::default(), 0);
    let mut put = |list: &mut List<'_>, message: &Message| {
        let mark = if newest == Some(nth) { Mark::With } else { Mark::Without };
        nth += 1;
        list.object(|wire| put_message(wire, message, mark, &mut ids));
    };
    for part in request.messages.parts() {
        match part {
            Part::One(message) => put(list, message),
            Part::Block(block) => match block.written(written).filter(|_| newest.is_none()) {
                Some(written) => list.extend(written),
                None => block.iter().for_each(|message| put(list, message)),
            },
        }
    }
}

/// Messages that are written the same in every request: what a call is called depends on those before
/// it.
fn written(block: &Block) -> Option<Vec<u8>> {
    let is_plain = |message: &Message| match message {
        Message::User { .. } => true,
        Message::Assistant { tool_calls, .. } => tool_calls.is_empty(),
        Message::Tool { .. } => false,
    };
    block.iter().all(is_plain).then(|| {
        List::entries(0, |list| {
            for message in block.iter() {
                let ids = &mut Ids::default();
                list.object(|wire| put_message(wire, message, Mark::Without, ids));
            }
        })
    })
}

fn put_message(wire: &mut Object<'_>, message: &Message, mark: Mark, ids: &mut Ids) {
    match message {
        Message::User { content, meta: _ } => {
            wire.word("role", "user");
            put_content(wire, content, mark);
        }
        Message::Assistant { content, tool_calls, meta: _ } => {
            ids.begin();
            wire.word("role", "assistant");
            if content.is_empty() && !tool_calls.is_empty() {
                // An empty text is refused by some.
                wire.value("content", &());
            } else {
                wire.text("content", content);
            }
            if !tool_calls.is_empty() {
                wire.list("tool_calls", |list| {
                    for call in tool_calls {
                        list.object(|wire| put_call(wire, call, ids));
                    }
                });
            }
        }
        Message::Tool { content, tool_call_id, meta: _ } => {
            wire.word("role", "tool");
            wire.text("tool_call_id", &ids.of_result(tool_call_id));
            wire.text("content", content);
        }
    }
}

/// A text, or a list of one part, which can carry a mark.
fn put_content(wire: &mut Object<'_>, text: &str, mark: Mark) {
    match mark {
        Mark::Without => wire.text("content", text),
        Mark::With => wire.list("content", |parts| {
            parts.object(|part| {
                part.word("type", "text");
                part.text("text", text);
                part.object("cache_control", |mark| mark.word("type", "ephemeral"));
            });
        }),
    }
}

fn put_call(wire: &mut Object<'_>, call: &ToolCall, ids: &mut Ids) {
    wire.text("id", &ids.of_call(&call.id));
    wire.word("type", "function");
    wire.object("function", |function| {
        function.text("name", &names::plain(&call.name));
        function.text("arguments", &names::object(&call.arguments).to_string());
    });
}

fn put_tool(wire: &mut Object<'_>, tool: &ToolDefinition) {
    wire.word("type", "function");
    wire.object("function", |function| {
        function.text("name", &tool.name);
        function.text("description", &tool.description);
        function.value("parameters", &tool.parameters);
    });
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
