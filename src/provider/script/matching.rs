//! Which entry of a script answers which request.
//! Pure: it never waits, and what an entry says is not its business.

use std::sync::Arc;

use regex::Regex;

use super::{Entry, Fault, Times};

/// The entries of one script and how often each may still be used.
#[derive(Clone, Debug)]
pub struct Script {
    entries: Vec<Waiting>,
}

#[derive(Clone, Debug)]
struct Waiting {
    entry: Arc<Entry>,
    when: Option<Regex>,
    left: Times,
}

/// An entry that cannot be played. Entries count from 1, in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("entry {number} of the script: {problem}")]
pub struct ScriptError {
    pub number: usize,
    pub problem: EntryProblem,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryProblem {
    #[error("`when` is no regular expression: {message}")]
    When { message: String },
    #[error("`fault.status` is {status}: expected an HTTP status from 300 to 599")]
    Status { status: u16 },
    #[error("`fault.retry_after` does nothing without `fault.status`")]
    RetryAfterAlone,
    #[error("`fault.message` does nothing without `fault.status` or `fault.error_in_stream`")]
    MessageAlone,
    #[error("`fault.split` is 0: a piece has at least one byte")]
    EmptySplit,
}

impl Script {
    pub fn new(entries: Vec<Entry>) -> Result<Self, ScriptError> {
        let entries = entries.into_iter().enumerate().map(|(index, entry)| {
            Waiting::new(entry).map_err(|problem| ScriptError { number: index + 1, problem })
        });
        Ok(Self { entries: entries.collect::<Result<_, _>>()? })
    }

    /// Uses up the first entry that matches and is left, and returns it with its number, from 1.
    pub fn take(
        &mut self,
        agent: &str,
        model: &str,
        last_message: &str,
    ) -> Option<(usize, Arc<Entry>)> {
        let fits = |waiting: &Waiting| {
            waiting.left != Times::Exactly(0) && waiting.matches(agent, model, last_message)
        };
        let index = self.entries.iter().position(fits)?;
        let waiting = &mut self.entries[index];
        waiting.left = match waiting.left {
            Times::Exactly(left) => Times::Exactly(left - 1),
            Times::Always => Times::Always,
        };
        Some((index + 1, Arc::clone(&waiting.entry)))
    }

    /// Whether any entry closes a connection instead of an answer.
    pub fn refuses(&self) -> bool {
        let refuses = |fault: &Fault| fault.refuse;
        self.entries.iter().any(|waiting| waiting.entry.fault.as_ref().is_some_and(refuses))
    }

    /// The entries that could have been used more often, by number, with how often. One that is
    /// always there is never left over.
    pub fn left_over(&self) -> Vec<(usize, u64)> {
        let left = |(index, waiting): (usize, &Waiting)| match waiting.left {
            Times::Exactly(0) | Times::Always => None,
            Times::Exactly(left) => Some((index + 1, left)),
        };
        self.entries.iter().enumerate().filter_map(left).collect()
    }
}

impl Waiting {
    fn new(entry: Entry) -> Result<Self, EntryProblem> {
        if let Some(fault) = &entry.fault {
            check(fault)?;
        }
        let when = entry.when.as_deref().map(Regex::new).transpose();
        let when = when.map_err(|error| EntryProblem::When { message: reason(&error) })?;
        Ok(Self { left: entry.times, when, entry: Arc::new(entry) })
    }

