//! The invariant `ceiling` where programs are started: whatever runs was started for somebody whose
//! level allows it, and reaches nothing that is closed. It looks at what the machine was asked to start
//! and at how agents were made, never at what the policy decided.

use std::path::Path;

use nexus3::policy::Level;
use nexus3::world::{Confinement, Execute, Program};

use super::{Check, Invariant, Seen};
use crate::machine::HOME;

/// What no confined program reaches.
const CLOSED: [&str; 4] = [HOME, "/proc", "/sys", "/dev"];
/// But for these.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

#[derive(Debug)]
pub struct Started;

impl Check for Started {
    fn invariant(&self) -> Invariant {
        Invariant::Ceiling
    }

    fn after_step(&mut self, seen: &Seen<'_>) -> Vec<String> {
        let created = seen.calls.iter().filter(|made| made.call.method == "create_agent");
        let levels = created.map(|made| {
            let preset =
                made.call.params.as_ref().and_then(|params| params.get("preset")?.as_str());
            match preset.unwrap_or("sandboxed") {
                "sandboxed" | "worker" => Level::Sandboxed,
                "trusted" => Level::Trusted,
                // A preset of the configuration may be of any level.
                _ => Level::Yolo,
            }
        });
        let highest = levels.max().unwrap_or(Level::Sandboxed);
        seen.programs.iter().flat_map(|program| wrong(program, highest)).collect()
    }
}

/// What is wrong with a program where no agent is above a level.
fn wrong(program: &Program, highest: Level) -> Vec<String> {
    let name = program.program.display();
    match &program.confinement {
        Confinement::None if highest == Level::Yolo => Vec::new(),
        Confinement::None => vec![format!("{name} runs unconfined, and no agent is yolo")],
        Confinement::Landlock { .. } if highest < Level::Trusted => {
            vec![format!("{name} runs, and no agent is trusted")]
        }
        Confinement::Landlock { read, write, execute } => {
            let grants = read.iter().chain(write);
            let reached = grants.filter_map(|path| in_closed(path));
            let mut found: Vec<String> =
                reached.map(|closed| format!("{name} was granted something in {closed}")).collect();
            // Nobody can confirm anything yet, so only what looks is started.
            let writes =
                write.iter().any(|path| !DEVICES.iter().any(|device| path == Path::new(device)));
            if program.program != "git" || *execute != Execute::Itself || writes {
                found.push(format!("{name} runs unconfirmed and can do more than look"));
            }
            found
        }
    }
}

/// What closed directory a granted path is in, or holds.
fn in_closed(path: &Path) -> Option<&'static str> {
    if DEVICES.iter().any(|device| path == Path::new(device)) {
        return None;
    }
    CLOSED
        .into_iter()
        .find(|closed| path.starts_with(closed) || Path::new(closed).starts_with(path))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

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

    #[test]
    fn whatever_runs_was_allowed_to() {
        let looks = git(&["/usr", "/project"], &["/dev/null"], Execute::Itself);
        assert_eq!(wrong(&looks, Level::Trusted), Vec::<String>::new());
        assert_eq!(wrong(&looks, Level::Sandboxed), ["git runs, and no agent is trusted"]);
        let free = Program { confinement: Confinement::None, ..looks.clone() };
        assert_eq!(wrong(&free, Level::Yolo), Vec::<String>::new());
        assert_eq!(wrong(&free, Level::Trusted), ["git runs unconfined, and no agent is yolo"]);
        let more = ["git runs unconfirmed and can do more than look"];
        assert_eq!(wrong(&git(&["/usr"], &[], Execute::Readable), Level::Trusted), more);
        assert_eq!(wrong(&git(&["/usr"], &["/project"], Execute::Itself), Level::Trusted), more);
        let other = Program { program: "make".into(), ..looks };
        assert_eq!(
            wrong(&other, Level::Trusted),
            ["make runs unconfirmed and can do more than look"]
        );
        for (path, closed) in [("/", HOME), ("/home/nexus", HOME), ("/proc/1", "/proc")] {
            let found = wrong(&git(&[path], &[], Execute::Itself), Level::Trusted);
            assert_eq!(found, [format!("git was granted something in {closed}")]);
        }
    }
}
