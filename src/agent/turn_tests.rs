//! The turn machine, interleaving by interleaving.

use serde_json::json;

use std::sync::Arc;

use super::*;
use crate::message::ToolMeta;
use crate::message::check_pairs;
use crate::policy::Subject;

/// Over random orders of everything that can happen.
#[path = "turn_random_tests.rs"]
mod random;

const RULES: Rules = Rules { iterations_max: 3, concurrent_tools_max: 2 };
const CANCEL: Input = Input::Stop(Stop::Cancel(CancelReason::Cancelled));
const CANCELLED: Effect = Effect::Finish(Outcome::Cancelled { reason: CancelReason::Cancelled });

impl Turn {
    /// Does what the actor does where every write succeeds: each call that is to run starts.
    fn goes_on(&mut self, input: Input) -> Vec<Effect> {
        let effects = self.on(input);
        for effect in &effects {
            if let Effect::Run { index, .. } = effect {
                assert_eq!(self.on(Input::ToolStarted { index: *index }), []);
            }
        }
        effects
    }

    /// What the turn does, without what it tells about it.
    fn does(&mut self, input: Input) -> Vec<Effect> {
        let mut effects = self.goes_on(input);
        effects.retain(|effect| !is_told(effect));
        effects
    }

    /// What is told about the turn, by name.
    fn tells(&mut self, input: Input) -> Vec<String> {
        let told = self.goes_on(input).into_iter().filter_map(|effect| match effect {
            Effect::Tell(what) => Some(what.name().to_owned()),
            Effect::ToolEnded { call, result } => Some(format!("{} {}", call.id, result.error)),
            Effect::Run { call, .. } => Some(format!("run {}", call.id)),
            _ => None,
        });
        told.collect()
    }
}

fn is_told(effect: &Effect) -> bool {
    matches!(effect, Effect::Tell(_) | Effect::ToolEnded { .. })
}

fn call(id: &str) -> ToolCall {
    ToolCall { id: id.to_owned(), name: "echo".to_owned(), arguments: json!({"message": id}) }
}

fn parallel(id: &str) -> ToolCall {
    let arguments = json!({"message": id, "_parallel": true});
    ToolCall { id: id.to_owned(), name: "echo".to_owned(), arguments }
}

fn answered(calls: Vec<ToolCall>) -> Input {
    let finish = if calls.is_empty() { FinishReason::Stop } else { FinishReason::ToolCalls };
    let usage = Usage { input_tokens: 10, output_tokens: 1 };
    Input::Answered(Answer { calls, finish, usage })
}

fn ended(index: usize, content: &str) -> Input {
    Input::ToolEnded { index, result: ToolResult { content: content.to_owned(), error: false } }
}

fn failed(index: usize) -> Input {
    Input::ToolEnded { index, result: ToolResult { content: "no".to_owned(), error: true } }
}

fn result(id: &str, content: &str) -> Effect {
    let (content, tool_call_id) = (content.to_owned(), id.to_owned());
    Effect::Append(Message::Tool { content, tool_call_id, meta: None })
}

fn question() -> Question {
    Question { subject: Arc::new(Subject::Call), target: None, cwd: "/p".to_owned() }
}

fn confirmed() -> Permit {
    Permit::Confirmed(Arc::new(Subject::Call))
}

fn allowed(index: usize) -> Input {
    Input::Decided { index, verdict: Verdict::Run(confirmed()) }
}

fn denied(index: usize) -> Input {
    Input::Decided { index, verdict: Verdict::NotRun("denied".to_owned()) }
}

/// A turn in which all of these calls that are due wait until somebody confirms them.
fn confirming(calls: Vec<ToolCall>) -> Turn {
    let (mut turn, _) = Turn::start(RULES);
    let effects = turn.on(answered(calls));
    let due = effects.into_iter().filter_map(|effect| match effect {
        Effect::Run { index, .. } => Some(index),
        _ => None,
    });
    for index in due {
        turn.hold(index);
        let asked = turn.on(Input::Examined { index, question: Some(question()) });
        assert!(matches!(&asked[..], [Effect::Confirm { .. }]), "{asked:?}");
    }
    turn
}

fn failure(id: &str, content: &str) -> Effect {
    let (content, tool_call_id) = (content.to_owned(), id.to_owned());
    Effect::Append(Message::Tool { content, tool_call_id, meta: Some(ToolMeta { error: true }) })
}

