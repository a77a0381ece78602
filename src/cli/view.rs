//! Events as a person reads them, line by line, with the text of turns as it comes. Whoever speaks
//! while another does gets a line of their own, so that no text is torn. Pure.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::output::plain;
use crate::event::{Ended, Event, What};
use crate::id::AgentId;

/// What is shown of a text that somebody sent, at most.
const SHOWN_CHARS_MAX: usize = 200;

/// Whether lines are coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colours {
    On,
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tone {
    Plain,
    Dim,
    Good,
    Bad,
    Loud,
}

#[derive(Debug)]
pub struct View {
    /// Columns of the terminal; lines are not cut where there is none.
    width: Option<usize>,
    colours: Colours,
    /// Whose text the cursor stands in.
    speaking: Option<AgentId>,
    /// Whether that text ended its line itself.
    line_ended: bool,
    agents: BTreeMap<AgentId, Turn>,
}

#[derive(Debug, Default)]
struct Turn {
    started: Option<Timestamp>,
    /// By tool id.
    tools: BTreeMap<String, Timestamp>,
    /// What was shown of the answer that is coming.
    said: String,
}

impl View {
    pub fn new(width: Option<usize>, colours: Colours) -> Self {
        Self { width, colours, speaking: None, line_ended: false, agents: BTreeMap::new() }
    }

    /// What to write for an event; nothing for those that say nothing to a person.
    pub fn on(&mut self, event: &Event) -> String {
        let Some(agent) = &event.agent_id else {
            return self.of_the_server(&event.what);
        };
        let at = event.at.parse::<Timestamp>().ok();
        match &event.what {
            What::ContentChunk { text, .. } => self.say(agent, text),
            What::AgentCreated { parent_agent_id } => {
                let by = parent_agent_id.as_ref().map(|parent| format!(" by {parent}"));
                self.line(agent, Tone::Dim, &format!("created{}", by.unwrap_or_default()))
            }
            What::AgentRestored { .. } => self.line(agent, Tone::Dim, "is back"),
            What::AgentDestroyed { .. } => {
                self.agents.remove(agent);
                self.line(agent, Tone::Dim, "destroyed")
            }
            What::AgentUpdated { previous_agent_id: Some(previous), .. } => {
                self.line(agent, Tone::Dim, &format!("was {previous} until now"))
            }
            What::AgentUpdated { changed, previous_agent_id: None, .. } => {
                let changes = changed.iter().map(|(field, value)| format!("{field} {value}"));
                let changes: Vec<String> = changes.collect();
                self.line(agent, Tone::Dim, &format!("has now {}", changes.join(", ")))
            }
            What::TurnQueued { position } if *position > 0 => {
                self.line(agent, Tone::Dim, &format!("has a message waiting behind {position}"))
            }
            What::TurnStarted { content, source, source_agent_id } => {
                let turn = self.agents.entry(agent.clone()).or_default();
                *turn = Turn { started: at, ..Turn::default() };
                let source = source_agent_id.as_ref().map_or(source.as_str(), AgentId::as_str);
                self.line(agent, Tone::Plain, &format!("← {source}: {}", first_line(content)))
            }
            What::TurnCompleted { content, usage, .. } => {
                let rest = self.rest(agent, content);
                let took = self.turn_took(agent, at);
                let tokens =
                    format!("{} tokens in, {} out", usage.input_tokens, usage.output_tokens);
                let end = self.line(agent, Tone::Dim, &format!("done{took}, {tokens}"));
                rest + &end
            }
            What::TurnCancelled(ended) => self.ended(agent, at, "cancelled", ended),
            What::TurnFailed(ended) => self.ended(agent, at, "failed", ended),
            What::TurnInterrupted(ended) => self.ended(agent, at, "interrupted", ended),
            What::StreamGap { from, to } => {
                self.line(agent, Tone::Bad, &format!("(events {from} to {to} are not kept)"))
            }
            What::BatchHalted(_) => {
                self.line(agent, Tone::Bad, "leaves out the calls after the one that failed")
            }
            What::ToolStarted { .. }
            | What::ToolCompleted { .. }
            | What::ConfirmationRequested { .. }
            | What::ConfirmationResolved { .. } => self.of_a_call(agent, at, &event.what),
            What::ThinkingStarted {}
            | What::ThinkingEnded { .. }
            | What::Compacted { .. }
            | What::ProviderRetry { .. } => self.of_its_model(agent, &event.what),
            // Snapshots come as the text that is missing.
            What::TurnQueued { .. }
            | What::TurnSnapshot { .. }
            | What::ToolDetected { .. }
            | What::ToolProgress { .. }
            | What::BatchStarted(_)
            | What::BatchCompleted(_)
            | What::ServerStopping {} => String::new(),
        }
    }

