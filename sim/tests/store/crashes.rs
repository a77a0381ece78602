//! The power is cut at every write and sync of a workload of several agents, in the first start and
//! the last checkpoint too: what was acknowledged is there, and nothing is there by half.

use std::sync::Arc;

use nexus3::store::{Options, Sync};
use nexus3_sim::disk::CrashMode;

use super::support::{Heard, Host, options};
use super::workload::{self, Acknowledged};

struct Sweep {
    options: Options,
    text: String,
    /// Every so many operations there is a crash.
    stride: usize,
    /// In which ways, with how many seeds.
    modes: &'static [(CrashMode, u64)],
}

impl Sweep {
    fn of(sync: Sync) -> Self {
        Self {
            options: Options { sync, ..options() },
            text: "short".into(),
            stride: 1,
            modes: &[(CrashMode::LoseAll, 1), (CrashMode::KeepAll, 1), (CrashMode::Torn, 2)],
        }
    }

    /// Runs on a new machine whose power is cut at that operation; 0 for never.
    fn run(&self, point: u64) -> (Host, Arc<Acknowledged>, Arc<Heard>) {
        let machine = Host::another();
        let (acknowledged, heard) = (Acknowledged::none(), Heard::new());
        machine.disk.power_off_in(point);
        machine.live(async |world| {
            workload::live(world, self.options.clone(), &self.text, &acknowledged, &heard).await;
        });
        (machine, acknowledged, heard)
    }

    fn operations(&self) -> u64 {
        let (machine, acknowledged, _) = self.run(0);
        assert!(acknowledged.all(), "nothing fails without a crash");
        machine.disk.operations()
    }

    fn violations(&self) -> Vec<String> {
        let _alone = Host::new();
        let mut violations = Vec::new();
        for point in (1..=self.operations() + 1).step_by(self.stride) {
            for (mode, seeds) in self.modes {
                for seed in 0..*seeds {
                    let (machine, acknowledged, heard) = self.run(point);
                    machine.crash(*mode, seed);
                    let found = self.judge(&machine, &acknowledged, &heard);
                    violations.extend(found.map(|what| format!("{point}, {mode:?}: {what}")));
                }
            }
        }
        violations
    }

    fn judge(&self, machine: &Host, acknowledged: &Acknowledged, heard: &Heard) -> Option<String> {
        machine.live(async |world| {
            workload::violation(&world, &self.options, &self.text, acknowledged, heard).await
        })
    }
}

#[test]
fn a_power_cut_at_any_operation_costs_nothing_that_was_acknowledged() {
    assert_eq!(Sweep::of(Sync::Full).violations(), Vec::<String>::new());
}

#[test]
fn nor_does_one_while_the_log_is_copied_into_the_database() {
    // Together more than the pages from which on the log is copied.
    let text = "0123456789".repeat(40_000);
    let modes = &[(CrashMode::LoseAll, 1), (CrashMode::Torn, 1)];
    let sweep = Sweep { text, stride: 397, modes, ..Sweep::of(Sync::Full) };
    assert_eq!(sweep.violations(), Vec::<String>::new());
}

#[test]
fn without_a_sync_for_each_commit_acknowledged_ones_are_lost_and_the_sweep_sees_it() {
    let modes = &[(CrashMode::LoseAll, 1)];
    let violations = Sweep { modes, ..Sweep::of(Sync::Normal) }.violations();
    assert!(!violations.is_empty(), "this sweep would not see a lost commit");
    for violation in violations {
        assert!(
            violation.contains("after") || violation.contains("published"),
            "only whole commits are lost: {violation}"
        );
    }
}

#[test]
fn a_process_that_is_killed_at_any_operation_loses_nothing_even_so() {
    let sweep = Sweep::of(Sync::Normal);
    let _alone = Host::new();
    for point in 1..=sweep.operations() + 1 {
        let (machine, acknowledged, heard) = sweep.run(point);
        // The system has the rest in its cache.
        machine.disk.power_off();
        machine.disk.kill();
        machine.disk.power_on();
        assert_eq!(sweep.judge(&machine, &acknowledged, &heard), None, "point {point}");
    }
}

#[test]
fn a_second_power_cut_while_the_first_is_recovered_from_costs_nothing_either() {
    let sweep = Sweep::of(Sync::Full);
    let _alone = Host::new();
    for point in (1..=sweep.operations()).step_by(9) {
        for second in 1..=12 {
            let (machine, acknowledged, heard) = sweep.run(point);
            machine.crash(CrashMode::Torn, point);
            machine.disk.power_off_in(second);
            // Whatever it finds now, it does not get far enough to be asked.
            machine.live(async |world| {
                let opened = super::support::open(&world, options(), &heard).await;
                drop(opened);
            });
            machine.crash(CrashMode::Torn, point + second);
            let violation = sweep.judge(&machine, &acknowledged, &heard);
            assert_eq!(violation, None, "point {point}, then {second}");
        }
    }
}
