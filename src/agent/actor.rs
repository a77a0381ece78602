//! The loop of one agent: asks in, replies out, one turn at a time.
//! It never waits for anything but its own channels, its commit and its deadlines; whatever takes
//! time is a task of `work`. What a turn does next is decided by `turn`, not here; what a commit's
//! end means is in `commit`.

use std::collections::VecDeque;
use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::account::Account;
use super::alarm::Alarm;
use super::changes::Compacting;
use super::confirmations::{ConfirmReply, Confirmations, Pending};
use super::confirming::Decided;
use super::context::When;
use super::conversation::{Conversation, MessageTokens};
use super::handle::{
    Cancelled, CompactError, CompactReply, Context, Retire, SendError, SendRequest, Status,
};
use super::journal::Journal;
use super::outbox::{Entry, NotChanged, Outbox, Then, Work};
use super::outcome::{CancelReason, Failure, Outcome};
use super::preamble::Preamble;
use super::renaming::{RenameReply, Renaming};
use super::requests::{AcceptReply, Known, Requests, State};
use super::retirement::{RetireReply, Retirement};
use super::shown::Shown;
use super::spending::LateCosts;
use super::tokens::Encoding;
use super::turn::{Effect, Input, Stop, Turn};
use super::work::Report;
use super::{Facts, Kit, Past, Shared};
use crate::activity::Busy;
use crate::event::{What, iso};
use crate::id::{AgentId, RequestId};
use crate::limits::{WAITING_SENDS_MAX, WORK_QUEUE_MAX};
use crate::message::Message;
use crate::policy::{Permissions, Permit};
use crate::provider::Model;
use crate::store::{Standing, Write};
use crate::tool::workplace::Workplace;

/// A question to an agent, with the place for its answer.
pub enum Ask {
    Send(Box<SendRequest>, AcceptReply),
    Cancel(Option<RequestId>, oneshot::Sender<Cancelled>),
    Request(RequestId, oneshot::Sender<Option<State>>),
    Context(oneshot::Sender<Context>),
    Tokens(Encoding, oneshot::Sender<MessageTokens>),
    /// With the agent's parent, which the event names.
    SetModel(Box<(Model, Option<AgentId>)>, oneshot::Sender<Result<(), NotChanged>>),
    SetPrompt(Box<(Arc<str>, Option<AgentId>)>, oneshot::Sender<Result<(), NotChanged>>),
    Compact(When, CompactReply),
    /// Everything from now on is done with these.
    Adopt(Arc<Permissions>, oneshot::Sender<()>),
    Workplace(oneshot::Sender<(Arc<Permissions>, Arc<Workplace>)>),
    Confirm(Box<Decided>, ConfirmReply),
    Confirmations(oneshot::Sender<Vec<Pending>>),
    Rename(Renaming, RenameReply),
    Shutdown(oneshot::Sender<()>),
    Retire(Retire, RetireReply),
    /// Takes a retirement back.
    Resume(oneshot::Sender<()>),
}

pub struct Agent {
    pub(super) facts: Arc<Facts>,
    /// Changes between turns only, once the new one is on record.
    pub(super) id: AgentId,
    pub(super) model: Model,
    pub(super) preamble: Arc<Preamble>,
    pub(super) tools_seen: Option<u64>,
    pub(super) permissions: Arc<Permissions>,
    pub(super) shown: Arc<Shown>,
    pub(super) shared: Arc<Shared>,
    /// Where its tools work, and what they remember.
    pub(super) workplace: Arc<Workplace>,
    inbox: mpsc::Receiver<Ask>,
    alarm: Alarm,
    pub(super) conversation: Conversation,
    /// How many messages are on disk.
    pub(super) messages_durable: usize,
    /// How many of these there were when no turn ran: what is saved.
    pub(super) messages_settled: usize,
    pub(super) requests: Requests,
    /// Requests that are no longer kept, to be taken off the record with the next turn.
    pub(super) forgotten: Vec<RequestId>,
    pub(super) queue: VecDeque<SendRequest>,
    pub(super) running: Option<Running>,
    /// Those that its calls wait for.
    pub(super) confirmations: Confirmations,
    /// A summary that somebody asked for; no turn starts meanwhile.
    pub(super) compacting: Option<Compacting>,
    pub(super) outbox: Outbox,
    /// Tasks of the running turn, and those of earlier ones that were told to end.
    pub(super) tasks: JoinSet<()>,
    pub(super) retirement: Option<Retirement>,
    pub(super) should_shutdown: bool,
    pub(super) standing: Standing,
    /// What it may still use.
    pub(super) account: Account,
    /// What answers have cost that were cut off, once that is counted.
    pub(super) late: LateCosts,
    pub(super) published: Arc<ArcSwap<Status>>,
}

