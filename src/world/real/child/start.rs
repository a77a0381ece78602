//! Starts the program of a supervisor: in a group of its own, with the given pipes and nothing else
//! open, held to its confinement from its first instruction on.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2};
use rustix::process::Pid;

use super::wire::{Grants, Held, Instructions, PIPES};

/// The rules that are asked for. A kernel that knows fewer of them holds programs to those it knows.
const RULES: ABI = ABI::V6;

/// Starts the program from a thread that confines itself first: what a thread starts is confined as
/// it is, and the rest of the supervisor stays free to watch and to kill.
pub fn start(instructions: Instructions, pipes: [OwnedFd; PIPES]) -> io::Result<(Pid, Held)> {
    let confined = std::thread::spawn(move || {
        let held = match &instructions.grants {
            None => Held::Fully,
            Some(grants) => confine(grants).map_err(io::Error::other)?,
        };
        Ok((spawn(instructions, pipes)?, held))
    });
    confined.join().map_err(|_panicked| io::Error::from(io::ErrorKind::Other))?
}

fn spawn(instructions: Instructions, [input, output, errors]: [OwnedFd; PIPES]) -> io::Result<Pid> {
    let Instructions { file, name, arguments, directory, environment, grants: _ } = instructions;
    let child = Command::new(file)
        .arg0(name)
        .args(arguments)
        .current_dir(directory)
        .env_clear()
        .envs(environment)
        .stdin(input)
        .stdout(output)
        .stderr(errors)
        .process_group(0)
        .spawn()?;
    Ok(Pid::from_child(&child))
}

fn confine(grants: &Grants) -> Result<Held, RulesetError> {
    let (all, read) = (AccessFs::from_all(RULES), AccessFs::from_read(RULES));
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        // A program must not end its supervisor, or the server, and outlive them.
        .scope(Scope::from_all(RULES))?
        .create()?;
    for (paths, access) in [(&grants.read, read), (&grants.write, all)] {
        for (file, access) in paths.iter().filter_map(|path| opened(path, access)) {
            ruleset = ruleset.add_rule(PathBeneath::new(file, access))?;
        }
    }
    Ok(match ruleset.restrict_self()?.ruleset {
        RulesetStatus::FullyEnforced => Held::Fully,
        RulesetStatus::PartiallyEnforced => Held::Partly,
        RulesetStatus::NotEnforced => Held::Not,
    })
}

/// A path to be granted, with the access that makes sense for it. One that leads through a link was
/// swapped after it was decided on, and is not granted.
fn opened(path: &OsString, access: BitFlags<AccessFs>) -> Option<(OwnedFd, BitFlags<AccessFs>)> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let file = openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS).ok()?;
    let is_dir = FileType::from_raw_mode(fstat(&file).ok()?.st_mode) == FileType::Directory;
    Some((file, if is_dir { access } else { access & AccessFs::from_file(RULES) }))
}
