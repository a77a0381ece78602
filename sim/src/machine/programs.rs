//! Programs of a simulated machine: played by acts, which can read, write and change files, in
//! groups that end as real ones do.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};

use nexus3::limits::PROGRAM_GRACE;
use nexus3::world::{BoxFuture, Exit, Fs, Process, Program, Programs, Signal};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, duplex};
use tokio::sync::{Notify, oneshot};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// As much as a pipe of a real machine holds.
const PIPE_BYTES: usize = 64 * 1024;
/// Where all programs of a simulated machine are.
const BIN: &str = "/usr/bin";

const SIGTERM: i32 = 15;
const SIGKILL: i32 = 9;

/// What a program does. Which programs there are is up to whoever gives the acts.
pub trait Act: Send + Sync {
    /// Plays the program to its end; dropped when it is killed.
    fn play(&self, stage: Stage) -> BoxFuture<'static, Exit>;
}

/// An output that a program shares with those it starts; it ends when all have let go of it.
pub type Pipe = Arc<tokio::sync::Mutex<DuplexStream>>;

type Find = dyn Fn(&OsStr, &Program) -> Option<Arc<dyn Act>> + Send + Sync;

/// What a playing program has.
#[derive(Debug)]
pub struct Stage {
    pub program: Program,
    pub stdin: DuplexStream,
    pub stdout: Pipe,
    pub stderr: Pipe,
    group: Arc<Group>,
}

impl Stage {
    /// From now on its group does not end when it is only asked to.
    pub fn ignore_termination(&self) {
        self.group.is_deaf.store(true, Ordering::Release);
    }

    /// Starts another program in the same group. It lives on when its parent ends.
    pub fn start(&self, child: impl Future<Output = ()> + Send + 'static) {
        let group = Arc::clone(&self.group);
        let member = Member::of(&group);
        tokio::spawn(async move {
            let _member = member;
            tokio::select! {
                // A killed program does nothing more.
                biased;
                () = group.killed.cancelled() => {}
                () = child => {}
            }
        });
    }
}

/// The programs of one machine.
pub struct Acting {
    fs: Arc<dyn Fs>,
    find: Box<Find>,
    running: Arc<AtomicUsize>,
}

impl std::fmt::Debug for Acting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Acting").field("running", &self.running()).finish_non_exhaustive()
    }
}

impl Acting {
    /// `find` gives the act for a program by its bare name, or none where there is no such program.
    pub fn new(
        fs: Arc<dyn Fs>,
        find: impl Fn(&OsStr, &Program) -> Option<Arc<dyn Act>> + Send + Sync + 'static,
    ) -> Self {
        Self { fs, find: Box::new(find), running: Arc::default() }
    }

    /// How many processes there are, children included.
    pub fn running(&self) -> usize {
        self.running.load(Ordering::Acquire)
    }

    fn look_up(&self, program: &Program) -> Option<Arc<dyn Act>> {
        let path = Path::new(&program.program);
        let is_path = path.components().count() > 1;
        if is_path && path.parent() != Some(Path::new(BIN)) {
            // One that lies elsewhere is called by its path.
            return (self.find)(path.as_os_str(), program);
        }
        let inside = if is_path {
            true
        } else {
            let given = program.environment.iter().find(|(name, _)| name == "PATH");
            let places = given.map(|(_, value)| std::env::split_paths(value).collect::<Vec<_>>());
            places.is_some_and(|places| places.iter().any(|place| place == Path::new(BIN)))
        };
        if inside { (self.find)(path.file_name()?, program) } else { None }
    }
}

impl Programs for Acting {
    fn start(&self, program: Program) -> BoxFuture<'_, io::Result<Box<dyn Process>>> {
        Box::pin(async move {
            self.fs.dir(&program.directory)?;
            let act = self.look_up(&program).ok_or(io::ErrorKind::NotFound)?;
            let (stdin, to_stdin) = duplex(PIPE_BYTES);
            let (from_stdout, stdout) = duplex(PIPE_BYTES);
            let (from_stderr, stderr) = duplex(PIPE_BYTES);
            let group = Arc::new(Group::new(Arc::clone(&self.running)));
            let shared = |pipe| Arc::new(tokio::sync::Mutex::new(pipe));
            let stage = Stage {
                program,
                stdin,
                stdout: shared(stdout),
                stderr: shared(stderr),
                group: Arc::clone(&group),
            };
            let (told, ended) = oneshot::channel();
            let member = Member::of(&group);
            tokio::spawn(lead(act.play(stage), member, told));
            Ok(Box::new(Played {
                stdin: Some(to_stdin),
                stdout: Some(from_stdout),
                stderr: Some(from_stderr),
                ended: Ended::NotYet(ended),
                group,
            }) as Box<dyn Process>)
        })
    }
}

