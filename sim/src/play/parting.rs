//! Where a replay parts from its recording: the first request to a model that shows it something else
//! than was recorded, with the lines around the first that differs. What follows from it is not told.

use std::collections::BTreeMap;
use std::fmt::Write;

use nexus3::provider::script::{Entry, Times, View};

/// How many lines around the first difference are told.
const CONTEXT: usize = 2;

/// What models were shown so far.
#[derive(Debug, Default)]
pub struct Parting {
    /// By agent: how often it asked, and what it was shown last.
    shown: BTreeMap<String, (u64, View)>,
    first: Option<String>,
}

impl Parting {
    /// Compares what an agent's model is shown with what `entry` was recorded with.
    pub fn compare(&mut self, agent: &str, view: View, entry: Option<(usize, &Entry)>) {
        let before = self.shown.get(agent);
        let news = view.news(before.map(|(_, view)| view));
        let call = before.map_or(1, |(calls, _)| calls + 1);
        self.shown.insert(agent.to_owned(), (call, view));
        if self.first.is_some() {
            return;
        }
        let place = format!("the replay parts from the recording at model call {call} of {agent}");
        match entry {
            // The same question again, to which the same entry answers.
            Some((_, Entry { times: Times::Always, .. })) if news.is_empty() => {}
            Some((number, Entry { shown: Some(recorded), .. })) if *recorded != news => {
                let lines = difference(recorded, &news);
                self.first = Some(format!("{place} (entry {number}):\n{lines}"));
            }
            Some(_) => {}
            None if news.is_empty() => {
                self.first = Some(format!("{place}: it is asked once more than was recorded"));
            }
            None => {
                let lines = quoted('+', news.lines().take(CONTEXT * 2));
                let lines = lines.trim_end();
                self.first = Some(format!("{place}, which was not recorded; it is shown\n{lines}"));
            }
        }
    }

    /// The first difference, if there is one.
    pub fn first(&self) -> Option<&str> {
        self.first.as_deref()
    }
}

/// The first lines that differ, what was recorded with `-`, what is shown now with `+`.
fn difference(recorded: &str, now: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (recorded.lines().collect(), now.lines().collect());
    let same = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let before = old[same.saturating_sub(CONTEXT)..same].iter().copied();
    let rest = |lines: &[&str]| {
        lines.iter().skip(same).take(CONTEXT).map(|line| (*line).to_owned()).collect::<Vec<_>>()
    };
    let (mut old, mut new) = (rest(&old), rest(&new));
    // What is the same again behind the first difference is none.
    while old.len() > 1 && new.len() > 1 && old.last() == new.last() {
        old.pop();
        new.pop();
    }
    let mut text = format!("    line {} of what it is shown is other than recorded\n", same + 1);
    text.push_str(&quoted(' ', before));
    text.push_str(&quoted('-', old.iter().map(String::as_str)));
    text.push_str(&quoted('+', new.iter().map(String::as_str)));
    text.truncate(text.trim_end().len());
    text
}

fn quoted<'a>(sign: char, lines: impl Iterator<Item = &'a str>) -> String {
    let mut text = String::new();
    for line in lines {
        let _ = writeln!(text, "    {sign} {line}");
    }
    text
}

#[cfg(test)]
mod tests {
    use nexus3::provider::script::Wire;
    use serde_json::json;

    use super::*;

    fn view(system: &str) -> View {
        let body = json!({ "messages": [
            { "role": "system", "content": system },
            { "role": "user", "content": "Hi" },
        ]});
        View::read(Wire::Openai, body.to_string().as_bytes()).unwrap()
    }

    fn entry(shown: &str) -> Entry {
        Entry { shown: Some(shown.to_owned()), ..Entry::default() }
    }

    #[test]
    fn only_the_first_difference_is_told_with_the_lines_around_it() {
        let mut parting = Parting::default();
        parting.compare("a", view("One\nTwo"), Some((1, &entry("system: One\nTwo\nuser: Hi"))));
        assert_eq!(parting.first(), None);
        parting.compare("b", view("One\nTwo"), Some((2, &entry("system: One\n2\nuser: Hi"))));
        parting.compare("c", view("One"), Some((3, &entry(""))));
        let told = "the replay parts from the recording at model call 1 of b (entry 2):\n    \
                    line 2 of what it is shown is other than recorded\n      system: One\n    \
                    - 2\n    + Two";
        assert_eq!(parting.first(), Some(told));
    }

    #[test]
    fn entries_without_what_was_shown_are_not_compared() {
        let mut parting = Parting::default();
        parting.compare("a", view("One"), Some((1, &Entry::default())));
        assert_eq!(parting.first(), None);
    }
}