fn run(index: usize, id: &str) -> Effect {
    Effect::Run { index, call: call(id) }
}

fn said(content: &str, tool_calls: Vec<ToolCall>) -> Effect {
    Effect::Append(Message::Assistant { content: content.to_owned(), tool_calls, meta: None })
}

fn completed(content: &str, finish: Finish, answers: u64) -> Effect {
    let usage = Usage { input_tokens: 10 * answers, output_tokens: answers };
    Effect::Finish(Outcome::Completed { content: content.into(), finish, usage })
}

fn acting(calls: Vec<ToolCall>) -> Turn {
    let (mut turn, _) = Turn::start(RULES);
    turn.does(answered(calls));
    turn
}

#[test]
fn a_plain_answer_completes_the_turn() {
    let (mut turn, effects) = Turn::start(RULES);
    assert_eq!(effects, [Effect::Ask]);
    assert_eq!(turn.does(Input::Text("Hel".to_owned())), []);
    assert_eq!(turn.does(Input::Text("lo".to_owned())), []);
    let effects = turn.does(answered(vec![]));
    assert_eq!(effects, [said("Hello", vec![]), completed("Hello", Finish::Stop, 1)]);
    assert_eq!(turn.does(CANCEL), []);
}

#[test]
fn calls_run_one_after_another_and_then_the_model_goes_on() {
    let (mut turn, _) = Turn::start(RULES);
    turn.does(Input::Text("a".to_owned()));
    let calls = vec![call("x"), call("y")];
    assert_eq!(turn.does(answered(calls.clone())), [said("a", calls), run(0, "x")]);
    assert_eq!(turn.does(ended(0, "1")), [result("x", "1"), run(1, "y")]);
    assert_eq!(turn.does(ended(1, "2")), [result("y", "2"), Effect::Ask]);
    turn.does(Input::Text("b".to_owned()));
    let effects = turn.does(answered(vec![]));
    assert_eq!(effects, [said("b", vec![]), completed("ab", Finish::Stop, 2)]);
}

#[test]
fn a_failed_call_stops_the_rest_of_a_sequence() {
    let mut turn = acting(vec![call("x"), call("y"), call("z")]);
    turn.does(ended(0, "1"));
    let skipped = "Not run: an earlier tool call of this message failed.";
    let expected = [failure("y", "no"), failure("z", skipped), Effect::Ask];
    assert_eq!(turn.does(failed(1)), expected);
}

#[test]
fn a_batch_and_its_calls_are_told_from_start_to_end() {
    let (mut turn, _) = Turn::start(RULES);
    let calls = vec![call("x"), call("y"), call("z")];
    assert_eq!(turn.tells(answered(calls)), ["batch_started", "run x"]);
    assert_eq!(turn.tells(ended(0, "1")), ["x false", "run y"]);
    assert_eq!(turn.tells(failed(1)), ["y true", "batch_halted"]);
    assert_eq!(turn.tells(answered(vec![call("v")])), ["batch_started", "run v"]);
    assert_eq!(turn.tells(failed(0)), ["v true", "batch_completed"], "nothing was left out");
    turn.goes_on(answered(vec![parallel("a"), call("b"), call("c")]));
    assert_eq!(turn.tells(CANCEL), ["a true", "b true", "batch_halted"]);
}

#[test]
fn parallel_calls_start_together_within_the_bound_and_answer_in_order() {
    let calls = vec![call("x"), parallel("y"), call("z")];
    let (mut turn, _) = Turn::start(RULES);
    assert_eq!(
        turn.does(answered(calls.clone())),
        [said("", calls), run(0, "x"), run(1, "y")],
        "`_parallel` is stripped from what the tool sees"
    );
    assert_eq!(turn.does(failed(1)), [run(2, "z")], "a failure does not stop the others");
    assert_eq!(turn.does(ended(2, "3")), []);
    let expected = [result("x", "1"), failure("y", "no"), result("z", "3"), Effect::Ask];
    assert_eq!(turn.does(ended(0, "1")), expected);
}

#[test]
fn cancel_while_tools_run_abandons_them_once() {
    let mut turn = acting(vec![call("a"), call("b")]);
    let cut = "Cut off while it ran, because the turn ended early (cancelled): whether it had an \
               effect is not known.";
    let skipped = "Not run: the turn ended early (cancelled).";
    let expected = [Effect::Abandon, failure("a", cut), failure("b", skipped), CANCELLED];
    assert_eq!(turn.does(CANCEL), expected);
    assert_eq!(turn.does(CANCEL), []);
    assert_eq!(turn.does(ended(0, "late")), []);
}