    fn matches(&self, agent: &str, model: &str, last_message: &str) -> bool {
        let is = |wanted: Option<&str>, found: &str| wanted.is_none_or(|wanted| wanted == found);
        is(self.entry.agent.as_deref(), agent)
            && is(self.entry.model.as_deref(), model)
            && self.when.as_ref().is_none_or(|when| when.is_match(last_message))
    }
}

fn check(fault: &Fault) -> Result<(), EntryProblem> {
    match fault.status {
        Some(status) if !(300..600).contains(&status) => Err(EntryProblem::Status { status }),
        None if fault.retry_after.is_some() => Err(EntryProblem::RetryAfterAlone),
        None if fault.message.is_some() && !fault.error_in_stream => {
            Err(EntryProblem::MessageAlone)
        }
        Some(_) | None if fault.split == Some(0) => Err(EntryProblem::EmptySplit),
        Some(_) | None => Ok(()),
    }
}

/// The last line of the library's report; the lines before it draw the expression with arrows.
fn reason(error: &regex::Error) -> String {
    let report = error.to_string();
    let line = report.lines().last().unwrap_or_default();
    line.trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::script::{Chunks, Time};

    fn entry(says: &str) -> Entry {
        Entry { says: Some(Chunks::One(says.to_owned())), ..Entry::default() }
    }

    fn of_agent(agent: &str, says: &str) -> Entry {
        Entry { agent: Some(agent.to_owned()), ..entry(says) }
    }

    fn script(entries: impl Into<Vec<Entry>>) -> Script {
        Script::new(entries.into()).unwrap()
    }

    /// The number of the entry that answers.
    fn taken(script: &mut Script, agent: &str, last_message: &str) -> Option<usize> {
        script.take(agent, "m", last_message).map(|(number, _)| number)
    }

    #[test]
    fn entries_are_used_in_order_for_the_agents_they_match() {
        let mut script =
            script([of_agent("boss", "1"), of_agent("w1", "2"), entry("3"), of_agent("boss", "4")]);
        assert_eq!(taken(&mut script, "w1", ""), Some(2));
        assert_eq!(taken(&mut script, "w1", ""), Some(3));
        assert_eq!(taken(&mut script, "w1", ""), None);
        assert_eq!(script.left_over(), [(1, 1), (4, 1)]);
        assert_eq!(script.take("boss", "m", ""), Some((1, of_agent("boss", "1").into())));
        assert_eq!(taken(&mut script, "boss", ""), Some(4));
        assert_eq!(script.left_over(), []);
    }

    #[test]
    fn a_condition_that_fails_leaves_the_entry_for_later() {
        let plan = Entry { when: Some("^plan|go$".to_owned()), ..entry("1") };
        let mut script = script([plan, entry("2")]);
        assert_eq!(taken(&mut script, "a", "think"), Some(2));
        assert_eq!(taken(&mut script, "a", "think"), None);
        assert_eq!(taken(&mut script, "a", "plan it"), Some(1));
    }

    #[test]
    fn model_and_agent_must_both_match_where_both_are_given() {
        let both = Entry { model: Some("big".to_owned()), ..of_agent("a", "1") };
        let mut script = script([both]);
        assert_eq!(script.take("a", "small", ""), None);
        assert_eq!(script.take("b", "big", ""), None);
        assert!(script.take("a", "big", "").is_some());
    }

    #[test]
    fn an_entry_is_used_as_often_as_it_says() {
        let twice = Entry { times: Times::Exactly(2), ..entry("1") };
        let never = Entry { times: Times::Exactly(0), ..entry("2") };
        let always = Entry { times: Times::Always, ..entry("3") };
        let mut script = script([twice, never, always]);
        assert_eq!(script.left_over(), [(1, 2)]);
        let numbers = [(); 5].map(|()| taken(&mut script, "a", ""));
        assert_eq!(numbers, [1, 1, 3, 3, 3].map(Some));
        assert_eq!(script.left_over(), []);
    }

    #[test]
    fn what_cannot_be_played_is_refused_by_its_number() {
        let faulty = |fault| Entry { fault: Some(fault), ..Entry::default() };
        let refusal = |entry: Entry| {
            let error = Script::new(vec![Entry::default(), entry]).unwrap_err();
            error.to_string()
        };
        assert_eq!(
            refusal(Entry { when: Some("a(".to_owned()), ..Entry::default() }),
            "entry 2 of the script: `when` is no regular expression: unclosed group"
        );
        assert_eq!(
            refusal(faulty(Fault { status: Some(200), ..Fault::default() })),
            "entry 2 of the script: `fault.status` is 200: expected an HTTP status from 300 to 599"
        );
        let retry_after = Some(Time(std::time::Duration::from_secs(1)));
        assert_eq!(
            refusal(faulty(Fault { retry_after, ..Fault::default() })),
            "entry 2 of the script: `fault.retry_after` does nothing without `fault.status`"
        );
        let message = Some("overloaded".to_owned());
        assert_eq!(
            refusal(faulty(Fault { message, ..Fault::default() })),
            "entry 2 of the script: `fault.message` does nothing without `fault.status` or \
             `fault.error_in_stream`"
        );
        assert_eq!(
            refusal(faulty(Fault { status: Some(500), split: Some(0), ..Fault::default() })),
            "entry 2 of the script: `fault.split` is 0: a piece has at least one byte"
        );
    }
}
