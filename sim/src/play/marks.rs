//! Marks: what a run has reached of all that can go wrong and be made good again. A sweep adds them up
//! and sees what it never reached. Pure: it reads the transcript and what the database has kept, so the
//! server knows nothing of marks.

use std::collections::BTreeMap;

use nexus3::event::What;

use super::kept::Kept;

/// How a model failed before it was asked again, by the words that tell it.
const RETRIES: [(&str, &str); 6] = [
    ("answered HTTP", "retry:status"),
    ("cannot be reached", "retry:unreachable"),
    ("did not answer within", "retry:late"),
    ("before it answered", "retry:closed"),
    ("broke the connection", "retry:broken"),
    ("sent nothing for", "retry:silent"),
];

/// Which rule has refused a tool call, by the words that tell it.
const RULES: [(&str, &str); 6] = [
    ("is not for a", "rule:level"),
    ("is outside", "rule:path"),
    ("is closed to agents", "rule:path"),
    ("Refused (owner)", "rule:target"),
    ("Refused (policy)", "rule:target"),
    ("Cut off while it ran", "rule:cut_off"),
];

/// How often each mark was reached.
pub fn reached(transcript: &str, kept: Option<&Kept>) -> BTreeMap<String, u64> {
    let mut marks = BTreeMap::new();
    let mut reach = |mark: String| *marks.entry(mark).or_default() += 1;
    let mut starts = 0_u64;
    for line in transcript.lines() {
        let mut words = line.split_whitespace().skip(1);
        match (words.next(), words.next()) {
            (Some("fault"), Some(kind)) if !line.ends_with("is over") => {
                reach(format!("fault:{kind}"));
            }
            (Some("server"), Some("listens")) => {
                starts += 1;
                if starts > 1 {
                    reach("recovery:started_again".to_owned());
                }
            }
            _ => {}
        }
    }
    for event in kept.into_iter().flat_map(|kept| &kept.events) {
        if let Some(mark) = event.event.as_ref().and_then(|event| of_event(&event.what)) {
            reach(mark.to_owned());
        }
    }
    marks
}

fn of_event(what: &What) -> Option<&'static str> {
    let told = |table: &[(&str, &'static str)], text: &str| {
        table.iter().find(|(words, _)| text.contains(words)).map(|(_, mark)| *mark)
    };
    match what {
        What::ProviderRetry { reason, .. } => told(&RETRIES, reason),
        What::ToolCompleted { error: Some(error), .. } => told(&RULES, error),
        What::ConfirmationRequested { .. } => Some("rule:confirmation"),
        What::AgentRestored { .. } => Some("recovery:restored"),
        What::TurnInterrupted(_) => Some("recovery:interrupted"),
        What::TurnFailed(ended) if ended.reason == "storage" => Some("recovery:unwritten"),
        What::TurnFailed(ended) if ended.reason == "timeout" => Some("recovery:timeout"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use nexus3::event::{Ended, Event};
    use nexus3::id::AgentId;

    use super::*;
    use crate::play::kept::KeptEvent;

    #[test]
    fn marks_are_counted_from_what_happened() {
        let transcript = "   0.002s  server    listens\n   \
            1.000s  fault     power_loss of server begins\n   \
            1.500s  fault     power_loss of server is over\n   \
            1.502s  server    listens\n   \
            2.000s  fault     delay by 1s between a and server strikes a message\n";
        let event = |what| {
            let agent = AgentId::parse("scout").unwrap();
            let event = Some(Event::new(&agent, Timestamp::UNIX_EPOCH, what));
            KeptEvent { event, ..KeptEvent::default() }
        };
        let retry = |reason: &str| What::ProviderRetry {
            attempt: 1,
            after_ms: 1,
            reason: reason.to_owned(),
        };
        let ended = Ended { reason: "crash".to_owned(), error: None, partial: String::new() };
        let events = vec![
            event(retry("provider `sim` answered HTTP 429: scripted fault")),
            event(retry("provider `sim` cannot be reached")),
            event(retry("provider `sim` cannot be reached")),
            event(What::TurnInterrupted(ended)),
        ];
        let kept = Kept { events, ..Kept::default() };
        let expected = [
            ("fault:delay", 1),
            ("fault:power_loss", 1),
            ("recovery:interrupted", 1),
            ("recovery:started_again", 1),
            ("retry:status", 1),
            ("retry:unreachable", 2),
        ];
        let expected = expected.map(|(mark, count)| (mark.to_owned(), count));
        assert_eq!(reached(transcript, Some(&kept)), expected.into());
    }
}