#[test]
fn a_call_whose_start_was_not_written_is_known_not_to_have_run() {
    let (mut turn, _) = Turn::start(RULES);
    turn.on(answered(vec![parallel("a"), call("b"), call("c")]));
    turn.on(Input::ToolStarted { index: 1 });
    let cut = "Cut off while it ran, because the turn ended early (storage): whether it had an \
               effect is not known.";
    let not_run = "Not run: the turn ended early (storage).";
    let expected = [
        Effect::Abandon,
        failure("a", not_run),
        failure("b", cut),
        failure("c", not_run),
        Effect::Finish(Outcome::Failed(Failure::Storage)),
    ];
    assert_eq!(turn.does(Input::Stop(Stop::Storage)), expected);
}

#[test]
fn cancel_keeps_partial_text_and_marks_it() {
    let (mut turn, _) = Turn::start(RULES);
    turn.does(Input::Text("half a sen".to_owned()));
    let partial = Effect::Append(Message::Assistant {
        content: "half a sen".to_owned(),
        tool_calls: vec![],
        meta: Some(AssistantMeta { partial: "cancelled".to_owned() }),
    });
    assert_eq!(turn.does(CANCEL), [Effect::Abandon, partial, CANCELLED]);
}

#[test]
fn cancel_before_the_first_chunk_leaves_no_empty_message() {
    let (mut turn, _) = Turn::start(RULES);
    assert_eq!(turn.does(CANCEL), [Effect::Abandon, CANCELLED]);
}

#[test]
fn an_empty_answer_is_asked_again_once() {
    let (mut turn, _) = Turn::start(RULES);
    assert_eq!(turn.does(answered(vec![])), [Effect::Ask]);
    let effects = turn.does(answered(vec![]));
    let [Effect::Abandon, Effect::Finish(Outcome::Failed(Failure::Provider(error)))] = &effects[..]
    else {
        panic!("{effects:?}");
    };
    assert_eq!((error.fault, error.attempts), (Fault::Empty, 2));
}

#[test]
fn only_empty_answers_in_a_row_fail_a_turn() {
    let mut turn = Turn::start(RULES).0;
    turn.does(answered(vec![]));
    turn.does(answered(vec![call("x")]));
    turn.does(ended(0, "1"));
    assert_eq!(turn.does(answered(vec![])), [Effect::Ask], "the first one after a good answer");
}

#[test]
fn a_length_finish_completes_even_without_text() {
    let (mut turn, _) = Turn::start(RULES);
    let usage = Usage { input_tokens: 10, output_tokens: 1 };
    let answer = Answer { calls: vec![], finish: FinishReason::Length, usage };
    assert_eq!(turn.does(Input::Answered(answer)), [completed("", Finish::Length, 1)]);
}

#[test]
fn calls_of_an_answer_that_was_cut_off_are_not_run() {
    let (mut turn, _) = Turn::start(RULES);
    let calls = vec![call("a"), ToolCall { arguments: json!("{\"mess"), ..call("b") }];
    let usage = Usage { input_tokens: 10, output_tokens: 1 };
    let finish = FinishReason::Length;
    let cut = Input::Answered(Answer { calls: calls.clone(), finish, usage });
    let why = "Not run: the answer was cut off at its length. Say less, or ask for less.";
    assert_eq!(
        turn.does(cut),
        [said("", calls), failure("a", why), failure("b", why), completed("", Finish::Length, 1),]
    );
}

#[test]
fn the_iteration_limit_ends_the_turn_after_the_results() {
    let (mut turn, _) = Turn::start(Rules { iterations_max: 1, ..RULES });
    turn.does(Input::Text("on it".to_owned()));
    turn.does(answered(vec![call("x")]));
    let expected = [result("x", "1"), completed("on it", Finish::IterationLimit, 1)];
    assert_eq!(turn.does(ended(0, "1")), expected);
}

fn compacted() -> Compacted {
    let usage = Usage { input_tokens: 10, output_tokens: 1 };
    Compacted { upto: 4, summary: "so far".into(), tokens_before: 9, tokens_after: 5, usage }
}

