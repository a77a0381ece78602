//! Loads on every lane: all turns end with their text, in the same order and at the same virtual
//! times whenever the seed is the same.

use std::time::Duration;

use nexus3_sim::load::{Lane, Load, LoadError, carry};

const LANES: [Lane; 3] = [Lane::Turmoil, Lane::Pipes, Lane::Direct];

#[test]
fn every_lane_carries_every_turn_and_does_so_twice() {
    let load = Load::busy(5, 4, 3);
    for lane in LANES {
        let carried = carry(&load, lane, 7).unwrap_or_else(|error| panic!("{lane:?}: {error}"));
        assert_eq!((carried.turns, carried.calls), (20, 25), "{lane:?}");
        assert_eq!(carried.text_bytes, 20 * 3 * "a0c0 ".len() as u64, "{lane:?}");
        assert!(carried.virtual_time >= 4 * 2 * load.pause, "{lane:?}: {carried:?}");
        assert_eq!(carry(&load, lane, 7).ok(), Some(carried), "{lane:?}: the seed decides all");
        let other = carry(&load, lane, 8).ok().map(|other| other.digest);
        assert_ne!(other, Some(carried.digest), "{lane:?}: another seed is another run");
    }
}

#[test]
fn many_agents_are_created_at_the_same_moment() {
    for lane in LANES {
        let carried = carry(&Load::busy(150, 1, 1), lane, 1);
        assert_eq!(carried.ok().map(|carried| carried.turns), Some(150), "{lane:?}");
    }
}

#[test]
fn a_quiet_load_takes_minutes_of_virtual_time() {
    let load = Load::quiet(2);
    for lane in LANES {
        let carried = carry(&load, lane, 1).unwrap_or_else(|error| panic!("{lane:?}: {error}"));
        assert_eq!(carried.turns, 2);
        let over = carried.virtual_time.checked_sub(2 * load.delay);
        assert!(over.is_some_and(|over| over < Duration::from_secs(1)), "{lane:?}: {carried:?}");
    }
}

#[test]
fn a_turn_that_fails_is_told() {
    // Longer than the server lets any turn take.
    let load = Load { delay: Duration::from_hours(2), ..Load::quiet(1) };
    for lane in [Lane::Pipes, Lane::Direct] {
        let error = carry(&load, lane, 1).err();
        assert!(
            matches!(&error, Some(LoadError::Turn { agent, turn: 0, .. }) if agent == "agent-0"),
            "{lane:?}: {error:?}"
        );
    }
}
