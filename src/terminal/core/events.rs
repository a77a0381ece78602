//! What events do to the screen.

use jiff::Timestamp;

use super::asking::{call, decided};
use super::said::message;
use super::turn::{Doing, Running, Turn, far, seconds, took};
use super::{Core, Effect, Feed};
use crate::event::{Ended, Event, What};
use crate::id::{AgentId, RequestId};
use crate::terminal::line::{Line, Tone};

/// Of the result of a call, where results are shown.
const RESULT_LINES_MAX: usize = 5;
const PARAMS_CELLS_MAX: usize = 120;

impl Core {
    pub(super) fn event(&mut self, event: &Event) {
        self.seq = event.seq.unwrap_or(self.seq);
        let at = event.at.parse::<Timestamp>().ok();
        if let Some(turn) =
            self.turn.as_mut().filter(|it| event.request_id.as_ref() == Some(&it.request))
        {
            turn.gone_on_until(self.now, at);
        }
        match (&event.what, &event.request_id) {
            (What::AgentUpdated { previous_agent_id, .. }, _) => {
                self.updated(event.agent_id.as_ref(), previous_agent_id.as_ref());
            }
            (What::AgentDestroyed { .. }, _) => self.destroyed(),
            (What::AgentRestored { .. }, _) => {
                self.effects.extend(self.agent.clone().map(Effect::Refresh));
            }
            (What::StreamGap { from, to }, _) => {
                self.note(Tone::Bad, &format!("(events {from} to {to} are not kept)"));
            }
            (What::ServerStopping {}, _) => self.lost("it stops"),
            (What::ConfirmationRequested { confirm_id, tool, target, .. }, Some(request)) => {
                let asked = (confirm_id.clone(), call(&tool.name, target.as_deref()));
                self.turn(request).asked.push(asked);
                self.asks_by(event.agent_id.as_ref(), request, &event.what);
            }
            (what, Some(request)) => self.of_a_turn(request, at, what),
            // That it was created shows by its being there.
            (_, None) => {}
        }
    }

    fn updated(&mut self, now: Option<&AgentId>, before: Option<&AgentId>) {
        if let (Some(now), Some(before)) = (now, before)
            && self.agent.as_ref() == Some(before)
        {
            self.agent = Some(now.clone());
            // Whoever lists the agents just now may still be told the name of before.
            self.summary.iter_mut().for_each(|known| known.entry.agent_id = now.clone());
            self.renamed(before, now);
            self.note(Tone::Dim, &format!("{before} is {now} from now on"));
        }
        self.effects.extend(self.agent.clone().map(Effect::Refresh));
    }

    fn of_a_turn(&mut self, request: &RequestId, at: Option<Timestamp>, what: &What) {
        if what.is_terminal() {
            return self.turn_ended(request, at, what);
        }
        match what {
            What::TurnQueued { .. } => {}
            What::TurnStarted { content, source, source_agent_id } => {
                self.end_turn();
                self.seen = 0;
                let own = self.own.contains(request);
                self.sending.retain(|_, sending| sending.request.as_ref() != Some(request));
                let from = source_agent_id.as_ref().map_or(source.as_str(), AgentId::as_str);
                let lines = message((!own).then_some(from), content);
                self.print(lines);
                let since = self.begun(request);
                self.turn = Some(Turn::new(self.width(), request.clone(), since, at));
            }
            What::ConfirmationResolved { confirm_id, decision, reason, resolved_by, .. } => {
                let asked = self.settled(confirm_id).map(|asked| asked.call);
                let call = self.turn.as_mut().and_then(|turn| turn.answered(confirm_id)).or(asked);
                self.pause_text();
                let told = decided(*decision, resolved_by, reason.as_deref());
                let tone = if decision.allows() { Tone::Good } else { Tone::Bad };
                if let Some(turn) = self.turn.as_mut().filter(|_| !decision.allows()) {
                    turn.over += 1;
                }
                let call = call.map(|call| format!("{call}: ")).unwrap_or_default();
                self.note(tone, &format!("  ? {call}{told}"));
            }
            What::Compacted { tokens_before, tokens_after } => {
                self.pause_text();
                self.note(
                    Tone::Dim,
                    &format!("  · summed up: {tokens_before} tokens are now {tokens_after}"),
                );
            }
            other => self.while_running(request, at, other),
        }
    }

