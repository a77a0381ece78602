//! The loop of one agent: asks in, replies out, one turn at a time.
//! It never waits for anything but its own channels and deadlines; whatever takes time is a task of
//! `work`. What a turn does next is decided by `turn`, not here.

use std::collections::VecDeque;
use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use super::conversation::{Conversation, MessageTokens};
use super::handle::{Accepted, Context, Page, Retire, SendError, SendRequest, Status};
use super::outcome::{CancelReason, Failure, Outcome};
use super::requests::{Known, Requests, State};
use super::turn::{Effect, Input, Stop, Turn};
use super::{Facts, Shared, work};
use crate::event::iso;
use crate::id::RequestId;
use crate::limits::{DESTROY_WAIT_MAX, WAITING_SENDS_MAX, WORK_QUEUE_MAX};
use crate::message::Message;
use crate::provider::ModelRequest;

/// A question to an agent, with the place for its answer.
pub enum Ask {
    Send(Box<SendRequest>, oneshot::Sender<Result<Accepted, SendError>>),
    Cancel(Option<RequestId>, oneshot::Sender<Vec<RequestId>>),
    Request(RequestId, oneshot::Sender<Option<State>>),
    Messages { offset: usize, limit: usize, reply: oneshot::Sender<Page> },
    Context(oneshot::Sender<Context>),
    Tokens(oneshot::Sender<MessageTokens>),
    Shutdown(oneshot::Sender<()>),
    Retire(Retire, oneshot::Sender<()>),
}

pub struct Agent {
    facts: Arc<Facts>,
    shared: Arc<Shared>,
    inbox: mpsc::Receiver<Ask>,
    conversation: Conversation,
    requests: Requests,
    queue: VecDeque<SendRequest>,
    running: Option<Running>,
    /// Tasks of the running turn, and those of earlier ones that were told to end.
    tasks: JoinSet<()>,
    retirement: Option<Retirement>,
    should_shutdown: bool,
    halted_at_iteration_limit: bool,
    last_iteration_count: u32,
    last_action_at: Option<Arc<str>>,
    published: Arc<ArcSwap<Status>>,
}

struct Running {
    request: RequestId,
    deadline: Instant,
    turn: Turn,
    /// Where in the conversation this turn begins.
    first_message: usize,
    /// The turn's own channel: it ends with the turn, so nothing late reaches the next one.
    work: mpsc::Receiver<Input>,
    reports: mpsc::Sender<Input>,
}

#[derive(Default)]
struct Retirement {
    leave: bool,
    /// Told once nothing runs any more.
    waiting: Vec<oneshot::Sender<()>>,
}

impl Agent {
    pub fn new(
        facts: Arc<Facts>,
        shared: Arc<Shared>,
        inbox: mpsc::Receiver<Ask>,
        published: Arc<ArcSwap<Status>>,
    ) -> Self {
        Self {
            facts,
            shared,
            inbox,
            conversation: Conversation::default(),
            requests: Requests::default(),
            queue: VecDeque::new(),
            running: None,
            tasks: JoinSet::new(),
            retirement: None,
            should_shutdown: false,
            halted_at_iteration_limit: false,
            last_iteration_count: 0,
            last_action_at: None,
            published,
        }
    }

    pub async fn run(mut self) {
        loop {
            let deadline = self.next_deadline();
            tokio::select! {
                // The inbox comes first: a cancel must win over a tool that ended in the same tick.
                biased;
                ask = self.inbox.recv() => match ask {
                    Some(ask) => self.on_ask(ask),
                    None => break,
                },
                input = next_input(&mut self.running) => self.on_input(input),
                () = at(deadline) => self.on_deadline(),
            }
            self.start_next();
            self.publish();
            if self.has_left().await {
                break;
            }
        }
        self.tasks.shutdown().await;
    }

    fn on_ask(&mut self, ask: Ask) {
        // Whoever asked may be gone by now; its answer is then dropped.
        match ask {
            Ask::Send(request, reply) => {
                let accepted = self.on_send(*request);
                self.start_next();
                self.publish();
                drop(reply.send(accepted));
            }
            Ask::Cancel(request, reply) => {
                let cancelled = self.on_cancel(request.as_ref());
                self.publish();
                drop(reply.send(cancelled));
            }
            Ask::Request(id, reply) => drop(reply.send(self.requests.state(&id))),
            Ask::Messages { offset, limit, reply } => drop(reply.send(Page {
                total: self.conversation.len(),
                messages: self.conversation.page(offset, limit),
            })),
            Ask::Context(reply) => drop(reply.send(self.context())),
            Ask::Tokens(reply) => drop(reply.send(self.conversation.tokens())),
            Ask::Shutdown(reply) => {
                self.should_shutdown = true;
                self.publish();
                let _ = reply.send(());
            }
            Ask::Retire(how, reply) => self.on_retire(how, reply),
        }
    }

