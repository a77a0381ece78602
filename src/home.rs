//! The server's own directory: made, locked against a second server, and the place of the token.
//! Only names and modes are decided here; what else lies in it belongs to others.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

use crate::world::{Access, Chance, Dir, File, Fs, Use, World};

/// The port whose token file needs no number in its name.
pub const DEFAULT_PORT: u16 = 8765;

/// The truth of a home, which its first server makes.
pub const DATABASE: &str = "nexus3.db";
const LOCK: &str = "server.lock";
const LOCK_BYTES_MAX: u64 = 4096;
const TOKEN_PREFIX: &str = "nxk_";
const TOKEN_HEX: usize = 64;
const TEMP_NAME_HEX: usize = 16;

/// Our directory, held for this process alone.
pub struct Home {
    path: PathBuf,
    dir: Arc<dyn Dir>,
    /// The lock lasts as long as this handle.
    lock: Arc<dyn File>,
}

impl std::fmt::Debug for Home {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Home").field(&self.path).finish()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    #[error("cannot use {} as the server's home", path.display())]
    Unusable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(
        "others can enter the server's home {}: run `chmod 700 {}`, or name another place with --home",
        path.display(),
        path.display()
    )]
    Open { path: PathBuf },
    #[error("another server uses the home {}: {holder}", path.display())]
    Locked { path: PathBuf, holder: String },
    #[error("cannot write {} in the server's home", name.display())]
    Write {
        name: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// Who holds a home, as its lock file says.
#[derive(Debug, Serialize, Deserialize)]
struct Holder {
    pid: u32,
    port: u16,
}

impl Home {
    /// Makes the directory where there is none. One that others can enter is refused rather than
    /// closed to them: it may be anybody's.
    pub fn prepare(fs: &dyn Fs, path: &Path) -> Result<Arc<dyn Dir>, HomeError> {
        let unusable = |source| HomeError::Unusable { path: path.to_owned(), source };
        let dir = match fs.dir(path) {
            // Who has made it came further than that.
            Ok(dir) if dir.stat(Path::new(DATABASE)).is_ok() => dir,
            Ok(_) | Err(_) => make(fs, path).map_err(unusable)?,
        };
        let mode = dir.stat(Path::new(".")).map_err(unusable)?.mode;
        if mode & 0o077 != 0 {
            return Err(HomeError::Open { path: path.to_owned() });
        }
        Ok(dir)
    }

    /// Prepares the directory and takes its lock.
    pub fn open(fs: &dyn Fs, path: &Path) -> Result<Self, HomeError> {
        let unusable = |source| HomeError::Unusable { path: path.to_owned(), source };
        let dir = Self::prepare(fs, path)?;
        let lock = dir.open(Path::new(LOCK), Access::Create { mode: 0o600 }).map_err(unusable)?;
        match lock.try_lock() {
            Ok(()) => {
                // What an earlier server wrote there is no longer true.
                lock.set_len(0).map_err(unusable)?;
                remove_stale_tokens(dir.as_ref());
                Ok(Self { path: path.to_owned(), dir, lock })
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                Err(HomeError::Locked { path: path.to_owned(), holder: holder(lock.as_ref()) })
            }
            Err(error) => Err(unusable(error)),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Notes who we are, for a second server that finds the lock taken.
    pub fn sign(&self, pid: u32, port: u16) -> Result<(), HomeError> {
        let text = serde_json::to_vec(&Holder { pid, port }).expect("two numbers are JSON");
        let signed = self.lock.set_len(0).and_then(|()| self.lock.write_at(&text, 0));
        signed.map_err(|source| HomeError::Write { name: LOCK.into(), source })
    }

    pub fn write_token(
        &self,
        world: &World,
        port: u16,
        token: &SecretString,
    ) -> Result<PathBuf, HomeError> {
        let name = token_name(port);
        let temp = temp_name(&name, &world.chance.hex(Use::TempName, TEMP_NAME_HEX));
        let written = self.dir.replace(&name, token.expose_secret().as_bytes(), 0o600, &temp);
        written.map_err(|source| HomeError::Write { name: name.clone(), source })?;
        Ok(self.path.join(name))
    }

    /// Removes the token for good: no power cut brings back what opens no server any more.
    pub fn remove_token(&self, port: u16) -> Result<(), HomeError> {
        let name = token_name(port);
        let removed = self.dir.remove_file(&name).and_then(|()| self.dir.sync());
        removed.map_err(|source| HomeError::Write { name, source })
    }
}

/// A new token, which nobody can guess.
pub fn new_token(chance: &dyn Chance) -> SecretString {
    format!("{TOKEN_PREFIX}{}", chance.hex(Use::Token, TOKEN_HEX)).into()
}

/// Whether a server uses a home, and which one did last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lock {
    Held { holder: String },
    Free { holder: String },
}

/// Looks at the lock of a home.
pub fn lock(dir: &dyn Dir) -> Lock {
    let Ok(file) = dir.open(Path::new(LOCK), Access::Read) else {
        return Lock::Free { holder: "nobody".to_owned() };
    };
    let holder = holder(file.as_ref());
    match file.try_lock() {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Lock::Held { holder },
        Ok(()) | Err(_) => Lock::Free { holder },
    }
}

/// `rpc.token` for the default port, `rpc-{port}.token` for others.
pub fn token_name(port: u16) -> PathBuf {
    if port == DEFAULT_PORT { "rpc.token".into() } else { format!("rpc-{port}.token").into() }
}

/// The directory at `path`, made with those above it where they are missing. It is durable, also where a
/// server that was killed has made it a moment ago.
pub fn make(fs: &dyn Fs, path: &Path) -> io::Result<Arc<dyn Dir>> {
    match fs.dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        found => return found.and_then(|dir| sync_entry(fs, path).map(|()| dir)),
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let parent = make(fs, parent)?;
    match parent.make_dir(Path::new(name), 0o700) {
        // Somebody else made it at the same moment.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => parent.sync()?,
        made => {
            made?;
            parent.sync().inspect_err(|_| {
                // A sync that failed is not made up for by the next one, which has nothing to write:
                // what it was about is made again instead. Where it cannot go, the error tells enough.
                let _ = parent.remove_dir(Path::new(name));
            })?;
        }
    }
    parent.dir(Path::new(name))
}

fn sync_entry(fs: &dyn Fs, path: &Path) -> io::Result<()> {
    let Some(parent) = path.parent() else {
        return Ok(());
    };
    match fs.dir(parent).and_then(|parent| parent.sync()) {
        // Nobody like us has made anything there.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        synced => synced,
    }
}

/// A server that dies leaves its token, or the file it was about to put in its place. Only the holder
/// of the lock writes such files, so whatever is found is nobody's any more: it opens no server, and
/// the next one at that port has another.
fn remove_stale_tokens(dir: &dyn Dir) {
    let names = dir.list().unwrap_or_default().into_iter().map(|entry| PathBuf::from(entry.name));
    for name in names.filter(|name| is_token(name) || is_temp(name)) {
        if let Err(error) = dir.remove_file(&name) {
            // It is in nobody's way.
            tracing::warn!(name = %name.display(), %error, "a stale token file stays behind");
        }
    }
}

/// Whether a file of a home is called like a server's token.
pub fn is_token(name: &Path) -> bool {
    let port = |text: &str| text.strip_prefix("rpc-")?.strip_suffix(".token")?.parse().ok();
    let port = name.to_str().and_then(port).unwrap_or(DEFAULT_PORT);
    // Written in one way only: nobody else's `rpc-08.token` is touched.
    name == token_name(port)
}

/// The name that a token's file has until it is whole.
fn temp_name(name: &Path, digits: &str) -> String {
    format!(".{}.{digits}", name.display())
}

fn is_temp(name: &Path) -> bool {
    let parts = name.to_str().and_then(|text| text.strip_prefix(".rpc")?.rsplit_once(".token."));
    parts.is_some_and(|(_port, digits)| {
        digits.len() == TEMP_NAME_HEX && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
    })
}

fn holder(lock: &dyn File) -> String {
    let text = lock.read_all(LOCK_BYTES_MAX).unwrap_or_default();
    match serde_json::from_slice::<Holder>(&text) {
        Ok(Holder { pid, port }) => format!("process {pid}, port {port}"),
        Err(_) => "it is just starting".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_and_half_written_ones_are_told_from_all_other_files() {
        for port in [DEFAULT_PORT, 9000] {
            let temp = temp_name(&token_name(port), "0123456789abcdef");
            assert!(is_temp(Path::new(&temp)), "{temp}");
            assert!(is_token(&token_name(port)), "{port}");
        }
        for other in
            ["rpc.token", "server.lock", ".rpc.token", ".rpc.token.0123", ".x.0123456789abcdef"]
        {
            assert!(!is_temp(Path::new(other)), "{other}");
        }
        for other in ["rpc-09000.token", "rpc-8765.token", "rpc-.token", "rpc-70000.token", "rpc"] {
            assert!(!is_token(Path::new(other)), "{other}");
        }
    }
}
