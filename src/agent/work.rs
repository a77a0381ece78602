//! The work of a turn that takes time: one model answer, one tool call. Each runs as a task of its
//! own and reports to the channel of its turn, which is gone once the turn is: what ends late
//! reaches nobody.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{FutureExt, StreamExt};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::Shared;
use super::account::Metered;
use super::context::MayCompact;
use super::prepare::{Question, charge, prepare};
use super::spending::Meter;
use super::turn::{Answer, Input, ToolResult};
use crate::event::What;
use crate::limits::MCP_PROGRESS_WAITING_MAX;
use crate::message::{Message, ToolCall, Usage};
use crate::policy::{Permissions, Permit};
use crate::provider::{ModelEvent, ModelStream, Provider, ProviderError};
use crate::tool::workplace::Workplace;
use crate::tool::{Progress, Tell, ToolOutput, Waits};
use crate::world::Use;

/// What a task has to say to its turn. Small, since the channel of every turn has room for many.
#[derive(Debug)]
pub enum Report {
    /// A piece of the answer.
    Text(String),
    Input(Box<Input>),
    /// What the answer cost that ends now: tokens.
    Charged(u64),
    /// Something to show that changes nothing.
    Live(Box<What>),
}

impl Report {
    pub fn input(input: Input) -> Self {
        Self::Input(Box::new(input))
    }

    pub fn live(what: What) -> Self {
        Self::Live(Box::new(what))
    }

    /// Whether nothing follows from it but that somebody hears it: there are many of these.
    pub fn is_heard_only(&self) -> bool {
        matches!(self, Self::Live(_) | Self::Text(_))
    }
}

/// Runs `work` and reports its end; a panic inside becomes a defect with a number in the log.
pub async fn report(
    shared: Arc<Shared>,
    to: mpsc::Sender<Report>,
    work: impl Future<Output = Input>,
) {
    let input = AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|_| {
        let error_id = shared.world.chance.hex(Use::ErrorId, 8);
        tracing::error!(error_id, "the work of a turn panicked");
        Input::Defect { error_id }
    });
    // The turn may have ended meanwhile: then nobody wants the result.
    let _ = to.send(Report::input(input)).await;
}

/// Streams one answer: its text piece by piece, then the rest of it. A draft becomes what is asked,
/// unless the conversation must become shorter before.
pub async fn ask(
    (shared, provider): (Arc<Shared>, Arc<dyn Provider>),
    question: Question,
    (may_compact, metered): (MayCompact, Metered),
    to: mpsc::Sender<Report>,
) -> Input {
    let request = match question {
        Question::Whole(request) => request,
        // Seldom, and larger than all the rest: what every turn keeps should be small.
        Question::Draft(draft) => {
            let terms = (may_compact, metered);
            match Box::pin(prepare(&shared, draft, terms, &to)).await {
                Ok(request) => request,
                Err(instead) => return instead,
            }
        }
    };
    let Some(meter) = Meter::of(&request, metered) else {
        return stream(provider.stream(request), &to, |_| {}).await;
    };
    let mut said = String::new();
    let input = stream(provider.stream(request), &to, |text| said.push_str(text)).await;
    let (usage, calls) = match &input {
        Input::Answered(answer) => (answer.usage, answer.calls.clone()),
        // What broke off has cost something, too, once something of it came.
        _ if said.is_empty() => return input,
        _ => (Usage::default(), Vec::new()),
    };
    let answer = Message::Assistant { content: said, tool_calls: calls, meta: None };
    charge(&to, Box::pin(meter.cost(&shared, usage, answer)).await).await;
    input
}

/// Reports what comes; `hear` hears the text as well.
async fn stream(
    mut events: ModelStream,
    to: &mpsc::Sender<Report>,
    mut hear: impl FnMut(&str),
) -> Input {
    let mut calls: Vec<OpenCall> = Vec::new();
    let mut usage = Usage::default();
    let mut thinking_since = None;
    while let Some(event) = events.next().await {
        let is_thought = matches!(event, Ok(ModelEvent::Reasoning(_)));
        if let Some(change) = thinking(&mut thinking_since, is_thought) {
            let _ = to.send(Report::live(change)).await;
        }
        match event {
            Ok(ModelEvent::Text(text)) => {
                hear(&text);
                if to.send(Report::Text(text)).await.is_err() {
                    break;
                }
            }
            Ok(ModelEvent::Reasoning(_)) => {}
            Ok(ModelEvent::ToolCallStarted { index, id, name }) => {
                let detected = What::ToolDetected { tool_id: id.clone(), name: name.clone() };
                let _ = to.send(Report::live(detected)).await;
                calls.push(OpenCall { index, id, name, arguments: String::new() });
            }
            Ok(ModelEvent::ToolCallDelta { index, arguments }) => {
                if let Some(call) = calls.iter_mut().find(|call| call.index == index) {
                    call.arguments.push_str(&arguments);
                }
            }
            Ok(ModelEvent::Retry(retry)) => {
                if to.send(Report::input(Input::Retrying(retry))).await.is_err() {
                    break;
                }
            }
            Ok(ModelEvent::Usage(reported)) => usage = reported,
            Ok(ModelEvent::Finished(finish)) => {
                let calls = calls.into_iter().map(OpenCall::close).collect();
                return Input::Answered(Answer { calls, finish, usage });
            }
            Err(error) => return Input::Broke(error),
        }
    }
    Input::Broke(ProviderError::ended_early())
}

