//! The turn machine over random orders of everything that can happen to it.

use proptest::prelude::*;

use super::*;
use crate::policy::budget::{Limit, Whose};
use crate::tool::PARALLEL_ARGUMENT;

const SPENT: Exceeded = Exceeded::Reached { limit: Limit::Tokens, most: 5, whose: Whose::Own };

/// What the outside may do next. Numbers pick among what is legal at that point.
#[derive(Clone, Debug)]
enum Happens {
    Text(String),
    Answer { calls: usize, parallel: bool, length: bool },
    Breaks,
    ToolStarts { which: usize },
    ToolEnds { which: usize, error: bool },
    Examined { which: usize, asks: bool },
    Decided { which: usize, allows: bool },
    Defect,
    Cancel,
    Timeout,
    Spent,
    Limit,
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        6 => "[a-c]{0,3}".prop_map(Happens::Text),
        6 => (0usize..5, any::<bool>(), any::<bool>())
            .prop_map(|(calls, parallel, length)| Happens::Answer { calls, parallel, length }),
        8 => (0usize..5, any::<bool>())
            .prop_map(|(which, asks)| Happens::Examined { which, asks }),
        8 => (0usize..5, any::<bool>())
            .prop_map(|(which, allows)| Happens::Decided { which, allows }),
        8 => (0usize..5).prop_map(|which| Happens::ToolStarts { which }),
        8 => (0usize..5, prop::bool::weighted(0.3))
            .prop_map(|(which, error)| Happens::ToolEnds { which, error }),
        1 => Just(Happens::Breaks),
        1 => Just(Happens::Defect),
        1 => Just(Happens::Cancel),
        1 => Just(Happens::Timeout),
        1 => Just(Happens::Spent),
        1 => Just(Happens::Limit),
    ]
}

/// Plays the actor: keeps the conversation, and knows what runs.
struct Stage {
    turn: Turn,
    conversation: Vec<Message>,
    asked: bool,
    /// Calls that are looked at, and those about which somebody is asked.
    looked_at: Vec<usize>,
    pending: Vec<usize>,
    due: Vec<usize>,
    running: Vec<usize>,
    started: usize,
    /// Calls that were started and have not been told to end.
    unended: usize,
    in_batch: bool,
    finished: Vec<Outcome>,
    answers: usize,
}

impl Stage {
    fn new() -> Self {
        let (turn, effects) = Turn::start(RULES);
        let mut stage = Self {
            turn,
            conversation: vec![Message::User { content: "go".into(), meta: None }],
            asked: false,
            looked_at: vec![],
            pending: vec![],
            due: vec![],
            running: vec![],
            started: 0,
            unended: 0,
            in_batch: false,
            finished: vec![],
            answers: 0,
        };
        stage.perform(effects);
        stage
    }

