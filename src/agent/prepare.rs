//! From a question to the request that is sent: as it is where it surely fits, else counted, and with its
//! older messages as a summary where that is due. Waits, and decides nothing: that is `context`.

use std::sync::Arc;

use futures_util::StreamExt;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::Shared;
use super::account::Metered;
use super::context::{Compacted, Draft, MayCompact, NotCompacted, When};
use super::spending::Meter;
use super::turn::Input;
use super::work::Report;
use crate::limits::COMPACTION_MAX;
use crate::message::{Message, Usage};
use crate::provider::{Model, ModelEvent, ModelRequest, ProviderError};

/// What became of older messages, and what their model's answer cost, of use or not.
pub struct Summed {
    pub cost: u64,
    pub compacted: Result<Compacted, NotCompacted>,
}

/// What a model is to be asked.
pub enum Question {
    /// As it is: it surely fits.
    Whole(ModelRequest),
    /// What does, and what is summed up, is still to be seen.
    Draft(Box<Draft>),
}

/// The request that a draft becomes, or what happened in its place.
pub async fn prepare(
    shared: &Shared,
    draft: Box<Draft>,
    (may_compact, metered): (MayCompact, Metered),
    to: &mpsc::Sender<Report>,
) -> Result<ModelRequest, Input> {
    let draft: Arc<Draft> = draft.into();
    if shared.compaction.now(may_compact) == MayCompact::Yes {
        let Summed { cost, compacted } =
            compact(shared, &draft, (When::IfDue, metered), Some(to)).await;
        charge(to, cost).await;
        match compacted {
            Ok(compacted) => return Err(Input::Compacted(compacted)),
            Err(NotCompacted::NotDue | NotCompacted::NothingOlder) => {}
            Err(why) => {
                tell(&draft, &why);
                // A turn that is over by now does not want to know.
                let _ = to.send(Report::input(Input::NotCompacted)).await;
            }
        }
    }
    let fitted = shared.world.blocking.call(move || draft.fitted()).await;
    fitted.map_err(|too_large| Input::Broke(too_large.into()))
}

/// Has the older messages of a conversation summed up. Repetitions are told to the turn, if it is one.
pub async fn compact(
    shared: &Shared,
    draft: &Arc<Draft>,
    (when, metered): (When, Metered),
    to: Option<&mpsc::Sender<Report>>,
) -> Summed {
    let mut cost = 0;
    let compacted = attempt(shared, draft, (when, metered), to, &mut cost).await;
    Summed { cost, compacted }
}

/// Tells the turn what an answer cost, before the answer.
pub async fn charge(to: &mpsc::Sender<Report>, cost: u64) {
    if cost > 0 {
        // A turn that is over by now is charged for nothing more.
        let _ = to.send(Report::Charged(cost)).await;
    }
}

async fn attempt(
    shared: &Shared,
    draft: &Arc<Draft>,
    (when, metered): (When, Metered),
    to: Option<&mpsc::Sender<Report>>,
    cost: &mut u64,
) -> Result<Compacted, NotCompacted> {
    let (rules, blocking) = (shared.compaction.clone(), &shared.world.blocking);
    let model = rules.model.clone().unwrap_or_else(|| draft.model.clone());
    let ask = {
        let (draft, model, secrets) = (Arc::clone(draft), model.clone(), shared.secrets.clone());
        move || {
            let plan = draft.plan(&rules, when)?;
            let question = draft.question(&plan, &model, &secrets)?;
            Ok::<_, NotCompacted>((plan, question))
        }
    };
    let (plan, question) = blocking.call(ask).await?;
    let meter = Meter::of(&question, metered);
    let said = timeout(COMPACTION_MAX, sum_up(&model, question, to)).await;
    let (said, usage) = said.map_err(|_| NotCompacted::Timeout)??;
    let answer = Message::Assistant { content: said.clone(), tool_calls: Vec::new(), meta: None };
    if let Some(meter) = meter {
        *cost = meter.cost(shared, usage, answer).await;
    }
    let (draft, secrets) = (Arc::clone(draft), shared.secrets.clone());
    blocking.call(move || draft.accept(&plan, (&said, usage), &secrets)).await
}

fn tell(draft: &Draft, why: &NotCompacted) {
    let error = why as &dyn std::error::Error;
    tracing::warn!(agent = %draft.agent, error, "older messages are left out");
}

/// One answer of the model, its text only.
async fn sum_up(
    model: &Model,
    question: ModelRequest,
    to: Option<&mpsc::Sender<Report>>,
) -> Result<(String, Usage), NotCompacted> {
    let mut events = model.provider.stream(question);
    let (mut said, mut usage) = (String::new(), Usage::default());
    while let Some(event) = events.next().await {
        match event {
            Ok(ModelEvent::Text(text)) => said.push_str(&text),
            Ok(ModelEvent::Usage(reported)) => usage = reported,
            Ok(ModelEvent::Retry(retry)) => {
                if let Some(to) = to {
                    let _ = to.send(Report::input(Input::Retrying(retry))).await;
                }
            }
            Ok(ModelEvent::Finished(_)) => return Ok((said, usage)),
            // It was offered no tools, and its thoughts are its own.
            Ok(
                ModelEvent::Reasoning(_)
                | ModelEvent::ToolCallStarted { .. }
                | ModelEvent::ToolCallDelta { .. },
            ) => {}
            Err(source) => return Err(NotCompacted::Provider { source }),
        }
    }
    Err(NotCompacted::Provider { source: ProviderError::ended_early() })
}
