//! `[[fault]]`: what goes wrong in a run, when it begins and when it is over.

use std::collections::BTreeSet;
use std::time::Duration;

use super::server::ProcessState;
use super::story::{Happening, Reach};
use super::strikes::{self, Met, Struck};
use super::theatre::Theatre;
use crate::disk;
use crate::scenario::{Direction, EventTrigger, Fault, FaultKind, SERVER, Target, Trigger};

/// A fault of the scenario and where it is in its life.
#[derive(Debug)]
struct Life {
    fault: Fault,
    next: Option<Duration>,
    /// The durable point at which it begins.
    point: Option<u64>,
    /// The event it begins at, until then.
    waits_for: Option<EventTrigger>,
    /// When what is wrong now is put right.
    until: Option<Duration>,
    active: bool,
}

#[derive(Debug)]
pub struct Faults {
    lives: Vec<Life>,
    struck: Struck,
    met: Met,
}

impl Faults {
    pub fn new(faults: &[Fault], seed: u64, theatre: &Theatre) -> Self {
        let met = strikes::strike_operations(faults, seed, &theatre.server.disk);
        let lives = faults.iter().map(|fault| Life {
            fault: fault.clone(),
            next: match fault.trigger {
                Trigger::At(time) | Trigger::Every(time) => Some(time.0),
                // A rate is drawn for each message and operation, not here; points, events and
                // operations are waited for.
                Trigger::Rate(_)
                | Trigger::OnEvent(_)
                | Trigger::OnPoint(_)
                | Trigger::OnFs { .. } => None,
            },
            point: point(fault),
            waits_for: match &fault.trigger {
                Trigger::OnEvent(event) => Some(event.clone()),
                Trigger::At(_)
                | Trigger::Every(_)
                | Trigger::Rate(_)
                | Trigger::OnPoint(_)
                | Trigger::OnFs { .. } => None,
            },
            until: None,
            active: false,
        });
        let crashes = faults.iter().filter(|fault| cuts_power(fault));
        for point in crashes.filter_map(point) {
            theatre.server.disk.power_off_at_point(point);
        }
        Self { lives: lives.collect(), struck: Struck::new(faults, seed, theatre), met }
    }

    /// Begins and ends what is due.
    pub fn advance(&mut self, theatre: &mut Theatre) {
        let now = theatre.elapsed();
        for index in self.struck.take() {
            self.lives[index].strike(theatre, now);
        }
        for index in self.met.take() {
            self.lives[index].begin(theatre, now);
        }
        let hit = theatre.server.disk.take_struck();
        for life in &mut self.lives {
            life.tell_hit(theatre, &hit);
            if life.active && life.until.is_some_and(|until| until <= now) {
                life.end(theatre);
            }
            let points = theatre.server.disk.points();
            let is_reached = life.point.is_some_and(|point| point <= points);
            if life.waits_for.as_ref().is_some_and(|event| theatre.heard.has(event)) {
                (life.waits_for, life.next) = (None, Some(now));
            }
            if !life.active && (is_reached || life.next.is_some_and(|next| next <= now)) {
                life.point = None;
                life.begin(theatre, now);
            }
        }
    }

    /// Times at which something begins or ends.
    pub fn due(&self) -> impl Iterator<Item = Duration> {
        self.lives.iter().flat_map(|life| life.next.into_iter().chain(life.until))
    }

    /// Ends everything: the calm at the end of a run.
    pub fn end_all(&mut self, theatre: &mut Theatre) {
        theatre.server.disk.on_operation(|_| ());
        theatre.traffic.on_message(|_, _| Duration::ZERO);
        for life in &mut self.lives {
            (life.next, life.waits_for) = (None, None);
            if let Some(point) = life.point.take() {
                theatre.server.disk.spare_point(point);
            }
            if life.active {
                life.end(theatre);
            }
            // One that was drawn may still wait for an operation that it concerns.
            if let Some(fault) = strikes::of_disk(&life.fault.kind) {
                theatre.server.disk.set_fault(fault, disk::Switch::Off);
            }
        }
    }
}

