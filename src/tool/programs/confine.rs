//! What a program of an agent reaches, as paths for Landlock, which can only grant. What is closed is
//! kept out by granting all that stands beside it on the way there; a directory on that way can then
//! be neither listed nor get new names, which is the price.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::super::error::FileError;
use super::super::workplace::Site;
use super::Reach;
use crate::limits::PROGRAM_GRANTS_MAX;
use crate::policy::{Allowances, Level, Rights, Roots};
use crate::world::{Confinement, Execute, Fs, Kind};

/// Devices that programs take for granted and that hold nothing. `/proc` and `/sys` stay closed, as
/// to all tools: they show other programs.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Where programs and what they are made of are.
const SYSTEM: [&str; 8] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/opt"];

/// Where programs put temporary files unless they are told.
const TEMPORARY: &str = "/tmp";

pub(super) fn confinement(site: &Site, reach: Reach) -> Result<Confinement, FileError> {
    let rights = site.rights();
    // A preset of the configuration may hold even those to some paths who may do anything there.
    let is_free = site.roots().paths().is_none() && rights.blocked.is_empty();
    if rights.level == Level::Yolo && is_free {
        return Ok(Confinement::None);
    }
    let readable: Vec<&Path> = match site.roots().paths() {
        None => vec![Path::new("/")],
        Some(roots) => {
            SYSTEM.map(Path::new).into_iter().chain(roots.iter().map(PathBuf::as_path)).collect()
        }
    };
    let mut grants = Grants { site, paths: Vec::new() };
    for root in readable {
        grants.all_of(root)?;
    }
    let read = std::mem::take(&mut grants.paths);
    let (roots, execute) = match reach {
        Reach::Look => (Vec::new(), Execute::Itself),
        Reach::Agent => {
            let named = site.variable(OsStr::new("TMPDIR")).unwrap_or(TEMPORARY.into());
            let temporary = site.fs().canonical(Path::new(&named)).ok();
            (writable(site).into_iter().chain(temporary).collect(), Execute::Readable)
        }
    };
    for root in roots {
        grants.all_of(&root)?;
    }
    let mut write = grants.paths;
    write.extend(DEVICES.map(PathBuf::from));
    Ok(Confinement::Landlock { read, write, execute })
}

/// Where the agent writes without asking anybody, of what the tool may use.
fn writable(site: &Site) -> Vec<PathBuf> {
    let Rights { writes, allowances, .. } = site.rights();
    let everywhere = [PathBuf::from("/")];
    let Allowances { write_files, write_directories, .. } = allowances;
    let freely = writes.paths().unwrap_or(&everywhere).iter();
    let freely = Roots::below(freely.chain(write_files).chain(write_directories).cloned());
    freely.meet(site.roots()).paths().unwrap_or_default().to_vec()
}

struct Grants<'a> {
    site: &'a Site,
    paths: Vec<PathBuf>,
}

impl Grants<'_> {
    /// Grants what is in `path`, absolute and without links, but for what is closed.
    fn all_of(&mut self, path: &Path) -> Result<(), FileError> {
        self.site.check_wanted()?;
        if self.site.is_closed(path) || self.paths.len() >= PROGRAM_GRANTS_MAX {
            return Ok(());
        }
        if !self.site.has_closed_within(path) {
            self.paths.push(path.to_owned());
            return Ok(());
        }
        for name in beside(self.site.fs(), path) {
            self.all_of(&path.join(name))?;
        }
        Ok(())
    }
}

/// What is in a directory, but for links: where they lead is granted there, or not. What cannot be
/// listed is not granted.
fn beside(fs: &dyn Fs, path: &Path) -> Vec<std::ffi::OsString> {
    let entries = fs.dir(path).and_then(|dir| dir.list()).unwrap_or_default();
    entries.into_iter().filter(|entry| entry.kind != Kind::Link).map(|entry| entry.name).collect()
}
