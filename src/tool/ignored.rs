//! What a search leaves out: `.git`, and what the ignore files on the way from the working directory
//! say, the nearest first. Reads ignore files through directory handles only; one that is a link, or
//! no text, counts as none.

use std::path::{Path, PathBuf};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::limits::IGNORE_FILE_BYTES_MAX;
use crate::world::{Access, Dir, Kind};

/// In one directory the later wins.
const NAMES: [&str; 2] = [".gitignore", ".ignore"];

/// The rules that hold where a walk is, which visits directories before what is in them.
#[derive(Debug, Default)]
pub struct Ignored {
    /// By the directory they stand in, the outermost first.
    rules: Vec<(PathBuf, Gitignore)>,
}

impl Ignored {
    /// Reads the rules of a directory, by its path from `root`.
    pub fn enter(&mut self, root: &dyn Dir, dir: &Path) {
        let mut builder = GitignoreBuilder::new(".");
        for name in NAMES {
            let text = root
                .open(&dir.join(name), Access::Read)
                .and_then(|file| file.read_all(IGNORE_FILE_BYTES_MAX))
                .ok()
                .and_then(|bytes| String::from_utf8(bytes).ok());
            for line in text.iter().flat_map(|text| text.lines()) {
                // As for git, a line that is no pattern is none.
                let _ = builder.add_line(None, line);
            }
        }
        if let Ok(rules) = builder.build()
            && !rules.is_empty()
        {
            self.rules.push((dir.to_owned(), rules));
        }
    }

    /// Whether something is to be left out, by its path from the root.
    pub fn covers(&mut self, path: &Path, kind: Kind) -> bool {
        while self.rules.last().is_some_and(|(dir, _)| !path.starts_with(dir)) {
            self.rules.pop();
        }
        if path.file_name().is_some_and(|name| name == ".git") {
            return true;
        }
        for (dir, rules) in self.rules.iter().rev() {
            let below = path.strip_prefix(dir).expect("rules of other directories are gone");
            match rules.matched(below, kind == Kind::Dir) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => (),
            }
        }
        false
    }
}