    fn of_the_server(&mut self, what: &What) -> String {
        let told = match what {
            What::ServerStopping {} => "the server stops".to_owned(),
            What::StreamGap { from, to } => format!("(events {from} to {to} are not kept)"),
            other => other.name().to_owned(),
        };
        let newline = self.end_text();
        format!("{newline}{told}\n")
    }

    fn of_its_model(&mut self, agent: &AgentId, what: &What) -> String {
        match what {
            What::ThinkingStarted {} => self.line(agent, Tone::Dim, "thinks"),
            What::ThinkingEnded { duration_ms } => {
                let took = seconds(*duration_ms);
                self.line(agent, Tone::Dim, &format!("thought for {took}"))
            }
            What::Compacted { tokens_before, tokens_after } => {
                let shorter = format!("sums up: {tokens_before} tokens are now {tokens_after}");
                self.line(agent, Tone::Dim, &shorter)
            }
            What::ProviderRetry { attempt, after_ms, reason } => {
                let again = seconds(*after_ms);
                let told = format!("attempt {attempt} failed ({reason}), again in {again}");
                self.line(agent, Tone::Bad, &told)
            }
            other => self.line(agent, Tone::Plain, other.name()),
        }
    }

    /// Tools and what has to be confirmed of them.
    fn of_a_call(&mut self, agent: &AgentId, at: Option<Timestamp>, what: &What) -> String {
        match what {
            What::ToolStarted { tool_id, name, params } => {
                let turn = self.agents.entry(agent.clone()).or_default();
                turn.said.clear();
                turn.tools.extend(at.map(|at| (tool_id.clone(), at)));
                self.line(agent, Tone::Plain, &format!("→ {name} {}", first_line(params)))
            }
            What::ToolCompleted { tool_id, name, success, error, .. } => {
                let turn = self.agents.entry(agent.clone()).or_default();
                let took = took(turn.tools.remove(tool_id), at);
                if *success {
                    return self.line(agent, Tone::Good, &format!("✓ {name}{took}"));
                }
                let error = first_line(error.as_deref().unwrap_or_default());
                self.line(agent, Tone::Bad, &format!("✗ {name}{took}: {error}"))
            }
            What::ConfirmationRequested { confirm_id, tool, target, options, .. } => {
                let options: Vec<&str> = options.iter().map(|option| option.name()).collect();
                let target = target.as_deref().map(first_line).unwrap_or_default();
                let asks = format!("? {} {target}", tool.name);
                let asks = self.line(agent, Tone::Loud, &asks);
                // It is there to be copied, so it is never cut.
                let answer =
                    format!("  nexus3 rpc confirm {agent} {confirm_id} {}", options.join("|"));
                format!("{asks}{answer}\n")
            }
            What::ConfirmationResolved { decision, resolved_by, reason, .. } => {
                let why = reason.as_ref().map(|reason| format!(" ({reason})"));
                let decided = format!("? {} by {resolved_by}", decision.name());
                let tone = if decision.allows() { Tone::Good } else { Tone::Bad };
                self.line(agent, tone, &format!("{decided}{}", why.unwrap_or_default()))
            }
            other => self.line(agent, Tone::Plain, other.name()),
        }
    }