impl Life {
    /// A message was struck: what goes wrong begins with it. A delay of no length is of that message
    /// alone, which its sender keeps back already.
    fn strike(&mut self, theatre: &mut Theatre, now: Duration) {
        match (&self.fault.kind, self.fault.lasts) {
            (FaultKind::Delay { .. }, None) => {
                let (name, reach) = (self.name(), Reach::Moment);
                let line = format!("{name} strikes a message");
                theatre.note_fault(&line, Happening::FaultBegan { name, reach });
            }
            _ if self.active => {}
            _ => self.begin(theatre, now),
        }
    }

    /// An operation of the disk was struck by its chance. A transcript shows what came of it.
    fn tell_hit(&self, theatre: &Theatre, hit: &BTreeSet<disk::Fault>) {
        let is_drawn = matches!(self.fault.trigger, Trigger::Rate(_));
        let is_hit = strikes::of_disk(&self.fault.kind).is_some_and(|fault| hit.contains(&fault));
        if is_drawn && is_hit {
            let began = || Happening::FaultBegan { name: self.name(), reach: Reach::Moment };
            theatre.transcript.happened(theatre.elapsed(), "fault", began);
        }
    }

    fn begin(&mut self, theatre: &mut Theatre, now: Duration) {
        self.next = match self.fault.trigger {
            Trigger::Every(every) => Some(now + every.0),
            Trigger::At(_)
            | Trigger::Rate(_)
            | Trigger::OnEvent(_)
            | Trigger::OnPoint(_)
            | Trigger::OnFs { .. } => None,
        };
        let (name, reach) = (self.name(), self.reach());
        let line = format!("{name} begins{}", self.occasion());
        theatre.note_fault(&line, Happening::FaultBegan { name, reach });
        self.apply(theatre, Turn::Begin);
        self.until = self.fault.lasts.map(|lasts| now + lasts.0);
        self.active = !matches!(self.fault.kind, FaultKind::Files(_) | FaultKind::ClockJump { .. });
    }

    fn end(&mut self, theatre: &mut Theatre) {
        self.active = false;
        self.until = None;
        let name = self.name();
        theatre.note_fault(&format!("{name} is over"), Happening::FaultEnded { name });
        self.apply(theatre, Turn::End);
    }

    /// What it began at, where that is no time and no event of the transcript.
    fn occasion(&self) -> String {
        match &self.fault.trigger {
            Trigger::OnFs { operation, path } => {
                format!(" before {} {}", operation.name(), path.display())
            }
            Trigger::At(_)
            | Trigger::Every(_)
            | Trigger::Rate(_)
            | Trigger::OnEvent(_)
            | Trigger::OnPoint(_) => String::new(),
        }
    }

    fn reach(&self) -> Reach {
        match self.fault.kind {
            FaultKind::Crash | FaultKind::PowerLoss => Reach::Host,
            FaultKind::ClockJump { .. } | FaultKind::Files(_) => Reach::Moment,
            FaultKind::Partition
            | FaultKind::Hold
            | FaultKind::Delay { .. }
            | FaultKind::DiskFull
            | FaultKind::IoError
            | FaultKind::ReadOnly
            | FaultKind::FsyncError
            | FaultKind::FsyncLies
            | FaultKind::TornWrite => Reach::Part,
        }
    }

    fn name(&self) -> String {
        let kind = match &self.fault.kind {
            FaultKind::Crash => "crash".to_owned(),
            FaultKind::PowerLoss => "power_loss".to_owned(),
            FaultKind::Partition => "partition".to_owned(),
            FaultKind::Hold => "hold".to_owned(),
            FaultKind::Delay { by } => format!("delay by {by}"),
            FaultKind::DiskFull => "disk_full".to_owned(),
            FaultKind::IoError => "io_error".to_owned(),
            FaultKind::ReadOnly => "read_only".to_owned(),
            FaultKind::FsyncError => "fsync_error".to_owned(),
            FaultKind::FsyncLies => "fsync_lies".to_owned(),
            FaultKind::TornWrite => "torn_write".to_owned(),
            FaultKind::ClockJump { by } => format!("clock_jump by {by}"),
            FaultKind::Files(_) => "files".to_owned(),
        };
        match &self.fault.target {
            Target::Host(host) => format!("{kind} of {host}"),
            Target::Between(one, other) => format!("{kind} between {one} and {other}"),
        }
    }

