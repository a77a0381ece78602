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
use crate::limits::{PROGRAM_OUTPUT_HALF_BYTES, RECORD_OUTPUT_PIECES_MAX};
use crate::tool::asked_for;
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
            let (outputs, said) = mpsc::channel(RECORD_OUTPUT_PIECES_MAX);
            let mut seen = Seen {
                process: None,
                outputs,
                said,
                number,
                started: Instant::now(),
                end: RanEnd::NotStarted,
                clock: Arc::clone(&self.clock),
                recorder: self.recorder.clone(),
            };
            // Dropped here, it says that nothing was started.
            seen.process = Some(self.inner.start(program).await?);
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pipe {
    Output,
    Errors,
}

/// Tells of a program when it is let go of.
struct Seen {
    process: Option<Box<dyn Process>>,
    outputs: mpsc::Sender<(Pipe, Vec<u8>)>,
    said: mpsc::Receiver<(Pipe, Vec<u8>)>,
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
        Tee { pipe, inner, to: self.outputs.clone(), left: 2 * PROGRAM_OUTPUT_HALF_BYTES }
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
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        while let Ok((pipe, piece)) = self.said.try_recv() {
            match pipe {
                Pipe::Output => stdout.extend(piece),
                Pipe::Errors => stderr.extend(piece),
            }
        }
        let (took, at, end) = (self.started.elapsed(), self.clock.now(), self.end);
        self.recorder.note(What::ProgramEnded(self.number, Ran { stdout, stderr, took, at, end }));
    }
}

/// Reads a pipe and passes on a copy, up to a bound.
struct Tee {
    pipe: Pipe,
    inner: Box<dyn AsyncRead + Send + Unpin>,
    to: mpsc::Sender<(Pipe, Vec<u8>)>,
    left: usize,
}

impl AsyncRead for Tee {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buffer))?;
        let read = &buffer.filled()[before..];
        let kept = &read[..read.len().min(self.left)];
        if !kept.is_empty() && self.to.try_send((self.pipe, kept.to_vec())).is_ok() {
            self.left -= kept.len();
        }
        Poll::Ready(Ok(()))
    }
}