pub(super) struct Running {
    pub(super) request: RequestId,
    deadline: Instant,
    pub(super) turn: Turn,
    /// Characters of its text that were streamed.
    streamed: usize,
    /// Whether what was said last is paid for.
    is_paid: bool,
    /// Where in the conversation this turn begins.
    first_message: usize,
    /// The turn's own channel: it ends with the turn, so nothing late reaches the next one.
    work: mpsc::Receiver<Report>,
    reports: mpsc::Sender<Report>,
    /// The server is in use as long as it runs.
    _busy: Busy,
}

impl Agent {
    pub fn new(
        facts: Arc<Facts>,
        Kit { id, model, preamble, permissions }: Kit,
        past: Past,
        shared: Arc<Shared>,
        inbox: mpsc::Receiver<Ask>,
    ) -> Self {
        let conversation = Conversation::restored(past.conversation, shared.in_memory_max);
        let (preamble, permissions) = (Arc::new(preamble), Arc::new(permissions));
        let shown = Arc::new(Shown::of(&facts, &permissions));
        let nothing_yet = Status {
            id: id.clone(),
            model: model.clone(),
            preamble: Arc::clone(&preamble),
            permissions: Arc::clone(&permissions),
            shown: Arc::clone(&shown),
            message_count: 0,
            settled_count: 0,
            should_shutdown: false,
            active_request: None,
            queued: 0,
            waits_for_confirmation: false,
            halted_at_iteration_limit: false,
            last_action_at: None,
        };
        let account = shared.accounts.of(facts.number);
        let agent = Self {
            model,
            preamble,
            tools_seen: None,
            compacting: None,
            outbox: Outbox::new(shared.store.clone()),
            workplace: shared.workplace(&id, &permissions),
            permissions,
            shown,
            facts,
            id,
            shared,
            inbox,
            alarm: Alarm::default(),
            messages_durable: conversation.len(),
            messages_settled: conversation.len(),
            conversation,
            requests: Requests::restored(past.requests),
            forgotten: Vec::new(),
            queue: VecDeque::new(),
            running: None,
            confirmations: Confirmations::default(),
            tasks: JoinSet::new(),
            retirement: None,
            should_shutdown: false,
            standing: past.standing,
            account,
            late: LateCosts::new(),
            published: Arc::new(ArcSwap::from_pointee(nothing_yet)),
        };
        agent.publish();
        agent
    }

    /// Where the agent shows its status.
    pub fn published(&self) -> Arc<ArcSwap<Status>> {
        Arc::clone(&self.published)
    }

    pub async fn run(mut self) {
        loop {
            let deadline = self.next_deadline();
            tokio::select! {
                // The inbox comes first: a cancel must win over a tool that ended in the same tick.
                biased;
                // While its id changes nobody is answered: each would be told of the wrong one.
                ask = self.inbox.recv(), if !self.outbox.holds_name() => match ask {
                    Some(ask) => self.on_ask(ask),
                    None => break,
                },
                (entries, result) = self.outbox.committed() => self.on_committed(entries, result),
                report = next_report(&mut self.running) => {
                    let is_heard_only = report.is_heard_only();
                    self.on_report(report);
                    if is_heard_only {
                        continue;
                    }
                }
                summary = Compacting::ended(&mut self.compacting) => self.on_summed_up(summary),
                tokens = self.late.counted() => self.on_summary_charged(tokens),
                () = self.alarm.at(deadline) => self.on_deadline(),
            }
            self.start_next();
            self.outbox.flush();
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
            Ask::Send(request, reply) => self.on_send(*request, reply),
            Ask::Cancel(request, reply) => self.on_cancel(request.as_ref(), reply),
            Ask::Request(id, reply) => drop(reply.send(self.requests.state(&id))),
            Ask::Context(reply) => drop(reply.send(self.context())),
            Ask::Tokens(encoding, reply) => drop(reply.send(self.conversation.tokens(encoding))),
            Ask::SetModel(change, reply) => self.on_set_model(*change, reply),
            Ask::SetPrompt(change, reply) => self.on_set_prompt(*change, reply),
            Ask::Compact(when, reply) => self.on_compact(when, reply),
            Ask::Adopt(permissions, reply) => self.on_adopt(permissions, reply),
            Ask::Workplace(reply) => drop(reply.send(self.place_of_work())),
            Ask::Confirm(answer, reply) => self.on_answer(&answer, reply),
            Ask::Confirmations(reply) => self.on_list_confirmations(reply),
            Ask::Rename(renaming, reply) => self.on_rename(renaming, reply),
            Ask::Shutdown(reply) => {
                self.should_shutdown = true;
                self.publish();
                let _ = reply.send(());
            }
            Ask::Retire(how, reply) => self.on_retire(how, reply),
            Ask::Resume(reply) => {
                self.retirement = None;
                let _ = reply.send(());
            }
        }
    }

