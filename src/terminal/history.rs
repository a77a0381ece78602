//! What was typed at terminals, kept in the home for those to come: a file of JSON strings, one in each
//! line, from the oldest. It is replaced whole and under a lock, so that two terminals keep each other's.
//! Answers to questions are no text and never come here; neither do lines with secrets.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::time::sleep;

use crate::limits::terminal::{
    HISTORY_BYTES_MAX, HISTORY_ENTRY_BYTES_MAX, HISTORY_LOCK_AFTER, HISTORY_LOCK_ATTEMPTS_MAX,
    TYPED_KEPT_MAX,
};
use crate::world::{Access, Dir, File, Use, World};

const NAME: &str = "history";
const LOCK: &str = "history.lock";
const TEMP_NAME_HEX: usize = 16;
/// What a token of a server begins with.
const TOKEN: &str = "nxk_";
/// Flags whose values are nobody else's business.
const SECRET_FLAGS: [&str; 3] = ["--api-key", "--header", "--env"];

/// Whether a text may be kept: not what begins with a space, and nothing that holds a secret.
pub fn is_kept(text: &str) -> bool {
    let secret = |word: &str| {
        let flag = word.split('=').next().unwrap_or_default();
        SECRET_FLAGS.contains(&flag) || word.contains(TOKEN)
    };
    !text.trim().is_empty()
        && !text.starts_with(' ')
        && text.len() <= HISTORY_ENTRY_BYTES_MAX
        && !text.split_whitespace().any(secret)
}

/// The file of one home.
#[derive(Clone, Debug)]
pub struct History {
    world: World,
    home: PathBuf,
}

impl History {
    pub fn new(world: World, home: PathBuf) -> Self {
        Self { world, home }
    }

    /// What was typed before, from the oldest. Nothing where it cannot be read.
    pub async fn recall(&self) -> Vec<String> {
        let (world, home) = (self.world.clone(), self.home.clone());
        let read = move || world.fs.dir(&home).and_then(|dir| read(dir.as_ref()));
        self.world.blocking.call(read).await.unwrap_or_default()
    }

    /// Adds what was typed. Where there is no home, nothing is kept.
    pub async fn remember(&self, typed: Vec<String>) -> io::Result<()> {
        let dir = match self.world.fs.dir(&self.home) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            dir => dir?,
        };
        let lock = locked(&dir).await?;
        let temp = self.world.chance.hex(Use::TempName, TEMP_NAME_HEX);
        let added = move || {
            let added = add(dir.as_ref(), typed, &format!(".{NAME}.{temp}"));
            drop(lock);
            added
        };
        self.world.blocking.call(added).await
    }
}

/// The lock, which lasts as long as it is held: others have it for a moment only.
async fn locked(dir: &Arc<dyn Dir>) -> io::Result<Arc<dyn File>> {
    let lock = dir.open(Path::new(LOCK), Access::Create { mode: 0o600 })?;
    let mut attempt = 1;
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            Err(error) if attempt == HISTORY_LOCK_ATTEMPTS_MAX => return Err(error),
            Err(_) => {}
        }
        attempt += 1;
        sleep(HISTORY_LOCK_AFTER).await;
    }
}

fn add(dir: &dyn Dir, typed: Vec<String>, temp: &str) -> io::Result<()> {
    let mut kept = match read(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        kept => kept?,
    };
    for text in typed {
        if kept.last() != Some(&text) {
            kept.push(text);
        }
    }
    dir.replace(Path::new(NAME), written(&kept).as_bytes(), 0o600, temp)
}

/// The end of the file, as much as may be kept. Lines that are none of ours are passed over.
fn read(dir: &dyn Dir) -> io::Result<Vec<String>> {
    let file = dir.open(Path::new(NAME), Access::Read)?;
    let len = file.stat()?.len;
    let (mut bytes, begin) = (Vec::new(), len.saturating_sub(HISTORY_BYTES_MAX as u64));
    let mut piece = [0; 16 * 1024];
    while bytes.len() < HISTORY_BYTES_MAX {
        let count = file.read_at(&mut piece, begin + bytes.len() as u64)?;
        if count == 0 {
            break;
        }
        bytes.extend_from_slice(&piece[..count]);
    }
    Ok(String::from_utf8_lossy(&bytes)
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect())
}

/// As the file has them: the newest that there is room for.
fn written(kept: &[String]) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut bytes = 0;
    for text in kept.iter().rev().take(TYPED_KEPT_MAX) {
        let line = serde_json::to_string(text).expect("a text is JSON") + "\n";
        bytes += line.len();
        if bytes > HISTORY_BYTES_MAX {
            break;
        }
        lines.push(line);
    }
    lines.reverse();
    lines.concat()
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
