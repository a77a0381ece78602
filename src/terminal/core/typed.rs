//! What keys do, and what becomes of a line that was typed.

use super::{Attach, Core, Effect, Ends, Sending, Waiting};
use crate::id::AgentId;
use crate::terminal::commands::{
    COMMANDS, Command, Does, Order, Subject, Typed, is_agent_and_text, nearest, read,
};
use crate::terminal::history::is_kept;
use crate::terminal::key::Key;
use crate::terminal::line::{Line, Tone};

impl Core {
    pub(super) fn key(&mut self, key: Key) {
        if key == Key::Control('c') {
            return self.interrupt();
        }
        self.leaving = None;
        self.hint = None;
        self.forget_passing();
        if key == Key::Control('d') && self.editor.is_empty() {
            return self.quit();
        }
        if self.question.is_some() && self.answer(key) {
            return;
        }
        match key {
            Key::Escape => self.escape(),
            Key::Control('l') => self.effects.push(Effect::ClearScreen),
            Key::Control('y') => self.look_at_alert(),
            Key::Control('o') => self.show_whole_question(),
            Key::Tab => return self.complete(),
            Key::Enter if self.editor.before_cursor().ends_with('\\') => {
                self.editor.on(Key::Backspace);
                self.editor.on(Key::NewLine);
            }
            Key::Enter if self.question.is_some() => self.pass_question(),
            Key::Enter => self.enter(),
            Key::Control('j') => self.edit(Key::NewLine),
            key => self.edit(key),
        }
        self.candidates.clear();
    }

    fn edit(&mut self, key: Key) {
        self.typed = self.now;
        self.editor.on(key);
    }

    /// The first clears what was typed, a second one leaves.
    fn interrupt(&mut self) {
        if self.leaving.is_some() {
            return self.quit();
        }
        self.editor.clear();
        self.candidates.clear();
        self.leaving = Some(self.now);
        let cancels = if self.turn.is_some() { "; Esc cancels the turn" } else { "" };
        self.hint = Some(format!("Ctrl-C again leaves{cancels}"));
    }

    fn escape(&mut self) {
        let turn = self.turn.as_ref().map(|turn| turn.request.clone());
        let waits = |agent: &AgentId| self.sending.values().any(|it| it.agent == *agent);
        if let Some(agent) = self.agent.clone().filter(|agent| turn.is_some() || waits(agent)) {
            self.effects.push(Effect::Cancel { agent, request: turn });
            return;
        }
        let mut others = self.commands.iter().rev();
        let other = others.find(|(_, command)| command.by == Ends::Escape);
        self.effects.extend(other.map(|(number, _)| Effect::Interrupt(*number)));
    }

    fn enter(&mut self) {
        let text = self.editor.take();
        self.remember(&text);
        match read(&text) {
            Typed::Nothing => {}
            Typed::Message(content) => self.send(content),
            Typed::Command { command, words } => self.command(command, words),
            Typed::Unknown { word, nearest } => self.unknown(&word, nearest),
        }
    }

    /// Another terminal, later, has what was typed here too.
    fn remember(&mut self, text: &str) {
        if is_kept(text) {
            self.effects.push(Effect::Remember(text.to_owned()));
        }
    }

    /// A disk that takes nothing is told of once.
    pub(super) fn kept(&mut self, error: Option<String>) {
        if let Some(error) = error.filter(|_| !self.unkept) {
            self.unkept = true;
            self.error(&format!("what is typed here is not kept: {error}"));
        }
    }

    fn send(&mut self, content: String) {
        let Some(agent) = self.agent.clone() else {
            self.editor.insert(&content);
            if let Some(wanted) = &self.wanted {
                self.hint = Some(format!("still looking for {wanted}"));
                return;
            }
            return self.error("there is nobody to talk to: /agent NAME, /list or /create NAME");
        };
        let number = self.next_number;
        self.next_number += 1;
        let sending = Sending { agent: agent.clone(), content: content.clone(), request: None };
        self.sending.insert(number, sending);
        self.effects.push(Effect::Send { agent, content, number });
    }

    pub(super) fn not_sent(&mut self, number: u64, error: &str) {
        if let Some(sending) = self.sending.remove(&number) {
            self.own.retain(|own| sending.request.as_ref() != Some(own));
            let here = self.agent.as_ref() == Some(&sending.agent);
            let whom = if here { String::new() } else { format!(" to {}", sending.agent) };
            self.error(&format!("not sent{whom}: {error}"));
            // It is not lost: it can be sent again.
            if here && self.editor.is_empty() {
                self.editor.insert(&sending.content);
            }
        }
    }

