//! A crash at one durable point of a run: the power goes at that very operation of the disk, the host
//! is gone with the tick, and the server is started again after a moment. It never decides whether
//! the run is a good one.

use std::time::Duration;

use super::story::Happening::FaultBegan;
use super::story::Reach;
use super::theatre::Theatre;
use crate::machine::SplitMix;
use crate::scenario::SERVER;

/// How long the server stays away.
const AWAY: Duration = Duration::from_millis(500);

/// What is lost by a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The process; the system keeps what was written.
    Process,
    /// All that was not synced.
    Unsynced,
    /// Some of what was not synced, and parts of it.
    Torn,
}

impl Loss {
    fn name(self) -> &'static str {
        match self {
            Self::Process => "the process is killed",
            Self::Unsynced => "the power goes, what is not synced is lost",
            Self::Torn => "the power goes, what is not synced is torn",
        }
    }
}

#[derive(Debug)]
pub struct Crash {
    point: u64,
    loss: Loss,
    chance: SplitMix,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Ahead,
    /// The server is away until then, unless somebody starts it: it had so many starts.
    Away {
        until: Duration,
        starts: u64,
    },
    Over,
}

impl Crash {
    /// Has the power go at a point of a run of `about`. What that takes is drawn from the seed, the
    /// point and the scenario: servers all start alike, and lose something else in each scenario.
    pub fn at(point: u64, seed: u64, about: &str, theatre: &Theatre) -> Self {
        theatre.server.disk.power_off_at_point(point);
        let mut chance = SplitMix::named(seed, &format!("crash at point {point} of {about}"));
        let loss = match chance.draw() % 4 {
            0 => Loss::Process,
            1 => Loss::Unsynced,
            _ => Loss::Torn,
        };
        Self { point, loss, chance, phase: Phase::Ahead }
    }

    pub fn has_struck(&self) -> bool {
        self.phase != Phase::Ahead
    }

    /// When the server is back.
    pub fn due(&self) -> Option<Duration> {
        match self.phase {
            Phase::Away { until, .. } => Some(until),
            Phase::Ahead | Phase::Over => None,
        }
    }

    /// Sees to what the last tick has brought.
    pub fn advance(&mut self, theatre: &mut Theatre) {
        let disk = &theatre.server.disk;
        match self.phase {
            // The power may be off for a fault of the file, before our point.
            Phase::Ahead if disk.is_off() && disk.points() >= self.point => {
                let name = format!("point {}: {}", self.point, self.loss.name());
                theatre.note_fault(&name.clone(), FaultBegan { name, reach: Reach::Host });
                theatre.die_at_point(self.loss, &mut self.chance);
                let starts = theatre.server.process().starts;
                self.phase = Phase::Away { until: theatre.elapsed() + AWAY, starts };
            }
            Phase::Away { until, starts } if until <= theatre.elapsed() => {
                self.phase = Phase::Over;
                // A step or a fault may have started it meanwhile, and it may have stopped since.
                if !theatre.is_running(SERVER) && theatre.server.process().starts == starts {
                    theatre.start(SERVER);
                }
            }
            Phase::Ahead | Phase::Away { .. } | Phase::Over => {}
        }
    }
}