/// What is told when the model begins to think, and when it goes on to something else.
fn thinking(since: &mut Option<Instant>, is_thought: bool) -> Option<What> {
    match (*since, is_thought) {
        (None, true) => {
            *since = Some(Instant::now());
            Some(What::ThinkingStarted {})
        }
        (Some(started), false) => {
            *since = None;
            let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
            Some(What::ThinkingEnded { duration_ms })
        }
        (None, false) | (Some(_), true) => None,
    }
}

/// A tool call whose arguments are still arriving.
struct OpenCall {
    index: usize,
    id: String,
    name: String,
    arguments: String,
}

impl OpenCall {
    fn close(self) -> ToolCall {
        // Models leave the arguments out when there are none.
        let text = if self.arguments.trim().is_empty() { "{}" } else { &self.arguments };
        let arguments = match serde_json::from_str(text) {
            Ok(object @ Value::Object(_)) => object,
            Ok(_) | Err(_) => Value::String(self.arguments),
        };
        ToolCall { id: self.id, name: self.name, arguments }
    }
}

/// Looks whether somebody has to be asked before a call runs.
pub async fn examine(
    shared: Arc<Shared>,
    (permissions, workplace): (Arc<Permissions>, Arc<Workplace>),
    index: usize,
    call: ToolCall,
) -> Input {
    let question = shared.tools.question(&call, &permissions, &workplace);
    let looked = match allowed(&shared, &permissions, &call) {
        Some(allowed) => tokio::time::timeout(allowed, question).await.unwrap_or_default(),
        None => question.await,
    };
    // What takes too long to look at takes too long to run, and is told of there.
    Input::Examined { index, question: looked }
}

/// How long a call may take.
fn allowed(shared: &Shared, permissions: &Permissions, call: &ToolCall) -> Option<Duration> {
    let own = permissions.grant().preset.tool_timeouts.get(&call.name).copied();
    own.or(match shared.tools.waits(call) {
        Waits::ForItself => Some(shared.skill_timeout),
        // Whatever it waits for has a time of its own.
        Waits::ForAgents => None,
    })
}

/// Runs a call, and passes on what it tells meanwhile.
async fn telling(
    run: impl Future<Output = ToolOutput>,
    mut told: mpsc::Receiver<Progress>,
    (call, to): (&ToolCall, &mpsc::Sender<Report>),
) -> ToolOutput {
    tokio::pin!(run);
    loop {
        tokio::select! {
            // What was told before the end is heard before it.
            biased;
            Some(Progress { progress, total, message }) = told.recv() => {
                let (tool_id, name) = (call.id.clone(), call.name.clone());
                let what = What::ToolProgress { tool_id, name, progress, total, message };
                let _ = to.send(Report::live(what)).await;
            }
            output = &mut run => return output,
        }
    }
}

pub async fn run_tool(
    shared: Arc<Shared>,
    (permissions, workplace): (Arc<Permissions>, Arc<Workplace>),
    index: usize,
    (call, permit): (ToolCall, Permit),
    to: mpsc::Sender<Report>,
) -> Input {
    let allowed = allowed(&shared, &permissions, &call);
    let (tell, told) = mpsc::channel(MCP_PROGRESS_WAITING_MAX);
    let run = shared.tools.run_telling(&call, &permissions, &workplace, (permit, Tell::to(tell)));
    let run = telling(run, told, (&call, &to));
    let ended = match allowed {
        Some(allowed) => tokio::time::timeout(allowed, run).await.map_err(|_| allowed),
        None => Ok(run.await),
    };
    let result = match ended {
        Ok(Ok(content)) => ToolResult { content, error: false },
        Ok(Err(content)) => ToolResult { content, error: true },
        Err(allowed) => ToolResult {
            content: format!(
                "{} did not end within {} seconds and was stopped: whether it had an effect is not known.",
                call.name,
                allowed.as_secs_f64()
            ),
            error: true,
        },
    };
    Input::ToolEnded { index, result }
}
