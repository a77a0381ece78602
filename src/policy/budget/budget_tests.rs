//! Budgets, rule by rule, and over random families against a model that knows no tree.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn limits(value: Value) -> Limits {
    serde_json::from_value(value).unwrap()
}

fn refused(value: Value) -> String {
    serde_json::from_value::<Limits>(value).unwrap_err().to_string()
}

fn now() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

struct Family {
    budgets: Budgets,
    start: Instant,
    passed: Duration,
}

impl Family {
    fn new() -> Self {
        Self { budgets: Budgets::default(), start: Instant::now(), passed: Duration::ZERO }
    }

    fn instant(&self) -> Instant {
        self.start + self.passed
    }

    fn time(&self) -> Timestamp {
        now().checked_add(self.passed).unwrap()
    }

    fn open(&mut self, agent: u64, parent: Option<u64>, given: Value) -> Result<(), String> {
        let at = (self.time(), self.instant());
        let opened = self.budgets.open(agent, parent, &limits(given), at);
        opened.map(drop).map_err(|exceeded| exceeded.to_string())
    }

    fn turn(&mut self, agent: u64) -> Result<(), String> {
        let reserved = self.budgets.reserve_turn(agent, self.instant());
        reserved.map_err(|exceeded| exceeded.to_string())?;
        self.budgets.start_turn(agent);
        Ok(())
    }

    /// The same after a restart.
    fn restarted(&self) -> Self {
        let budgets = Budgets::restored(self.budgets.kept(), self.time(), self.instant());
        Self { budgets, start: self.start, passed: self.passed }
    }
}

impl Budgets {
    fn kept(&self) -> Vec<KeptBudget> {
        let kept = |(agent, budget): (&u64, &Budget)| {
            let Budget { parent, bounds, own, gone, presence, .. } = budget.clone();
            KeptBudget { agent: *agent, parent, bounds, own, gone, presence }
        };
        self.budgets.iter().map(kept).collect()
    }
}

#[test]
fn limits_are_whole_numbers_and_times_that_can_be_meant() {
    let whole = "it must be a whole number from 1 to 9007199254740991";
    for bad in [json!(0), json!(-1), json!(1.5), json!("3"), json!(true), json!(u64::MAX)] {
        for name in ["max_agents", "max_turns", "max_tokens"] {
            assert_eq!(refused(json!({name: bad})), whole);
        }
    }
    for bad in [json!(0), json!(-2.5), json!("soon"), json!(1e300)] {
        assert_eq!(
            refused(json!({"deadline_s": bad})),
            "it must be seconds from above 0 to 315360000"
        );
    }
    assert!(
        refused(json!({"max_turn": 1})).starts_with("unknown field `max_turn`, expected one of")
    );
    assert!(limits(json!({"max_agents": null})).is_none());
    assert_eq!(limits(json!({"max_turns": 1, "deadline_s": 0.5})).deadline_s, Some(0.5));
}

#[test]
fn nobody_without_limits_has_a_budget() {
    let mut family = Family::new();
    assert_eq!(family.open(1, None, json!({})), Ok(()));
    assert_eq!(family.open(2, Some(1), json!({})), Ok(()));
    assert!(!family.budgets.has(1) && !family.budgets.has(2));
    assert_eq!(family.open(3, Some(2), json!({"max_turns": 1})), Ok(()));
    assert_eq!(family.open(4, Some(3), json!({})), Ok(()));
    assert!(family.budgets.has(3) && family.budgets.has(4));
}

