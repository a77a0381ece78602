//! The processes a supervisor answers for: its children, and as it is their subreaper every
//! descendant whose parent has ended. Never signals a number that could have passed to somebody else:
//! only children are signalled, and only here are they reaped.

use std::collections::BTreeSet;
use std::fs;
use std::io;

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, getpgrp, getpid, kill_process, kill_process_group, wait,
};

use crate::world::Exit;

#[derive(Debug)]
pub struct Family {
    /// The program itself.
    leader: Pid,
    /// How the leader ended, once that is known.
    pub exit: Option<Exit>,
}

/// Whether there are descendants. One that lives has an ancestor who is a child of ours, or is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    None,
    Some,
}

/// A child as the system knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Child {
    pid: Pid,
    group: Pid,
}

impl Family {
    pub fn new(leader: Pid) -> Self {
        Self { leader, exit: None }
    }

    /// Takes notice of all that have ended.
    pub fn reap(&mut self) -> Left {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    if pid == self.leader {
                        self.exit = status
                            .exit_status()
                            .map(Exit::Code)
                            .or_else(|| status.terminating_signal().map(Exit::Signal));
                    }
                }
                Ok(None) => return Left::Some,
                Err(Errno::INTR) => {}
                // There is no other reason than that there are no children.
                Err(_) => return Left::None,
            }
        }
    }

    /// Signals the groups of all children but those in `told`, to which they are added.
    pub fn tell(&self, signal: Signal, told: &mut BTreeSet<i32>) {
        let children = match children() {
            Ok(children) => children,
            // Without a process table the leader is all that is known. It is not reaped yet, or its
            // end would be known, so the number is still its own.
            Err(_) if self.exit.is_none() => vec![Child { pid: self.leader, group: self.leader }],
            Err(_) => Vec::new(),
        };
        for Child { pid, group } in children {
            // One that went into our own group, where we are, is signalled alone.
            let alone = group == getpgrp();
            if told.insert((if alone { pid } else { group }).as_raw_nonzero().get()) {
                // Somebody who changed their user is beyond our reach, and there is nobody to tell.
                let _ = if alone {
                    kill_process(pid, signal)
                } else {
                    kill_process_group(group, signal)
                };
            }
        }
    }
}

fn children() -> io::Result<Vec<Child>> {
    let own = getpid();
    let mut children = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.parse().ok());
        let Some(pid) = number.and_then(Pid::from_raw) else { continue };
        // It may have ended by now.
        let Ok(text) = fs::read(format!("/proc/{pid}/stat")) else { continue };
        if let Some((parent, group)) = parent_and_group(&text)
            && parent == own
        {
            children.push(Child { pid, group });
        }
    }
    Ok(children)
}

/// Of a line of `/proc/N/stat`. The program's name in it may hold anything, parentheses included.
fn parent_and_group(stat: &[u8]) -> Option<(Pid, Pid)> {
    let name_ends = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = str::from_utf8(&stat[name_ends + 1..]).ok()?;
    let mut fields = rest.split_ascii_whitespace().skip(1);
    let mut number = || fields.next()?.parse().ok().and_then(Pid::from_raw);
    Some((number()?, number()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_forge_a_parent() {
        let told = parent_and_group(b"7 (a) R 1 1) S 42 43 44 0 -1");
        assert_eq!(told, Some((Pid::from_raw(42).unwrap(), Pid::from_raw(43).unwrap())));
        assert_eq!(parent_and_group(b"7 (a) S 0 0"), None);
        assert_eq!(parent_and_group(b""), None);
    }
}
