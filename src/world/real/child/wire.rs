//! What the server and the supervisor of a program say to each other over their socket: what to
//! start, once; then orders of one byte in one direction, reports of five in the other. The end of
//! the stream is the order to end everything.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::world::{Confinement, Execute, Exit, Program, Signal};

/// What to start. Strings of the system are sent as their bytes, whatever these are.
#[derive(Debug, Serialize, Deserialize)]
pub struct Instructions {
    /// The file to execute.
    pub file: OsString,
    /// What the program is told that it is called.
    pub name: OsString,
    pub arguments: Vec<OsString>,
    pub directory: OsString,
    pub environment: Vec<(OsString, OsString)>,
    pub grants: Option<Grants>,
}

/// [`Confinement::Landlock`].
#[derive(Debug, Serialize, Deserialize)]
pub struct Grants {
    pub read: Vec<OsString>,
    pub write: Vec<OsString>,
    /// [`Execute::Itself`].
    pub only_itself: bool,
}

impl Instructions {
    pub fn new(file: PathBuf, program: Program) -> Self {
        let Program { program, arguments, directory, environment, confinement } = program;
        let paths = |paths: Vec<PathBuf>| paths.into_iter().map(OsString::from).collect();
        Self {
            file: file.into(),
            name: program,
            arguments,
            directory: directory.into(),
            environment,
            grants: match confinement {
                Confinement::None => None,
                Confinement::Landlock { read, write, execute } => Some(Grants {
                    read: paths(read),
                    write: paths(write),
                    only_itself: match execute {
                        Execute::Readable => false,
                        Execute::Itself => true,
                    },
                }),
            },
        }
    }
}

/// The pipes that go with the instructions: input, output, error output.
pub const PIPES: usize = 3;

const TERMINATE: u8 = b't';
const KILL: u8 = b'k';

pub fn order(signal: Signal) -> u8 {
    match signal {
        Signal::Terminate => TERMINATE,
        Signal::Kill => KILL,
    }
}

pub fn ordered(byte: u8) -> Option<Signal> {
    match byte {
        TERMINATE => Some(Signal::Terminate),
        KILL => Some(Signal::Kill),
        _ => None,
    }
}

/// How far a program is held to its confinement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// As far as was asked for.
    Fully,
    /// The kernel knows some of the rules only.
    Partly,
    /// The kernel knows none of them.
    Not,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    Started(Held),
    /// It could not be started, for the reason of this number.
    Failed(i32),
    Ended(Exit),
}

pub const REPORT_BYTES: usize = 5;

impl Report {
    pub fn to_bytes(self) -> [u8; REPORT_BYTES] {
        let (kind, number) = match self {
            Self::Started(Held::Fully) => (b's', 0),
            Self::Started(Held::Partly) => (b's', 1),
            Self::Started(Held::Not) => (b's', 2),
            Self::Failed(number) => (b'f', number),
            Self::Ended(Exit::Code(code)) => (b'c', code),
            Self::Ended(Exit::Signal(signal)) => (b'g', signal),
        };
        let [a, b, c, d] = number.to_le_bytes();
        [kind, a, b, c, d]
    }

    pub fn from_bytes([kind, a, b, c, d]: [u8; REPORT_BYTES]) -> io::Result<Self> {
        let number = i32::from_le_bytes([a, b, c, d]);
        match (kind, number) {
            (b's', 0) => Ok(Self::Started(Held::Fully)),
            (b's', 1) => Ok(Self::Started(Held::Partly)),
            (b's', 2) => Ok(Self::Started(Held::Not)),
            (b'f', number) => Ok(Self::Failed(number)),
            (b'c', code) => Ok(Self::Ended(Exit::Code(code))),
            (b'g', signal) => Ok(Self::Ended(Exit::Signal(signal))),
            (_, _) => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_and_orders_arrive_as_they_were_sent() {
        let started = [Held::Fully, Held::Partly, Held::Not].map(Report::Started);
        let ends = [Exit::Code(0), Exit::Code(-1), Exit::Signal(9)].map(Report::Ended);
        for report in started.into_iter().chain(ends).chain([Report::Failed(2)]) {
            assert_eq!(Report::from_bytes(report.to_bytes()).unwrap(), report);
        }
        for signal in [Signal::Terminate, Signal::Kill] {
            assert_eq!(ordered(order(signal)), Some(signal));
        }
        assert_eq!(ordered(0), None);
    }
}