#[test]
fn what_a_child_uses_is_used_by_all_above_it() {
    let mut family = Family::new();
    family.open(1, None, json!({"max_turns": 3, "max_tokens": 100})).unwrap();
    family.open(2, Some(1), json!({})).unwrap();
    family.open(3, Some(2), json!({"max_turns": 1})).unwrap();
    family.turn(3).unwrap();
    let own = "max_turns is reached: this agent and those below it may have 1 turn in all";
    assert_eq!(family.turn(3), Err(own.to_owned()));
    family.turn(2).unwrap();
    family.turn(1).unwrap();
    let parents = "max_turns is reached: its parent and those below that may have 3 turns in all";
    assert_eq!(family.turn(2), Err(parents.to_owned()));
    family.budgets.charge(3, 100);
    let above =
        "max_tokens is reached: an agent above it and those below that may have 100 tokens in all";
    let asked = family.budgets.may_go_on(3, family.instant());
    assert_eq!(asked.map_err(|exceeded| exceeded.to_string()), Err(above.to_owned()));
}

#[test]
fn a_turn_that_waits_holds_its_place_and_one_that_never_starts_gives_it_back() {
    let mut family = Family::new();
    family.open(1, None, json!({"max_turns": 1})).unwrap();
    let instant = family.instant();
    assert_eq!(family.budgets.reserve_turn(1, instant), Ok(()));
    assert!(family.budgets.reserve_turn(1, instant).is_err());
    family.budgets.release_turn(1);
    assert_eq!(family.budgets.reserve_turn(1, instant), Ok(()));
    family.budgets.start_turn(1);
    assert!(family.budgets.reserve_turn(1, instant).is_err());
    family.budgets.take_back_turn(1);
    assert_eq!(family.budgets.reserve_turn(1, instant), Ok(()));
}

#[test]
fn a_child_is_given_no_more_than_is_left() {
    let mut family = Family::new();
    let given = json!({"max_agents": 4, "max_turns": 3, "max_tokens": 100, "deadline_s": 60});
    family.open(1, None, given).unwrap();
    family.turn(1).unwrap();
    family.budgets.charge(1, 40);
    family.passed = Duration::from_millis(10_500);
    for (asked, problem) in [
        (
            json!({"max_agents": 4}),
            "max_agents of 4 is more than what is left: its parent and those below that may have 3 more agents at a time",
        ),
        (
            json!({"max_turns": 3}),
            "max_turns of 3 is more than what is left: its parent and those below that may have 2 more turns in all",
        ),
        (
            json!({"max_tokens": 61}),
            "max_tokens of 61 is more than what is left: its parent and those below that may have 60 more tokens in all",
        ),
        (
            json!({"deadline_s": 50}),
            "deadline_s is longer than what is left: its parent and those below that may work for 49 more seconds",
        ),
    ] {
        assert_eq!(family.open(2, Some(1), asked), Err(problem.to_owned()));
    }
    let all = json!({"max_agents": 3, "max_turns": 2, "max_tokens": 60, "deadline_s": 49.5});
    assert_eq!(family.open(2, Some(1), all.clone()), Ok(()));
    assert_eq!(family.open(3, Some(1), json!({"max_turns": 2})), Ok(()), "nothing is set aside");
    assert!(family.open(4, Some(2), all).is_err());
}

#[test]
fn agents_count_while_they_are_there_and_what_they_used_for_ever() {
    let mut family = Family::new();
    family.open(1, None, json!({"max_agents": 3, "max_turns": 2})).unwrap();
    family.open(2, Some(1), json!({})).unwrap();
    family.open(3, Some(2), json!({})).unwrap();
    let full =
        "max_agents is reached: an agent above it and those below that may have 3 agents at a time";
    assert_eq!(family.open(4, Some(2), json!({})), Err(full.to_owned()));
    family.turn(3).unwrap();
    family.budgets.close(3);
    assert_eq!(family.open(4, Some(2), json!({})), Ok(()));
    family.turn(4).unwrap();
    family.budgets.close(4);
    family.budgets.close(2);
    assert!(family.turn(1).is_err(), "its two turns are used");
    assert!(family.restarted().turn(1).is_err());
}

