//! Faults that strike single messages and operations: those with a `rate`, each by its own chance,
//! and those that wait for an operation. Every message and operation draws, struck or not, so that
//! what one fault does shifts no other.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::theatre::Theatre;
use crate::disk::{self, Disk, Operation};
use crate::machine::SplitMix;
use crate::scenario::{Fault, FaultKind, Target, Trigger};

/// Has faults of the disk strike single operations, and those begin that wait for one.
pub fn strike_operations(faults: &[Fault], seed: u64, disk: &Disk) -> Met {
    let rates: Vec<(disk::Fault, f64)> =
        faults.iter().filter_map(|fault| Some((of_disk(&fault.kind)?, rate(fault)?))).collect();
    let met = Met::new(faults);
    if rates.is_empty() && met.state().waiting.is_empty() {
        return met;
    }
    let chance = Mutex::new(SplitMix::named(seed, "operations"));
    let (struck, meets) = (disk.clone(), met.clone());
    disk.on_operation(move |operation| {
        let mut chance = chance.lock().unwrap_or_else(PoisonError::into_inner);
        for (fault, rate) in &rates {
            if chance.fraction() < *rate {
                struck.set_fault(*fault, disk::Switch::Once);
            }
        }
        // What begins here may use the disk, which calls this again.
        drop(chance);
        meets.operation(operation, &struck);
    });
    met
}

/// Faults that wait for an operation, and those that have met theirs. Cloning shares them.
#[derive(Clone, Debug)]
pub struct Met {
    /// Held for one operation, or to take all; nothing is awaited under it, and no disk used.
    state: Arc<Mutex<Meetings>>,
}

#[derive(Debug)]
struct Meetings {
    waiting: Vec<(usize, Fault)>,
    /// By their place in the file.
    met: Vec<usize>,
}

impl Met {
    fn new(faults: &[Fault]) -> Self {
        let waits = |fault: &Fault| matches!(fault.trigger, Trigger::OnFs { .. });
        let waiting = faults.iter().cloned().enumerate().filter(|(_, fault)| waits(fault));
        Self {
            state: Arc::new(Mutex::new(Meetings { waiting: waiting.collect(), met: Vec::new() })),
        }
    }

    /// The faults that met their operation since the last time. What they do to the disk is done.
    pub fn take(&self) -> Vec<usize> {
        std::mem::take(&mut self.state().met)
    }