    fn say(&mut self, agent: &AgentId, text: &str) -> String {
        let turn = self.agents.entry(agent.clone()).or_default();
        turn.said.push_str(text);
        let text = plain(text);
        let start = if self.speaking.as_ref() == Some(agent) {
            String::new()
        } else {
            let newline = self.end_text();
            self.speaking = Some(agent.clone());
            format!("{newline}{}", self.name(agent))
        };
        self.line_ended = text.ends_with('\n');
        start + &text
    }

    /// What of an answer was not shown as it came: all of one that is read later.
    fn rest(&mut self, agent: &AgentId, content: &str) -> String {
        let said = self.agents.get(agent).map(|turn| turn.said.clone()).unwrap_or_default();
        match content.strip_prefix(&said) {
            Some("") => String::new(),
            Some(rest) => self.say(agent, rest),
            None => {
                let newline = self.end_text();
                format!("{newline}{}", self.say(agent, content))
            }
        }
    }

    fn ended(
        &mut self,
        agent: &AgentId,
        at: Option<Timestamp>,
        how: &str,
        ended: &Ended,
    ) -> String {
        let rest = self.rest_of_partial(agent, &ended.partial);
        let took = self.turn_took(agent, at);
        let why = match &ended.error {
            Some(error) => format!(": {}", first_line(&error.message)),
            None if ended.reason == how => String::new(),
            None => format!(" ({})", ended.reason),
        };
        let end = self.line(agent, Tone::Bad, &format!("{how}{took}{why}"));
        rest + &end
    }

    fn rest_of_partial(&mut self, agent: &AgentId, partial: &str) -> String {
        if partial.is_empty() { String::new() } else { self.rest(agent, partial) }
    }

    fn turn_took(&mut self, agent: &AgentId, at: Option<Timestamp>) -> String {
        let turn = self.agents.remove(agent).unwrap_or_default();
        took(turn.started, at)
    }

    /// One line about an agent, no longer than the terminal is wide.
    fn line(&mut self, agent: &AgentId, tone: Tone, text: &str) -> String {
        let newline = self.end_text();
        let room = self.width.map(|width| width.saturating_sub(agent.as_str().len() + 2));
        let text = cut(&plain(&text.replace('\n', " ")), room);
        format!("{newline}{}{}\n", self.name(agent), self.paint(tone, text.trim_end()))
    }

    /// Ends the line that somebody's text stands in.
    pub fn end_text(&mut self) -> &'static str {
        if self.speaking.take().is_some() && !self.line_ended { "\n" } else { "" }
    }

    fn name(&self, agent: &AgentId) -> String {
        match self.colours {
            Colours::On => format!("\x1b[1m{agent}\x1b[0m: "),
            Colours::Off => format!("{agent}: "),
        }
    }

    fn paint(&self, tone: Tone, text: &str) -> String {
        let code = match (self.colours, tone) {
            (Colours::Off, _) | (Colours::On, Tone::Plain) => return text.to_owned(),
            (Colours::On, Tone::Dim) => 2,
            (Colours::On, Tone::Good) => 32,
            (Colours::On, Tone::Bad) => 31,
            (Colours::On, Tone::Loud) => 33,
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

fn first_line(text: &str) -> String {
    let line = text.trim_start().lines().next().unwrap_or_default();
    cut(line, Some(SHOWN_CHARS_MAX))
}

/// As much of a text as there is room for.
fn cut(text: &str, room: Option<usize>) -> String {
    match room {
        Some(room) if text.chars().count() > room => {
            let kept: String = text.chars().take(room.saturating_sub(1)).collect();
            kept + "…"
        }
        Some(_) | None => text.to_owned(),
    }
}

fn took(from: Option<Timestamp>, to: Option<Timestamp>) -> String {
    let Some((from, to)) = from.zip(to) else {
        return String::new();
    };
    let millis = to.duration_since(from).as_millis();
    format!(" in {}", seconds(u64::try_from(millis).unwrap_or_default()))
}

fn seconds(millis: u64) -> String {
    format!("{}.{} s", millis / 1000, millis % 1000 / 100)
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