#[test]
fn who_comes_for_others_needs_no_place_besides_theirs() {
    let mut family = Family::new();
    family.open(1, None, json!({"max_agents": 3})).unwrap();
    family.open(2, Some(1), json!({})).unwrap();
    family.open(3, Some(2), json!({})).unwrap();
    let (at, none) = ((family.time(), family.instant()), Limits::default());
    assert!(family.budgets.open_in_place_of(&[], (4, Some(1)), &none, at).is_err());
    assert!(family.budgets.open_in_place_of(&[2, 3], (4, Some(1)), &none, at).is_ok());
    assert!(family.open(5, Some(1), json!({})).is_err(), "those that leave are still there");
    family.budgets.close(3);
    family.budgets.close(2);
    assert_eq!(family.open(5, Some(1), json!({})), Ok(()));
    assert!(family.open(6, Some(1), json!({})).is_err());
}

#[test]
fn whoever_is_left_behind_is_held_to_what_its_parent_was_given() {
    let mut family = Family::new();
    family.open(1, None, json!({"max_turns": 2, "max_agents": 2})).unwrap();
    family.open(2, Some(1), json!({})).unwrap();
    family.turn(1).unwrap();
    family.budgets.close(1);
    assert_eq!(family.open(3, Some(2), json!({})), Ok(()), "the place of the first one is free");
    let mut family = family.restarted();
    assert!(family.open(4, Some(2), json!({})).is_err());
    family.turn(2).unwrap();
    assert!(family.turn(2).is_err() && family.turn(3).is_err());
    family.budgets.close(2);
    family.budgets.close(3);
    assert!(family.budgets.budgets.is_empty(), "nobody is left to be held to it");
}

#[test]
fn the_time_goes_on_over_a_restart() {
    let mut family = Family::new();
    family.open(1, None, json!({"deadline_s": 10})).unwrap();
    family.open(2, Some(1), json!({})).unwrap();
    family.passed = Duration::from_secs(4);
    let mut family = family.restarted();
    assert_eq!(family.budgets.ends(2), Some(family.start + Duration::from_secs(10)));
    assert_eq!(family.turn(2), Ok(()));
    family.passed = Duration::from_secs(10);
    let over = "deadline_s is over: the time of its parent and those below that has passed";
    assert_eq!(family.turn(2), Err(over.to_owned()));
    assert_eq!(family.open(3, Some(1), json!({})), Err(over.to_owned()));
    family.passed = Duration::from_secs(100);
    assert!(family.restarted().turn(1).is_err());
}

#[test]
fn absurd_reports_use_up_what_there_is_and_no_more() {
    let mut family = Family::new();
    family.open(1, None, json!({"max_tokens": 9_007_199_254_740_991_u64})).unwrap();
    family.open(2, Some(1), json!({})).unwrap();
    family.budgets.charge(2, u64::MAX);
    family.budgets.charge(2, u64::MAX);
    assert!(family.budgets.may_go_on(1, family.instant()).is_err());
    assert_eq!(family.budgets.own(2), Some(Used { turns: 0, tokens: LIMIT_AMOUNT_MAX }));
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Open { parent: u64, bounds: Bounds },
    Close { agent: u64 },
    Reserve { agent: u64 },
    Release { agent: u64 },
    Start { agent: u64 },
    Charge { agent: u64, tokens: u64 },
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let few = |most: u64| prop::option::of(1..=most);
    let agent = || 1..8_u64;
    let bounds = (few(5), few(6), few(40)).prop_map(|(max_agents, max_turns, max_tokens)| Bounds {
        max_agents,
        max_turns,
        max_tokens,
        deadline: None,
    });
    prop_oneof![
        4 => (0..8_u64, bounds).prop_map(|(parent, bounds)| Step::Open { parent, bounds }),
        2 => agent().prop_map(|agent| Step::Close { agent }),
        4 => agent().prop_map(|agent| Step::Reserve { agent }),
        1 => agent().prop_map(|agent| Step::Release { agent }),
        3 => agent().prop_map(|agent| Step::Start { agent }),
        3 => (agent(), 1..15_u64).prop_map(|(agent, tokens)| Step::Charge { agent, tokens }),
        1 => Just(Step::Restart),
    ]
}

