//! Programs with somebody who looks on: what each was started with, what it said, how and when it ended.
//! Nothing is changed or held up.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::Recorder;
use super::note::{Number, Ran, RanEnd, What};
use crate::tool::{Kept, asked_for};
use crate::world::{BoxFuture, Clock, Exit, Process, Program, Programs, Signal, World};

pub(super) fn watched(recorder: &Recorder, world: &World) -> Arc<dyn Programs> {
    let (inner, clock) = (Arc::clone(&world.programs), Arc::clone(&world.clock));
    Arc::new(Watched { inner, clock, recorder: recorder.clone() })
}

struct Watched {
    inner: Arc<dyn Programs>,
    clock: Arc<dyn Clock>,
    recorder: Recorder,
}

impl Programs for Watched {
    fn start(&self, program: Program) -> BoxFuture<'_, io::Result<Box<dyn Process>>> {
        Box::pin(async move {
            let number = self.recorder.number();
            let words = words(&program);
            self.recorder.note(What::ProgramStarted(number, words, self.clock.now()));
            let (outputs, said) = mpsc::channel(PIPES);
            let mut seen = Seen {
                process: None,
                outputs,
                said,
                number,
                started: Instant::now(),
                end: RanEnd::NotThere,
                clock: Arc::clone(&self.clock),
                recorder: self.recorder.clone(),
            };
            // Dropped here, it says that nothing was started, and whether that is since there is nothing.
            let started = self.inner.start(program).await.inspect_err(|error| {
                if error.kind() != io::ErrorKind::NotFound {
                    seen.end = RanEnd::NotStarted;
                }
            });
            seen.process = Some(started?);
            seen.end = RanEnd::Ended;
            Ok(Box::new(seen) as Box<dyn Process>)
        })
    }
}

/// The program and its arguments as a scenario names them.
fn words(program: &Program) -> Vec<String> {
    let name = program.program.to_string_lossy();
    asked_for(name.strip_prefix("/usr/bin/").unwrap_or(&name), program)
}

/// How many outputs a program has.
const PIPES: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pipe {
    Output,
    Errors,
}

/// Tells of a program when it is let go of.
struct Seen {
    process: Option<Box<dyn Process>>,
    outputs: mpsc::Sender<(Pipe, Kept)>,
    said: mpsc::Receiver<(Pipe, Kept)>,
    number: Number,
    started: Instant,
    end: RanEnd,
    clock: Arc<dyn Clock>,
    recorder: Recorder,
}

impl Seen {
    fn process(&mut self) -> &mut dyn Process {
        self.process.as_deref_mut().expect("only a process that was started is given away")
    }

    fn tee(&self, pipe: Pipe, inner: Box<dyn AsyncRead + Send + Unpin>) -> Tee {
        Tee { pipe, inner, to: self.outputs.clone(), said: Kept::default() }
    }
}

impl Process for Seen {
    fn stdin(&mut self) -> Option<Box<dyn AsyncWrite + Send + Unpin>> {
        self.process().stdin()
    }

    fn stdout(&mut self) -> Option<Box<dyn AsyncRead + Send + Unpin>> {
        let pipe = self.process().stdout()?;
        Some(Box::new(self.tee(Pipe::Output, pipe)))
    }

    fn stderr(&mut self) -> Option<Box<dyn AsyncRead + Send + Unpin>> {
        let pipe = self.process().stderr()?;
        Some(Box::new(self.tee(Pipe::Errors, pipe)))
    }

    fn wait(&mut self) -> BoxFuture<'_, io::Result<Exit>> {
        Box::pin(async move {
            let exit = self.process().wait().await?;
            self.end = RanEnd::Exit(exit);
            Ok(exit)
        })
    }

    fn signal(&mut self, signal: Signal) -> io::Result<()> {
        self.process().signal(signal)
    }

    fn end(&mut self) -> BoxFuture<'_, ()> {
        self.process().end()
    }
}

impl Drop for Seen {
    fn drop(&mut self) {
        let (mut stdout, mut stderr) = (Kept::default(), Kept::default());
        // Whoever reads the outputs has let go of them by now.
        while let Ok((pipe, said)) = self.said.try_recv() {
            match pipe {
                Pipe::Output => stdout = said,
                Pipe::Errors => stderr = said,
            }
        }
        let (took, at, end) = (self.started.elapsed(), self.clock.now(), self.end);
        self.recorder.note(What::ProgramEnded(self.number, Ran { stdout, stderr, took, at, end }));
    }
}

/// Reads a pipe, and passes on what is kept of it once nobody reads it any more.
struct Tee {
    pipe: Pipe,
    inner: Box<dyn AsyncRead + Send + Unpin>,
    to: mpsc::Sender<(Pipe, Kept)>,
    said: Kept,
}

impl AsyncRead for Tee {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buffer))?;
        self.said.add(&buffer.filled()[before..]);
        Poll::Ready(Ok(()))
    }
}

impl Drop for Tee {
    fn drop(&mut self) {
        // There is room for each.
        let _ = self.to.try_send((self.pipe, std::mem::take(&mut self.said)));
    }
}
