//! `list_directory`: the names in one directory.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::error::{FileError, Given};
use super::file_info::{bytes, kind_name};
use super::text::{Full, Sheet, counted, shown_name};
use super::workplace::Site;
use super::{OnFiles, Wanted};
use crate::event::iso;
use crate::policy::Side;
use crate::world::{Dir, Entry, Kind};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListDirectory {
    /// The directory; the working directory by default.
    #[serde(default = "here")]
    path: String,
    /// Whether names that begin with a dot are listed.
    #[serde(default)]
    all: bool,
    /// Whether kind, bytes, time of change and mode stand before each name.
    #[serde(default)]
    long: bool,
}

pub(super) fn here() -> String {
    ".".to_owned()
}

impl OnFiles for ListDirectory {
    const NAME: &'static str = "list_directory";
    const PATHS: Wanted = &[("path", Side::Read)];
    const DESCRIPTION: &'static str = "Lists the names in a directory, sorted. Directories end in \
                                       /, links in @. glob lists whole trees.";

    fn work(self, site: &Site) -> Result<String, FileError> {
        let given = Given::new(&self.path);
        let (dir, entries) = site.reading(&given, |spot| {
            let dir = spot.parent.dir(spot.name())?;
            let entries = dir.list()?.into_iter();
            // What is closed to the agent is not there for it.
            let open = entries.filter(|entry| !site.is_closed(&spot.resolved.join(&entry.name)));
            Ok((dir, open.collect::<Vec<Entry>>()))
        })?;
        let all = entries.len();
        let hidden = |entry: &Entry| entry.name.as_bytes().starts_with(b".");
        let listed: Vec<Entry> =
            entries.into_iter().filter(|entry| self.all || !hidden(entry)).collect();
        let (mut sheet, mut notes) = (Sheet::default(), Vec::new());
        for (index, entry) in listed.iter().enumerate() {
            site.check_wanted()?;
            if let Err(Full) = sheet.line(&self.line(&dir, entry)) {
                let total = listed.len();
                notes.push(format!(
                    "Cut after {index} of {total} names. glob finds the others by a pattern."
                ));
                break;
            }
        }
        if all == 0 {
            notes.push("The directory is empty.".to_owned());
        }
        if listed.len() < all {
            let hidden = counted(all - listed.len(), "name begins", "names begin");
            notes.push(format!("{hidden} with a dot. all lists them."));
        }
        Ok(sheet.end(&notes))
    }
}

impl ListDirectory {
    fn line(&self, dir: &Arc<dyn Dir>, entry: &Entry) -> String {
        let name = format!("{}{}", shown_name(&entry.name), mark(entry.kind));
        if !self.long {
            return name;
        }
        // It may be gone by now, or its facts may not be told; the name was there.
        match dir.stat(Path::new(&entry.name)) {
            Ok(stat) => format!(
                "{:<9}  {:>10}  {}  {:04o}  {name}",
                kind_name(stat.kind),
                bytes(&stat).map_or_else(|| "-".to_owned(), |bytes| bytes.to_string()),
                iso(stat.modified),
                stat.mode
            ),
            Err(_) => format!("{:<9}  {:>10}  {:<24}  {:<4}  {name}", "?", "?", "?", "?"),
        }
    }
}

/// What follows the name of something that is no file.
pub(super) fn mark(kind: Kind) -> &'static str {
    match kind {
        Kind::File => "",
        Kind::Dir => "/",
        Kind::Link => "@",
        Kind::Other => "=",
    }
}