/// Everybody who ever was, with what each used; sums are made by looking at all of them.
#[derive(Clone, Debug, Default)]
struct Person {
    parent: Option<usize>,
    bounds: Bounds,
    used: Used,
    waiting: u64,
    here: bool,
}

#[derive(Default)]
struct Model(Vec<Person>);

impl Model {
    fn line(&self, agent: usize) -> Vec<usize> {
        std::iter::successors(Some(agent), |agent| self.0[*agent].parent).collect()
    }

    fn sum(&self, top: usize, of: impl Fn(&Person) -> u64) -> u64 {
        let below = (0..self.0.len()).filter(|agent| self.line(*agent).contains(&top));
        below.map(|agent| of(&self.0[agent])).sum()
    }

    fn may_turn(&self, agent: usize) -> bool {
        self.line(agent).into_iter().all(|top| {
            let bounds = self.0[top].bounds;
            let turns = self.sum(top, |person| person.used.turns + person.waiting);
            let tokens = self.sum(top, |person| person.used.tokens);
            bounds.max_turns.is_none_or(|most| turns < most)
                && bounds.max_tokens.is_none_or(|most| tokens < most)
        })
    }

    fn may_open(&self, parent: usize, asked: Bounds) -> bool {
        self.line(parent).into_iter().all(|top| {
            let bounds = self.0[top].bounds;
            let fits = |asked: u64, most: Option<u64>, used: u64| {
                most.is_none_or(|most| asked <= most.saturating_sub(used))
            };
            let turns = self.sum(top, |person| person.used.turns + person.waiting);
            let tokens = self.sum(top, |person| person.used.tokens);
            let agents = self.sum(top, |person| u64::from(person.here));
            fits(asked.max_turns.unwrap_or(0), bounds.max_turns, turns)
                && fits(asked.max_tokens.unwrap_or(0), bounds.max_tokens, tokens)
                && fits(asked.max_agents.unwrap_or(1), bounds.max_agents, agents)
        })
    }
}

/// Budgets and the model beside them.
struct Play {
    family: Family,
    model: Model,
}

impl Play {
    /// The first is nobody, so that numbers are places.
    fn new() -> Self {
        Self { family: Family::new(), model: Model(vec![Person::default()]) }
    }

    fn here(&self, agent: u64) -> Option<usize> {
        let place = usize::try_from(agent).unwrap();
        self.model.0.get(place).is_some_and(|person| person.here).then_some(place)
    }

    /// Its place among those who have a budget.
    fn held(&self, agent: u64) -> Option<usize> {
        self.here(agent).filter(|_| self.family.budgets.has(agent))
    }

    fn play(&mut self, step: Step) -> Result<(), TestCaseError> {
        match step {
            Step::Open { parent, bounds } => return self.open(parent, bounds),
            Step::Close { agent } => {
                if let Some(place) = self.here(agent) {
                    for _ in 0..std::mem::take(&mut self.model.0[place].waiting) {
                        self.family.budgets.release_turn(agent);
                    }
                    self.family.budgets.close(agent);
                    self.model.0[place].here = false;
                }
            }
            Step::Reserve { agent } => {
                if let Some(place) = self.held(agent) {
                    let instant = self.family.instant();
                    let reserved = self.family.budgets.reserve_turn(agent, instant).is_ok();
                    prop_assert_eq!(reserved, self.model.may_turn(place));
                    self.model.0[place].waiting += u64::from(reserved);
                }
            }
            Step::Release { agent } => {
                if let Some(place) = self.waiting(agent) {
                    self.family.budgets.release_turn(agent);
                    self.model.0[place].waiting -= 1;
                }
            }
            Step::Start { agent } => {
                if let Some(place) = self.waiting(agent) {
                    self.family.budgets.start_turn(agent);
                    self.model.0[place].waiting -= 1;
                    self.model.0[place].used.turns += 1;
                }
            }
            Step::Charge { agent, tokens } => {
                if let Some(place) = self.held(agent) {
                    self.family.budgets.charge(agent, tokens);
                    self.model.0[place].used.tokens += tokens;
                }
            }
            Step::Restart => {
                self.family = self.family.restarted();
                self.model.0.iter_mut().for_each(|person| person.waiting = 0);
            }
        }
        Ok(())
    }

