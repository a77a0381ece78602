//! `file_info`: what is at a path, without reading it.

use schemars::JsonSchema;
use serde::Deserialize;

use super::error::{FileError, Given};
use super::workplace::Site;
use super::{OnFiles, Wanted};
use crate::event::iso;
use crate::policy::Side;
use crate::world::{Kind, Stat};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FileInfo {
    /// The file or directory, relative to the working directory. A link stands for what it leads to.
    path: String,
}

impl OnFiles for FileInfo {
    const NAME: &'static str = "file_info";
    const PATHS: Wanted = &[("path", Side::Read)];
    const DESCRIPTION: &'static str =
        "Tells the kind, size, time of change and mode of a file or directory.";

    fn work(self, site: &Site) -> Result<String, FileError> {
        let stat = site.reading(&Given::new(&self.path), |spot| spot.parent.stat(spot.name()))?;
        let bytes = bytes(&stat).map(|bytes| format!("bytes: {bytes}\n")).unwrap_or_default();
        Ok(format!(
            "kind: {}\n{bytes}modified: {}\nmode: {:04o}\n",
            kind_name(stat.kind),
            iso(stat.modified),
            stat.mode
        ))
    }
}

/// How long a file is. Only files have a length: what a directory or a link is said to have differs between
/// file systems and with the place of a project, and tells nobody anything.
pub(super) fn bytes(stat: &Stat) -> Option<u64> {
    match stat.kind {
        Kind::File => Some(stat.len),
        Kind::Dir | Kind::Link | Kind::Other => None,
    }
}

pub(super) fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::File => "file",
        Kind::Dir => "directory",
        Kind::Link => "link",
        Kind::Other => "other",
    }
}
