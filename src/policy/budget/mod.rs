//! What agents may use together: one budget for an agent and all that it and its descendants create.
//! Pure: what time it is comes in by argument; who writes it down and who is refused is decided above.
//!
//! An agent has a budget if it or an agent above it was given limits; the others cost nothing.
//! - **What is used is charged to the agent and to everybody above it**, and whatever is asked for must be
//!   left in all of those. A turn is charged when it starts; one that waits holds its place, so that what
//!   was accepted is never refused later for the number of turns. Tokens are charged when a model has
//!   answered: that answer may go beyond the limit, the next question is not asked.
//! - **A child's limits come out of its parent's rest**: more than is left in any budget above is refused.
//!   They are not set aside: two children may both be given all that is left, and have it together.
//! - **Agents count while they are there.** The place of one that is gone is free again; its turns and
//!   tokens stay charged to those above it.
//! - **A budget outlives its agent** as long as somebody below lives: whoever is left behind by a parent
//!   that is destroyed alone is held to what that one was given, as with its ceiling.

mod exceeded;
mod limits;
#[cfg(test)]
#[path = "budget_tests.rs"]
mod tests;

use std::collections::BTreeMap;

use jiff::Timestamp;
use tokio::time::Instant;

pub use exceeded::{Exceeded, Limit, Reader, Whose};
pub use limits::Limits;

use crate::limits::LIMIT_AMOUNT_MAX;

/// The budgets of all agents that have one, by the place of the agent in the order of creation.
#[derive(Debug, Default)]
pub struct Budgets {
    budgets: BTreeMap<u64, Budget>,
}

/// One agent's, with all below it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Budget {
    /// Whose child the agent was made. It has a budget, too.
    parent: Option<u64>,
    bounds: Bounds,
    /// When the time is over that the agent was given, or those above it.
    ends: Option<Instant>,
    /// By the agent itself.
    own: Used,
    /// By agents below it whose budgets are gone.
    gone: Used,
    /// By the agent and all below it.
    all: Used,
    /// Turns that were accepted and have not started, of the agent itself and of all.
    waiting: u64,
    all_waiting: u64,
    presence: Presence,
    /// Agents below it that are there, and itself.
    agents: u64,
    /// Budgets directly below it.
    children: usize,
}

/// The limits of one agent, as they are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    pub max_agents: Option<u64>,
    pub max_turns: Option<u64>,
    pub max_tokens: Option<u64>,
    pub deadline: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    pub turns: u64,
    pub tokens: u64,
}

/// Whether the agent of a budget is still there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    Here,
    Gone,
}

/// A budget as it is on record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptBudget {
    pub agent: u64,
    pub parent: Option<u64>,
    pub bounds: Bounds,
    pub own: Used,
    pub gone: Used,
    pub presence: Presence,
}

impl Budgets {
    /// What was kept, parents before their children, at the time `now`, which is this instant.
    pub fn restored(kept: Vec<KeptBudget>, now: Timestamp, instant: Instant) -> Self {
        let mut budgets = Self::default();
        for KeptBudget { agent, parent, bounds, own, gone, presence } in kept {
            let parent = parent.filter(|parent| budgets.budgets.contains_key(parent));
            // A time that has passed is over from the start.
            let left = |deadline: Timestamp| deadline.duration_since(now).try_into();
            let ends = bounds.deadline.map(|end| instant + left(end).unwrap_or_default());
            budgets.insert(agent, parent, bounds, ends);
            budgets.add(agent, own.plus(gone));
            let budget = budgets.budget_mut(agent);
            (budget.own, budget.gone) = (own, gone);
            if presence == Presence::Gone {
                budgets.leave(agent);
            }
        }
        budgets
    }

    /// Whether a child of `parent` may be made, and be given these limits.
    pub fn may_open(
        &self,
        parent: Option<u64>,
        limits: &Limits,
        instant: Instant,
    ) -> Result<(), Exceeded> {
        let above = || parent.into_iter().flat_map(|parent| self.line(parent));
        for (whose, budget) in above().map(|(whose, budget)| (whose.of_child(), budget)) {
            let exceeded = |limit, most| Exceeded::Reached { limit, most, whose };
            if budget.is_over(instant) {
                return Err(Exceeded::Over { whose });
            }
            let Bounds { max_agents, max_turns, max_tokens, deadline: _ } = budget.bounds;
            if let Some(most) = max_agents.filter(|most| budget.agents >= *most) {
                return Err(exceeded(Limit::Agents, most));
            }
            let used_turns = budget.all.turns.saturating_add(budget.all_waiting);
            let asked = [
                (Limit::Agents, limits.max_agents, max_agents, budget.agents),
                (Limit::Turns, limits.max_turns, max_turns, used_turns),
                (Limit::Tokens, limits.max_tokens, max_tokens, budget.all.tokens),
            ];
            for (limit, asked, most, used) in asked {
                let rest = most.map(|most| most.saturating_sub(used));
                if let Some((asked, rest)) = asked.zip(rest).filter(|(asked, rest)| asked > rest) {
                    return Err(Exceeded::MoreThanRest { limit, asked, rest, whose });
                }
            }
            let ends = limits.ends(instant);
            if let Some((_, end)) = ends.zip(budget.ends).filter(|(asked, end)| asked > end) {
                let rest_s = end.saturating_duration_since(instant).as_secs();
                return Err(Exceeded::LongerThanRest { rest_s, whose });
            }
        }
        Ok(())
    }

