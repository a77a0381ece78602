//! What signals keep: each request to stop is seen, once, whenever it comes.

use futures_util::FutureExt;
use nexus3::world::World;

use super::must;

/// What the caller is asked to raise in the world's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    Terminate,
    Interrupt,
}

/// `raise` sends the signal to the process this world is; nobody else may wait for its signals
/// meanwhile.
pub async fn signals(world: &World, raise: impl Fn(Stop)) {
    let none_came = || world.signals.stop().now_or_never().is_none();
    assert!(none_came(), "nothing asks to stop before a signal is raised");

    for stop in [Stop::Terminate, Stop::Interrupt] {
        raise(stop);
        must("a signal raised between two calls is seen by the next", world.signals.stop()).await;
        assert!(none_came(), "{stop:?} is seen once");

        let mut waiting = world.signals.stop();
        assert!((&mut waiting).now_or_never().is_none(), "{stop:?} is waited for");
        raise(stop);
        must("a signal raised while somebody waits is seen", waiting).await;
        assert!(none_came(), "{stop:?} is seen once by who waited");

        let mut abandoned = world.signals.stop();
        assert!((&mut abandoned).now_or_never().is_none(), "{stop:?} is waited for again");
        raise(stop);
        drop(abandoned);
        must("a signal is not lost with a dropped call", world.signals.stop()).await;
    }
}