    fn on_send(&mut self, request: SendRequest) -> Result<Accepted, SendError> {
        match self.requests.look_up(&request.request_id, &request.content) {
            Known::OtherContent => Err(SendError::OtherContent),
            Known::Same(State::Ended(outcome)) => Ok(Accepted::Ended(outcome)),
            Known::Same(state @ (State::Queued | State::Running)) => {
                Ok(Accepted::Waiting { state, outcome: self.requests.join(&request.request_id) })
            }
            Known::Unknown if self.retirement.is_some() => Err(SendError::Retiring),
            Known::Unknown if self.queue.len() >= WAITING_SENDS_MAX => Err(SendError::QueueFull),
            Known::Unknown => {
                self.requests.accept(request.request_id.clone(), Arc::clone(&request.content));
                let outcome = self.requests.join(&request.request_id);
                self.queue.push_back(request);
                Ok(Accepted::Waiting { state: State::Queued, outcome })
            }
        }
    }

    fn on_cancel(&mut self, request: Option<&RequestId>) -> Vec<RequestId> {
        let wanted = |id: &RequestId| request.is_none_or(|request| request == id);
        let mut cancelled = Vec::new();
        if let Some(running) = &self.running
            && wanted(&running.request)
        {
            cancelled.push(running.request.clone());
            self.on_input(Input::Stop(Stop::Cancel(CancelReason::Cancelled)));
        }
        cancelled.extend(self.cancel_queued(CancelReason::Cancelled, wanted));
        cancelled
    }

    fn cancel_queued(
        &mut self,
        reason: CancelReason,
        wanted: impl Fn(&RequestId) -> bool,
    ) -> Vec<RequestId> {
        let (cancelled, kept) = std::mem::take(&mut self.queue)
            .into_iter()
            .partition(|queued| wanted(&queued.request_id));
        self.queue = kept;
        let cancelled: VecDeque<SendRequest> = cancelled;
        let cancelled: Vec<RequestId> =
            cancelled.into_iter().map(|queued| queued.request_id).collect();
        for id in &cancelled {
            self.end_request(id, Outcome::Cancelled { reason });
        }
        cancelled
    }

    fn on_retire(&mut self, how: Retire, reply: oneshot::Sender<()>) {
        let (reason, cancel_turn, leave) = match how {
            Retire::FinishTurn(reason) => (reason, false, false),
            Retire::CancelTurn(reason) => (reason, true, false),
            Retire::Leave(reason) => (reason, true, true),
        };
        let retirement = self.retirement.get_or_insert_default();
        retirement.leave |= leave;
        retirement.waiting.push(reply);
        self.cancel_queued(reason, |_| true);
        if cancel_turn && self.running.is_some() {
            self.on_input(Input::Stop(Stop::Cancel(reason)));
        }
    }

    fn on_deadline(&mut self) {
        let now = Instant::now();
        let (late, kept) = std::mem::take(&mut self.queue)
            .into_iter()
            .partition(|queued: &SendRequest| queued.deadline <= now);
        self.queue = kept;
        let late: VecDeque<SendRequest> = late;
        for queued in late {
            self.end_request(&queued.request_id, Outcome::Failed(Failure::Timeout));
        }
        if self.running.as_ref().is_some_and(|running| running.deadline <= now) {
            self.on_input(Input::Stop(Stop::Timeout));
        }
    }

    fn on_input(&mut self, input: Input) {
        let running = self.running.as_mut().expect("input belongs to the running turn");
        let effects = running.turn.on(input);
        self.perform(effects);
    }

