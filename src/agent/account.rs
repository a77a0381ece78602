//! One agent's way to the budgets that it and those above it have (`policy::budget`), which all agents of
//! a server share: whoever takes the last turn of a family takes it from everybody in it.

use std::sync::{Arc, Mutex, MutexGuard};

use jiff::Timestamp;
use tokio::time::Instant;

use crate::policy::budget::{Budgets, Exceeded, KeptBudget, Limits, Used};
use crate::store::{AgentNumber, Write};

/// The budgets of all agents.
#[derive(Debug)]
pub struct Accounts {
    /// What was given and used. Held for one decision or one entry; nothing is awaited under it.
    budgets: Mutex<Budgets>,
}

impl Accounts {
    pub fn restored(kept: Vec<KeptBudget>, now: Timestamp) -> Self {
        Self { budgets: Mutex::new(Budgets::restored(kept, now, Instant::now())) }
    }

    /// Gives a new agent its budget; returns what makes it durable, where it has one.
    pub fn open(
        &self,
        agent: AgentNumber,
        parent: Option<AgentNumber>,
        limits: &Limits,
        now: Timestamp,
    ) -> Result<Option<Write>, Exceeded> {
        let opened = self.budgets().open(agent, parent, limits, (now, Instant::now()))?;
        Ok(opened.map(|kept| Write::BudgetOpened(Box::new(kept))))
    }

    /// The same for an agent that comes for these, which are still there and count no more.
    pub fn open_in_place_of(
        &self,
        leaving: &[AgentNumber],
        (agent, parent): (AgentNumber, Option<AgentNumber>),
        limits: &Limits,
        now: Timestamp,
    ) -> Result<Option<Write>, Exceeded> {
        let (who, at) = ((agent, parent), (now, Instant::now()));
        let opened = self.budgets().open_in_place_of(leaving, who, limits, at)?;
        Ok(opened.map(|kept| Write::BudgetOpened(Box::new(kept))))
    }

    /// The agent is gone, or was never there.
    pub fn close(&self, agent: AgentNumber) {
        self.budgets().close(agent);
    }

    pub fn may_open(&self, parent: Option<AgentNumber>, limits: &Limits) -> Result<(), Exceeded> {
        self.budgets().may_open(parent, limits, Instant::now())
    }

    /// Whether the agent, or a child that it makes, may be sent something.
    pub fn may_take_turn(&self, agent: AgentNumber) -> Result<(), Exceeded> {
        self.budgets().may_take_turn(agent, Instant::now())
    }

    /// What an agent has used by itself, to be written down.
    pub fn spent(&self, agent: AgentNumber) -> Option<Write> {
        self.budgets().own(agent).map(|used: Used| Write::Spent { agent, used })
    }

    pub fn of(self: &Arc<Self>, agent: AgentNumber) -> Account {
        let budgets = self.budgets();
        let terms = budgets.has(agent).then(|| Terms {
            ends: budgets.ends(agent),
            metered: if budgets.counts_tokens(agent) { Metered::Yes } else { Metered::No },
        });
        drop(budgets);
        Account { accounts: Arc::clone(self), agent, terms, unwritten: false }
    }

    fn budgets(&self) -> MutexGuard<'_, Budgets> {
        self.budgets.lock().expect("nothing under this lock panics")
    }
}

/// What one agent may do with its budget. One without a budget may everything, and asks nobody.
#[derive(Debug)]
pub struct Account {
    accounts: Arc<Accounts>,
    agent: AgentNumber,
    /// `None` without a budget. They are given with it, and never change.
    terms: Option<Terms>,
    /// Something was used since it was last written down.
    unwritten: bool,
}

#[derive(Clone, Copy, Debug)]
struct Terms {
    ends: Option<Instant>,
    metered: Metered,
}

/// Whether what a model's answer costs must be known, even where the provider does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metered {
    Yes,
    No,
}

impl Account {
    pub fn ends(&self) -> Option<Instant> {
        self.terms.and_then(|terms| terms.ends)
    }

    pub fn metered(&self) -> Metered {
        self.terms.map_or(Metered::No, |terms| terms.metered)
    }

    /// Holds a place for a turn, until it starts or is released.
    pub fn reserve_turn(&mut self) -> Result<(), Exceeded> {
        self.with(|budgets, agent| budgets.reserve_turn(agent, Instant::now())).unwrap_or(Ok(()))
    }

    pub fn release_turn(&mut self) {
        self.with(Budgets::release_turn);
    }

    pub fn start_turn(&mut self) {
        self.unwritten |= self.with(Budgets::start_turn).is_some();
    }

    /// A turn that had started was never written down, and never was.
    pub fn take_back_turn(&mut self) {
        self.with(Budgets::take_back_turn);
    }

    pub fn charge(&mut self, tokens: u64) {
        self.unwritten |= self.with(|budgets, agent| budgets.charge(agent, tokens)).is_some();
    }

    /// Whether a model may be asked.
    pub fn may_go_on(&self) -> Result<(), Exceeded> {
        self.with(|budgets, agent| budgets.may_go_on(agent, Instant::now())).unwrap_or(Ok(()))
    }

    /// What was used since the last time, to be written down with whatever used it.
    pub fn due(&mut self) -> Option<Write> {
        std::mem::take(&mut self.unwritten).then(|| self.accounts.spent(self.agent)).flatten()
    }

    fn with<T>(&self, act: impl FnOnce(&mut Budgets, AgentNumber) -> T) -> Option<T> {
        self.terms.map(|_| act(&mut self.accounts.budgets(), self.agent))
    }
}
