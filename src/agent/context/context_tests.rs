//! Whatever was said, what a model is shown fits, is paired, and begins and ends as it must.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::agent::conversation::{Conversation, Remembered};
use crate::message::{Message, ToolCall, ToolDefinition, Usage, check_pairs};
use crate::provider::{ModelStream, Provider, Secrets};

struct Nobody;

impl Provider for Nobody {
    fn stream(&self, _: ModelRequest) -> ModelStream {
        panic!("nobody is asked")
    }
}

fn model(context_window: u64) -> Model {
    Model {
        name: "m".into(),
        provider_name: "p".into(),
        id: "m".into(),
        context_window,
        output_tokens_max: 100,
        reasoning: false,
        provider: Arc::new(Nobody),
    }
}

fn draft(messages: Vec<Message>, context_window: u64) -> Draft {
    let mut conversation = Conversation::restored(Remembered::default(), usize::MAX);
    for message in messages {
        conversation.append(Arc::new(message));
    }
    let tool = ToolDefinition {
        name: "echo".into(),
        description: "Echoes.".into(),
        parameters: json!({}).into(),
    };
    Draft {
        agent: AgentId::parse("a").unwrap(),
        model: model(context_window),
        preamble: Arc::new(Preamble::new("Be brief.".into(), None, [tool].into())),
        view: conversation.view(),
    }
}

fn user(content: impl Into<Arc<str>>) -> Message {
    Message::User { content: content.into(), meta: None }
}

fn said(content: &str) -> Message {
    Message::Assistant { content: content.to_owned(), tool_calls: Vec::new(), meta: None }
}

/// An assistant's message with calls, and their results.
fn acted(texts: &[String]) -> Vec<Message> {
    let calls = texts.iter().enumerate().map(|(number, text)| ToolCall {
        id: format!("c{number}"),
        name: "echo".to_owned(),
        arguments: json!({ "message": text }),
    });
    let asks =
        Message::Assistant { content: String::new(), tool_calls: calls.collect(), meta: None };
    let results = texts.iter().enumerate().map(|(number, text)| Message::Tool {
        content: text.clone(),
        tool_call_id: format!("c{number}"),
        meta: None,
    });
    std::iter::once(asks).chain(results).collect()
}

/// A conversation of whole turns, with texts of very different lengths.
fn history() -> impl Strategy<Value = Vec<Message>> {
    let text = prop_oneof![
        "[a-z ]{1,40}",
        "[a-z ]{200,900}",
        "[\\PC]{1,80}",
        (100..3000_usize).prop_map(|count| " ".repeat(count)),
        (50..800_usize).prop_map(|count| "é😀".repeat(count)),
    ];
    let step = prop_oneof![
        text.clone().prop_map(|text| vec![user(text)]),
        text.clone().prop_map(|text| vec![said(&text)]),
        proptest::collection::vec(text.clone(), 1..4).prop_map(|texts| acted(&texts)),
    ];
    let steps = proptest::collection::vec(step, 0..20);
    (text, steps).prop_map(|(first, steps)| {
        std::iter::once(user(first)).chain(steps.into_iter().flatten()).collect()
    })
}

fn tokens(request: &ModelRequest, preamble: &Preamble) -> u64 {
    let encoding = Encoding::of(&request.model);
    let messages = request.messages.iter().map(|message| encoding.message(message));
    preamble.tokens(encoding) + messages.sum::<u64>()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_shown_fits_and_is_paired(messages in history(), window in 900..6000_u64) {
        let draft = draft(messages, window);
        let request = draft.fitted().unwrap();
        prop_assert!(tokens(&request, &draft.preamble) <= window - 100);
        prop_assert_eq!(check_pairs(request.messages.iter()), Ok(()));
        let all: Vec<&Message> = draft.view.all().map(|entry| &*entry.message).collect();
        if request.messages.len() == all.len() {
            return Ok(());
        }
        // The first message and the newest group stay, if need be shortened.
        let shown: Vec<&Message> = request.messages.iter().collect();
        let begins_with_user = matches!(shown[0], Message::User { .. });
        prop_assert!(begins_with_user);
        let newest = fit::groups(&draft.view.entries).pop().unwrap();
        prop_assert!(shown.len() > newest.len());
        if shown.iter().all(|message| all.contains(message)) {
            let tail = &all[all.len() - (shown.len() - 1)..];
            prop_assert_eq!(shown[0], all[0]);
            prop_assert_eq!(&shown[1..], tail, "the oldest go first");
        } else {
            prop_assert_eq!(shown.len(), newest.len() + 1, "shortening is the last resort");
        }
    }

    #[test]
    fn a_summary_leaves_whole_groups_and_fewer_tokens(messages in history(), window in 900..6000_u64) {
        let draft = draft(messages, window);
        let rules = rules();
        let Ok(plan) = draft.plan(&rules, When::Now) else { return Ok(()) };
        let question = draft.question(&plan, &draft.model, &Secrets::default()).unwrap();
        let asked = Encoding::O200k.text(&question.system)
            + question.messages.iter().map(|message| Encoding::O200k.message(message)).sum::<u64>();
        prop_assert!(asked <= window - 100);
        let accepted = draft.accept(&plan, ("short", Usage::default()), &Secrets::default());
        let Ok(compacted) = accepted else { return Ok(()) };
        prop_assert!(compacted.tokens_after < compacted.tokens_before);
        let kept = &draft.view.entries[compacted.upto..];
        prop_assert!(!kept.is_empty());
        prop_assert_eq!(check_pairs(kept.iter().map(|entry| &*entry.message)), Ok(()));
    }
}

