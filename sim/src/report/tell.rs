//! A story as lanes and items: what clients, the server and models did, and what went wrong. What
//! agents did is for `events` to tell. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use nexus3::event::{Event, Seq};

use super::clock::Clock;
use super::events::{Agents, Happened, called};
use super::item::{Fault, Item, Kind, line, micros};
use super::lanes::{Lane, Lanes};
use crate::play::story::{Gives, Happening, How, Moment, Reach, Story};

/// A run as it is shown.
#[derive(Debug)]
pub struct Told {
    pub lanes: Vec<Lane>,
    /// By time.
    pub items: Vec<Item>,
    pub faults: Vec<Fault>,
}

pub fn told(story: &Story) -> Told {
    let happened = happened(story);
    let events: Vec<&Event> = happened.iter().map(|happened| happened.event).collect();
    let lanes = Lanes::of(&story.moments, &events);
    let mut agents = Agents::new(&lanes);
    for happened in &happened {
        agents.on(happened);
    }
    let mut rest = Rest::new(&lanes);
    for moment in &story.moments {
        rest.on(moment);
    }
    let mut items = rest.items;
    items.extend(agents.items);
    items.sort_by_key(|item| item.at);
    let faults = rest.faults;
    Told { lanes: lanes.lanes, items, faults }
}

/// All events, durable ones as the database has them and in their order, with who was told when. What
/// it has not, because it was lost or is forgotten or cannot be read, is there as readers got it.
fn happened(story: &Story) -> Vec<Happened<'_>> {
    let mut seen: BTreeMap<Seq, Vec<(&str, Duration)>> = BTreeMap::new();
    let (mut durable, mut live) = (BTreeMap::new(), Vec::new());
    let mut clock = Clock::new(&story.moments);
    for event in &story.journal {
        if let Some(seq) = event.seq {
            durable.insert(seq, (clock.virtual_time(&event.at), event));
        }
    }
    let mut told_live = BTreeSet::new();
    for moment in &story.moments {
        let Happening::Heard(event) = &moment.what else { continue };
        match event.seq {
            Some(seq) => {
                durable.entry(seq).or_insert((moment.at, event));
                seen.entry(seq).or_default().push((&moment.who, moment.at));
            }
            // Every reader gets it; it happened once.
            None if told_live.insert(event.json()) => {
                let at = clock.before(&event.at, moment.at);
                live.push(Happened { at, event, seen: Vec::new() });
            }
            None => {}
        }
    }
    let durable = durable.into_iter().map(|(seq, (at, event))| {
        let seen = seen.remove(&seq).unwrap_or_default();
        Happened { at, event, seen }
    });
    durable.chain(live).collect()
}

/// Everybody but agents.
struct Rest<'a> {
    lanes: &'a Lanes,
    items: Vec<Item>,
    faults: Vec<Fault>,
    /// Calls that are not answered, by the number of the job.
    calls: BTreeMap<u64, usize>,
    /// Exchanges with a model that go on, by agent, oldest first.
    asks: BTreeMap<String, Vec<usize>>,
}

impl<'a> Rest<'a> {
    fn new(lanes: &'a Lanes) -> Self {
        let (calls, asks) = (BTreeMap::new(), BTreeMap::new());
        Self { lanes, items: Vec::new(), faults: Vec::new(), calls, asks }
    }

    fn on(&mut self, moment: &Moment) {
        let at = micros(moment.at);
        let own = self.lanes.client(&moment.who).unwrap_or(self.lanes.server());
        match &moment.what {
            Happening::Noted(text) => self.items.push(Item::new(at, own, Kind::Note, text)),
            Happening::Served(text) => {
                let lane = self.lanes.mcp(&moment.who).unwrap_or(own);
                self.items.push(Item::new(at, lane, Kind::Note, text));
            }
            Happening::Listens => self.listens(at),
            Happening::Called { job, name, agent, params } => {
                let mut item = Item::begun(at, own, Kind::Call, name);
                let agent = agent.as_deref();
                item.to = agent.and_then(|agent| self.lanes.agent(agent));
                item.to = item.to.or(Some(self.lanes.server()));
                item.add("agent", agent.unwrap_or_default());
                item.add("params", params);
                self.calls.insert(*job, self.items.len());
                self.items.push(item);
            }
            Happening::Answered { job, how, text } => {
                if let Some(index) = self.calls.remove(job) {
                    let item = &mut self.items[index];
                    item.ended(at);
                    item.bad = *how == How::Bad;
                    item.add(if item.bad { "error" } else { "answer" }, text);
                }
            }
            Happening::Left { told } => self.left(at, own, told),
            Happening::Asked { .. } => self.asked(at, &moment.what),
            Happening::AskBegan { agent } => self.ask_began(at, agent),
            Happening::AskEnded { agent } => self.ask_ended(at, agent),
            Happening::FaultBegan { name, reach } => {
                let (name, reach) = (name.clone(), *reach);
                self.faults.push(Fault { at, end: None, name, reach });
            }
            Happening::FaultEnded { name } => {
                let mut open = self.faults.iter_mut().rev();
                let fault = open.find(|fault| fault.name == *name && fault.end.is_none());
                if let Some(fault) = fault {
                    fault.end = Some(at);
                }
            }
            Happening::Started { words, directory } => {
                let lane = self.lanes.machine().unwrap_or(self.lanes.server());
                let mut item = Item::new(at, lane, Kind::Tool, &words.join(" "));
                item.add("directory", &directory.display().to_string());
                self.items.push(item);
            }
            Happening::Heard(_) | Happening::ClockSet { .. } => {}
        }
    }