    /// Gives a new agent its budget, if it needs one; returns what is to be kept of it.
    pub fn open(
        &mut self,
        agent: u64,
        parent: Option<u64>,
        limits: &Limits,
        (now, instant): (Timestamp, Instant),
    ) -> Result<Option<KeptBudget>, Exceeded> {
        let parent = parent.filter(|parent| self.budgets.contains_key(parent));
        if parent.is_none() && limits.is_none() {
            return Ok(None);
        }
        self.may_open(parent, limits, instant)?;
        let bounds = limits.bounds(now);
        self.insert(agent, parent, bounds, limits.ends(instant));
        let (own, gone) = (Used::default(), Used::default());
        Ok(Some(KeptBudget { agent, parent, bounds, own, gone, presence: Presence::Here }))
    }

    /// The same for an agent that comes for these, which are still there and count no more.
    pub fn open_in_place_of(
        &mut self,
        leaving: &[u64],
        (agent, parent): (u64, Option<u64>),
        limits: &Limits,
        at: (Timestamp, Instant),
    ) -> Result<Option<KeptBudget>, Exceeded> {
        let leaving: Vec<u64> = leaving.iter().copied().filter(|agent| self.has(*agent)).collect();
        for agent in &leaving {
            self.each_above(*agent, |budget| budget.agents -= 1);
        }
        let opened = self.open(agent, parent, limits, at);
        for agent in &leaving {
            self.each_above(*agent, |budget| budget.agents += 1);
        }
        opened
    }

    /// The agent is gone, or never came to be. What it has used stays charged.
    pub fn close(&mut self, agent: u64) {
        if !self.budgets.contains_key(&agent) {
            return;
        }
        self.leave(agent);
        let mut next = Some(agent);
        while let Some(agent) = next {
            let budget = &self.budgets[&agent];
            if budget.presence == Presence::Here || budget.children > 0 {
                return;
            }
            let budget = self.budgets.remove(&agent).expect("it was there just now");
            if let Some(parent) = budget.parent {
                let parent = self.budget_mut(parent);
                parent.children -= 1;
                parent.gone = parent.gone.plus(budget.own.plus(budget.gone));
            }
            next = budget.parent;
        }
    }

    /// Holds a place for a turn of the agent.
    pub fn reserve_turn(&mut self, agent: u64, instant: Instant) -> Result<(), Exceeded> {
        self.may_take_turn(agent, instant)?;
        self.budget_mut(agent).waiting += 1;
        self.each_above(agent, |budget| budget.all_waiting += 1);
        Ok(())
    }

    /// A turn that held a place will never start.
    pub fn release_turn(&mut self, agent: u64) {
        let budget = self.budget_mut(agent);
        budget.waiting = budget.waiting.checked_sub(1).expect("it held a place");
        self.each_above(agent, |budget| budget.all_waiting -= 1);
    }

    /// A turn that held a place starts.
    pub fn start_turn(&mut self, agent: u64) {
        self.release_turn(agent);
        self.budget_mut(agent).own.turns += 1;
        self.add(agent, Used { turns: 1, tokens: 0 });
    }

    /// A turn that had started turns out to have never been.
    pub fn take_back_turn(&mut self, agent: u64) {
        let own = &mut self.budget_mut(agent).own;
        own.turns = own.turns.checked_sub(1).expect("it had started");
        self.each_above(agent, |budget| budget.all.turns -= 1);
    }

    pub fn charge(&mut self, agent: u64, tokens: u64) {
        let used = Used { turns: 0, tokens };
        let own = &mut self.budget_mut(agent).own;
        *own = own.plus(used);
        self.add(agent, used);
    }

