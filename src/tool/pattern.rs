//! Patterns that models give: globs for names and paths. Bounded in size, and refused with what is
//! wrong with them.

use std::path::{Component, Path};

use globset::{GlobBuilder, GlobMatcher};

use super::error::FileError;
use crate::limits::PATTERN_BYTES_MAX;

/// A glob for paths below some directory. `*` and `?` stay within a name, `**` goes on over `/`.
/// Names are bytes to it, as to the disk: `?` is one of them, and `é`, which has two, wants a `*`.
#[derive(Debug)]
pub struct PathGlob(GlobMatcher);

impl PathGlob {
    pub fn parse(argument: &'static str, text: &str) -> Result<Self, FileError> {
        let refused = |why: &str| FileError::Pattern { argument, why: why.to_owned() };
        check_size(argument, text)?;
        let plain = text.strip_prefix("./").unwrap_or(text);
        if plain.is_empty() {
            return Err(refused("it is empty"));
        }
        let is_outward = |step| !matches!(step, Component::Normal(_) | Component::CurDir);
        if Path::new(plain).components().any(is_outward) {
            return Err(refused("it must be relative to `path`, without `..`"));
        }
        let glob = GlobBuilder::new(plain).literal_separator(true).build();
        let glob = glob.map_err(|error| refused(&error.kind().to_string()))?;
        Ok(Self(glob.compile_matcher()))
    }

    pub fn is_match(&self, path: &Path) -> bool {
        self.0.is_match(path)
    }
}

/// A glob for names at any depth, or, with a `/` in it, for paths.
#[derive(Debug)]
pub enum Filter {
    Name(PathGlob),
    Path(PathGlob),
}

impl Filter {
    pub fn parse(argument: &'static str, text: &str) -> Result<Self, FileError> {
        let text = text.strip_suffix('/').unwrap_or(text);
        let glob = PathGlob::parse(argument, text)?;
        Ok(if text.contains('/') { Self::Path(glob) } else { Self::Name(glob) })
    }

    pub fn is_match(&self, path: &Path) -> bool {
        match self {
            Self::Name(glob) => path.file_name().is_some_and(|name| glob.is_match(Path::new(name))),
            Self::Path(glob) => glob.is_match(path),
        }
    }
}

pub fn check_size(argument: &'static str, text: &str) -> Result<(), FileError> {
    if text.len() <= PATTERN_BYTES_MAX {
        return Ok(());
    }
    let why = format!("it is longer than {PATTERN_BYTES_MAX} bytes");
    Err(FileError::Pattern { argument, why })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stays_within_a_name() {
        let matched = |glob: &str, path: &str| {
            PathGlob::parse("pattern", glob).unwrap().is_match(Path::new(path))
        };
        assert!(matched("*.rs", "a.rs") && !matched("*.rs", "src/a.rs"));
        assert!(matched("**/*.rs", "a.rs") && matched("**/*.rs", "src/deep/a.rs"));
        assert!(matched("./src/{a,b}.rs", "src/b.rs") && matched("[!x]?", ".a"));
    }

    #[test]
    fn a_filter_is_for_names_unless_it_has_a_slash() {
        let matched = |glob: &str, path: &str| {
            Filter::parse("exclude", glob).unwrap().is_match(Path::new(path))
        };
        assert!(matched("target", "a/target") && matched("target/", "target"));
        assert!(matched("a/*", "a/b") && !matched("a/*", "x/a/b"));
    }

    #[test]
    fn a_glob_that_cannot_match_is_refused() {
        let why = |glob: &str| PathGlob::parse("pattern", glob).unwrap_err().to_string();
        let outward = "`pattern` is not valid: it must be relative to `path`, without `..`";
        assert_eq!(why("../x"), outward);
        assert_eq!(why("/etc/*"), outward);
        assert_eq!(why(""), "`pattern` is not valid: it is empty");
        assert!(why("a[").starts_with("`pattern` is not valid: "));
        assert_eq!(
            why(&"x".repeat(PATTERN_BYTES_MAX + 1)),
            "`pattern` is not valid: it is longer than 4096 bytes"
        );
    }
}
