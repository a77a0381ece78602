//! Completion of what stands before the cursor: of commands here, of the rest by those who know.

use super::{Core, Effect};
use crate::limits::terminal::COMPLETIONS_MAX;
use crate::terminal::commands::{COMMANDS, Takes};

/// What the value of a flag is.
fn taken_by(flag: &str) -> Option<Takes> {
    match flag {
        "--preset" => Some(Takes::Preset),
        "--model" => Some(Takes::Model),
        "--cwd" | "--allowed-write-paths" => Some(Takes::Path),
        "--parent-agent-id" => Some(Takes::Agent),
        other => other.starts_with("--").then_some(Takes::Nothing),
    }
}

impl Core {
    pub(super) fn complete(&mut self) {
        let before = self.editor.before_cursor().to_owned();
        let Some(rest) = before.strip_prefix('/') else {
            // Paths are worth completing in messages too.
            let from = word_start(&before);
            if before[from..].contains('/') {
                self.ask_for(Takes::Path, before, from);
            }
            return;
        };
        let Some((name, _)) = rest.split_once(char::is_whitespace) else {
            let found = COMMANDS.iter().filter(|command| command.name.starts_with(rest));
            let found = found.map(|command| command.name.to_owned()).collect();
            return self.candidates(&before, 1, found);
        };
        let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
            return;
        };
        let from = word_start(&before);
        let word = &before[from..];
        if command.takes == Takes::Command {
            let found = COMMANDS.iter().filter(|command| command.name.starts_with(word));
            let found = found.map(|command| command.name.to_owned()).collect();
            return self.candidates(&before, from, found);
        }
        let flag = before[..from].split_whitespace().next_back().and_then(taken_by);
        let takes = flag.unwrap_or(command.takes);
        if takes != Takes::Nothing {
            self.ask_for(takes, before, from);
        }
    }

    /// Asks those who know. Paths are those of the agent, which does not work where we are.
    fn ask_for(&mut self, takes: Takes, before: String, from: usize) {
        let word = meant(&before, from);
        let within = self.summary.as_ref().map(|summary| summary.entry.cwd.to_string());
        self.effects.push(Effect::Complete { takes, before, from, word, within });
    }

    /// Those who know have answered. What was typed since then has other completions.
    pub(super) fn candidates(&mut self, before: &str, from: usize, mut found: Vec<String>) {
        if self.editor.before_cursor() != before {
            return;
        }
        found.sort();
        found.dedup();
        found.truncate(COMPLETIONS_MAX);
        self.candidates.clear();
        match found.as_slice() {
            [] => self.hint = Some("nothing to complete".to_owned()),
            [only] => {
                let end = if only.ends_with('/') { "" } else { " " };
                self.editor.complete(from, &format!("{}{end}", written(before, only)));
            }
            [first, rest @ ..] => {
                let same = rest.iter().fold(first.as_str(), |same, other| common(same, other));
                if same.len() > meant(before, from).len() {
                    self.editor.complete(from, &written(before, same));
                }
                self.candidates = found;
            }
        }
    }
}

/// Where the last word begins. In a command a space that follows a backslash is a part of it.
fn word_start(before: &str) -> usize {
    let (mut start, mut escaped) = (0, false);
    for (at, c) in before.char_indices() {
        if c.is_whitespace() && !escaped {
            start = at + c.len_utf8();
        }
        escaped = c == '\\' && !escaped && before.starts_with('/');
    }
    start
}

/// The word as a command takes it.
fn meant(before: &str, from: usize) -> String {
    let word = &before[from..];
    if !before.starts_with('/') {
        return word.to_owned();
    }
    let (mut meant, mut rest) = (String::new(), word.chars());
    while let Some(c) = rest.next() {
        meant.extend(if c == '\\' { rest.next() } else { Some(c) });
    }
    meant
}

/// A word as it is written in a command, or as it is in a message.
fn written(before: &str, word: &str) -> String {
    let special = |c: char| c.is_whitespace() || matches!(c, '\\' | '\'' | '"');
    let escaped = |c: char| before.starts_with('/') && special(c);
    let letters = |c: char| escaped(c).then_some('\\').into_iter().chain([c]);
    word.chars().flat_map(letters).collect()
}

fn common<'a>(one: &'a str, other: &str) -> &'a str {
    let same = one.char_indices().zip(other.chars()).find(|((_, a), b)| a != b);
    let end = same.map_or(one.len().min(other.len()), |((at, _), _)| at);
    &one[..one.floor_char_boundary(end)]
}
