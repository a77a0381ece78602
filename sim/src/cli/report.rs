//! `--report F.html`: the file is begun before the first run, so that a place where nothing can be written
//! is told at once, and takes its name when it is whole.

use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use tempfile::NamedTempFile;

use super::output;
use crate::report::{self, Report};

/// What a umask takes away from.
const MODE: u32 = 0o666;

/// A page that is going to be written.
#[derive(Debug)]
pub struct Page {
    path: PathBuf,
    file: NamedTempFile,
}

impl Page {
    pub fn begin(path: &Path) -> anyhow::Result<Self> {
        let cannot = || format!("cannot write the report {}", path.display());
        anyhow::ensure!(!path.is_dir(), "{}: it is a directory", cannot());
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            Some(_) | None => Path::new("."),
        };
        let mut builder = tempfile::Builder::new();
        let file = builder.permissions(Permissions::from_mode(MODE)).tempfile_in(folder);
        Ok(Self { path: path.to_owned(), file: file.with_context(cannot)? })
    }

    pub fn finish(mut self, report: Report) -> anyhow::Result<()> {
        let cannot = || format!("cannot write the report {}", self.path.display());
        let text = report::html(&report.bounded());
        self.file.write_all(text.as_bytes()).with_context(cannot)?;
        self.file.persist(&self.path).with_context(cannot)?;
        output::note(&format!("the report is {}", self.path.display()));
        Ok(())
    }
}
