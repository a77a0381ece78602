//! The invariant `order`: one turn of an agent at a time, in order of acceptance. Turns are seen by
//! the models they ask, by the request ids in the messages they begin with, and by their events.

use std::collections::BTreeMap;

use nexus3::id::RequestId;
use nexus3::message::Message;

use super::journal::{Life, Turn, lives};
use super::{Check, End, Invariant, Observation, Seen, conversation};
use crate::play::director::{Sending, Told};
use crate::play::kept::Kept;
use crate::play::observed::Question;

#[derive(Debug, Default)]
pub struct Order {
    /// How many exchanges with a model each agent has open.
    open: BTreeMap<String, usize>,
    /// The user messages of the last conversation that a model was shown for an agent, with the start
    /// of the server that showed it.
    shown: BTreeMap<String, (u64, Vec<String>)>,
}

impl Check for Order {
    fn invariant(&self) -> Invariant {
        Invariant::Order
    }

    fn on(&mut self, observation: &Observation, seen: &Seen<'_>) -> Vec<String> {
        match observation {
            Observation::AskBegan(Question { agent, .. }) => {
                let open = self.open.entry(agent.clone()).or_default();
                *open += 1;
                if *open > 1 {
                    return vec![format!("{agent}: it asks a model while another answers it")];
                }
            }
            Observation::AskEnded { agent, .. } => {
                let open = self.open.get_mut(agent).expect("an exchange ends after it has begun");
                *open -= 1;
            }
            Observation::Asked(request) => {
                let messages = conversation::read(&request.body).unwrap_or_default();
                let shown = (seen.server_start, users(messages.iter()));
                self.shown.insert(request.agent.clone(), shown);
            }
            Observation::Answered(_)
            | Observation::StreamOpened(_)
            | Observation::Event { .. }
            | Observation::StreamEnded { .. }
            | Observation::Touched { .. }
            | Observation::Started(_)
            | Observation::McpCalled { .. }
            | Observation::Decided { .. } => {}
        }
        Vec::new()
    }

    fn after_step(&mut self, seen: &Seen<'_>) -> Vec<String> {
        // An agent of that name may have been another one before.
        let same = |(agent, (start, _)): &(&String, &(u64, _))| {
            *start == seen.server_start && !seen.destroyed.contains(*agent)
        };
        let shown = self.shown.iter().filter(same);
        shown.flat_map(|(agent, (_, contents))| overtaken(agent, contents, seen)).collect()
    }

    fn at_end(&mut self, seen: &Seen<'_>, end: &End<'_>) -> Vec<String> {
        let mut found = self.after_step(seen);
        let conversations = end.survey.map(|survey| &survey.conversations).into_iter().flatten();
        for (agent, messages) in conversations {
            let contents = users(messages.iter().map(AsRef::as_ref));
            found.extend(overtaken(agent.as_str(), &contents, seen));
        }
        found
    }

    fn at_rest(&mut self, kept: &Kept, _: &Seen<'_>, _: &End<'_>) -> Vec<String> {
        lives(kept).iter().flat_map(by_events).collect()
    }
}

/// What the events of an agent say about the order of its turns.
fn by_events(life: &Life) -> Vec<String> {
    let Life { agent, turns, .. } = life;
    let mut started: Vec<&Turn> = turns.iter().filter(|turn| turn.started.is_some()).collect();
    started.sort_by_key(|turn| turn.started);
    let mut found = Vec::new();
    for pair in started.windows(2) {
        let [first, second] = pair else { continue };
        if second.queued < first.queued {
            found.push(format!(
                "{agent}: {} started before {}, which was queued earlier",
                first.request, second.request
            ));
        }
        let first_end = first.ends.first().map(|(seq, _)| *seq);
        if first_end.is_none_or(|end| Some(end) > second.started) {
            found.push(format!("{agent}: {} started while {} ran", second.request, first.request));
        }
    }
    let unqueued =
        started.iter().filter(|turn| turn.queued.is_none_or(|seq| Some(seq) > turn.started));
    found.extend(unqueued.map(|turn| format!("{agent}: {} started unqueued", turn.request)));
    found
}

/// The turns of an agent that ran before one that was accepted earlier. Which came first is known
/// where one send was made after another had been accepted, and its turn by the request id in its
/// message.
fn overtaken(agent: &str, contents: &[String], seen: &Seen<'_>) -> Vec<String> {
    let place =
        |sending: &Sending| contents.iter().position(|content| is_of(content, &sending.request));
    // One that is sent again joins the turn that there is, and says nothing of when that was accepted.
    let is_first = |sending: &&Sending| {
        let same =
            |other: &&Sending| (&other.agent, &other.request) == (&sending.agent, &sending.request);
        seen.sendings.iter().filter(same).all(|other| sending.made <= other.made)
    };
    let accepted: Vec<(&Sending, usize)> = seen
        .sendings
        .iter()
        .filter(|sending| sending.server_start == seen.server_start)
        .filter(|sending| sending.agent.as_str() == agent && sending.outcome == Told::Accepted)
        .filter(is_first)
        .filter_map(|sending| Some((sending, place(sending)?)))
        .collect();
    let mut found = Vec::new();
    for (first, first_place) in &accepted {
        let before = accepted
            .iter()
            .find(|(second, second_place)| first.told <= second.made && second_place < first_place);
        if let Some((second, _)) = before {
            found.push(format!("{agent}: {} ran before {}", second.request, first.request));
        }
    }
    found
}