    fn perform(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            assert!(self.finished.is_empty(), "nothing comes after the end");
            match effect {
                Effect::Ask => {
                    assert!(!self.asked && self.open() == 0, "one thing at a time");
                    check_pairs(self.conversation.iter()).expect("a request to a model is paired");
                    self.asked = true;
                }
                Effect::Append(message) => self.conversation.push(message),
                Effect::Compact(_) => assert!(!self.asked, "a summary comes before the question"),
                Effect::Tell(What::BatchStarted(_)) => {
                    assert!(!self.in_batch, "one batch at a time");
                    self.in_batch = true;
                }
                Effect::Tell(_) => {
                    assert!(self.in_batch && self.unended == 0, "a batch ends after its calls");
                    self.in_batch = false;
                }
                Effect::ToolEnded { .. } => self.unended -= 1,
                // Every other call is looked at before it runs.
                Effect::Run { index, .. } if index % 2 == 1 => {
                    self.turn.hold(index);
                    self.looked_at.push(index);
                    assert!(self.open() <= RULES.concurrent_tools_max);
                }
                Effect::Run { index, call } | Effect::RunPermitted { index, call, .. } => {
                    assert!(call.arguments.get(PARALLEL_ARGUMENT).is_none());
                    self.due.push(index);
                    self.started += 1;
                    self.unended += 1;
                    assert!(self.open() <= RULES.concurrent_tools_max);
                }
                Effect::Confirm { index, .. } => self.pending.push(index),
                Effect::Withdraw { index, .. } => {
                    let held = self.looked_at.len() + self.pending.len();
                    self.looked_at.retain(|it| *it != index);
                    self.pending.retain(|it| *it != index);
                    let left = self.looked_at.len() + self.pending.len();
                    assert_eq!(left + 1, held, "what is held back is withdrawn once");
                }
                Effect::Abandon => {
                    self.asked = false;
                    self.due.clear();
                    self.running.clear();
                }
                Effect::Finish(outcome) => {
                    assert!(!self.asked && self.open() == 0, "nothing runs after the end");
                    assert!(
                        !self.in_batch && self.unended == 0,
                        "what was started was told to end"
                    );
                    self.finished.push(outcome);
                }
            }
        }
    }

    fn open(&self) -> usize {
        self.looked_at.len() + self.pending.len() + self.due.len() + self.running.len()
    }

    /// The input this makes of `next`, if the outside can do that now.
    fn input(&mut self, next: Happens) -> Option<Input> {
        match next {
            Happens::Cancel => Some(CANCEL),
            Happens::Timeout => Some(Input::Stop(Stop::Timeout)),
            Happens::Spent => Some(Input::Spent(SPENT)),
            Happens::Limit => Some(Input::Stop(Stop::Limit(SPENT))),
            Happens::Defect => Some(Input::Defect { error_id: "e".to_owned() }),
            Happens::Text(text) => self.asked.then_some(Input::Text(text)),
            Happens::Answer { calls, parallel, length } => {
                if !std::mem::take(&mut self.asked) {
                    return None;
                }
                self.answers += 1;
                let make = if parallel { self::parallel } else { call };
                let calls = (0..calls).map(|n| make(&format!("{}-{n}", self.answers))).collect();
                let finish = if length { FinishReason::Length } else { FinishReason::Stop };
                Some(Input::Answered(Answer { calls, finish, usage: Usage::default() }))
            }
            Happens::Breaks => std::mem::take(&mut self.asked).then(|| {
                Input::Broke(ProviderError {
                    fault: Fault::Reset,
                    status: None,
                    attempts: 1,
                    retryable: true,
                    message: String::new(),
                })
            }),
            Happens::Examined { which, asks } => {
                if self.looked_at.is_empty() {
                    return None;
                }
                let index = self.looked_at.remove(which % self.looked_at.len());
                Some(Input::Examined { index, question: asks.then(question) })
            }
            Happens::Decided { which, allows } => {
                if self.pending.is_empty() {
                    return None;
                }
                let index = self.pending.remove(which % self.pending.len());
                Some(if allows { allowed(index) } else { denied(index) })
            }
            Happens::ToolStarts { which } => {
                if self.due.is_empty() {
                    return None;
                }
                let index = self.due.remove(which % self.due.len());
                self.running.push(index);
                Some(Input::ToolStarted { index })
            }
            Happens::ToolEnds { which, error } => {
                if self.running.is_empty() {
                    return None;
                }
                let index = self.running.remove(which % self.running.len());
                Some(if error { failed(index) } else { ended(index, "ok") })
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn any_order_of_inputs_keeps_the_conversation_and_ends_once(
        script in prop::collection::vec(happens(), 0..60)
    ) {
        let mut stage = Stage::new();
        for next in script {
            if let Some(input) = stage.input(next) {
                let effects = stage.turn.on(input);
                stage.perform(effects);
            }
        }
        // Whatever is open at the end of the script is cancelled, as a server's stop would.
        let effects = stage.turn.on(CANCEL);
        stage.perform(effects);
        prop_assert_eq!(stage.finished.len(), 1);
        prop_assert_eq!(check_pairs(stage.conversation.iter()), Ok(()));
        prop_assert!(stage.turn.iterations() <= RULES.iterations_max);
        // Late work of a turn that is over changes nothing.
        prop_assert_eq!(stage.turn.on(ended(0, "late")), []);
        prop_assert_eq!(stage.turn.on(Input::Text("late".to_owned())), []);
    }
}