    fn on_send(&mut self, request: SendRequest, reply: AcceptReply) {
        let refusal = match self.requests.look_up(&request.request_id, &request.content) {
            Known::OtherContent => Some(SendError::OtherContent),
            Known::Same => None,
            Known::Unknown if self.retirement.is_some() => Some(SendError::Retiring),
            Known::Unknown if self.queue.len() >= WAITING_SENDS_MAX => Some(SendError::QueueFull),
            Known::Unknown => match self.account.reserve_turn() {
                Ok(()) => return self.accept(request, reply),
                Err(exceeded) => Some(SendError::Limit(exceeded)),
            },
        };
        match refusal {
            Some(refusal) => drop(reply.send(Err(refusal))),
            None => self.requests.answer(&request.request_id, reply),
        }
    }

    fn accept(&mut self, request: SendRequest, reply: AcceptReply) {
        let position = self.queue.len() + usize::from(self.running.is_some());
        let mut writes = self.forget_before(&request.request_id);
        writes.extend(self.journal().queued(&request, position));
        self.requests.add(request.request_id.clone(), Arc::clone(&request.content));
        self.push(&request.request_id, writes, Then::Accept);
        let id = request.request_id.clone();
        self.queue.push_back(request);
        self.requests.answer(&id, reply);
    }

    fn on_cancel(&mut self, request: Option<&RequestId>, reply: oneshot::Sender<Cancelled>) {
        let wanted = |id: &RequestId| request.is_none_or(|request| request == id);
        let mut requests = Vec::new();
        if let Some(running) = &self.running
            && wanted(&running.request)
        {
            requests.push(running.request.clone());
            self.on_input(Input::Stop(Stop::Cancel(CancelReason::Cancelled)));
        }
        let a_summary = request.is_none() && self.stop_compacting(CompactError::Cancelled);
        requests.extend(self.cancel_queued(CancelReason::Cancelled, wanted));
        let then = Then::Cancelled(reply, Cancelled { requests, a_summary });
        self.outbox.push(Entry { request: None, writes: Vec::new(), then });
    }

    fn on_deadline(&mut self) {
        let now = Instant::now();
        self.end_at_limit(now);
        for id in self.take_queued(|queued| queued.deadline <= now) {
            self.end_queued(&id, Outcome::Failed(Failure::Timeout));
        }
        if self.running.as_ref().is_some_and(|running| running.deadline <= now) {
            self.on_input(Input::Stop(Stop::Timeout));
        }
        self.expire_confirmations(now);
    }

    fn on_report(&mut self, report: Report) {
        match report {
            Report::Live(what) => self.tell(&what),
            Report::Charged(tokens) => {
                self.running.as_mut().expect("a turn is charged while it runs").is_paid = true;
                self.on_charged(tokens);
            }
            Report::Text(text) => {
                let running = self.running.as_mut().expect("text belongs to the running turn");
                let offset = running.streamed;
                running.streamed += text.chars().count();
                running.is_paid = false;
                self.tell(&What::ContentChunk { text: text.clone(), offset });
                self.on_input(Input::Text(text));
            }
            Report::Input(input) => self.on_input(*input),
        }
    }

    /// Tells those who follow the turn something that is not kept.
    fn tell(&self, what: &What) {
        let running = self.running.as_ref().expect("live events belong to the running turn");
        let now = self.shared.world.clock.now();
        self.shared.hub.live(&self.id, &running.request, now, what);
    }

    pub(super) fn on_input(&mut self, input: Input) {
        let running = self.running.as_mut().expect("a turn runs");
        // Whoever streams an answer charges for it, unless it is cut off.
        let is_cut = matches!(input, Input::Stop(_)) && !running.is_paid;
        let effects = running.turn.on(input);
        self.perform(effects);
        if is_cut {
            self.pay_for_cut_answer();
        }
    }

    fn turn(&mut self) -> &mut Turn {
        &mut self.running.as_mut().expect("a turn runs").turn
    }

    /// Starts the next turn once the one before is over and on record.
    fn start_next(&mut self) {
        if self.is_busy() || self.queue.is_empty() {
            return;
        }
        if let Err(exceeded) = self.account.may_go_on() {
            return self.refuse_queued(exceeded);
        }
        let request = self.queue.pop_front().expect("somebody waits");
        self.account.start_turn();
        self.requests.start(&request.request_id);
        self.standing.halted_at_iteration_limit = false;
        self.standing.last_action_at = Some(iso(self.shared.world.clock.now()));
        self.conversation.shorten();
        self.shared.tables.load_in_background(&self.shared.world, &self.model);
        let mut writes = self.journal().started(&request);
        let first_message = self.conversation.len();
        let SendRequest { request_id, content, meta, deadline } = request;
        writes.push(self.append(Message::User { content, meta: Some(meta) }));
        let (reports, work) = mpsc::channel(WORK_QUEUE_MAX);
        let (turn, effects) = Turn::start(self.shared.rules);
        self.running = Some(Running {
            request: request_id,
            deadline,
            turn,
            streamed: 0,
            is_paid: true,
            first_message,
            work,
            reports,
            _busy: self.shared.activity.begin(),
        });
        self.perform_after(writes, effects);
    }

