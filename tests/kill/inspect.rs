//! What a server shows after its restart, against the book: everything that was acknowledged, and
//! nothing that nobody asked for. What was in doubt is settled here, and stays as it was found.

use std::collections::{BTreeMap, BTreeSet};

use nexus3::client::{ClientError, NexusClient};
use nexus3::event::{Event, What};
use nexus3::id::{AgentId, RequestId};
use nexus3::message::Message;
use nexus3::message::check_pairs;
use nexus3::rpc::method::{CreateAgentParams, GetMessagesParams};

use crate::book::{Agent, Book, Ended, Existence, Told};
use crate::process::{Process, Resume};
use crate::watch::{Watcher, kept_until_created};

const INVALID_PARAMS: i64 = -32602;

pub async fn all(
    process: &Process,
    resume: Resume,
    book: &mut Book,
    watcher: &mut Watcher,
    round: u64,
) {
    let client = process.client();
    let listed = client.list_agents().await.expect("the server answers");
    let listed: BTreeMap<AgentId, usize> =
        listed.agents.into_iter().map(|agent| (agent.agent_id, agent.message_count)).collect();
    if resume == Resume::WhenAsked {
        assert_eq!(listed, BTreeMap::new(), "agents come back when they are asked");
    }
    for id in &book.gone[book.gone_checked..] {
        assert!(messages(&client, id).await.is_none(), "{id} was destroyed");
    }
    book.gone_checked = book.gone.len();
    let mut found = BTreeMap::new();
    for (id, mut agent) in std::mem::take(&mut book.agents) {
        let Some(messages) = messages(&client, &id).await else {
            assert_ne!(agent.existence, Existence::Acknowledged, "{id} is lost");
            book.gone.push(id);
            continue;
        };
        agent.existence = Existence::Acknowledged;
        if resume == Resume::AtStart {
            assert_eq!(listed.get(&id), Some(&messages.len()), "{id} was resumed");
        }
        requests(&client, &id, &mut agent).await;
        conversation(&id, &agent, &messages);
        found.insert(id, agent);
    }
    for id in listed.keys() {
        assert!(found.contains_key(id), "nobody asked for {id}");
    }
    book.agents = found;
    events(&client, book, watcher, round).await;
}

async fn messages(client: &NexusClient, id: &AgentId) -> Option<Vec<Message>> {
    let params = GetMessagesParams { offset: None, limit: Some(2000) };
    match client.get_messages(id, &params).await {
        Ok(page) => {
            assert_eq!(page.total, page.messages.len(), "{id} has as many messages as it says");
            Some(page.messages.into_iter().map(|message| (*message.message).clone()).collect())
        }
        Err(ClientError::Refused { status, .. }) if status == http::StatusCode::NOT_FOUND => None,
        Err(error) => panic!("{id} cannot be read: {error:?}"),
    }
}

/// Compares what was told of each request with what is on record, and settles the rest.
async fn requests(client: &NexusClient, id: &AgentId, agent: &mut Agent) {
    let mut kept = Vec::new();
    for mut request in std::mem::take(&mut agent.requests) {
        let ended = match client.get_request(id, request.id.clone()).await {
            Ok(record) => Ended::of_record(&record),
            Err(ClientError::Rpc { error }) if error.code == INVALID_PARAMS => {
                assert_eq!(request.told, Told::Nothing, "{id} lost {}", request.id);
                continue;
            }
            Err(error) => panic!("{id} cannot tell {}: {error:?}", request.id),
        };
        match &request.told {
            Told::Nothing | Told::Accepted => {}
            Told::Over => assert_ne!(ended, Ended::Interrupted, "{id} {} was over", request.id),
            Told::Ended(told) => assert_eq!(*told, ended, "{id} {}", request.id),
        }
        request.told = Told::Ended(ended);
        kept.push(request);
    }
    agent.requests = kept;
}

/// Each turn stands in the conversation once, in the order of sending, with the end that was told.
fn conversation(id: &AgentId, agent: &Agent, messages: &[Message]) {
    check_pairs(messages.iter()).unwrap_or_else(|broken| panic!("{id}: {broken}"));
    let mut turns: BTreeMap<usize, Option<&str>> = BTreeMap::new();
    let mut running = None;
    for message in messages {
        match message {
            Message::User { content, .. } => {
                let asked =
                    |(_, request): &(usize, &crate::book::Request)| *request.content == **content;
                let place = agent.requests.iter().enumerate().find(asked);
                let (place, _) = place.unwrap_or_else(|| panic!("{id}: nobody sent {content}"));
                assert!(
                    running.is_none_or(|before| before < place),
                    "{id}: {content} is out of place"
                );
                running = Some(place);
                turns.insert(place, None);
            }
            Message::Assistant { content, .. } => {
                let turn = running.and_then(|place| turns.get_mut(&place));
                *turn.expect("somebody asked first") = Some(content);
            }
            Message::Tool { .. } => {}
        }
    }
    for (place, request) in agent.requests.iter().enumerate() {
        if let Told::Ended(Ended::Completed { content }) = &request.told {
            let said = turns.get(&place).copied().flatten();
            assert_eq!(said, Some(content.as_str()), "{id} {}", request.id);
        }
    }
}

/// The reader that came back has seen exactly what is kept, and that tells the story of the book.
async fn events(client: &NexusClient, book: &mut Book, watcher: &mut Watcher, round: u64) {
    let marker = AgentId::parse(&format!("marker{round}")).expect("it is well formed");
    let params = CreateAgentParams { agent_id: Some(marker.to_string()), ..Default::default() };
    client.create_agent(&params).await.expect("an agent can be made");
    let nobody = u64::MAX;
    let agent = Agent { owner: nobody, existence: Existence::Acknowledged, requests: Vec::new() };
    book.agents.insert(marker.clone(), agent);
    watcher.until_created(client, &marker).await;
    let kept = kept_until_created(client, &marker).await;
    assert_eq!(kept, watcher.seen(), "each durable event was seen once");
    let asked: BTreeSet<&AgentId> = book.agents.keys().chain(&book.gone).collect();
    let mut open: BTreeMap<(&AgentId, &RequestId), usize> = BTreeMap::new();
    for event in &kept {
        let agent = event.agent_id.as_ref().expect("durable events are about an agent");
        assert!(agent.is_temp() || asked.contains(agent), "nobody asked for {agent}");
        let Some(request) = &event.request_id else { continue };
        if matches!(event.what, What::TurnQueued { .. }) {
            assert_eq!(open.insert((agent, request), 0), None, "{agent} {request} came twice");
        }
        if event.what.is_terminal() {
            let ends = open.get_mut(&(agent, request));
            *ends.expect("what ends was queued") += 1;
            ended(book, event, agent, request);
        }
    }
    // Temporary ids are given again, request ids never.
    let ended_once = open.iter().all(|(_, ends)| *ends == 1);
    assert!(ended_once, "every accepted send has one end: {open:?}");
}

/// The last event of a turn says what is on record.
fn ended(book: &Book, event: &Event, agent: &AgentId, request: &RequestId) {
    let requests = book.agents.get(agent).map(|agent| &agent.requests);
    let Some(noted) = requests.and_then(|all| all.iter().find(|noted| noted.id == *request)) else {
        return;
    };
    let told = match &event.what {
        What::TurnCompleted { content, .. } => Ended::Completed { content: content.to_string() },
        What::TurnCancelled(_) => Ended::Cancelled,
        What::TurnInterrupted(_) => Ended::Interrupted,
        other => panic!("{agent} {request} ended with {other:?}"),
    };
    assert_eq!(Told::Ended(told), noted.told, "{agent} {request}");
}
