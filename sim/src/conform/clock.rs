//! What a clock keeps. Next to nothing: it may jump, and how fast it runs is not for a test to see.

use nexus3::world::World;

/// 2020-01-01 and 2200-01-01, in seconds since 1970.
const ERA: std::ops::Range<i64> = 1_577_836_800..7_258_118_400;

pub async fn clock(world: &World) {
    let seconds = world.clock.now().as_second();
    assert!(ERA.contains(&seconds), "the clock shows a date of this era, not {seconds}");
    tokio::task::yield_now().await;
    let seconds = world.clock.now().as_second();
    assert!(ERA.contains(&seconds), "the clock still does after others ran, not {seconds}");
}
