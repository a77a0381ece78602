//! Where an agent's tools work: its files through the seams, and what its calls share.
//! Whatever takes time runs off the async threads; a job notices that nobody waits for it any more.
//! It never decides about a path: that is `place`.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Effect;
use super::error::{FileError, Given};
use super::mcp::Guest;
use super::place::{Parents, Paths, Spot, way_to};
use super::programs;
use super::seen::Seen;
use super::team::Membership;
use crate::id::AgentId;
use crate::policy::{Allowances, PathRule, Permissions, Permit, Rights, Roots, Side};
use crate::world::{Blocking, BoxFuture, Chance, Dir, Fs, Programs, World};

/// One agent's, for as long as it is in memory.
pub struct Workplace {
    fs: Arc<dyn Fs>,
    blocking: Arc<dyn Blocking>,
    chance: Arc<dyn Chance>,
    turns: Turns,
    /// A call takes what is here when its job begins.
    mandate: ArcSwap<Mandate>,
    user_home: Option<PathBuf>,
    seen: Seen,
    programs: Arc<dyn Programs>,
    /// What its programs are told of ours.
    environment: Vec<(OsString, OsString)>,
    membership: Membership,
    guest: Option<Guest>,
    /// Its programs, until all of each is gone, and its hand-offs, until each has ended.
    running: TaskTracker,
}

/// What an agent may do, until somebody takes something of it.
#[derive(Debug)]
pub(super) struct Mandate {
    rights: Arc<Rights>,
    withdrawn: CancellationToken,
}

impl Mandate {
    fn new(permissions: &Permissions) -> Self {
        Self { rights: Arc::clone(permissions.rights()), withdrawn: CancellationToken::new() }
    }

    pub(super) fn has(&self, tool: &str) -> bool {
        !self.rights.disabled_tools.contains(tool)
    }

    /// What somebody allowed it for good.
    pub(super) fn allowances(&self) -> &Allowances {
        &self.rights.allowances
    }

    /// Cancelled once the agent may less than it could when this was its mandate.
    pub(super) fn withdrawn(&self) -> &CancellationToken {
        &self.withdrawn
    }
}

/// Whose turn it is; all agents share it.
#[derive(Clone, Debug)]
pub(super) struct Turns {
    /// As many places as there may be jobs at once.
    pub(super) jobs: Arc<Semaphore>,
    /// One place: what an edit has read is still there when it writes.
    pub(super) changes: Arc<Semaphore>,
    /// As many places as there may be programs at once.
    pub(super) programs: Arc<Semaphore>,
}

impl Turns {
    /// Waits for a place, which is given back with what is returned.
    async fn wait(&self, effect: Effect) -> Vec<OwnedSemaphorePermit> {
        let wanted: &[&Arc<Semaphore>] = match effect {
            Effect::None => &[&self.jobs],
            // In this order: who waits for its turn to change something keeps no reader waiting.
            Effect::Changes => &[&self.changes, &self.jobs],
        };
        let mut places = Vec::with_capacity(wanted.len());
        for semaphore in wanted {
            let place = Arc::clone(semaphore).acquire_owned().await;
            places.push(place.expect("these semaphores are never closed"));
        }
        places
    }
}

impl Workplace {
    pub(super) fn new(
        world: &World,
        turns: Turns,
        permissions: &Permissions,
        (membership, guest): (Membership, Option<Guest>),
    ) -> Self {
        Self {
            fs: Arc::clone(&world.fs),
            blocking: Arc::clone(&world.blocking),
            chance: Arc::clone(&world.chance),
            turns,
            mandate: ArcSwap::from_pointee(Mandate::new(permissions)),
            user_home: world.environment.home_dir(),
            seen: Seen::default(),
            programs: Arc::clone(&world.programs),
            environment: programs::environment(world.environment.as_ref()),
            membership,
            guest,
            running: TaskTracker::new(),
        }
    }

    /// Has every job from the next one on done with these. What runs with more than that is to end.
    pub fn adopt(&self, permissions: &Permissions) {
        let before = self.mandate.swap(Arc::new(Mandate::new(permissions)));
        if permissions.rights().take_from(&before.rights) {
            before.withdrawn.cancel();
        }
    }

    /// The agent is called otherwise from now on.
    pub fn rename(&self, id: AgentId) {
        self.membership.rename(id);
    }

    pub(super) fn mandate(&self) -> Arc<Mandate> {
        self.mandate.load_full()
    }

    /// Does something that is the agent's own and that it does not wait for, unless it goes.
    pub fn beside(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.running.spawn(work);
    }

    /// Waits until nothing is left of what a call has started beside itself: a program, a turn of another
    /// agent that it waited for; and of MCP servers that are the agent's own. Calls end these when nobody waits for them, but that takes its time.
    pub async fn nothing_runs(&self) {
        self.running.close();
        self.running.wait().await;
        if let Some(guest) = &self.guest {
            guest.leave().await;
        }
    }

    /// Waits for a place among all programs, which is given back with what is returned.
    pub(super) async fn program_turn(&self) -> OwnedSemaphorePermit {
        let place = Arc::clone(&self.turns.programs).acquire_owned().await;
        place.expect("this semaphore is never closed")
    }

    pub(super) fn programs(&self) -> &Arc<dyn Programs> {
        &self.programs
    }

    pub(super) fn environment(&self) -> &[(OsString, OsString)] {
        &self.environment
    }

    /// As the MCP servers know it, where there are any.
    pub fn guest(&self) -> Option<&Guest> {
        self.guest.as_ref()
    }