    /// The running turn, also where its beginning was not seen.
    fn turn(&mut self, request: &RequestId) -> &mut Turn {
        if self.turn.as_ref().is_none_or(|turn| turn.request != *request) {
            self.end_turn();
        }
        let (width, now, said) = (self.width(), self.now, &mut self.seen);
        self.turn.get_or_insert_with(|| Turn {
            said: std::mem::take(said),
            ..Turn::new(width, request.clone(), now, None)
        })
    }

    fn while_running(&mut self, request: &RequestId, at: Option<Timestamp>, what: &What) {
        let (now, feed) = (self.now, self.feed);
        let turn = self.turn(request);
        match what {
            What::ContentChunk { text, offset } => {
                turn.doing = Doing::Working;
                let fresh = turn.fresh(text, *offset);
                let lines = turn.text.push(fresh);
                self.print(lines);
            }
            What::ThinkingStarted {} => {
                turn.doing = Doing::Thinking(now);
                self.pause_text();
            }
            What::ThinkingEnded { duration_ms } => {
                turn.doing = Doing::Working;
                let took = seconds(std::time::Duration::from_millis(*duration_ms));
                if feed != Feed::Off {
                    self.note(Tone::Dim, &format!("  · thought for {took}"));
                }
            }
            What::ToolDetected { name, .. } => turn.doing = Doing::Calling(name.clone()),
            What::ToolStarted { tool_id, name, params } => {
                let (id, name, params) = (tool_id.clone(), name.clone(), params.clone());
                turn.tools.push(Running { id, name, params, far: None, since: now, at });
                turn.doing = Doing::Working;
                let rest = turn.text.finish();
                self.print(rest);
            }
            What::ToolCompleted { tool_id, .. } => {
                turn.over += 1;
                let begun = turn.tools.iter().position(|tool| tool.id == *tool_id);
                let begun = begun.map(|index| turn.tools.remove(index)).and_then(|tool| tool.at);
                self.tool_completed(took(begun, at).map(seconds), what);
            }
            What::ToolProgress { tool_id, progress, total, message, .. } => {
                let far = far(*progress, *total, message.as_deref());
                let tools = turn.tools.iter_mut().filter(|tool| tool.id == *tool_id);
                tools.for_each(|tool| tool.far = Some(far.clone()));
            }
            What::ProviderRetry { attempt, after_ms, reason } => {
                let after = seconds(std::time::Duration::from_millis(*after_ms));
                let told = format!("attempt {attempt} failed ({reason}), again in {after}");
                turn.doing = Doing::Waiting(told.clone());
                self.pause_text();
                self.note(Tone::Bad, &format!("  · {told}"));
            }
            What::BatchStarted(_) => turn.over = 0,
            What::BatchHalted(batch) => {
                // A call that stands alone has none after it, whether its end was told or not.
                if batch.tools.len() > 1 && turn.over < batch.tools.len() {
                    self.note(Tone::Dim, "  · the calls after it are left out");
                }
            }
            // The stream gives snapshots as chunks. The others were looked at before.
            What::BatchCompleted(_)
            | What::TurnSnapshot { .. }
            | What::AgentCreated { .. }
            | What::AgentDestroyed { .. }
            | What::AgentRestored { .. }
            | What::AgentUpdated { .. }
            | What::TurnQueued { .. }
            | What::TurnStarted { .. }
            | What::Compacted { .. }
            | What::ConfirmationRequested { .. }
            | What::ConfirmationResolved { .. }
            | What::TurnCompleted { .. }
            | What::TurnCancelled(_)
            | What::TurnFailed(_)
            | What::TurnInterrupted(_)
            | What::StreamGap { .. }
            | What::ServerStopping {} => {}
        }
    }