    fn waiting(&self, agent: u64) -> Option<usize> {
        self.here(agent).filter(|place| self.model.0[*place].waiting > 0)
    }

    fn open(&mut self, parent: u64, bounds: Bounds) -> Result<(), TestCaseError> {
        let (number, above) = (self.model.0.len() as u64, self.here(parent));
        let Bounds { max_agents, max_turns, max_tokens, deadline: _ } = bounds;
        let given =
            json!({"max_agents": max_agents, "max_turns": max_turns, "max_tokens": max_tokens});
        let opened = self.family.open(number, above.map(|_| parent), given);
        let may = above.is_none_or(|above| self.model.may_open(above, bounds));
        prop_assert_eq!(opened.is_ok(), may);
        // A refused one takes a number, too, and is nobody.
        let new = Person { parent: above, bounds, here: true, ..Person::default() };
        self.model.0.push(if may { new } else { Person::default() });
        Ok(())
    }

    fn check(&self) -> Result<(), TestCaseError> {
        for (number, budget) in &self.family.budgets.budgets {
            let place = usize::try_from(*number).unwrap();
            let all = Used {
                turns: self.model.sum(place, |person| person.used.turns),
                tokens: self.model.sum(place, |person| person.used.tokens),
            };
            prop_assert_eq!(budget.all, all);
            let agents = self.model.sum(place, |person| u64::from(person.here));
            prop_assert_eq!(budget.agents, agents);
            prop_assert!(budget.bounds.max_turns.is_none_or(|most| all.turns <= most));
            prop_assert!(budget.bounds.max_agents.is_none_or(|most| agents <= most));
        }
        Ok(())
    }
}

proptest! {
    #[test]
    fn no_budget_is_ever_exceeded_or_charged_twice(steps in prop::collection::vec(step(), 1..120)) {
        let mut play = Play::new();
        for step in steps {
            play.play(step)?;
            play.check()?;
        }
    }
}

#[test]
fn a_model_is_told_of_a_limit_from_where_it_stands() {
    let agent = crate::id::AgentId::parse("two").unwrap();
    let reached = |limit, most, whose| Exceeded::Reached { limit, most, whose };
    let told = |exceeded: Exceeded, reader| exceeded.to_model(&agent, reader);
    assert_eq!(
        told(reached(Limit::Agents, 3, Whose::Parent), Reader::ItsParent),
        "max_agents is reached: you and those below you may have 3 agents at a time. Destroy one that \
         you no longer need, or do without another."
    );
    assert_eq!(
        told(reached(Limit::Turns, 1, Whose::Own), Reader::ItsParent),
        "max_turns is reached: two and those below it may have 1 turn in all. None of them takes on more \
         work: end your turn with what you have."
    );
    assert_eq!(
        told(Exceeded::Over { whose: Whose::Above }, Reader::ItsParent),
        "deadline_s is over: the time of an agent above you and those below that has passed. None of them \
         takes on more work: end your turn with what you have."
    );
    let (limit, whose) = (Limit::Tokens, Whose::Parent);
    assert_eq!(
        told(Exceeded::MoreThanRest { limit, asked: 5, rest: 1, whose }, Reader::Another),
        "max_tokens of 5 is more than what is left: the parent of two and those below that may have 1 \
         more token in all. Ask for less."
    );
}