    fn start_next(&mut self) {
        if self.running.is_some() {
            return;
        }
        let Some(SendRequest { request_id, content, meta, deadline }) = self.queue.pop_front()
        else {
            return;
        };
        self.requests.start(&request_id);
        self.halted_at_iteration_limit = false;
        self.last_action_at = Some(iso(self.shared.world.clock.now()));
        let first_message = self.conversation.len();
        self.conversation.append(Message::User { content, meta: Some(meta) });
        let (reports, work) = mpsc::channel(WORK_QUEUE_MAX);
        let (turn, effects) = Turn::start(self.shared.rules);
        self.running =
            Some(Running { request: request_id, deadline, turn, first_message, work, reports });
        self.perform(effects);
    }

    fn perform(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Append(message) => self.conversation.append(message),
                Effect::Ask => {
                    let reports = self.reports();
                    let request = self.model_request();
                    let ask = work::ask(Arc::clone(&self.facts), request, reports.clone());
                    self.tasks.spawn(work::report(Arc::clone(&self.shared), reports, ask));
                }
                Effect::Run { index, call } => {
                    let (shared, facts) = (Arc::clone(&self.shared), Arc::clone(&self.facts));
                    let run = work::run_tool(shared, facts, index, call);
                    self.tasks.spawn(work::report(Arc::clone(&self.shared), self.reports(), run));
                }
                Effect::Abandon => self.tasks.abort_all(),
                Effect::Finish(outcome) => self.finish(outcome),
            }
        }
    }

    fn finish(&mut self, outcome: Outcome) {
        let running = self.running.take().expect("a turn finishes while it runs");
        self.conversation.assert_paired_since(running.first_message);
        self.halted_at_iteration_limit = outcome.halted_at_iteration_limit();
        self.last_iteration_count = running.turn.iterations();
        self.last_action_at = Some(iso(self.shared.world.clock.now()));
        self.end_request(&running.request, outcome);
        while self.tasks.try_join_next().is_some() {}
    }

    /// Whoever is told of an end finds it in the published status too.
    fn end_request(&mut self, id: &RequestId, outcome: Outcome) {
        self.publish();
        self.requests.end(id, outcome);
    }

    fn reports(&self) -> mpsc::Sender<Input> {
        self.running.as_ref().expect("work belongs to the running turn").reports.clone()
    }

    fn model_request(&self) -> ModelRequest {
        let facts = &self.facts;
        ModelRequest {
            agent: facts.id.clone(),
            model: facts.model.id.to_string(),
            system: Arc::clone(&facts.system_prompt),
            messages: self.conversation.messages(),
            tools: Arc::clone(&facts.tools),
            output_tokens_max: facts.model.output_tokens_max,
        }
    }

    fn context(&self) -> Context {
        Context {
            message_count: self.conversation.len(),
            system_prompt: !self.facts.system_prompt.is_empty(),
            halted_at_iteration_limit: self.halted_at_iteration_limit,
            last_iteration_count: self
                .running
                .as_ref()
                .map_or(self.last_iteration_count, |running| running.turn.iterations()),
            max_tool_iterations: self.shared.rules.iterations_max,
        }
    }

    fn publish(&self) {
        let status = Status {
            message_count: self.conversation.len(),
            should_shutdown: self.should_shutdown,
            active_request: self.running.as_ref().map(|running| running.request.clone()),
            queued: self.queue.len(),
            halted_at_iteration_limit: self.halted_at_iteration_limit,
            last_action_at: self.last_action_at.clone(),
        };
        if **self.published.load() != status {
            self.published.store(Arc::new(status));
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        let queued = self.queue.iter().map(|queued| queued.deadline);
        queued.chain(self.running.as_ref().map(|running| running.deadline)).min()
    }

    /// Answers those who wait for the agent's retirement once nothing of it runs; true when its
    /// task is to end.
    async fn has_left(&mut self) -> bool {
        if self.running.is_some() {
            return false;
        }
        let Some(retirement) = &mut self.retirement else {
            return false;
        };
        let (leave, waiting) = (retirement.leave, std::mem::take(&mut retirement.waiting));
        if !waiting.is_empty() {
            // Tasks that were told to end do so at their next await; one that does not is left
            // behind aborted, and its result reaches nobody.
            let ended = async { while self.tasks.join_next().await.is_some() {} };
            let _ = timeout(DESTROY_WAIT_MAX, ended).await;
        }
        for reply in waiting {
            let _ = reply.send(());
        }
        leave
    }
}

async fn next_input(running: &mut Option<Running>) -> Input {
    match running {
        Some(running) => running.work.recv().await.expect("the turn itself holds a sender"),
        None => std::future::pending().await,
    }
}

async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
