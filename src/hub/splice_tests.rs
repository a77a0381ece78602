//! Whatever happens in whatever order, and however slowly somebody reads: the spliced text is whole,
//! and each durable event comes once, in order, also over reconnections.

use proptest::prelude::*;

use super::stage::{Stage, agent, stream_of};
use super::*;

const AGENTS: [&str; 3] = ["a", "b", "c"];

#[derive(Clone, Debug)]
enum Act {
    /// Starts a turn, or goes on with the one that runs.
    Chunk {
        agent: usize,
        bytes: usize,
    },
    Think {
        agent: usize,
    },
    Tool {
        agent: usize,
        bytes: usize,
    },
    End {
        agent: usize,
    },
    CancelWaiting {
        agent: usize,
    },
    /// Publishes what was committed so far.
    Publish,
    Read {
        client: usize,
        polls: usize,
    },
    Reconnect {
        client: usize,
    },
}

fn act() -> impl Strategy<Value = Act> {
    let agent = 0..AGENTS.len();
    let client = 0..CLIENTS;
    let bytes =
        prop_oneof![4 => 0..50_usize, 2 => 30_000..120_000_usize, 1 => 250_000..300_000_usize];
    prop_oneof![
        8 => (agent.clone(), bytes.clone()).prop_map(|(agent, bytes)| Act::Chunk { agent, bytes }),
        1 => agent.clone().prop_map(|agent| Act::Think { agent }),
        4 => (agent.clone(), bytes).prop_map(|(agent, bytes)| Act::Tool { agent, bytes }),
        2 => agent.clone().prop_map(|agent| Act::End { agent }),
        1 => agent.prop_map(|agent| Act::CancelWaiting { agent }),
        3 => Just(Act::Publish),
        8 => (client.clone(), 1..6_usize).prop_map(|(client, polls)| Act::Read { client, polls }),
        1 => client.prop_map(|client| Act::Reconnect { client }),
    ]
}

/// Streams of two agents and of everything, with and without a cursor.
const CLIENTS: usize = 4;

fn play(acts: &[Act]) {
    let mut stage = Stage::new();
    let scopes = [stream_of("a"), stream_of("b"), Scope::Everything, Scope::Everything];
    let starts = [Start::Now, Start::After(0), Start::Now, Start::After(0)];
    let mut clients: Vec<stage::Client> = scopes
        .iter()
        .zip(starts)
        .map(|(scope, start)| stage.client(scope.clone(), start))
        .collect();
    for act in acts {
        match *act {
            Act::Chunk { agent, bytes } => {
                in_turn(&mut stage, agent);
                stage.chunk(AGENTS[agent], &"é".repeat(bytes / 2));
            }
            Act::Think { agent } => {
                in_turn(&mut stage, agent);
                stage.think(AGENTS[agent]);
            }
            Act::Tool { agent, bytes } => {
                in_turn(&mut stage, agent);
                stage.tool(AGENTS[agent], &"o".repeat(bytes));
            }
            Act::End { agent } => {
                in_turn(&mut stage, agent);
                stage.end(AGENTS[agent]);
            }
            Act::CancelWaiting { agent } => stage.cancel_waiting(AGENTS[agent]),
            Act::Publish => stage.publish(),
            Act::Read { client, polls } => {
                for _ in 0..polls {
                    clients[client].read();
                }
            }
            Act::Reconnect { client } => clients[client].reconnect(&stage),
        }
        assert!(stage.buffered().iter().all(|bytes| *bytes <= STREAM_BUFFER_BYTES_MAX));
    }
    stage.publish();
    for (client, scope) in clients.iter_mut().zip(&scopes) {
        client.read_all();
        assert_eq!(client.seen, stage.kept(scope, 0));
        let running = stage.turns.iter().filter(|(of, _)| match scope {
            Scope::Agent(agent) => *of == agent,
            Scope::Everything => true,
        });
        assert!(client.texts.iter().eq(running), "every running text is whole");
    }
}

fn in_turn(stage: &mut Stage, index: usize) {
    if !stage.turns.contains_key(&agent(AGENTS[index])) {
        stage.start(AGENTS[index], "hi");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_reader_gets_the_whole_text_and_each_event_once(
        acts in prop::collection::vec(act(), 0..120),
    ) {
        // Streams have timers, which nobody waits for here.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let _inside = runtime.enter();
        play(&acts);
    }
}