    pub(super) fn membership(&self) -> &Membership {
        &self.membership
    }

    pub(super) fn running(&self) -> &TaskTracker {
        &self.running
    }

    /// Does `job` of a tool off the async threads. Dropping the future tells the job that nobody waits.
    pub(super) fn run<T: Send + 'static>(
        self: &Arc<Self>,
        tool: &'static str,
        effect: Effect,
        permit: Permit,
        job: impl FnOnce(&Site) -> T + Send + 'static,
    ) -> BoxFuture<'static, T> {
        let workplace = Arc::clone(self);
        Box::pin(async move {
            let unwanted = CancellationToken::new();
            let _waiting = unwanted.clone().drop_guard();
            let turn = workplace.turns.wait(effect).await;
            let mandate = workplace.mandate();
            let site = Site { workplace: Arc::clone(&workplace), mandate, permit, tool, unwanted };
            let job = move || {
                let done = job(&site);
                // Held until here: a job that nobody waits for still holds a thread and handles.
                drop(turn);
                done
            };
            workplace.blocking.call(job).await
        })
    }
}

/// A workplace as one job sees it.
pub struct Site {
    workplace: Arc<Workplace>,
    mandate: Arc<Mandate>,
    permit: Permit,
    tool: &'static str,
    unwanted: CancellationToken,
}

impl Site {
    /// Fails once nobody waits for the job, or its agent may less than when it began. To be asked
    /// wherever one goes on for long.
    pub fn check_wanted(&self) -> Result<(), FileError> {
        match (self.unwanted.is_cancelled(), self.mandate.withdrawn.is_cancelled()) {
            (true, _) => Err(FileError::Unwanted),
            (false, true) => Err(FileError::Withdrawn),
            (false, false) => Ok(()),
        }
    }

    /// Fails where the agent was deprived of the tool after the call was decided on.
    pub(super) fn check_enabled(&self) -> Result<(), FileError> {
        let is_disabled = self.rights().disabled_tools.contains(self.tool);
        if is_disabled { Err(FileError::Withdrawn) } else { Ok(()) }
    }

    /// [`Paths::reading`].
    pub fn reading<T>(
        &self,
        given: &Given,
        act: impl FnMut(&Spot) -> io::Result<T>,
    ) -> Result<T, FileError> {
        self.paths().reading(given, act)
    }

    /// [`Paths::writing`].
    pub fn writing<T>(
        &self,
        given: &Given,
        parents: Parents,
        act: impl FnMut(&Spot) -> io::Result<T>,
    ) -> Result<T, FileError> {
        self.paths().writing(given, parents, act)
    }

    /// [`Paths::examine`].
    pub fn examine(&self, given: &Given, side: Side) -> Result<(PathRule, PathBuf), FileError> {
        self.paths().examine(given, side)
    }

    /// [`Paths::dir`].
    pub fn dir(&self, resolved: &Path) -> io::Result<Arc<dyn Dir>> {
        self.paths().dir(resolved)
    }

    /// Renames between two paths that were decided on.
    pub fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.paths().top()?.rename(way_to(from)?, way_to(to)?)
    }

    pub fn cwd(&self) -> &Path {
        &self.mandate.rights.cwd
    }

    /// Whether a path without links may be read.
    pub fn may_read(&self, resolved: &Path) -> bool {
        self.mandate.rights.path(self.tool, Side::Read, resolved) == PathRule::Free
    }

    /// Whether something may be put at a path without links, and nobody is asked.
    pub(super) fn may_write_freely(&self, resolved: &Path) -> bool {
        let rule = self.rights().path(self.tool, Side::Write, resolved);
        matches!(rule, PathRule::Free | PathRule::Allowance)
    }

    /// Whether a path without links is closed to the agent, wherever it works.
    pub fn is_closed(&self, resolved: &Path) -> bool {
        self.mandate.rights.is_blocked(resolved)
    }

    /// Whether something that is closed to the agent lies in a path without links.
    pub fn has_closed_within(&self, resolved: &Path) -> bool {
        self.mandate.rights.has_blocked_within(resolved)
    }

    /// Where the agent may do what.
    pub(super) fn rights(&self) -> &Rights {
        &self.mandate.rights
    }

    /// What was confirmed of the call.
    pub(super) fn permit(&self) -> &Permit {
        &self.permit
    }

    /// What the tool may read of all that the agent may.
    pub(super) fn roots(&self) -> &Roots {
        self.mandate.rights.roots_of(self.tool)
    }

    pub(super) fn fs(&self) -> &dyn Fs {
        self.workplace.fs.as_ref()
    }

    /// A variable that the agent's programs have.
    pub(super) fn variable(&self, name: &OsStr) -> Option<OsString> {
        let mut variables = self.workplace.environment.iter();
        variables.find(|(known, _)| known == name).map(|(_, value)| value.clone())
    }

    pub fn chance(&self) -> &dyn Chance {
        self.workplace.chance.as_ref()
    }

    pub fn seen(&self) -> &Seen {
        &self.workplace.seen
    }

    fn paths(&self) -> Paths<'_> {
        let Workplace { fs, user_home, .. } = self.workplace.as_ref();
        let (rights, user_home) = (self.mandate.rights.as_ref(), user_home.as_deref());
        let confirmed = self.permit.writes();
        Paths { fs: fs.as_ref(), rights, tool: self.tool, user_home, confirmed }
    }
}

impl std::fmt::Debug for Workplace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workplace").field("mandate", &self.mandate).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Site {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Site").field(&self.workplace).finish()
    }
}