    /// Whether the agent may be sent something. One without a budget may always.
    pub fn may_take_turn(&self, agent: u64, instant: Instant) -> Result<(), Exceeded> {
        self.may_go_on(agent, instant)?;
        let is_reached = |budget: &Budget, most: u64| {
            budget.all.turns.saturating_add(budget.all_waiting) >= most
        };
        self.check(agent, Limit::Turns, |budget| budget.bounds.max_turns, is_reached)
    }

    /// Whether a model may be asked for the agent.
    pub fn may_go_on(&self, agent: u64, instant: Instant) -> Result<(), Exceeded> {
        if let Some((whose, _)) = self.line(agent).find(|(_, budget)| budget.is_over(instant)) {
            return Err(Exceeded::Over { whose });
        }
        let is_reached = |budget: &Budget, most: u64| budget.all.tokens >= most;
        self.check(agent, Limit::Tokens, |budget| budget.bounds.max_tokens, is_reached)
    }

    pub fn has(&self, agent: u64) -> bool {
        self.budgets.contains_key(&agent)
    }

    /// When the agent's time is over.
    pub fn ends(&self, agent: u64) -> Option<Instant> {
        self.line(agent).filter_map(|(_, budget)| budget.ends).min()
    }

    /// Whether somebody wants to know what the answers of the agent's models cost.
    pub fn counts_tokens(&self, agent: u64) -> bool {
        self.line(agent).any(|(_, budget)| budget.bounds.max_tokens.is_some())
    }

    /// What the agent itself has used; `None` where it has no budget.
    pub fn own(&self, agent: u64) -> Option<Used> {
        self.budgets.get(&agent).map(|budget| budget.own)
    }

    fn check(
        &self,
        agent: u64,
        limit: Limit,
        most: impl Fn(&Budget) -> Option<u64>,
        is_reached: impl Fn(&Budget, u64) -> bool,
    ) -> Result<(), Exceeded> {
        for (whose, budget) in self.line(agent) {
            if let Some(most) = most(budget).filter(|most| is_reached(budget, *most)) {
                return Err(Exceeded::Reached { limit, most, whose });
            }
        }
        Ok(())
    }

    /// The budgets of an agent and of everybody above it.
    fn line(&self, agent: u64) -> impl Iterator<Item = (Whose, &Budget)> {
        let above = |budget: &&Budget| budget.parent.map(|parent| &self.budgets[&parent]);
        let line = std::iter::successors(self.budgets.get(&agent), above);
        let whose = [Whose::Own, Whose::Parent].into_iter().chain(std::iter::repeat(Whose::Above));
        whose.zip(line)
    }

    fn insert(&mut self, agent: u64, parent: Option<u64>, bounds: Bounds, ends: Option<Instant>) {
        let budget = Budget {
            parent,
            bounds,
            ends,
            own: Used::default(),
            gone: Used::default(),
            all: Used::default(),
            waiting: 0,
            all_waiting: 0,
            presence: Presence::Here,
            agents: 0,
            children: 0,
        };
        let before = self.budgets.insert(agent, budget);
        assert!(before.is_none(), "an agent gets its budget once");
        if let Some(parent) = parent {
            self.budget_mut(parent).children += 1;
        }
        self.each_above(agent, |budget| budget.agents += 1);
    }

    fn leave(&mut self, agent: u64) {
        let budget = self.budget_mut(agent);
        assert_eq!(budget.presence, Presence::Here, "an agent goes once");
        assert_eq!(budget.waiting, 0, "nothing waits for an agent that is gone");
        budget.presence = Presence::Gone;
        self.each_above(agent, |budget| budget.agents -= 1);
    }

    fn add(&mut self, agent: u64, used: Used) {
        self.each_above(agent, |budget| budget.all = budget.all.plus(used));
    }

    /// The agent's own included.
    fn each_above(&mut self, agent: u64, change: impl Fn(&mut Budget)) {
        let mut next = Some(agent);
        while let Some(agent) = next {
            let budget = self.budget_mut(agent);
            change(budget);
            next = budget.parent;
        }
    }

    fn budget_mut(&mut self, agent: u64) -> &mut Budget {
        self.budgets.get_mut(&agent).expect("whoever has a budget keeps it while it is there")
    }
}

impl Budget {
    fn is_over(&self, instant: Instant) -> bool {
        self.ends.is_some_and(|end| end <= instant)
    }
}

impl Used {
    /// Whoever reports absurd numbers has used up whatever there is; more need not be told apart.
    #[must_use]
    pub fn plus(self, more: Self) -> Self {
        let sum = |one: u64, other: u64| one.saturating_add(other).min(LIMIT_AMOUNT_MAX);
        Self { turns: sum(self.turns, more.turns), tokens: sum(self.tokens, more.tokens) }
    }
}