/// Plays the leader of a group and tells how it ended.
async fn lead(play: BoxFuture<'static, Exit>, member: Member, told: oneshot::Sender<Exit>) {
    let group = &member.0;
    let exit = tokio::select! {
        biased;
        () = group.killed.cancelled() => Exit::Signal(group.signal.load(Ordering::Acquire)),
        exit = play => exit,
    };
    // Nobody waits for a process that was dropped.
    let _ = told.send(exit);
}

#[derive(Debug)]
struct Group {
    killed: CancellationToken,
    signal: AtomicI32,
    is_deaf: AtomicBool,
    /// How many of its processes live.
    members: AtomicUsize,
    one_ended: Notify,
    running: Arc<AtomicUsize>,
}

impl Group {
    fn new(running: Arc<AtomicUsize>) -> Self {
        Self {
            killed: CancellationToken::new(),
            signal: AtomicI32::new(SIGKILL),
            is_deaf: AtomicBool::new(false),
            members: AtomicUsize::new(0),
            one_ended: Notify::new(),
            running,
        }
    }

    fn kill(&self, signal: i32) {
        let is_heard = signal == SIGKILL || !self.is_deaf.load(Ordering::Acquire);
        if is_heard && !self.killed.is_cancelled() {
            self.signal.store(signal, Ordering::Release);
            self.killed.cancel();
        }
    }

    async fn gone(&self) {
        while self.members.load(Ordering::Acquire) > 0 {
            self.one_ended.notified().await;
        }
    }
}

/// One living process of a group.
struct Member(Arc<Group>);

impl Member {
    fn of(group: &Arc<Group>) -> Self {
        group.running.fetch_add(1, Ordering::AcqRel);
        group.members.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(group))
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::AcqRel);
        self.0.members.fetch_sub(1, Ordering::AcqRel);
        // The one who waits looks again; a permit is kept for one who does not wait yet.
        self.0.one_ended.notify_one();
    }
}

struct Played {
    stdin: Option<DuplexStream>,
    stdout: Option<DuplexStream>,
    stderr: Option<DuplexStream>,
    ended: Ended,
    group: Arc<Group>,
}

enum Ended {
    NotYet(oneshot::Receiver<Exit>),
    As(Exit),
}

impl Process for Played {
    fn stdin(&mut self) -> Option<Box<dyn AsyncWrite + Send + Unpin>> {
        self.stdin.take().map(|pipe| Box::new(pipe) as Box<dyn AsyncWrite + Send + Unpin>)
    }

    fn stdout(&mut self) -> Option<Box<dyn AsyncRead + Send + Unpin>> {
        self.stdout.take().map(|pipe| Box::new(pipe) as Box<dyn AsyncRead + Send + Unpin>)
    }

    fn stderr(&mut self) -> Option<Box<dyn AsyncRead + Send + Unpin>> {
        self.stderr.take().map(|pipe| Box::new(pipe) as Box<dyn AsyncRead + Send + Unpin>)
    }

    fn wait(&mut self) -> BoxFuture<'_, io::Result<Exit>> {
        Box::pin(async move {
            let exit = match &mut self.ended {
                Ended::As(exit) => *exit,
                Ended::NotYet(ended) => ended.await.map_err(io::Error::other)?,
            };
            self.ended = Ended::As(exit);
            Ok(exit)
        })
    }

    fn signal(&mut self, signal: Signal) -> io::Result<()> {
        self.group.kill(match signal {
            Signal::Terminate => SIGTERM,
            Signal::Kill => SIGKILL,
        });
        Ok(())
    }

    fn end(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.group.kill(SIGTERM);
            if timeout(PROGRAM_GRACE, self.group.gone()).await.is_err() {
                self.group.kill(SIGKILL);
                self.group.gone().await;
            }
        })
    }
}

impl Drop for Played {
    fn drop(&mut self) {
        self.group.kill(SIGKILL);
    }
}
