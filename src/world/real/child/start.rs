//! Starts the program of a supervisor: in a group of its own, with the given pipes and nothing else
//! open, held to its confinement from its first instruction on.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2};
use rustix::io::Errno;
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
            Some(grants) => {
                let itself =
                    if grants.only_itself { itself(&instructions.file)? } else { Vec::new() };
                let held = confine(grants, itself).map_err(io::Error::other)?;
                if grants.only_itself && held == Held::Not {
                    return Err(Errno::NOSYS.into());
                }
                held
            }
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

fn confine(grants: &Grants, itself: Vec<OwnedFd>) -> Result<Held, RulesetError> {
    let execute = if grants.only_itself { AccessFs::Execute.into() } else { BitFlags::EMPTY };
    let (all, read) = (AccessFs::from_all(RULES), AccessFs::from_read(RULES) & !execute);
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(RULES))?
        // A program must not end its supervisor, or the server, and outlive them.
        .scope(Scope::from_all(RULES))?
        .create()?;
    for (paths, access) in [(&grants.read, read), (&grants.write, all & !execute)] {
        for (file, access) in paths.iter().filter_map(|path| opened(path, access)) {
            ruleset = ruleset.add_rule(PathBeneath::new(file, access))?;
        }
    }
    for file in itself {
        ruleset = ruleset.add_rule(PathBeneath::new(file, AccessFs::Execute))?;
    }
    Ok(match ruleset.restrict_self()?.ruleset {
        RulesetStatus::FullyEnforced => Held::Fully,
        RulesetStatus::PartiallyEnforced => Held::Partly,
        RulesetStatus::NotEnforced => Held::Not,
    })
}

/// What has to be executable for a program to run: its file, and the loader that its file names. The
/// loader itself runs nothing without being told to on a command line.
fn itself(file: &OsStr) -> io::Result<Vec<OwnedFd>> {
    let open = |path: &OsStr| openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
    let mut found = vec![open(file)?];
    if let Some(loader) = loader(&fs::File::open(file)?)? {
        found.push(open(&loader)?);
    }
    Ok(found)
}

/// The loader that a program of 64 bits asks for; others, and those without one, have none.
fn loader(program: &fs::File) -> io::Result<Option<OsString>> {
    const LOADER: u64 = 3;
    let number = |at: u64, bytes: usize| {
        let mut number = [0; 8];
        program.read_exact_at(&mut number[..bytes], at)?;
        Ok::<u64, io::Error>(u64::from_le_bytes(number))
    };
    if number(0, 6)? != u64::from_le_bytes(*b"\x7fELF\x02\x01\0\0") {
        return Ok(None);
    }
    let (table, size, count) = (number(0x20, 8)?, number(0x36, 2)?, number(0x38, 2)?);
    for index in 0..count {
        let entry = table + index * size;
        if number(entry, 4)? == LOADER {
            let (place, length) = (number(entry + 8, 8)?, number(entry + 32, 8)?);
            let mut path = vec![0; usize::try_from(length.min(4096)).unwrap_or(0)];
            program.read_exact_at(&mut path, place)?;
            path.truncate(path.iter().position(|byte| *byte == 0).unwrap_or(path.len()));
            return Ok(Some(OsString::from_vec(path)));
        }
    }
    Ok(None)
}

/// A path to be granted, with the access that makes sense for it. One that leads through a link was
/// swapped after it was decided on, and is not granted.
fn opened(path: &OsString, access: BitFlags<AccessFs>) -> Option<(OwnedFd, BitFlags<AccessFs>)> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let file = openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS).ok()?;
    let is_dir = FileType::from_raw_mode(fstat(&file).ok()?.st_mode) == FileType::Directory;
    Some((file, if is_dir { access } else { access & AccessFs::from_file(RULES) }))
}
