//! What programs keep: they start with what they are given and nothing else, talk through pipes,
//! and end with everything they started. Never says which programs exist: the caller brings a
//! [`Cast`] that plays the parts.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::Path;

use nexus3::world::{Exit, Process, Program, Signal, World};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

use super::must;

/// The parts the suite needs played. Arguments and environment are used as they are, except where a
/// part says otherwise.
#[derive(Clone, Debug)]
pub struct Cast {
    /// Prints its environment as lines of `NAME=value`; the suite sets the environment.
    pub environment: Program,
    /// Prints its working directory and a new line; the suite sets the directory.
    pub directory: Program,
    /// Named without a slash and found in the `PATH` of its environment; ends with code 0.
    pub found: Program,
    /// Prints `out` to its output and `err` to its error output and ends with code 7.
    pub fails: Program,
    /// Copies its input to its output until the input ends, then ends with code 0.
    pub copies: Program,
    /// Prints `ready` and a new line, then waits for ever.
    pub waits: Program,
    /// Starts a program that waits for ever, prints `ready` and a new line, then waits for it. Both
    /// hold the output open.
    pub waits_with_child: Program,
    /// The same, but ends with code 0 instead of waiting: only its child lives on.
    pub leaves_child: Program,
    /// The same, but its child is in a session of its own, as far as there are any.
    pub leaves_session: Program,
    /// Prints `ready` and a new line, then waits for ever, whoever asks it to end.
    pub ignores_termination: Program,
}

/// `scratch` is the absolute path of an empty directory without links on the way.
pub async fn programs(world: &World, cast: &Cast, scratch: &Path) {
    the_environment_is_exactly_what_is_given(world, cast).await;
    the_directory_is_what_is_given(world, cast, scratch).await;
    names_are_looked_up_in_the_given_path(world, cast, scratch).await;
    output_errors_and_code_are_told(world, cast).await;
    input_reaches_the_program(world, cast).await;
    signals_end_a_program(world, cast).await;
    a_group_is_killed_with_its_grandchildren(world, cast).await;
    a_dropped_program_takes_its_group_along(world, cast).await;
    output_is_there_after_the_end(world, cast).await;
    whoever_left_the_session_ends_too(world, cast).await;
    whoever_does_not_want_to_end_is_killed(world, cast).await;
}

async fn start(world: &World, program: &Program) -> Box<dyn Process> {
    let started = must("a program starts", world.programs.start(program.clone())).await;
    started.unwrap_or_else(|error| panic!("{} starts: {error}", program.program.display()))
}

async fn end(process: &mut dyn Process) -> Exit {
    must("a program ends", process.wait()).await.expect("a program can be waited for")
}

type Pipe = Box<dyn AsyncRead + Send + Unpin>;

fn output(process: &mut dyn Process) -> Pipe {
    process.stdout().expect("the output is piped")
}

async fn rest(mut pipe: Pipe) -> String {
    let mut text = String::new();
    must("a pipe ends", pipe.read_to_string(&mut text)).await.expect("a pipe can be read");
    text
}

/// Waits until the program says that it has come as far as it goes.
async fn ready(pipe: &mut Pipe) {
    let mut line = [0; 6];
    must("a program is ready", pipe.read_exact(&mut line)).await.expect("a line is printed");
    assert_eq!(&line, b"ready\n", "the program says that it is ready");
}

async fn the_environment_is_exactly_what_is_given(world: &World, cast: &Cast) {
    let mut program = cast.environment.clone();
    for given in [&[][..], &[("B", "two words"), ("A", "1")][..]] {
        program.environment =
            given.iter().map(|(name, value)| (name.into(), value.into())).collect();
        let mut process = start(world, &program).await;
        let text = rest(output(process.as_mut())).await;
        let mut seen: Vec<_> = text.lines().filter_map(|line| line.split_once('=')).collect();
        seen.sort_unstable();
        let mut given = given.to_vec();
        given.sort_unstable();
        assert_eq!(seen, given, "a program sees the given variables and no others");
        assert_eq!(end(process.as_mut()).await, Exit::Code(0), "and ends well");
    }
}

async fn the_directory_is_what_is_given(world: &World, cast: &Cast, scratch: &Path) {
    let mut program = cast.directory.clone();
    program.directory = scratch.to_owned();
    let mut process = start(world, &program).await;
    let text = rest(output(process.as_mut())).await;
    assert_eq!(Path::new(text.trim_end()), scratch, "a program runs in the given directory");

    program.directory = scratch.join("missing");
    let error = world.programs.start(program).await.err().expect("a directory must exist");
    assert_eq!(error.kind(), ErrorKind::NotFound, "a missing directory is not found: {error}");
}

async fn names_are_looked_up_in_the_given_path(world: &World, cast: &Cast, scratch: &Path) {
    let mut process = start(world, &cast.found).await;
    drop(process.stdin());
    assert_eq!(end(process.as_mut()).await, Exit::Code(0), "a name is found in the given PATH");

    let elsewhere = |path: Option<&Path>| {
        let mut program = cast.found.clone();
        program.environment.retain(|(name, _)| name != "PATH");
        program.environment.extend(path.map(|path| (OsString::from("PATH"), path.into())));
        program
    };
    for program in [elsewhere(Some(scratch)), elsewhere(None)] {
        let error = world.programs.start(program).await.err().expect("nothing is there");
        assert_eq!(error.kind(), ErrorKind::NotFound, "a name is looked up nowhere else: {error}");
    }
    let mut program = cast.found.clone();
    program.program = scratch.join("missing").into();
    let error = world.programs.start(program).await.err().expect("nothing is at this path");
    assert_eq!(error.kind(), ErrorKind::NotFound, "a missing program is not found: {error}");
}

