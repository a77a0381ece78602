//! One client: does what its draws say, notes each call before it is made and each answer after it
//! came, and kills the server when its turn has come.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use nexus3::client::{ClientError, NexusClient};
use nexus3::id::{AgentId, RequestId};
use nexus3::rpc::method::{CancelResult, CreateAgentParams, DestroyAgentParams, SendParams};
use rustix::process::{Pid, Signal, kill_process};

use crate::book::{Agent, Book, Ended, Existence, Request, Told};
use crate::chance::Chance;

/// Agents of one client up to which it destroys none, and from which on it creates none.
const AGENTS_FEW: usize = 2;
const AGENTS_MANY: usize = 5;

/// Counts acknowledgements; the one whose time has come kills the server.
pub struct Killing {
    after: u64,
    pid: Pid,
    acknowledged: AtomicU64,
    done: AtomicBool,
}

impl Killing {
    pub fn new(after: u64, pid: Pid) -> Self {
        Self { after, pid, acknowledged: AtomicU64::new(0), done: AtomicBool::new(false) }
    }

    fn acknowledge(&self) {
        if self.acknowledged.fetch_add(1, Ordering::SeqCst) + 1 == self.after {
            self.done.store(true, Ordering::SeqCst);
            kill_process(self.pid, Signal::KILL).expect("the server runs until now");
        }
    }

    fn is_done(&self) -> bool {
        self.done.load(Ordering::SeqCst)
    }
}

struct Worker {
    client: NexusClient,
    number: u64,
    chance: Chance,
    book: Arc<Mutex<Book>>,
    killing: Arc<Killing>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    ForTurn,
    ForNothing,
}

/// What an act came to.
type Acted = Result<(), ClientError>;

pub async fn run(
    client: NexusClient,
    number: u64,
    chance: Chance,
    book: Arc<Mutex<Book>>,
    killing: Arc<Killing>,
) {
    let mut worker = Worker { client, number, chance, book, killing };
    loop {
        if let Err(error) = worker.act().await {
            assert!(worker.killing.is_done(), "client {number} failed before the kill: {error:?}");
            worker.book().in_doubt += 1;
            return;
        }
    }
}

impl Worker {
    async fn act(&mut self) -> Acted {
        let own = self.own();
        let Some(agent) = self.chance.one_of(&own).cloned() else {
            return self.create().await;
        };
        match self.chance.below(100) {
            0..15 if own.len() < AGENTS_MANY => self.create().await,
            0..15 => self.destroy(&agent).await,
            15..40 => self.send(&agent, Wait::ForNothing).await,
            40..50 => self.send_again(&agent).await,
            50..55 => self.cancel_all(&agent).await,
            55..63 => self.cancel_one(&agent).await,
            63..70 if own.len() > AGENTS_FEW => self.destroy(&agent).await,
            63.. => self.send(&agent, Wait::ForTurn).await,
        }
    }

    async fn create(&mut self) -> Acted {
        let temp = self.chance.below(8) == 0;
        let id = if temp { ".".to_owned() } else { self.book().name("a") };
        let owner = self.number;
        let agent = |existence| Agent { owner, existence, requests: Vec::new() };
        if !temp {
            let id = AgentId::parse(&id).expect("it is well formed");
            self.book().agents.insert(id, agent(Existence::CreateAsked));
        }
        let params = CreateAgentParams { agent_id: Some(id), ..Default::default() };
        let created = self.client.create_agent(&params).await?;
        self.book().agents.insert(created.agent_id, agent(Existence::Acknowledged));
        self.acknowledged()
    }