    /// Whatever a client was waiting for is over for it.
    fn left(&mut self, at: u64, lane: usize, told: &str) {
        let items = &mut self.items;
        self.calls.retain(|_, index| {
            let item = &mut items[*index];
            if item.lane == lane {
                item.ended(at);
                item.bad = true;
                item.add("error", &format!("nobody waits for it: its client {told}"));
            }
            item.lane != lane
        });
        items.push(Item::new(at, lane, Kind::Note, told));
    }

    /// A server that is back ends the crash that took it away, where nothing else does.
    fn listens(&mut self, at: u64) {
        self.items.push(Item::new(at, self.lanes.server(), Kind::Note, "listens"));
        for fault in &mut self.faults {
            if fault.reach == Reach::Host && fault.end.is_none() {
                fault.end = Some(at);
            }
        }
    }

    fn ask_began(&mut self, at: u64, agent: &str) {
        let Some(lane) = self.lanes.agent(agent) else { return };
        let mut item = Item::begun(at, lane, Kind::Model, "asks a model");
        item.to = self.lanes.model();
        self.asks.entry(agent.to_owned()).or_default().push(self.items.len());
        self.items.push(item);
    }

    fn ask_ended(&mut self, at: u64, agent: &str) {
        if let Some(open) = self.asks.get_mut(agent)
            && !open.is_empty()
        {
            self.items[open.remove(0)].ended(at);
        }
    }

    /// What the model host saw belongs to the exchange that goes on; where the script is played inside
    /// the server there is none.
    fn asked(&mut self, at: u64, what: &Happening) {
        let Happening::Asked { agent, model, shown, answer, how, gives } = what else { return };
        let bad = *how == How::Bad;
        let asks = gives.asks.iter().map(|(tool, arguments)| format!("{tool} {arguments}"));
        let asks = asks.collect::<Vec<_>>().join("\n");
        let describe = |item: &mut Item| {
            item.add("model", model);
            item.add("shown", shown);
            item.add("answers", answer);
            item.add("thinks", &gives.thinks);
            item.add("says", &gives.says);
            item.add("calls", &asks);
            item.bad = bad;
        };
        let exchange = self.asks.get(agent).and_then(|open| open.last()).copied();
        if let Some(index) = exchange {
            let item = &mut self.items[index];
            describe(item);
            item.title = line(&answered(answer, *how, gives));
        }
        if let Some(lane) = self.lanes.model() {
            let mut item = Item::new(at, lane, Kind::Model, &format!("{agent}: {answer}"));
            describe(&mut item);
            item.from = exchange.is_none().then(|| self.lanes.agent(agent)).flatten();
            self.items.push(item);
        }
    }
}

/// What a model answered, in its own words where there are some.
fn answered(answer: &str, how: How, gives: &Gives) -> String {
    let mut counts: Vec<(String, u64)> = Vec::new();
    for tool in gives.asks.iter().map(|(tool, _)| called(tool)) {
        match counts.iter_mut().find(|(known, _)| *known == tool) {
            Some((_, count)) => *count += 1,
            None => counts.push((tool, 1)),
        }
    }
    let tools = counts.into_iter().map(|(tool, count)| match count {
        1 => tool,
        _ => format!("{tool} ×{count}"),
    });
    let tools = tools.collect::<Vec<_>>().join(", ");
    match (how, gives.says.trim(), tools.as_str()) {
        (How::Bad, ..) | (How::Good, "", "") => answer.to_owned(),
        (How::Good, "", tools) => format!("calls {tools}"),
        (How::Good, says, "") => format!("“{says}”"),
        (How::Good, says, tools) => format!("“{says}” calls {tools}"),
    }
}

#[cfg(test)]
#[path = "tell_tests.rs"]
mod tell_tests;