    fn operation(&self, operation: &Operation<'_>, disk: &Disk) {
        let is_it = |fault: &Fault| match &fault.trigger {
            Trigger::OnFs { operation: kind, path } => {
                *kind == operation.kind && path == operation.path
            }
            Trigger::At(_)
            | Trigger::Every(_)
            | Trigger::Rate(_)
            | Trigger::OnEvent(_)
            | Trigger::OnPoint(_) => false,
        };
        let met: Vec<(usize, Fault)> =
            self.state().waiting.extract_if(.., |(_, fault)| is_it(fault)).collect();
        for (index, fault) in met {
            self.state().met.push(index);
            match &fault.kind {
                FaultKind::Files(files) => {
                    let put = super::files::put(disk, files);
                    put.expect("a scenario's files can be put on the disk");
                }
                kind => {
                    if let Some(fault) = of_disk(kind) {
                        disk.set_fault(fault, disk::Switch::On);
                    }
                }
            }
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, Meetings> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The fault of the disk that a kind is, if it is one.
pub fn of_disk(kind: &FaultKind) -> Option<disk::Fault> {
    match kind {
        FaultKind::DiskFull => Some(disk::Fault::Full),
        FaultKind::IoError => Some(disk::Fault::IoError),
        FaultKind::ReadOnly => Some(disk::Fault::ReadOnly),
        FaultKind::FsyncError => Some(disk::Fault::FsyncError),
        FaultKind::FsyncLies => Some(disk::Fault::FsyncLies),
        FaultKind::TornWrite => Some(disk::Fault::TornWrite),
        FaultKind::Crash
        | FaultKind::PowerLoss
        | FaultKind::Partition
        | FaultKind::Hold
        | FaultKind::Delay { .. }
        | FaultKind::ClockJump { .. }
        | FaultKind::Files(_) => None,
    }
}

fn rate(fault: &Fault) -> Option<f64> {
    match fault.trigger {
        Trigger::Rate(rate) => Some(rate),
        Trigger::At(_)
        | Trigger::Every(_)
        | Trigger::OnEvent(_)
        | Trigger::OnPoint(_)
        | Trigger::OnFs { .. } => None,
    }
}

/// Messages that faults of the network have struck. Cloning shares them.
#[derive(Clone, Debug)]
pub struct Struck {
    /// Held for one message, or to take all; nothing is awaited under it.
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    aims: Vec<Aim>,
    chance: SplitMix,
    /// The faults that struck, by their place in the file.
    struck: Vec<usize>,
}

#[derive(Debug)]
struct Aim {
    /// The place of the fault in the file.
    fault: usize,
    rate: f64,
    links: Links,
    /// How long a struck message is kept back.
    by: Duration,
}

#[derive(Clone, Copy, Debug)]
enum Links {
    Of(IpAddr),
    Between(IpAddr, IpAddr),
}

impl Struck {
    /// Has faults of the network strike single messages.
    pub fn new(faults: &[Fault], seed: u64, theatre: &Theatre) -> Self {
        let aims = faults.iter().enumerate().filter_map(|(index, fault)| {
            let by = match &fault.kind {
                FaultKind::Partition | FaultKind::Hold => Duration::ZERO,
                FaultKind::Delay { by } => by.0,
                _ => return None,
            };
            let links = match &fault.target {
                Target::Host(host) => Links::Of(theatre.address(host)),
                Target::Between(one, other) => {
                    Links::Between(theatre.address(one), theatre.address(other))
                }
            };
            Some(Aim { fault: index, rate: rate(fault)?, links, by })
        });
        let struck = Self::with(aims.collect(), seed);
        if !struck.state().aims.is_empty() {
            let struck = struck.clone();
            theatre.traffic.on_message(move |from, to| struck.message(from, to));
        }
        struck
    }

    fn with(aims: Vec<Aim>, seed: u64) -> Self {
        let chance = SplitMix::named(seed, "messages");
        Self { state: Arc::new(Mutex::new(State { aims, chance, struck: Vec::new() })) }
    }

    /// The faults that struck since the last time, in order. A message that was sent in a tick is
    /// still on its way when the tick is over, so a link that is cut or held then takes it along.
    pub fn take(&self) -> Vec<usize> {
        std::mem::take(&mut self.state().struck)
    }

    fn message(&self, from: IpAddr, to: IpAddr) -> Duration {
        let State { aims, chance, struck } = &mut *self.state();
        let mut kept_back = Duration::ZERO;
        for aim in aims.iter().filter(|aim| aim.links.carry(from, to)) {
            if chance.fraction() < aim.rate {
                struck.push(aim.fault);
                kept_back += aim.by;
            }
        }
        kept_back
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Links {
    /// Whether a message takes one of these links. What a host tells itself takes none.
    fn carry(self, from: IpAddr, to: IpAddr) -> bool {
        let ends = [from, to];
        from != to
            && match self {
                Self::Of(host) => ends.contains(&host),
                Self::Between(one, other) => ends.contains(&one) && ends.contains(&other),
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(number: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, number])
    }

    fn aim(fault: usize, rate: f64, links: Links) -> Aim {
        Aim { fault, rate, links, by: Duration::from_secs(1) }
    }

    #[test]
    fn every_message_of_a_link_is_struck_by_its_own_chance() {
        let strikes = |seed| {
            let aims = vec![aim(0, 0.25, Links::Between(host(1), host(2)))];
            let struck = Struck::with(aims, seed);
            let kept_back: Vec<bool> = (0..1000)
                .map(|number| {
                    let (from, to) = if number % 2 == 0 { (1, 2) } else { (2, 1) };
                    !struck.message(host(from), host(to)).is_zero()
                })
                .collect();
            assert_eq!(struck.take().len(), kept_back.iter().filter(|struck| **struck).count());
            assert!(struck.take().is_empty(), "a strike is told once");
            kept_back
        };
        let struck = strikes(7).iter().filter(|struck| **struck).count();
        assert!((200..300).contains(&struck), "{struck} of 1000 at a rate of a quarter");
        assert_eq!(strikes(7), strikes(7));
        assert_ne!(strikes(7), strikes(8));
    }

    #[test]
    fn messages_of_other_links_are_not_concerned() {
        let between = aim(3, 1.0, Links::Between(host(1), host(2)));
        let struck = Struck::with(vec![between, aim(5, 1.0, Links::Of(host(2)))], 0);
        for (from, to) in [(1, 3), (3, 1), (2, 2)] {
            assert_eq!(struck.message(host(from), host(to)), Duration::ZERO);
        }
        assert_eq!(struck.message(host(3), host(2)), Duration::from_secs(1));
        assert_eq!(struck.take(), [5]);
        assert_eq!(struck.message(host(2), host(1)), Duration::from_secs(2), "both strike it");
        assert_eq!(struck.take(), [3, 5]);
    }
}