    fn apply(&self, theatre: &mut Theatre, turn: Turn) {
        match (&self.fault.kind, turn) {
            (FaultKind::Crash, Turn::Begin) => theatre.kill(self.host()),
            (FaultKind::PowerLoss, Turn::Begin) => theatre.cut_power(self.host()),
            (FaultKind::Crash | FaultKind::PowerLoss, Turn::End) => {
                // What was stopped, before or meanwhile, stays so until a step starts it.
                let is_stopped = self.host() == SERVER
                    && theatre.server.process().state == ProcessState::Stopped;
                if !is_stopped && !theatre.is_running(self.host()) {
                    theatre.start(self.host());
                }
            }
            (FaultKind::Partition, Turn::Begin) => self.links(theatre, Theatre::partition),
            (FaultKind::Partition, Turn::End) => self.links(theatre, Theatre::repair),
            (FaultKind::Hold, Turn::Begin) => self.links(theatre, Theatre::hold),
            (FaultKind::Hold, Turn::End) => self.links(theatre, Theatre::release),
            (FaultKind::Delay { by }, Turn::Begin) => {
                self.links(theatre, |theatre, one, other| theatre.delay(one, other, by.0));
            }
            (FaultKind::Delay { .. }, Turn::End) => self.links(theatre, Theatre::end_delay),
            (
                FaultKind::DiskFull
                | FaultKind::IoError
                | FaultKind::ReadOnly
                | FaultKind::FsyncError
                | FaultKind::FsyncLies
                | FaultKind::TornWrite,
                turn,
            ) => {
                let fault =
                    strikes::of_disk(&self.fault.kind).expect("these are faults of the disk");
                turn.switch(theatre, fault);
            }
            (FaultKind::ClockJump { by }, Turn::Begin) => {
                let ms = i64::try_from(by.time.0.as_millis()).unwrap_or(i64::MAX);
                let by_ms = match by.direction {
                    Direction::Forward => ms,
                    Direction::Back => -ms,
                };
                theatre.server.clock.jump(by_ms);
                let set = || Happening::ClockSet { by_ms };
                theatre.transcript.happened(theatre.elapsed(), SERVER, set);
            }
            // It was done just before the operation.
            (FaultKind::Files(_), Turn::Begin)
                if matches!(self.fault.trigger, Trigger::OnFs { .. }) => {}
            (FaultKind::Files(files), Turn::Begin) => {
                let put = super::files::put(&theatre.server.disk, files);
                put.expect("a scenario's files can be put on the disk");
            }
            (FaultKind::ClockJump { .. } | FaultKind::Files(_), Turn::End) => {}
        }
    }

    fn host(&self) -> &str {
        match &self.fault.target {
            Target::Host(host) | Target::Between(host, _) => host,
        }
    }

    fn links(&self, theatre: &Theatre, each: impl Fn(&Theatre, &str, &str)) {
        match &self.fault.target {
            Target::Between(one, other) => each(theatre, one, other),
            Target::Host(host) => {
                for other in theatre.others(host) {
                    each(theatre, host, &other);
                }
            }
        }
    }
}

fn point(fault: &Fault) -> Option<u64> {
    match fault.trigger {
        Trigger::OnPoint(point) => Some(point),
        Trigger::At(_)
        | Trigger::Every(_)
        | Trigger::Rate(_)
        | Trigger::OnEvent(_)
        | Trigger::OnFs { .. } => None,
    }
}

/// Whether it is the disk that ends first, at the very operation.
fn cuts_power(fault: &Fault) -> bool {
    let of_server = matches!(&fault.target, Target::Host(host) if host == SERVER);
    of_server && matches!(fault.kind, FaultKind::Crash | FaultKind::PowerLoss)
}

#[derive(Clone, Copy, Debug)]
enum Turn {
    Begin,
    End,
}

impl Turn {
    fn switch(self, theatre: &Theatre, fault: disk::Fault) {
        let switch = match self {
            Self::Begin => disk::Switch::On,
            Self::End => disk::Switch::Off,
        };
        theatre.server.disk.set_fault(fault, switch);
    }
}
