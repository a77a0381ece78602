//! What can be seen of agents: lists, summaries, tokens, context, messages.

use nexus3::limits::MESSAGE_TOKENS;
use nexus3::message::{AssistantMeta, Message, UserMeta};
use nexus3::rpc::method::{
    AgentEntry, AgentStatus, AgentSummary, ContextResult, GetMessagesParams, GetMessagesResult,
    NumberedMessage, SummariesParams, TokenSummary,
};
use serde_json::json;

use crate::agents_support::{
    CONTEXT_WINDOW, MAX_OUTPUT, Stage, cancelled, ended, error, refused, request, request_id,
};

pub fn user(content: &str) -> Message {
    let meta = UserMeta { source: "test".to_owned(), source_agent_id: None };
    Message::User { content: content.into(), meta: Some(meta) }
}

pub fn assistant(content: &str) -> Message {
    Message::Assistant { content: content.to_owned(), tool_calls: vec![], meta: None }
}

#[tokio::test]
async fn the_list_follows_a_turn_from_queue_to_end() {
    let mut stage = Stage::new().await;
    let a = stage.agent("a", "worker").await;
    let idle = stage.entry(&a).await;
    let sent = stage.sending(&a, request("r1", "one"));
    let call = stage.model.asked_by("a").await;
    stage.queue(&a, "r2", "two").await;
    let running = stage.entry(&a).await;
    assert!(running.last_action_at.is_some());
    let expected = AgentEntry {
        message_count: 1,
        status: AgentStatus::Running,
        active_request_id: Some(request_id("r1")),
        queued: 1,
        last_action_at: running.last_action_at.clone(),
        ..idle.clone()
    };
    assert_eq!(running, expected);
    call.answers("1").await;
    ended(sent).await;
    let call = stage.model.asked_by("a").await;
    let next = stage.entry(&a).await;
    assert_eq!((next.active_request_id, next.queued), (Some(request_id("r2")), 0));
    call.answers("2").await;
    stage.send(&a, &request("r2", "two")).await.unwrap();
    let after = stage.entry(&a).await;
    let last_action_at = after.last_action_at.clone();
    assert!(last_action_at >= running.last_action_at);
    assert_eq!(after, AgentEntry { message_count: 4, last_action_at, ..idle });
}

#[tokio::test]
async fn every_entry_has_the_fields_of_the_contract() {
    let stage = Stage::new().await;
    stage.agent("a", "worker").await;
    let list = stage.call_by_name(None, "list_agents", json!({})).await.unwrap();
    let entry = list["agents"][0].as_object().unwrap();
    let names: Vec<&str> = entry.keys().map(String::as_str).collect();
    let expected = [
        "agent_id",
        "is_temp",
        "created_at",
        "message_count",
        "should_shutdown",
        "parent_agent_id",
        "child_count",
        "depth",
        "model",
        "permission_level",
        "preset",
        "cwd",
        "write_paths",
        "status",
        "active_request_id",
        "queued",
        "halted_at_iteration_limit",
        "last_action_at",
    ];
    assert_eq!(names, expected);
}

#[tokio::test]
async fn summaries_have_what_is_asked_for() {
    let mut stage = Stage::new().await;
    let a = stage.agent("a", "worker").await;
    stage.agent("b", "worker").await;
    stage.exchange(&a, "hello world", "hello").await;
    let total = stage.get_tokens(&a).await.unwrap().total;
    let context = stage.get_context(&a).await.unwrap();
    let entries = stage.entries().await;
    for (tokens, with_context) in [(None, None), (Some(true), None), (Some(false), Some(true))] {
        let params = SummariesParams { include_tokens: tokens, include_context: with_context };
        let summaries = stage.get_agent_summaries(&params).await.unwrap().agents;
        let listed: Vec<_> = summaries.iter().map(|summary| summary.entry.clone()).collect();
        assert_eq!(listed, entries);
        let expected = AgentSummary {
            entry: entries[0].clone(),
            tokens: (tokens == Some(true))
                .then_some(TokenSummary { total, budget: CONTEXT_WINDOW }),
            context: with_context.map(|_| context.clone()),
        };
        assert_eq!(summaries[0], expected);
    }
}

#[tokio::test]
async fn tokens_add_up() {
    let mut stage = Stage::new().await;
    let a = stage.agent("a", "worker").await;
    let empty = stage.get_tokens(&a).await.unwrap();
    assert!(empty.system > 0 && empty.tools > 0);
    assert_eq!(empty.messages, 0);
    stage.exchange(&a, "hello world", "hello").await;
    let tokens = stage.get_tokens(&a).await.unwrap();
    let spoken = 3 + 2 * MESSAGE_TOKENS;
    assert_eq!((tokens.system, tokens.tools, tokens.messages), (empty.system, empty.tools, spoken));
    assert_eq!(tokens.total, tokens.system + tokens.tools + spoken);
    assert_eq!((tokens.budget, tokens.available), (CONTEXT_WINDOW, CONTEXT_WINDOW - MAX_OUTPUT));
    assert_eq!(tokens.remaining, tokens.available - tokens.total);
    stage.exchange(&a, &"hello ".repeat(20_000), "much").await;
    let over = stage.get_tokens(&a).await.unwrap();
    assert!(over.total > over.available);
    assert_eq!(over.remaining, 0);
}

