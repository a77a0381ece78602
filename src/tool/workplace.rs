//! Where an agent's tools work: its files through the seams, and what its calls share.
//! Whatever takes time runs off the async threads; a job notices that nobody waits for it any more.
//! It never decides about a path: that is `place`.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::error::{FileError, Given};
use super::place::{Parents, Paths, Spot};
use super::seen::Seen;
use crate::world::{Blocking, BoxFuture, Dir, Fs, World};

/// One agent's, for as long as it is in memory.
pub struct Workplace {
    fs: Arc<dyn Fs>,
    blocking: Arc<dyn Blocking>,
    /// How many jobs there may be at once; all agents share it.
    jobs: Arc<Semaphore>,
    cwd: PathBuf,
    user_home: Option<PathBuf>,
    seen: Seen,
}

impl Workplace {
    /// `cwd` is absolute and without links.
    pub(super) fn new(world: &World, jobs: Arc<Semaphore>, cwd: PathBuf) -> Self {
        Self {
            fs: Arc::clone(&world.fs),
            blocking: Arc::clone(&world.blocking),
            jobs,
            cwd,
            user_home: world.environment.home_dir(),
            seen: Seen::default(),
        }
    }

    /// Does `job` off the async threads. Dropping the future tells the job that nobody waits.
    pub(super) fn run<T: Send + 'static>(
        self: &Arc<Self>,
        job: impl FnOnce(&Site) -> T + Send + 'static,
    ) -> BoxFuture<'static, T> {
        let workplace = Arc::clone(self);
        Box::pin(async move {
            let unwanted = CancellationToken::new();
            let _waiting = unwanted.clone().drop_guard();
            let turn = Arc::clone(&workplace.jobs).acquire_owned().await;
            let turn = turn.expect("this semaphore is never closed");
            let site = Site { workplace: Arc::clone(&workplace), unwanted };
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
    unwanted: CancellationToken,
}

impl Site {
    /// Fails once nobody waits for the job. To be asked wherever one goes on for long.
    pub fn check_wanted(&self) -> Result<(), FileError> {
        if self.unwanted.is_cancelled() { Err(FileError::Unwanted) } else { Ok(()) }
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

    /// The handle of the working directory.
    pub fn root(&self) -> io::Result<Arc<dyn Dir>> {
        self.paths().root()
    }

    /// The way from the working directory to a path that was decided on.
    pub fn inside<'p>(&self, resolved: &'p Path) -> &'p Path {
        self.paths().inside(resolved)
    }

    pub fn seen(&self) -> &Seen {
        &self.workplace.seen
    }

    fn paths(&self) -> Paths<'_> {
        let Workplace { fs, cwd, user_home, .. } = self.workplace.as_ref();
        Paths { fs: fs.as_ref(), cwd, user_home: user_home.as_deref() }
    }
}

impl std::fmt::Debug for Workplace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workplace").field("cwd", &self.cwd).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Site {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Site").field(&self.workplace).finish()
    }
}