fn rules() -> CompactionRules {
    CompactionRules {
        automatic: Automatic::On,
        model: None,
        trigger_threshold: 0.9,
        recent_preserve_ratio: 0.25,
    }
}

#[test]
fn what_fits_in_bytes_is_sent_whole_and_uncounted() {
    let draft = draft(vec![user("hi"), said("ho")], 4000);
    let messages: Messages = draft.view.all().map(|entry| Arc::clone(&entry.message)).collect();
    let of = (&draft.agent, &draft.model, &*draft.preamble);
    let bytes = draft.view.all().map(|entry| entry.bytes).sum();
    let all = whole(of, (&messages, bytes), 3900).unwrap();
    assert_eq!(all.messages, draft.fitted().unwrap().messages);
    let too_many = draft.preamble.bytes + bytes - 1;
    assert!(whole(of, (&messages, bytes), too_many).is_none());
}

#[test]
fn a_preamble_that_is_too_long_is_told_with_its_numbers() {
    let draft = draft(vec![user("hi")], 104);
    let preamble = draft.preamble.tokens(Encoding::O200k);
    assert_eq!(draft.fitted().unwrap_err(), TooLarge::Preamble { preamble, available: 4 });
    let error = ProviderError::from(TooLarge::Preamble { preamble, available: 4 });
    assert_eq!((error.fault, error.attempts, error.retryable), (Fault::Status, 0, false));
    assert!(error.message.starts_with("the system prompt and the tools alone have "));
}

#[test]
fn one_message_larger_than_the_window_keeps_its_begin_and_end() {
    let long = format!("begin{} end", " middle".repeat(5000));
    let request = draft(vec![user(long)], 400).fitted().unwrap();
    let shown: Vec<&Message> = request.messages.iter().collect();
    let [only] = shown[..] else { panic!("there is one message") };
    let Message::User { content, .. } = only else { panic!("it is the user's") };
    assert!(content.starts_with("begin middle") && content.ends_with(" middle end"), "{content}");
}

#[test]
fn arguments_that_are_too_long_stay_an_object() {
    let long = "word ".repeat(4000);
    let mut messages = vec![user("go")];
    messages.extend(acted(&[long, "short".to_owned()]));
    let request = draft(messages, 700).fitted().unwrap();
    let shown: Vec<&Message> = request.messages.iter().collect();
    let Message::Assistant { tool_calls, .. } = shown[1] else {
        panic!("the calls follow the question")
    };
    assert!(tool_calls[0].arguments["shortened"].as_str().unwrap().contains("bytes left out]"));
    assert_eq!(tool_calls[1].arguments, json!({"message": "short"}));
    let result = Message::Tool { content: "short".into(), tool_call_id: "c1".into(), meta: None };
    assert_eq!(*shown[3], result);
}

#[test]
fn a_summary_is_due_at_its_threshold_and_only_for_what_is_older() {
    let words = " word".repeat(400);
    let turns = |count: usize| -> Vec<Message> {
        (0..count).flat_map(|_| [user(words.as_str()), said("ok")]).collect()
    };
    let due = |count: usize| draft(turns(count), 2100).plan(&rules(), When::IfDue);
    assert_eq!(due(4).unwrap_err(), NotCompacted::NotDue);
    let plan = due(5).unwrap();
    let single = draft(vec![user(words.as_str())], 450);
    assert_eq!(single.plan(&rules(), When::Now).unwrap_err(), NotCompacted::NothingOlder);
    let draft = draft(turns(5), 2100);
    let accept = |said: &str| draft.accept(&plan, (said, Usage::default()), &Secrets::default());
    let compacted = accept(" They spoke. ").unwrap();
    assert_eq!((compacted.upto, &*compacted.summary), (7, "They spoke."));
    assert_eq!(accept(" \n"), Err(NotCompacted::Empty));
    let long = accept(&words.repeat(100)).unwrap();
    assert!(Encoding::O200k.text(&long.summary) <= 500, "a summary is bounded");
}

#[test]
fn a_summary_that_is_no_shorter_is_refused() {
    let draft = draft(vec![user("a"), said("b"), user("c")], 4000);
    let rules = CompactionRules { recent_preserve_ratio: 0.0, ..rules() };
    let plan = draft.plan(&rules, When::Now).unwrap();
    let longer = draft.accept(
        &plan,
        ("much longer than what it stands for", Usage::default()),
        &Secrets::default(),
    );
    assert_eq!(longer, Err(NotCompacted::NotSmaller));
}

#[test]
fn secrets_reach_neither_the_model_that_sums_up_nor_the_summary() {
    let token = "nxk_0123456789abcdef";
    let draft = draft(vec![user(format!("it is {token}, {}", "x ".repeat(99))), said("b")], 4000);
    let rules = CompactionRules { recent_preserve_ratio: 0.0, ..rules() };
    let plan = draft.plan(&rules, When::Now).unwrap();
    let secrets = Secrets::default();
    let question = draft.question(&plan, &draft.model, &secrets).unwrap();
    let shown: Vec<&Message> = question.messages.iter().collect();
    let [asked] = shown[..] else { panic!("it is one text") };
    let Message::User { content, .. } = asked else { panic!("it is the user's") };
    assert!(content.contains("[user]\nit is [redacted], x x") && !content.contains(token));
    let said = format!("The token is {token}.");
    let compacted = draft.accept(&plan, (&said, Usage::default()), &secrets).unwrap();
    assert_eq!(&*compacted.summary, "The token is [redacted].");
}
