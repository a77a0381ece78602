//! A disk with somebody who looks on: what tools and prompts find on it, as they find it, and what the
//! server itself leaves there. Nothing is changed. A file that is read is read once more for the
//! recording, as long as there is room for it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;

use super::note::{Found, Listing, Sighting, What};
use super::{Recorder, temporary};
use crate::limits::RECORD_FILE_BYTES_MAX;
use crate::world::{Access, Dir, Entry, File, Fs, Kind, Stat};

/// What of the server's own directory agents and their prompts see.
const OF_HOME: [&str; 2] = ["NEXUS.md", "sessions"];
/// How the files are called that are about to become others.
const TEMPORARY: &str = ".nexus3-";

pub(super) fn watched(
    recorder: &Recorder,
    inner: Arc<dyn Fs>,
    home: &Path,
    logs: &Path,
) -> Arc<dyn Fs> {
    let resolved = |path: &Path| inner.canonical(path).unwrap_or_else(|_| path.to_owned());
    let (home, logs) = (resolved(home), resolved(logs));
    let given = &recorder.shared.path;
    let dir = given.parent().map(resolved);
    let path = match (dir, given.file_name()) {
        (Some(dir), Some(name)) => dir.join(name),
        _ => given.clone(),
    };
    let temp = path.file_name().map(|name| path.with_file_name(temporary(Path::new(name))));
    let ours = std::iter::once(path).chain(temp).collect();
    let eye = Arc::new(Eye { recorder: recorder.clone(), home, logs, ours });
    Arc::new(WatchedFs { inner, eye })
}

/// Who looks on.
struct Eye {
    recorder: Recorder,
    home: PathBuf,
    logs: PathBuf,
    /// The recording itself.
    ours: Vec<PathBuf>,
}

impl Eye {
    /// Whether a recording is about this path.
    fn minds(&self, path: &Path) -> bool {
        if !self.recorder.is_on() || path.starts_with(&self.logs) {
            return false;
        }
        if self.ours.iter().any(|ours| ours == path) {
            return false;
        }
        let name = path.file_name().map(|name| name.to_string_lossy());
        if name.is_some_and(|name| name.starts_with(TEMPORARY)) {
            return false;
        }
        match path.strip_prefix(&self.home) {
            Ok(inside) => OF_HOME.iter().any(|own| inside.starts_with(own)),
            Err(_) => true,
        }
    }

    fn saw(&self, path: PathBuf, found: Found, stat: &Stat) {
        let is_partial = match found {
            Found::Dir | Found::Link(_) | Found::File => true,
            Found::Content(_)
            | Found::Large
            | Found::Nothing
            | Found::Ours
            | Found::OurDir
            | Found::OurRemoval => false,
        };
        // A session is only worth something whole.
        let is_enough = !is_partial || (self.is_in_a_root(&path) && !path.starts_with(&self.home));
        if is_enough {
            self.noted(path, found, stat);
        }
    }

    /// Somebody asks what there is, which only agents do elsewhere.
    fn asked_about(&self, path: PathBuf, found: Found, stat: &Stat) {
        if path.starts_with(&self.home) {
            self.saw(path, found, stat);
        } else {
            self.noted(path, found, stat);
        }
    }

    /// The same, wherever it is.
    fn noted(&self, path: PathBuf, found: Found, stat: &Stat) {
        if self.minds(&path) {
            self.recorder.note(What::File(Sighting::of(path, found, stat)));
        }
    }

    /// Whether a list of this directory is for an agent. The server itself looks for what lies beside
    /// its own directory and those of the system, which it keeps from programs.
    fn is_listed(&self, path: &Path) -> bool {
        let is_around = path.parent().is_none() || self.home.starts_with(path);
        self.is_in_a_root(path) || !is_around
    }

    fn is_in_a_root(&self, path: &Path) -> bool {
        self.recorder.shared.roots.load().iter().any(|root| path.starts_with(root))
    }

    fn gone(&self, path: PathBuf, found: Found) {
        if self.minds(&path) {
            let (len, mode, modified) = (0, 0, Timestamp::UNIX_EPOCH);
            let sighting = Sighting { path, found, len, mode, modified };
            self.recorder.note(What::File(sighting));
        }
    }

    /// Passes on a result, and that there is nothing where that is why it failed.
    fn missed<T>(&self, path: &Path, result: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &result
            && error.kind() == io::ErrorKind::NotFound
        {
            self.gone(path.to_owned(), Found::Nothing);
        }
        result
    }
}

struct WatchedFs {
    inner: Arc<dyn Fs>,
    eye: Arc<Eye>,
}

