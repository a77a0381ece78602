//! `--report F.html`: a place where nothing can be written is told before the first run, and the page takes
//! its name when it is whole.

use std::fs::Permissions;
use std::io::{self, Write};
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
}

impl Page {
    pub fn begin(path: &Path) -> anyhow::Result<Self> {
        let cannot = || format!("cannot write the report {}", path.display());
        anyhow::ensure!(!path.is_dir(), "{}: it is a directory", cannot());
        let page = Self { path: path.to_owned() };
        // It is removed at once: a run that is ended from outside leaves nothing behind.
        page.beside().with_context(cannot)?;
        Ok(page)
    }

    pub fn finish(self, report: Report) -> anyhow::Result<()> {
        let cannot = || format!("cannot write the report {}", self.path.display());
        let text = report::html(&report.bounded());
        let mut file = self.beside().with_context(cannot)?;
        file.write_all(text.as_bytes()).with_context(cannot)?;
        file.persist(&self.path).with_context(cannot)?;
        output::note(&format!("the report is {}", self.path.display()));
        Ok(())
    }

    /// A file in the same folder, which is gone unless it takes the page's name.
    fn beside(&self) -> io::Result<NamedTempFile> {
        let folder = match self.path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            Some(_) | None => Path::new("."),
        };
        let mut builder = tempfile::Builder::new();
        builder.permissions(Permissions::from_mode(MODE)).tempfile_in(folder)
    }
}