    async fn send(&mut self, agent: &AgentId, wait: Wait) -> Acted {
        let id = self.book().name("r");
        let content = match self.chance.below(4) {
            0 => format!(r#"call echo {{"message": "{id}"}}"#),
            // Long enough for others to be queued behind it, and for a kill in its middle.
            1 => format!(r#"call sleep {{"seconds": 0.02{}}}"#, &id[1..]),
            _ => format!("{id} {}", "word ".repeat(self.chance.below(40).try_into().unwrap_or(0))),
        };
        let id = RequestId::parse(&id).expect("it is well formed");
        let request = Request { id: id.clone(), content: content.clone(), told: Told::Nothing };
        self.agent(agent, |agent| agent.requests.push(request));
        let sent = self.ask(agent, &id, content, wait).await?;
        self.book().request(agent, &id).told = sent;
        self.acknowledged()
    }

    /// The same request again joins the turn, or gets what was told before.
    async fn send_again(&mut self, agent: &AgentId) -> Acted {
        let requests: Vec<(RequestId, String)> = self.agent(agent, |agent| {
            let known = agent.requests.iter().filter(|request| request.told != Told::Nothing);
            known.map(|request| (request.id.clone(), request.content.clone())).collect()
        });
        let Some((id, content)) = self.chance.one_of(&requests).cloned() else {
            return self.send(agent, Wait::ForTurn).await;
        };
        let told = match self.ask(agent, &id, content, Wait::ForTurn).await {
            Err(ClientError::Rpc { error }) => {
                let kind = error.data.as_ref().map(|data| &data["kind"]);
                assert_eq!(kind, Some(&"interrupted".into()), "{error:?}");
                Told::Ended(Ended::Interrupted)
            }
            sent => sent?,
        };
        let mut book = self.book();
        let request = book.request(agent, &id);
        if let Told::Ended(_) = request.told {
            assert_eq!(request.told, told, "{agent} {id} ended twice");
        }
        request.told = told;
        drop(book);
        self.acknowledged()
    }

    async fn ask(
        &self,
        agent: &AgentId,
        id: &RequestId,
        content: String,
        wait: Wait,
    ) -> Result<Told, ClientError> {
        let params = SendParams {
            content,
            request_id: Some(id.clone()),
            wait: Some(wait == Wait::ForTurn),
            ..Default::default()
        };
        let result = self.client.send(agent, &params).await?;
        Ok(Ended::of_send(&result).map_or(Told::Accepted, Told::Ended))
    }

    async fn cancel_all(&mut self, agent: &AgentId) -> Acted {
        let CancelResult::All { request_ids, .. } = self.client.cancel(agent, None).await? else {
            panic!("everything was to be cancelled");
        };
        self.agent(agent, |agent| {
            for request in &mut agent.requests {
                if request_ids.contains(&request.id) {
                    request.cancelled();
                } else if request.told == Told::Accepted {
                    request.told = Told::Over;
                }
            }
        });
        self.acknowledged()
    }

    async fn cancel_one(&mut self, agent: &AgentId) -> Acted {
        let last = self.agent(agent, |agent| agent.requests.last().map(|last| last.id.clone()));
        let Some(id) = last else {
            return self.send(agent, Wait::ForNothing).await;
        };
        let result = self.client.cancel(agent, Some(id.clone())).await?;
        let CancelResult::One { cancelled, .. } = result else {
            panic!("one was to be cancelled: {result:?}");
        };
        let mut book = self.book();
        let request = book.request(agent, &id);
        if cancelled {
            request.cancelled();
        } else if request.told == Told::Accepted {
            request.told = Told::Over;
        }
        drop(book);
        self.acknowledged()
    }

    async fn destroy(&mut self, agent: &AgentId) -> Acted {
        self.agent(agent, |agent| agent.existence = Existence::DestroyAsked);
        let params = DestroyAgentParams { agent_id: agent.clone(), cascade: None };
        let result = self.client.destroy_agent(&params).await?;
        assert_eq!(result.destroyed, std::slice::from_ref(agent));
        let mut book = self.book();
        book.agents.remove(agent);
        book.gone.push(agent.clone());
        drop(book);
        self.acknowledged()
    }

    #[expect(clippy::unnecessary_wraps, reason = "the end of every act that went well")]
    fn acknowledged(&self) -> Acted {
        self.book().acknowledged += 1;
        self.killing.acknowledge();
        Ok(())
    }

    fn own(&self) -> Vec<AgentId> {
        let book = self.book();
        let own = book.agents.iter().filter(|(_, agent)| agent.owner == self.number);
        own.map(|(id, _)| id.clone()).collect()
    }

    fn agent<T>(&self, id: &AgentId, look: impl FnOnce(&mut Agent) -> T) -> T {
        look(self.book().agents.get_mut(id).expect("the agent is in the book"))
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().expect("no client panicked")
    }
}

impl Request {
    fn cancelled(&mut self) {
        assert!(!matches!(self.told, Told::Ended(_)), "what has ended is not cancelled");
        self.told = Told::Ended(Ended::Cancelled);
    }
}