impl Fs for WatchedFs {
    fn dir(&self, path: &Path) -> io::Result<Arc<dyn Dir>> {
        let inner = self.eye.missed(path, self.inner.dir(path));
        let inner = self.blocked(path, inner)?;
        let path = self.inner.canonical(path).unwrap_or_else(|_| path.to_owned());
        if let Ok(stat) = inner.stat(Path::new(".")) {
            self.eye.saw(path.clone(), Found::Dir, &stat);
        }
        Ok(Arc::new(WatchedDir { inner, path, eye: Arc::clone(&self.eye) }))
    }

    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        let resolved = self.eye.missed(path, self.inner.canonical(path));
        let resolved = self.blocked(path, resolved)?;
        if resolved != path {
            self.look_along(path, |kind| match kind {
                // Whoever turns back has come through it.
                Kind::Link | Kind::Dir => true,
                Kind::File | Kind::Other => false,
            });
        }
        Ok(resolved)
    }
}

impl WatchedFs {
    /// Passes on a result, and what is in the way where that is why it failed.
    fn blocked<T>(&self, path: &Path, result: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &result
            && error.kind() == io::ErrorKind::NotADirectory
        {
            self.look_along(path, |kind| kind != Kind::Dir);
        }
        result
    }

    /// A path that leads elsewhere, or nowhere: everything else is seen where it leads to.
    fn look_along(&self, path: &Path, is_meant: impl Fn(Kind) -> bool) {
        for place in path.ancestors() {
            let (Some(folder), Some(name)) = (place.parent(), place.file_name()) else { continue };
            let Ok(inner) = self.inner.dir(folder) else { continue };
            let path = self.inner.canonical(folder).unwrap_or_else(|_| folder.to_owned());
            let folder = WatchedDir { inner, path, eye: Arc::clone(&self.eye) };
            let stat = folder.inner.stat(Path::new(name));
            if let Some(stat) = stat.ok().filter(|stat| is_meant(stat.kind)) {
                folder.look(Path::new(name), &stat);
            }
        }
    }
}

struct WatchedDir {
    inner: Arc<dyn Dir>,
    path: PathBuf,
    eye: Arc<Eye>,
}

impl WatchedDir {
    fn watched(&self, inner: Arc<dyn File>, path: &Path, known: Known) -> WatchedFile {
        let is_ours = known == Known::Ours;
        WatchedFile {
            inner,
            path: self.at(path),
            eye: Arc::clone(&self.eye),
            is_read: AtomicBool::new(is_ours),
            is_written: AtomicBool::new(is_ours),
        }
    }

    fn at(&self, path: &Path) -> PathBuf {
        if path == Path::new(".") { self.path.clone() } else { self.path.join(path) }
    }

    /// What there is without a look inside.
    fn look(&self, path: &Path, stat: &Stat) {
        if let Some(found) = self.found(path, stat) {
            self.eye.saw(self.at(path), found, stat);
        }
    }

    fn found(&self, path: &Path, stat: &Stat) -> Option<Found> {
        match stat.kind {
            Kind::Dir => Some(Found::Dir),
            Kind::File => Some(Found::File),
            Kind::Link => self.inner.read_link(path).ok().map(Found::Link),
            Kind::Other => None,
        }
    }

    /// A whole directory as one note: large ones would fill the queue.
    fn listing(&self, entries: &[Entry]) -> Listing {
        let (mut seen, mut unseen) = (Vec::with_capacity(entries.len() + 1), Vec::new());
        let names = entries.iter().map(|entry| Path::new(&entry.name));
        for name in std::iter::once(Path::new(".")).chain(names) {
            let path = self.at(name);
            if !self.eye.minds(&path) {
                continue;
            }
            let stat = self.inner.stat(name).ok();
            match stat.and_then(|stat| Some((self.found(name, &stat)?, stat))) {
                Some((found, stat)) => seen.push(Sighting::of(path, found, &stat)),
                None => unseen.push(path),
            }
        }
        Listing { directory: self.path.clone(), seen, unseen }
    }

    /// Passes on a result, and why it failed where what is there, or is not, is to blame.
    fn blocked<T>(&self, path: &Path, result: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &result
            && error.kind() == io::ErrorKind::NotADirectory
        {
            for place in path.ancestors().filter(|place| !place.as_os_str().is_empty()) {
                let stat = self.inner.stat(place);
                if let Some(stat) = stat.ok().filter(|stat| stat.kind != Kind::Dir) {
                    self.look(place, &stat);
                }
            }
        }
        self.eye.missed(&self.at(path), result)
    }

    /// What is in a file that will be elsewhere, or nowhere: nobody reads it any more.
    fn keep(&self, path: &Path) {
        if self.eye.minds(&self.at(path))
            && let Ok(file) = self.inner.open(path, Access::Read)
        {
            self.watched(file, path, Known::No).keep();
        }
    }

    /// What the server has left there.
    fn left(&self, path: &Path) {
        if let Ok(stat) = self.inner.stat(path) {
            let found = match stat.kind {
                Kind::Dir => Found::OurDir,
                Kind::File | Kind::Link | Kind::Other => Found::Ours,
            };
            self.eye.saw(self.at(path), found, &stat);
        }
    }

