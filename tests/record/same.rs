//! A recorded session replays to the same conversation: equal messages, tool calls, results and events.

use nexus3::choice::Choice;
use nexus3::event::What;
use nexus3::id::AgentId;
use nexus3::rpc::method::{ConfirmParams, GetMessagesParams, SendParams};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::live::{Ended, KEY, Live, until};
use super::replay::{replay, steady};

/// A team that reads and writes files, runs a program that writes another, and asks each other.
pub const TEAM: &str = r#"
schema = 1
about = "A boss has a worker check what it made."
[files]
"/project/NEXUS.md" = "Count well.\n"
"/project/notes.txt" = "three apples\ntwo pears\n"
[[model]]
agent = "boss"
says = ["I will ", "look."]
asks = [{ tool = "read_file", args = { path = "notes.txt" } },
        { tool = "list_directory", args = {} }]
usage = { input = 10, output = 5 }
[[model]]
agent = "boss"
thinks = "Hm."
asks = [{ tool = "write_file", args = { path = "sum.txt", content = "5 fruits\n" } },
        { tool = "exec", args = { program = "sh", args = ["-c", "cat sum.txt; pwd; echo made > made.txt; exit 3"] } }]
[[model]]
agent = "boss"
asks = [{ tool = "exec", args = { program = "sh", args = ["-c", "cat sum.txt; pwd; echo made > made.txt; exit 3"] } }]
[[model]]
agent = "boss"
asks = [{ tool = "nexus_send", args = { agent_id = "w1", content = "check made.txt" } }]
[[model]]
agent = "w1"
asks = [{ tool = "read_file", args = { path = "made.txt" } }]
[[model]]
agent = "w1"
fault = { status = 503 }
[[model]]
agent = "w1"
says = "It is made."
[[model]]
agent = "boss"
says = ["All ", "done."]
[[step]]
call = "list_agents"
"#;

async fn messages(live: &Live, agent: &AgentId) -> Vec<Value> {
    let all = live.client.get_messages(agent, &GetMessagesParams::default()).await.unwrap();
    all.messages.iter().map(|message| serde_json::to_value(&message.message).unwrap()).collect()
}

/// What a session was for its clients.
struct Told {
    events: Vec<Value>,
    boss: Vec<Value>,
    worker: Vec<Value>,
}

/// A session with tools, confirmations and two agents.
async fn session() -> (Ended, Told) {
    let live = Live::start(TEAM).await;
    let boss = live.create("boss", "trusted", None).await;
    let worker = live.create("w1", "worker", Some(&boss)).await;
    let mut stream = live.client.open_events(None, Some(0)).await.unwrap();
    let sending = {
        let (client, boss) = (live.client.clone(), boss.clone());
        let content = format!("Count the fruits; the key is {KEY}, ${{not}} a name");
        let params = SendParams { content, ..SendParams::default() };
        tokio::spawn(async move { client.send(&boss, &params).await.unwrap() })
    };
    let mut events = Vec::new();
    for decision in [Choice::AllowOnce, Choice::Deny] {
        let is_asked = |what: &What| matches!(what, What::ConfirmationRequested { .. });
        events.extend(until(&mut stream, is_asked).await);
        let asked = &events.last().unwrap().what;
        let What::ConfirmationRequested { confirm_id, .. } = asked else { unreachable!() };
        let decision = decision.name().to_owned();
        let params = ConfirmParams { confirm_id: confirm_id.clone(), decision };
        assert!(live.client.confirm(&boss, &params).await.unwrap().accepted);
    }
    // The worker's turn ends first, then that of the boss.
    for _ in 0..2 {
        let is_over = |what: &What| matches!(what, What::TurnCompleted { .. });
        events.extend(until(&mut stream, is_over).await);
    }
    sending.await.unwrap();
    let told = Told {
        events: events
            .iter()
            .filter(|event| event.what.is_durable())
            .map(|event| serde_json::to_value(event).unwrap())
            .collect(),
        boss: messages(&live, &boss).await,
        worker: messages(&live, &worker).await,
    };
    drop(stream);
    (live.end(Signal::TERM), told)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_with_tools_confirmations_and_two_agents_replays_the_same() {
    let (Ended { text, place }, told) = session().await;
    let played = replay(&text);
    assert_eq!(played.failures, [""; 0], "{text}\n{}", played.transcript);
    let same =
        |values: &[Value]| values.iter().map(|value| steady(value, &place)).collect::<Vec<_>>();
    assert_eq!(same(&told.events), same(&played.told), "{text}");
    for (agent, said) in [("boss", &told.boss), ("w1", &told.worker)] {
        let replayed: Vec<Value> =
            played.conversations[agent].iter().map(|message| json!(message)).collect();
        assert_eq!(same(said), same(&replayed), "{agent}\n{text}");
    }
    assert!(!text.contains(KEY) && !text.contains("nxk_"), "{text}");
    assert!(!text.contains(place.to_str().unwrap()), "{text}");
    assert!(text.contains("the key is [redacted], $${not} a name"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_tells_where_a_changed_prompt_parts_it_from_what_happened() {
    let (Ended { text, .. }, _) = session().await;
    let changed = text.replacen("Count well.", "Count badly.", 1);
    let played = replay(&changed);
    let told = "the replay parts from the recording at model call 1 of boss (entry 1):\n    \
                line 6 of what it is shown is other than recorded\n      # Instructions from \
                /project/NEXUS.md\n      \n    - Count well.\n    + Count badly.";
    assert_eq!(played.failures.first().map(String::as_str), Some(told), "{changed}");
}
