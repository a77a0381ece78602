//! What of the invariant `ceiling` is about programs: what the machine was asked to start reaches no
//! further than whoever it was started for. It never looks at what the policy decided.

use std::path::{Path, PathBuf};

use nexus3::world::{Confinement, Execute, Program};

use super::ceiling::Rank;
use crate::machine::HOME;

/// What no confined program reaches below the highest rank.
const CLOSED: [&str; 4] = [HOME, "/proc", "/sys", "/dev"];
/// But for these.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];
/// What every program may read, and where it may leave what it does not need for long.
const SYSTEM: [&str; 8] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/opt"];
const TEMPORARY: &str = "/tmp";

/// For whom a program was started.
pub struct Standing<'a> {
    pub rank: Rank,
    /// Whether presets hold it to some paths.
    pub is_narrow: bool,
    pub reads: &'a dyn Fn(&Path) -> bool,
    pub writes: &'a dyn Fn(&Path) -> bool,
    /// Whether somebody allowed it that this is started.
    pub is_confirmed: bool,
}

/// What is wrong with a program that was started for somebody.
pub fn wrong(program: &Program, standing: &Standing<'_>) -> Vec<String> {
    let name = program.program.display();
    let mut found = Vec::new();
    if !(standing.reads)(&program.directory) {
        found.push(format!("{name} runs where its agent may not be"));
    }
    match (&program.confinement, standing.rank) {
        (_, Rank::Sandboxed) => found.push(format!("{name} runs for a sandboxed agent")),
        (Confinement::None, Rank::Yolo) if !standing.is_narrow => {}
        (Confinement::None, Rank::Trusted | Rank::Yolo) => {
            found.push(format!("{name} runs unconfined"));
        }
        (Confinement::Landlock { read, write, execute }, rank) => {
            let is_device = |path: &&Path| DEVICES.iter().any(|device| *path == Path::new(device));
            let written = write.iter().map(PathBuf::as_path).filter(|path| !is_device(path));
            let written: Vec<&Path> = written.collect();
            let of_system = |path: &&Path| SYSTEM.iter().any(|root| path.starts_with(root));
            let read_only = read.iter().map(PathBuf::as_path).filter(|path| !of_system(path));
            let beyond = read_only.filter(|path| !(standing.reads)(path));
            let kept = |path: &&Path| path.starts_with(TEMPORARY) || (standing.writes)(path);
            let beyond = beyond.chain(written.iter().copied().filter(|path| !kept(path)));
            found.extend(
                beyond
                    .map(|path| format!("{name} was granted {} beyond its agent", path.display())),
            );
            if rank < Rank::Yolo {
                let all = read.iter().map(PathBuf::as_path).chain(written.iter().copied());
                let closed = all.filter_map(in_closed);
                found.extend(closed.map(|it| format!("{name} was granted something in {it}")));
                let looks = program.program == "git" && *execute == Execute::Itself;
                if (!looks || !written.is_empty()) && !standing.is_confirmed {
                    found.push(format!("{name} runs unconfirmed and can do more than look"));
                }
            }
        }
    }
    found
}

/// What closed directory a granted path is in, or holds.
fn in_closed(path: &Path) -> Option<&'static str> {
    CLOSED
        .into_iter()
        .find(|closed| path.starts_with(closed) || Path::new(closed).starts_with(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn git(read: &[&str], write: &[&str], execute: Execute) -> Program {
        let paths = |paths: &[&str]| paths.iter().map(PathBuf::from).collect();
        Program {
            program: "git".into(),
            arguments: vec!["status".into()],
            directory: "/project".into(),
            environment: vec![],
            confinement: Confinement::Landlock { read: paths(read), write: paths(write), execute },
        }
    }

    fn judged(program: &Program, rank: Rank, is_narrow: bool) -> Vec<String> {
        let in_project = |path: &Path| path.starts_with("/project");
        let reads = |path: &Path| !is_narrow || in_project(path);
        let is_confirmed = program.arguments.iter().any(|word| word == "confirmed");
        let writes = &in_project;
        wrong(program, &Standing { rank, is_narrow, reads: &reads, writes, is_confirmed })
    }

    #[test]
    fn whatever_runs_was_allowed_to() {
        let looks = git(&["/usr", "/project"], &["/dev/null"], Execute::Itself);
        assert_eq!(judged(&looks, Rank::Trusted, false), Vec::<String>::new());
        assert_eq!(judged(&looks, Rank::Sandboxed, false), ["git runs for a sandboxed agent"]);
        let free = Program { confinement: Confinement::None, ..looks.clone() };
        assert_eq!(judged(&free, Rank::Yolo, false), Vec::<String>::new());
        assert_eq!(judged(&free, Rank::Trusted, false), ["git runs unconfined"]);
        assert_eq!(judged(&free, Rank::Yolo, true), ["git runs unconfined"]);
        let more = ["git runs unconfirmed and can do more than look"];
        let readable = git(&["/usr"], &[], Execute::Readable);
        assert_eq!(judged(&readable, Rank::Trusted, false), more);
        let writes = git(&["/usr"], &["/project"], Execute::Itself);
        assert_eq!(judged(&writes, Rank::Trusted, false), more);
        let confirmed = Program { arguments: vec!["confirmed".into()], ..writes.clone() };
        assert_eq!(judged(&confirmed, Rank::Trusted, false), Vec::<String>::new());
        assert_eq!(judged(&writes, Rank::Yolo, true), Vec::<String>::new());
        let other = Program { program: "make".into(), ..looks };
        let more = ["make runs unconfirmed and can do more than look"];
        assert_eq!(judged(&other, Rank::Trusted, false), more);
    }

    #[test]
    fn no_grant_goes_beyond_whoever_has_it() {
        for (path, closed) in [("/", HOME), ("/home/nexus", HOME), ("/proc/1", "/proc")] {
            let found = judged(&git(&[path], &[], Execute::Itself), Rank::Trusted, false);
            assert_eq!(found, [format!("git was granted something in {closed}")]);
        }
        let found = judged(&git(&["/srv"], &["/srv/x"], Execute::Readable), Rank::Yolo, true);
        let expected =
            ["/srv", "/srv/x"].map(|it| format!("git was granted {it} beyond its agent"));
        assert_eq!(found, expected);
        let elsewhere = Program { directory: "/srv".into(), ..git(&[], &[], Execute::Readable) };
        let found = judged(&elsewhere, Rank::Yolo, true);
        assert_eq!(found, ["git runs where its agent may not be"]);
    }
}