#[tokio::test]
async fn a_megabyte_of_spaces_is_counted_and_kept() {
    let mut stage = Stage::new().await;
    let a = stage.agent("a", "worker").await;
    let spaces = " ".repeat(1_000_000);
    stage.exchange(&a, &spaces, "much").await;
    let tokens = stage.get_tokens(&a).await.unwrap();
    assert!(tokens.messages > 7000, "{tokens:?}");
    assert_eq!(stage.messages(&a).await, [user(&spaces), assistant("much")], "it is kept whole");
}

#[tokio::test]
async fn the_context_tells_what_a_conversation_consists_of() {
    let mut stage = Stage::new().await;
    let a = stage.agent("a", "worker").await;
    let fresh = ContextResult {
        message_count: 0,
        system_prompt: true,
        halted_at_iteration_limit: false,
        last_iteration_count: 0,
        max_tool_iterations: 100,
    };
    assert_eq!(stage.get_context(&a).await.unwrap(), fresh);
    stage.exchange(&a, "one", "1").await;
    let after = ContextResult { message_count: 2, last_iteration_count: 1, ..fresh.clone() };
    assert_eq!(stage.get_context(&a).await.unwrap(), after);
    let params = json!({"agent_id": "b", "system_prompt": ""});
    stage.call_by_name(None, "create_agent", params).await.unwrap();
    let without = stage.get_context(&crate::agents_support::agent_id("b")).await.unwrap();
    assert_eq!(without, ContextResult { system_prompt: false, ..fresh });
}

#[tokio::test]
async fn messages_come_in_pages() {
    let mut stage = Stage::new().await;
    let a = stage.agent("a", "worker").await;
    stage.exchange(&a, "one", "1").await;
    stage.exchange(&a, "two", "2").await;
    let all = [user("one"), assistant("1"), user("two"), assistant("2")];
    let numbered: Vec<NumberedMessage> = (0..)
        .zip(all)
        .map(|(index, message)| NumberedMessage { index, message: message.into() })
        .collect();
    let pages = [
        (None, None, 0, 200, 0..4),
        (Some(1), Some(2), 1, 2, 1..3),
        (Some(3), Some(2000), 3, 2000, 3..4),
        (Some(4), Some(1), 4, 1, 4..4),
        (Some(u64::MAX), None, u64::MAX, 200, 4..4),
    ];
    for (given_offset, given_limit, offset, limit, range) in pages {
        let params = GetMessagesParams { offset: given_offset, limit: given_limit };
        let expected = GetMessagesResult {
            agent_id: a.clone(),
            total: 4,
            offset,
            limit,
            messages: numbered[range].to_vec(),
        };
        assert_eq!(stage.get_messages(&a, &params).await.unwrap(), expected);
    }
    for limit in [0, 2001] {
        let params = GetMessagesParams { offset: None, limit: Some(limit) };
        let expected = error(-32602, "Invalid parameter limit: it must be from 1 to 2000");
        assert_eq!(refused(stage.get_messages(&a, &params).await), expected);
    }
    for params in [json!({"offset": -1}), json!({"limit": "all"}), json!({"limit": 1.5})] {
        let outcome = stage.call_by_name(Some(&a), "get_messages", params.clone()).await;
        assert_eq!(refused(outcome).code, -32602, "{params}");
    }
}

#[tokio::test]
async fn text_that_broke_off_is_kept_and_marked() {
    let mut stage = Stage::new().await;
    let a = stage.agent("a", "worker").await;
    let sent = stage.sending(&a, request("r1", "one"));
    let mut call = stage.model.asked_by("a").await;
    call.says("Hé").await;
    call.says("llo").await;
    stage.get_context(&a).await.unwrap();
    stage.cancel(&a, None).await.unwrap();
    assert_eq!(ended(sent).await, cancelled("r1"));
    let partial = Message::Assistant {
        content: "Héllo".to_owned(),
        tool_calls: vec![],
        meta: Some(AssistantMeta { partial: "cancelled".to_owned() }),
    };
    assert_eq!(stage.messages(&a).await, [user("one"), partial]);
    let sent = stage.sending(&a, request("r2", "two"));
    let call = stage.model.asked_by("a").await;
    assert_eq!(
        call.request["messages"].as_array().unwrap()[1..],
        [
            json!({"role": "user", "content": "one"}),
            json!({"role": "assistant", "content": "Héllo"}),
            json!({"role": "user", "content": "two"}),
        ]
    );
    call.answers("2").await;
    ended(sent).await;
}