    fn tool_completed(&mut self, took: Option<String>, what: &What) {
        let What::ToolCompleted { name, params, success, error, output, .. } = what else {
            return;
        };
        if self.feed == Feed::Off && *success {
            return;
        }
        let (mark, tone) = if *success { ("✓", Tone::Good) } else { ("✗", Tone::Bad) };
        let took = took.map(|took| format!(" {took}")).unwrap_or_default();
        let params = Line::of(Tone::Dim, params).cut(PARAMS_CELLS_MAX).text();
        let line = Line::of(tone, &format!("  {mark} ")).with(Tone::Plain, name);
        let line = line.with(Tone::Dim, &format!(" {params}{took}")).hanging(4);
        let mut lines = vec![line];
        if let Some(error) = error {
            let first = error.trim().lines().next().unwrap_or_default();
            lines.push(Line::of(Tone::Bad, &format!("    {first}")).hanging(4));
        }
        if self.feed == Feed::Full {
            let mut result = output.trim_end().lines();
            let first = result.by_ref().take(RESULT_LINES_MAX);
            lines.extend(first.map(|text| Line::of(Tone::Dim, &format!("    {text}")).hanging(4)));
            lines.extend(result.next().map(|_| Line::of(Tone::Dim, "    …")));
        }
        self.print(lines);
    }

    fn turn_ended(&mut self, request: &RequestId, at: Option<Timestamp>, what: &What) {
        let waiting = self.sending.values().find(|it| it.request.as_ref() == Some(request));
        let waiting = waiting.map(|sending| sending.content.clone());
        self.sending.retain(|_, sending| sending.request.as_ref() != Some(request));
        self.own.retain(|own| own != request);
        self.withdraw(|asked| asked.request == *request);
        let shown = self.turn.as_ref().is_some_and(|turn| turn.request == *request);
        if let Some(content) = waiting {
            // It never began, so nobody has seen it yet.
            self.print(message(None, &content));
        }
        let begun = if shown { self.turn.as_ref().and_then(|turn| turn.at) } else { None };
        if let Some(text) = what.turn_text() {
            self.say_rest(request, text);
        }
        if shown {
            self.end_turn();
        }
        let took = took(begun, at).map(|took| format!(" after {}", seconds(took)));
        self.tell_end(what, &took.unwrap_or_default());
        self.effects.extend(self.agent.clone().map(Effect::Refresh));
    }

    /// What of an answer did not come as it was said.
    fn say_rest(&mut self, request: &RequestId, text: &str) {
        let shown = self.turn.as_ref().filter(|turn| turn.request == *request);
        let said = shown.map_or(self.seen, |turn| turn.said);
        if text.chars().count() > said {
            let turn = self.turn(request);
            let rest = turn.fresh(text, 0);
            let lines = turn.text.push(rest);
            self.print(lines);
            self.end_turn();
        }
    }

    fn tell_end(&mut self, what: &What, took: &str) {
        let told = |how: &str, ended: &Ended| {
            let why = match &ended.error {
                Some(error) => format!(": {}", error.message),
                None if ended.reason == how => String::new(),
                None => format!(" ({})", ended.reason),
            };
            format!("  ■ {how}{took}{why}")
        };
        let (tone, line) = match what {
            What::TurnCompleted { finish_reason, halted, .. } => {
                if finish_reason == "stop" && !halted {
                    return;
                }
                (Tone::Dim, format!("  ■ ended by {finish_reason}{took}"))
            }
            What::TurnCancelled(ended) => (Tone::Dim, told("cancelled", ended)),
            What::TurnFailed(ended) => (Tone::Bad, told("failed", ended)),
            // How programs go on after it is nothing to people.
            What::TurnInterrupted(_) => {
                (Tone::Bad, format!("  ■ interrupted{took}: the server stopped before it ended"))
            }
            _ => return,
        };
        self.note(tone, &line);
    }
}