/// Whether a message names the request. `r1` is not named by `r10`.
fn is_of(content: &str, request: &RequestId) -> bool {
    content.split_whitespace().any(|word| word == request.as_str())
}

fn users<'a>(messages: impl Iterator<Item = &'a Message>) -> Vec<String> {
    let content = |message: &Message| match message {
        Message::User { content, .. } => Some(content.to_string()),
        Message::Assistant { .. } | Message::Tool { .. } => None,
    };
    messages.filter_map(content).collect()
}

#[cfg(test)]
mod tests {
    use nexus3::event::What;
    use serde_json::json;

    use super::super::seen_tests::{Run, asked, ended, kept, queued, sending, started, survey};
    use super::*;
    use crate::play::observed::Said;

    fn user(content: &str) -> serde_json::Value {
        json!({"role": "user", "content": content})
    }

    #[test]
    fn turns_run_in_the_order_of_their_acceptance() {
        let one_after_another = [("r1", 0), ("r2", 1)];
        let check = |sent: &[(&str, u64)], contents: [&str; 2]| {
            let sent = sent.iter().map(|(id, made)| sending(id, *made, Told::Accepted));
            let run = Run { sendings: sent.collect(), ..Run::default() };
            let survey = survey("scout", &contents.map(user));
            let end = End { survey: Some(&survey), left_behind: None };
            let at_end = Order::default().at_end(&run.seen(), &end);
            let mut order = Order::default();
            let shown = asked("scout", &json!({"messages": contents.map(user)}));
            assert_eq!(order.on(&shown, &run.seen()), Vec::<String>::new());
            assert_eq!(order.after_step(&run.seen()), at_end, "it is seen while the run goes on");
            at_end
        };
        assert_eq!(check(&one_after_another, ["one r1", "two r2"]), Vec::<String>::new());
        let found = check(&one_after_another, ["two r2", "one r1"]);
        assert_eq!(found, ["scout: r2 ran before r1"]);
        let at_once = check(&[("r1", 0), ("r2", 0)], ["two r2", "one r1"]);
        assert_eq!(at_once, Vec::<String>::new(), "who came first is not known");
        let sent = [("r1", 0), ("r2", 1), ("r1", 2)];
        let again = check(&sent, ["one r1", "two r2"]);
        assert_eq!(again, Vec::<String>::new(), "one that is sent again has run before");
        assert_eq!(check(&sent, ["two r2", "one r1"]), ["scout: r2 ran before r1"]);
    }

    #[test]
    fn events_show_one_turn_after_another() {
        let check = |events: &[(&str, What)]| {
            let end = End { survey: None, left_behind: None };
            Order::default().at_rest(&kept(events), &Run::default().seen(), &end)
        };
        let (one, two) = (("r1", queued()), ("r2", queued()));
        let turn = |id| [(id, started()), (id, ended("x"))];
        let good = [vec![one.clone(), two.clone()], turn("r1").to_vec(), turn("r2").to_vec()];
        assert_eq!(check(&good.concat()), Vec::<String>::new());
        let overtaken = [vec![one.clone(), two.clone()], turn("r2").to_vec(), turn("r1").to_vec()];
        assert_eq!(
            check(&overtaken.concat()),
            ["scout: r2 started before r1, which was queued earlier"]
        );
        let [r1_starts, r1_ends] = turn("r1");
        let [r2_starts, r2_ends] = turn("r2");
        assert_eq!(
            check(&[one.clone(), two.clone(), r1_starts, r2_starts, r1_ends, r2_ends]),
            ["scout: r2 started while r1 ran"]
        );
        assert_eq!(check(&turn("r1")), ["scout: r1 started unqueued"]);
    }

    #[test]
    fn an_agent_asks_one_model_at_a_time() {
        let run = Run::default();
        let mut order = Order::default();
        let began = |agent: &str| {
            let agent = agent.to_owned();
            Observation::AskBegan(Question { agent, ..Question::default() })
        };
        let (agent, said) = ("scout".to_owned(), Said::Nothing);
        let ended = Observation::AskEnded { agent, said };
        assert_eq!(order.on(&began("scout"), &run.seen()), Vec::<String>::new());
        assert_eq!(order.on(&began("other"), &run.seen()), Vec::<String>::new());
        let found = ["scout: it asks a model while another answers it"];
        assert_eq!(order.on(&began("scout"), &run.seen()), found);
        for observation in [&ended, &ended, &began("scout")] {
            assert_eq!(order.on(observation, &run.seen()), Vec::<String>::new());
        }
    }
}