    fn perform(&mut self, effects: Vec<Effect>) {
        self.perform_after(Vec::new(), effects);
    }

    /// Does what the turn decided: what is to be written becomes one entry of the outbox, and what
    /// the turn does next waits for it.
    fn perform_after(&mut self, mut writes: Vec<Write>, effects: Vec<Effect>) {
        let request =
            self.running.as_ref().expect("effects are the running turn's").request.clone();
        writes.extend(self.account.due());
        let mut work = Vec::new();
        for effect in effects {
            match effect {
                Effect::Append(message) => writes.push(self.append(message)),
                Effect::Compact(compacted) => {
                    writes.extend(self.journal().compacted(Some(&request), &compacted));
                    self.adopt(&compacted);
                }
                Effect::Tell(what) => writes.push(self.journal().event(&request, what)),
                Effect::Ask => work.push(Work::Ask),
                Effect::Run { index, call }
                    if self.shared.tools.may_ask(&call, &self.permissions, &self.workplace) =>
                {
                    self.turn().hold(index);
                    work.push(Work::Examine { index, call });
                }
                Effect::Run { index, call } => {
                    let permit = Permit::Nothing;
                    writes.extend(self.journal().tool_started(&request, &call));
                    work.push(Work::Run { index, call, permit });
                }
                Effect::RunPermitted { index, call, permit } => {
                    writes.extend(self.journal().tool_started(&request, &call));
                    work.push(Work::Run { index, call, permit });
                }
                Effect::Confirm { index, call, question } => {
                    let (asked, then) = self.ask_for(&request, (index, &call), question);
                    writes.extend(asked);
                    work.push(then);
                }
                Effect::Withdraw { index, why } => writes.extend(self.withdraw(index, &why)),
                Effect::ToolEnded { call, result } => {
                    writes.extend(self.journal().tool_ended(&request, &call, &result));
                }
                Effect::Abandon => {
                    self.tasks.abort_all();
                    self.outbox.abandon_work();
                }
                Effect::Finish(outcome) => return self.finish(writes, outcome),
            }
        }
        if !writes.is_empty() || !work.is_empty() {
            self.push(&request, writes, Then::Work(work));
        }
    }

    fn finish(&mut self, mut writes: Vec<Write>, outcome: Outcome) {
        let running = self.running.take().expect("a turn finishes while it runs");
        self.conversation.assert_paired_since(running.first_message);
        self.standing.halted_at_iteration_limit = outcome.halted_at_iteration_limit();
        self.standing.last_iteration_count = running.turn.iterations();
        self.standing.token_usage += running.turn.usage();
        self.standing.last_action_at = Some(iso(self.shared.world.clock.now()));
        let journal = self.journal();
        writes.push(journal.standing(self.standing.clone()));
        writes.extend(journal.ended(&running.request, &outcome, running.turn.text()));
        let agent = self.facts.number;
        let forgotten = std::mem::take(&mut self.forgotten).into_iter();
        writes.extend(forgotten.map(|id| Write::RequestForgotten { agent, id }));
        self.push(&running.request, writes, Then::End(outcome));
        while self.tasks.try_join_next().is_some() {}
    }

    fn append(&mut self, message: Message) -> Write {
        let message = Arc::new(message);
        let write = self.journal().message(self.conversation.len(), Arc::clone(&message));
        self.conversation.append(message);
        write
    }

    pub(super) fn push(&mut self, request: &RequestId, writes: Vec<Write>, then: Then) {
        self.outbox.push(Entry { request: Some(request.clone()), writes, then });
    }

    pub(super) fn journal(&self) -> Journal<'_> {
        let now = self.shared.world.clock.now();
        Journal { agent: self.facts.number, id: &self.id, now }
    }

    pub(super) fn reports(&self) -> mpsc::Sender<Report> {
        self.running.as_ref().expect("work belongs to the running turn").reports.clone()
    }

    fn next_deadline(&self) -> Option<Instant> {
        let queued = self.queue.iter().map(|queued| queued.deadline);
        let running = self.running.as_ref().map(|running| running.deadline);
        let own = running.into_iter().chain(self.confirmations.next_expiry());
        let own = own.chain(self.limit_deadline());
        queued.chain(own).chain(self.outbox.retry_at()).min()
    }
}

async fn next_report(running: &mut Option<Running>) -> Report {
    match running {
        Some(running) => running.work.recv().await.expect("the turn itself holds a sender"),
        None => std::future::pending().await,
    }
}