#[test]
fn a_summary_comes_before_the_question_and_only_once_for_it() {
    let (mut turn, _) = Turn::start(RULES);
    assert_eq!(turn.may_compact(), MayCompact::Yes);
    let effects = turn.does(Input::Compacted(compacted()));
    assert_eq!(effects, [Effect::Compact(compacted()), Effect::Ask]);
    assert_eq!(turn.may_compact(), MayCompact::No, "the question is asked next");
    turn.does(answered(vec![call("a")]));
    assert_eq!(turn.may_compact(), MayCompact::Yes, "what a tool says may be long");
    turn.does(ended(0, "much"));
    turn.does(Input::Text("Done.".to_owned()));
    let effects = turn.does(answered(vec![]));
    assert_eq!(effects.last(), Some(&completed("Done.", Finish::Stop, 3)), "a summary is paid for");
    assert_eq!(turn.iterations(), 2);
}

#[test]
fn a_summary_that_failed_is_not_tried_again_in_the_same_turn() {
    let (mut turn, _) = Turn::start(RULES);
    assert_eq!(turn.does(Input::NotCompacted), []);
    turn.does(answered(vec![call("a")]));
    assert_eq!(turn.does(ended(0, "much")), [result("a", "much"), Effect::Ask]);
    assert_eq!(turn.may_compact(), MayCompact::No);
}

#[test]
fn cancel_while_older_messages_are_summed_up_ends_the_turn() {
    let (mut turn, _) = Turn::start(RULES);
    assert_eq!(turn.does(CANCEL), [Effect::Abandon, CANCELLED]);
    assert_eq!(turn.does(Input::Compacted(compacted())), []);
}

#[test]
fn a_call_that_nobody_must_confirm_runs_after_a_look_at_it() {
    let (mut turn, _) = Turn::start(RULES);
    turn.on(answered(vec![call("a")]));
    turn.hold(0);
    let runs = Effect::RunPermitted { index: 0, call: call("a"), permit: Permit::Nothing };
    assert_eq!(turn.on(Input::Examined { index: 0, question: None }), [runs]);
    turn.on(Input::ToolStarted { index: 0 });
    assert_eq!(turn.does(ended(0, "x")), [result("a", "x"), Effect::Ask]);
}

#[test]
fn what_is_allowed_runs_with_what_was_confirmed() {
    let mut turn = confirming(vec![call("a")]);
    let runs = Effect::RunPermitted { index: 0, call: call("a"), permit: confirmed() };
    assert_eq!(turn.on(allowed(0)), [runs]);
}

#[test]
fn what_is_denied_never_starts_and_stops_the_rest() {
    let mut turn = confirming(vec![call("a"), call("b")]);
    let skipped = failure("b", "Not run: an earlier tool call of this message failed.");
    assert_eq!(turn.does(denied(0)), [failure("a", "denied"), skipped, Effect::Ask]);
    let mut turn = confirming(vec![call("a"), call("b")]);
    assert_eq!(turn.tells(denied(0)), ["batch_halted"], "of no call that it started");
}

#[test]
fn calls_beside_one_that_waits_go_on() {
    let mut turn = confirming(vec![parallel("a"), parallel("b"), parallel("c")]);
    let runs = |id: &str, index, permit| Effect::RunPermitted { index, call: call(id), permit };
    assert_eq!(turn.on(allowed(1)), [runs("b", 1, confirmed())]);
    turn.on(Input::ToolStarted { index: 1 });
    assert_eq!(turn.does(ended(1, "y")), [Effect::Run { index: 2, call: call("c") }]);
    assert_eq!(turn.does(denied(0)), [failure("a", "denied"), result("b", "y")]);
    assert_eq!(turn.does(ended(2, "z")), [result("c", "z"), Effect::Ask]);
}

#[test]
fn cancel_while_somebody_is_asked_withdraws_the_question() {
    let mut turn = confirming(vec![parallel("a"), parallel("b")]);
    turn.on(allowed(1));
    let withdrawn = Effect::Withdraw { index: 0, why: "cancelled".to_owned() };
    let not_run = "Not run: the turn ended early (cancelled).";
    assert_eq!(
        turn.does(CANCEL),
        [Effect::Abandon, withdrawn, failure("a", not_run), failure("b", not_run), CANCELLED]
    );
    assert_eq!(turn.on(allowed(0)), [], "too late");
}