async fn output_errors_and_code_are_told(world: &World, cast: &Cast) {
    let mut process = start(world, &cast.fails).await;
    let errors = process.stderr().expect("the error output is piped");
    assert_eq!(rest(output(process.as_mut())).await, "out", "the output is read");
    assert_eq!(rest(errors).await, "err", "the error output is read apart");
    assert_eq!(end(process.as_mut()).await, Exit::Code(7), "the code is told");
    assert_eq!(end(process.as_mut()).await, Exit::Code(7), "and told again");
    assert!(process.stdout().is_none() && process.stderr().is_none(), "each pipe is given once");
    for signal in [Signal::Terminate, Signal::Kill] {
        process.signal(signal).expect("signalling a program that has ended is no error");
    }
    assert_eq!(end(process.as_mut()).await, Exit::Code(7), "a late signal changes nothing");
}

async fn input_reaches_the_program(world: &World, cast: &Cast) {
    let mut process = start(world, &cast.copies).await;
    let mut input = process.stdin().expect("the input is piped");
    assert!(process.stdin().is_none(), "the input is given once");
    let output = output(process.as_mut());
    // More than a pipe holds, so both ends have to be served at once.
    let text = "a line of text\n".repeat(20_000);
    let write = async {
        input.write_all(text.as_bytes()).await.expect("the program takes its input");
        input.shutdown().await.expect("the input can be flushed");
        drop(input);
    };
    let ((), copy) = must("a text is copied", async { tokio::join!(write, rest(output)) }).await;
    assert!(copy == text, "the program sees all of its input and where it ends");
    assert_eq!(end(process.as_mut()).await, Exit::Code(0), "and then ends by itself");
}

async fn signals_end_a_program(world: &World, cast: &Cast) {
    for (signal, number) in [(Signal::Terminate, 15), (Signal::Kill, 9)] {
        let mut process = start(world, &cast.waits).await;
        let mut output = output(process.as_mut());
        ready(&mut output).await;
        process.signal(signal).expect("a running program can be signalled");
        assert_eq!(end(process.as_mut()).await, Exit::Signal(number), "{signal:?} ended it");
        assert_eq!(end(process.as_mut()).await, Exit::Signal(number), "and that is told again");
    }
}

async fn a_group_is_killed_with_its_grandchildren(world: &World, cast: &Cast) {
    let mut process = start(world, &cast.waits_with_child).await;
    let mut output = output(process.as_mut());
    ready(&mut output).await;
    process.signal(Signal::Kill).expect("a running group can be signalled");
    assert_eq!(end(process.as_mut()).await, Exit::Signal(9), "the leader was killed");
    // The grandchild holds the pipe open for as long as it lives.
    assert_eq!(rest(output).await, "", "the grandchild was killed with it");
}

async fn a_dropped_program_takes_its_group_along(world: &World, cast: &Cast) {
    let mut process = start(world, &cast.waits_with_child).await;
    let mut pipe = output(process.as_mut());
    ready(&mut pipe).await;
    drop(process);
    assert_eq!(rest(pipe).await, "", "a dropped program ends with its child");

    let mut process = start(world, &cast.leaves_child).await;
    let mut pipe = output(process.as_mut());
    ready(&mut pipe).await;
    assert_eq!(end(process.as_mut()).await, Exit::Code(0), "a leader may end before its group");
    drop(process);
    assert_eq!(rest(pipe).await, "", "what it left behind ends when it is dropped");
}

async fn output_is_there_after_the_end(world: &World, cast: &Cast) {
    let mut process = start(world, &cast.fails).await;
    let errors = process.stderr().expect("the error output is piped");
    let output = output(process.as_mut());
    assert_eq!(end(process.as_mut()).await, Exit::Code(7), "it ends although nobody reads");
    must("nothing is left", process.end()).await;
    assert_eq!(end(process.as_mut()).await, Exit::Code(7), "how it ended is still told");
    assert_eq!((rest(output).await, rest(errors).await), ("out".to_owned(), "err".to_owned()));
}

async fn whoever_left_the_session_ends_too(world: &World, cast: &Cast) {
    for program in [&cast.leaves_child, &cast.leaves_session] {
        for ends in [true, false] {
            let mut process = start(world, program).await;
            let mut pipe = output(process.as_mut());
            ready(&mut pipe).await;
            assert_eq!(end(process.as_mut()).await, Exit::Code(0), "the leader ends by itself");
            if ends {
                must("nothing is left", process.end()).await;
                must("nor is anything left twice", process.end()).await;
            }
            drop(process);
            assert_eq!(rest(pipe).await, "", "what it left behind, wherever, ends");
        }
    }
}

async fn whoever_does_not_want_to_end_is_killed(world: &World, cast: &Cast) {
    let mut process = start(world, &cast.ignores_termination).await;
    let mut pipe = output(process.as_mut());
    ready(&mut pipe).await;
    process.signal(Signal::Terminate).expect("a running program can be signalled");
    must("nothing is left", process.end()).await;
    assert_eq!(end(process.as_mut()).await, Exit::Signal(9), "it was killed after its time");
    assert_eq!(rest(pipe).await, "", "and has said nothing more");
}