    /// The directory that something is put into is there, though nobody looks at it where no agent
    /// works.
    fn look_around(&self, path: &Path) {
        let place = self.at(path);
        if self.eye.is_in_a_root(&place) || place.starts_with(&self.eye.home) {
            return;
        }
        let Some(folder) = place.parent().filter(|folder| self.eye.minds(folder)) else { return };
        let inside = path.parent().filter(|inside| !inside.as_os_str().is_empty());
        if let Ok(Stat { len, mode, modified, kind: Kind::Dir }) =
            self.inner.stat(inside.unwrap_or(Path::new(".")))
        {
            let (path, found) = (folder.to_owned(), Found::Dir);
            let sighting = Sighting { path, found, len, mode, modified };
            self.eye.recorder.note(What::File(sighting));
        }
    }
}

/// Whether the content of a file is known, or nobody's business.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    No,
    Ours,
}

impl Dir for WatchedDir {
    fn dir(&self, path: &Path) -> io::Result<Arc<dyn Dir>> {
        let inner = self.blocked(path, self.inner.dir(path))?;
        if let Ok(stat) = inner.stat(Path::new(".")) {
            self.eye.saw(self.at(path), Found::Dir, &stat);
        }
        Ok(Arc::new(Self { inner, path: self.at(path), eye: Arc::clone(&self.eye) }))
    }

    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>> {
        let inner = self.blocked(path, self.inner.open(path, access))?;
        let known = match access {
            Access::Read | Access::Write => Known::No,
            // What is new, or may be, has nothing to be kept but what the server writes.
            Access::Create { .. } | Access::CreateNew { .. } => Known::Ours,
        };
        Ok(Arc::new(self.watched(inner, path, known)))
    }

    fn stat(&self, path: &Path) -> io::Result<Stat> {
        let stat = self.blocked(path, self.inner.stat(path))?;
        if let Some(found) = self.found(path, &stat) {
            self.eye.asked_about(self.at(path), found, &stat);
        }
        Ok(stat)
    }

    fn list(&self) -> io::Result<Vec<Entry>> {
        let entries = self.inner.list()?;
        if self.eye.is_listed(&self.path) && self.eye.minds(&self.path) {
            self.eye.recorder.note(What::Listed(self.listing(&entries)));
        }
        Ok(entries)
    }

    fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        self.inner.read_link(path)
    }

    fn make_dir(&self, path: &Path, mode: u32) -> io::Result<()> {
        self.look_around(path);
        self.inner.make_dir(path, mode)?;
        self.left(path);
        Ok(())
    }

    fn make_link(&self, path: &Path, target: &Path) -> io::Result<()> {
        self.inner.make_link(path, target)?;
        self.left(path);
        Ok(())
    }

    fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()> {
        self.inner.set_mode(path, mode)?;
        self.left(path);
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.look_around(to);
        self.keep(from);
        self.inner.rename(from, to)?;
        self.left(to);
        self.eye.gone(self.at(from), Found::OurRemoval);
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.keep(path);
        self.inner.remove_file(path)?;
        self.eye.gone(self.at(path), Found::OurRemoval);
        Ok(())
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.inner.remove_dir(path)?;
        self.eye.gone(self.at(path), Found::OurRemoval);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.inner.sync()
    }
}

struct WatchedFile {
    inner: Arc<dyn File>,
    path: PathBuf,
    eye: Arc<Eye>,
    /// Whether its content is known, or nobody's business.
    is_read: AtomicBool,
    is_written: AtomicBool,
}

impl WatchedFile {
    /// Keeps what is in it before anything is done to it.
    fn keep(&self) {
        if self.is_read.swap(true, Ordering::Relaxed) || !self.eye.minds(&self.path) {
            return;
        }
        let Ok(stat) = self.inner.stat() else { return };
        let fits = stat.len <= RECORD_FILE_BYTES_MAX as u64;
        let kept = fits && self.eye.recorder.keeps(usize::try_from(stat.len).unwrap_or(usize::MAX));
        let content = kept.then(|| self.inner.read_all(RECORD_FILE_BYTES_MAX as u64));
        let found = match content {
            Some(Ok(content)) => Found::Content(content),
            Some(Err(_)) => Found::File,
            None => Found::Large,
        };
        self.eye.saw(self.path.clone(), found, &stat);
    }

    fn written(&self) {
        self.is_written.store(true, Ordering::Relaxed);
    }
}

impl File for WatchedFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.keep();
        self.inner.read_at(bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.keep();
        self.written();
        self.inner.write_at(bytes, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.keep();
        self.written();
        self.inner.set_len(len)
    }

    fn stat(&self) -> io::Result<Stat> {
        self.inner.stat()
    }

    fn sync(&self) -> io::Result<()> {
        self.inner.sync()
    }

    fn try_lock(&self) -> io::Result<()> {
        self.inner.try_lock()
    }
}

impl Drop for WatchedFile {
    fn drop(&mut self) {
        if self.is_written.load(Ordering::Relaxed)
            && self.eye.minds(&self.path)
            && let Ok(stat) = self.inner.stat()
        {
            self.eye.saw(self.path.clone(), Found::Ours, &stat);
        }
    }
}
