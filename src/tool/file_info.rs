//! `file_info`: what is at a path, without reading it.

use schemars::JsonSchema;
use serde::Deserialize;

use super::error::{FileError, Given};
use super::workplace::Site;
use super::{OnFiles, Wanted};
use crate::event::iso;
use crate::policy::Side;
use crate::world::Kind;

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
        Ok(format!(
            "kind: {}\nbytes: {}\nmodified: {}\nmode: {:04o}\n",
            kind_name(stat.kind),
            stat.len,
            iso(stat.modified),
            stat.mode
        ))
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