    fn command(&mut self, command: &'static Command, words: Vec<String>) {
        match command.does {
            // Its answer is told by its stream.
            Does::Rpc(Subject::NamedText) if self.is_to_followed(&words) => {
                self.send(words.into_iter().nth(1).unwrap_or_default());
            }
            Does::Rpc(_) | Does::Local => self.run(command, words),
            Does::Agent if words.is_empty() => {
                let list = COMMANDS.iter().find(|command| command.name == "list");
                self.command(list.expect("there is a command that lists agents"), words);
            }
            Does::Agent => self.with_agent(&words, |core, agent| {
                core.change_to(agent, None, Attach::IfThere);
            }),
            Does::Whisper if words.is_empty() => self.error("whisper to whom? /whisper NAME"),
            Does::Whisper => self.with_agent(&words, |core, agent| {
                let from = core.whispering_from.clone().or_else(|| core.left());
                core.change_to(agent, from, Attach::IfThere);
            }),
            Does::Over if self.whispering_from.is_none() => self.error("nobody is whispered to"),
            Does::Over => self.over(),
            Does::Help => self.help(words.first().map(String::as_str)),
            Does::Clear => self.effects.push(Effect::ClearScreen),
            Does::Quit => self.quit(),
        }
    }

    /// Whether these are the agent that is talked to, and a text for it.
    fn is_to_followed(&self, words: &[String]) -> bool {
        let here = |word: &str| self.agent.as_ref().is_some_and(|agent| agent.as_str() == word);
        is_agent_and_text(words) && words.first().is_some_and(|word| here(word))
    }

    fn run(&mut self, command: &'static Command, words: Vec<String>) {
        let echo = format!("/{} {}", command.name, words.join(" ")).trim_end().to_owned();
        self.print(vec![Line::new(), Line::of(Tone::Dim, &echo).hanging(2)]);
        let number = self.next_number;
        self.next_number += 1;
        if command.order == Order::Beside {
            // Whoever waits for an answer may not want it any more.
            let by = match command.does {
                Does::Rpc(Subject::NamedText) => Ends::Escape,
                Does::Rpc(Subject::Named | Subject::Agent | Subject::AgentText)
                | Does::Local
                | Does::Agent
                | Does::Whisper
                | Does::Over
                | Does::Help
                | Does::Clear
                | Does::Quit => Ends::Nothing,
            };
            self.commands.insert(number, Waiting { typed: echo, since: self.now, by });
        }
        let agent = self.agent.clone();
        self.effects.push(Effect::Run { command, words, agent, number });
    }

    fn with_agent(&mut self, words: &[String], then: impl FnOnce(&mut Self, AgentId)) {
        let word = words.first().map(String::as_str).unwrap_or_default();
        match AgentId::parse(word) {
            Ok(agent) if self.agent.as_ref() == Some(&agent) => {
                self.note(Tone::Dim, &format!("you are talking to {agent}"));
            }
            Ok(agent) => then(self, agent),
            Err(error) => self.error(&error.to_string()),
        }
    }

    fn unknown(&mut self, word: &str, nearest: Option<&str>) {
        let meant = nearest.map(|name| format!("; did you mean /{name}?"));
        let meant = meant.unwrap_or_else(|| "; see /help".to_owned());
        self.error(&format!("there is no command /{word}{meant}"));
    }

    fn help(&mut self, word: Option<&str>) {
        let wanted = word.map(|word| word.trim_start_matches('/'));
        let shown =
            COMMANDS.iter().filter(|command| wanted.is_none_or(|name| name == command.name));
        let line = |command: &Command| {
            let usage = format!("/{} {}", command.name, command.arguments);
            let line = Line::of(Tone::Strong, &format!("{usage:<29} "));
            line.with(Tone::Dim, command.about).hanging(4)
        };
        let mut lines = vec![Line::new()];
        lines.extend(shown.map(line));
        if lines.len() == 1 {
            let word = wanted.unwrap_or_default();
            return self.unknown(word, nearest(word));
        }
        if wanted.is_none() {
            let keys = "Esc cancels the turn, else what /send waits for · Ctrl-Y asks what waits for a confirmation, Ctrl-O shows \
                all of it · Ctrl-C twice or Ctrl-D leaves · Alt-Enter or \\ Enter: a new line · Tab \
                completes · Up and Down: what was typed before, but for what begins with a space · \
                //text: a message that begins with a slash";
            lines.push(Line::of(Tone::Dim, keys).hanging(4));
        }
        self.print(lines);
    }
}
