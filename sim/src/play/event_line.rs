//! An event as one line of a transcript, made for reading: what it is, its `seq`, whose it is, and
//! what is of interest in it. The time is the line's own. Pure.

use nexus3::event::{Batch, Ended, Event, What};
use serde::Serialize;

use super::transcript::shown;

const NAME_WIDTH: usize = 16;
const SEQ_WIDTH: usize = 4;

pub fn told(event: &Event) -> String {
    let seq = event.seq.map_or_else(|| "·".to_owned(), |seq| format!("#{seq}"));
    let agent = event.agent_id.as_ref().map(|agent| format!(" {agent}")).unwrap_or_default();
    let request = event.request_id.as_ref().map(|request| format!(" {request}"));
    let request = request.unwrap_or_default();
    let more = more(&event.what);
    let name = event.what.name();
    let line = format!("⇠ {name:NAME_WIDTH$} {seq:>SEQ_WIDTH$}{agent}{request} {more}");
    line.trim_end().to_owned()
}

fn more(what: &What) -> String {
    match what {
        What::AgentCreated { parent_agent_id }
        | What::AgentDestroyed { parent_agent_id }
        | What::AgentRestored { parent_agent_id } => {
            parent_agent_id.as_ref().map(|parent| format!("under {parent}")).unwrap_or_default()
        }
        What::AgentUpdated { parent_agent_id: _, changed, previous_agent_id } => {
            let previous = previous_agent_id.as_ref().map(|id| format!("(previously {id}) "));
            format!("{}{}", previous.unwrap_or_default(), shown(changed))
        }
        What::Compacted { tokens_before, tokens_after } => {
            format!("{tokens_before} tokens became {tokens_after}")
        }
        What::TurnQueued { position } => format!("behind {position}"),
        What::TurnStarted { content, source, source_agent_id } => {
            let agent = source_agent_id.as_ref().map(|agent| format!(" ({agent})"));
            format!("{} from {source}{}", shown(content), agent.unwrap_or_default())
        }
        What::BatchStarted(batch) | What::BatchHalted(batch) | What::BatchCompleted(batch) => {
            of_batch(batch)
        }
        What::ToolStarted { tool_id, name, params } => {
            format!("{tool_id} {name} {}", params.replace('\n', " "))
        }
        What::ToolCompleted { tool_id, name, success, error, output, .. } => {
            let told = if *success { quiet(output) } else { quiet(error) };
            let how = if *success { "succeeded" } else { "failed" };
            format!("{tool_id} {name} {how}{told}")
        }
        What::ProviderRetry { attempt, after_ms, reason } => {
            format!("attempt {attempt} failed, again after {after_ms}ms: {reason}")
        }
        What::ConfirmationRequested { confirm_id, tool, target, cwd, timeout_s, options } => {
            let on = target.as_ref().map(|target| format!(" on {target}")).unwrap_or_default();
            let cwd = cwd.as_ref().map(|cwd| format!(" in {cwd}")).unwrap_or_default();
            let options: Vec<&str> = options.iter().map(|option| option.name()).collect();
            let options = options.join("|");
            format!("{confirm_id} {}{on}{cwd} {options} within {timeout_s}s", tool.name)
        }
        What::ConfirmationResolved { confirm_id, decision, reason, resolved_by, .. } => {
            let why = reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
            format!("{confirm_id} {}{why} by {resolved_by}", decision.name())
        }
        What::TurnCompleted { content, halted, finish_reason, usage } => {
            let halted = if *halted { " halted" } else { "" };
            let tokens = usage.input_tokens + usage.output_tokens;
            let tokens = if tokens > 0 { format!(" {}", shown(usage)) } else { String::new() };
            format!("{finish_reason}{halted} {}{tokens}", shown(content))
        }
        What::TurnCancelled(ended) | What::TurnFailed(ended) | What::TurnInterrupted(ended) => {
            of_end(ended)
        }
        What::ContentChunk { text, offset } | What::TurnSnapshot { text, offset } => {
            format!("@{offset} {}", shown(text))
        }
        What::ThinkingStarted {} | What::ServerStopping {} => String::new(),
        What::ThinkingEnded { duration_ms } => format!("after {duration_ms}ms"),
        What::ToolDetected { tool_id, name } => format!("{tool_id} {name}"),
        What::ToolProgress { tool_id, name, progress, total, message } => {
            let total = total.map(|total| format!(" of {total}")).unwrap_or_default();
            let message = message.as_ref().map(|text| format!(": {text}")).unwrap_or_default();
            format!("{tool_id} {name} {progress}{total}{message}")
        }
        What::StreamGap { from, to } => format!("{from}..{to}"),
    }
}

fn of_batch(batch: &Batch) -> String {
    let tools: Vec<String> =
        batch.tools.iter().map(|tool| format!("{} {}", tool.tool_id, tool.name)).collect();
    let together = if batch.parallel { "together " } else { "" };
    format!("{together}[{}]", tools.join(", "))
}

fn of_end(ended: &Ended) -> String {
    let error = ended.error.as_ref().map(|error| format!(" error {}", error.code));
    let partial = if ended.partial.is_empty() {
        String::new()
    } else {
        format!(" so far {}", shown(&ended.partial))
    };
    format!("{}{}{partial}", ended.reason, error.unwrap_or_default())
}

/// Nothing for what is empty.
fn quiet(value: &impl Serialize) -> String {
    match shown(value).as_str() {
        "\"\"" | "null" => String::new(),
        text => format!(" {text}"),
    }
}

#[cfg(test)]
mod tests {
    use nexus3::event::BatchTool;
    use nexus3::id::{AgentId, RequestId};

    use super::*;

    fn event(what: What, seq: Option<u64>) -> Event {
        let agent = AgentId::parse("scout").unwrap();
        let at = "2026-01-01T00:00:00Z".parse().unwrap();
        Event { seq, ..Event::new(&agent, at, what).of(&RequestId::parse("r1").unwrap()) }
    }

    #[test]
    fn a_line_has_type_and_number_and_what_is_of_interest() {
        let started = What::TurnStarted {
            content: "Hello".into(),
            source: "alice".to_owned(),
            source_agent_id: None,
        };
        assert_eq!(
            told(&event(started, Some(5))),
            r#"⇠ turn_started       #5 scout r1 "Hello" from alice"#
        );
        let chunk = What::ContentChunk { text: "lo".to_owned(), offset: 3 };
        assert_eq!(told(&event(chunk, None)), r#"⇠ content_chunk       · scout r1 @3 "lo""#);
        let tools = vec![BatchTool { tool_id: "c1".to_owned(), name: "echo".to_owned() }];
        let batch = What::BatchStarted(Batch { tools, parallel: true });
        assert_eq!(
            told(&event(batch, Some(123))),
            "⇠ batch_started    #123 scout r1 together [c1 echo]"
        );
        let ended = Ended { reason: "cancelled".to_owned(), error: None, partial: "so".to_owned() };
        assert_eq!(
            told(&event(What::TurnCancelled(ended), Some(7))),
            r#"⇠ turn_cancelled     #7 scout r1 cancelled so far "so""#
        );
        let stopping =
            Event { agent_id: None, request_id: None, ..event(What::ServerStopping {}, None) };
        assert_eq!(told(&stopping), "⇠ server_stopping     ·");
    }
}
