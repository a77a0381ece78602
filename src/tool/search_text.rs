//! `search_text`: the lines of text files that a regular expression matches.
//! Leaves out what ignore files say and what is no text, and tells so.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use grep_matcher::Matcher;
use grep_regex::{ErrorKind, RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use schemars::JsonSchema;
use serde::Deserialize;

use super::error::{FileError, Given};
use super::glob::left_out;
use super::ignored::Ignored;
use super::pattern::{Filter, check_size};
use super::skipped::{Skipped, Why};
use super::text::{Full, Sheet, counted, shown, shown_below};
use super::walk::{Found, Step, Top, walk};
use super::workplace::Site;
use super::{OnFiles, Wanted};
use crate::limits::{
    FILE_READ_BYTES_MAX, REGEX_BYTES_MAX, RESULT_LINES_MAX, SEARCH_CONTEXT_LINES_MAX,
    SEARCH_LINE_BYTES_BEFORE, SEARCH_LINE_BYTES_MAX, SEARCH_MATCHES,
};
use crate::policy::Side;
use crate::world::{Access, Dir, Entry, Kind};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchText {
    /// A regular expression (Rust's syntax) for text within one line.
    pattern: String,
    /// The file or directory to search.
    path: String,
    #[serde(default)]
    ignore_case: bool,
    /// A glob for the files to search: for their names, or for their paths if it has a /.
    include: Option<String>,
    /// How many lines to show around each match.
    #[serde(default)]
    #[schemars(range(max = SEARCH_CONTEXT_LINES_MAX))]
    context: u64,
    #[serde(default = "some")]
    #[schemars(range(min = 1, max = RESULT_LINES_MAX))]
    max_matches: u64,
}

fn some() -> u64 {
    SEARCH_MATCHES
}

impl OnFiles for SearchText {
    const NAME: &'static str = "search_text";
    const PATHS: Wanted = &[("path", Side::Read)];
    const DESCRIPTION: &'static str = "Searches UTF-8 text files, in a directory all below it, and \
                                       gives path:line:text, sorted by path. Leaves out .git and \
                                       what .gitignore and .ignore files say.";

    fn work(self, site: &Site) -> Result<String, FileError> {
        let matcher = self.matcher()?;
        let include = match &self.include {
            Some(text) => Some(Filter::parse("include", text)?),
            None => None,
        };
        let given = Given::new(&self.path);
        let searcher = SearcherBuilder::new()
            .line_number(true)
            .bom_sniffing(false)
            .before_context(usize::try_from(self.context).expect("the schema bounds it"))
            .after_context(usize::try_from(self.context).expect("the schema bounds it"))
            .build();
        let mut search = Search {
            site,
            matcher: &matcher,
            searcher,
            sheet: Sheet::default(),
            left: self.max_matches,
            matches: 0,
            files: 0,
            ended: None,
        };
        let mut skipped = Skipped::default();
        let target = site.reading(&given, |spot| match spot.parent.stat(spot.name())?.kind {
            Kind::Dir => {
                let top = spot.parent.dir(spot.name())?;
                let entries = top.list()?;
                Ok(Target::Tree { top, entries, resolved: spot.resolved.clone() })
            }
            Kind::File | Kind::Link | Kind::Other => {
                let file = spot.parent.open(spot.name(), Access::Read)?;
                Ok(Target::File(file.read_all(FILE_READ_BYTES_MAX)?))
            }
        })?;
        let mut notes = Vec::new();
        match target {
            Target::File(content) => {
                if let Err(error) = std::str::from_utf8(&content) {
                    return Err(FileError::NotText { given, at: error.valid_up_to() });
                }
                search.file(&shown(Path::new(given.text())), &content)?;
            }
            Target::Tree { top, entries, resolved } => {
                let tree = Tree { given: &given, include, top: top.as_ref(), resolved };
                notes = tree.search(&mut search, entries, &mut skipped)?;
            }
        }
        Ok(search.result(&skipped, notes))
    }
}

impl SearchText {
    fn matcher(&self) -> Result<RegexMatcher, FileError> {
        check_size("pattern", &self.pattern)?;
        let built = RegexMatcherBuilder::new()
            .case_insensitive(self.ignore_case)
            // The searcher looks at many lines at once: `^` and `$` are about each of them.
            .multi_line(true)
            .line_terminator(Some(b'\n'))
            .size_limit(REGEX_BYTES_MAX)
            .dfa_size_limit(REGEX_BYTES_MAX)
            .build(&self.pattern);
        built.map_err(|error| {
            let why = match error.kind() {
                ErrorKind::NotAllowed(_) => "it must match within one line".to_owned(),
                _ => error.to_string(),
            };
            FileError::Pattern { argument: "pattern", why }
        })
    }
}

/// What is searched, opened after the decision about it.
enum Target {
    File(Vec<u8>),
    Tree { top: Arc<dyn Dir>, entries: Vec<Entry>, resolved: PathBuf },
}

struct Tree<'a> {
    given: &'a Given,
    include: Option<Filter>,
    top: &'a dyn Dir,
    resolved: PathBuf,
}

impl Tree<'_> {
    /// Searches all of it; returns notes about what the walk left out.
    fn search(
        &self,
        search: &mut Search<'_>,
        entries: Vec<Entry>,
        skipped: &mut Skipped,
    ) -> Result<Vec<String>, FileError> {
        let site = search.site;
        // Ignore files hold from the working directory on, and elsewhere from where the search begins.
        let start = if self.resolved.starts_with(site.cwd()) { site.cwd() } else { &self.resolved };
        let root = site.dir(start).map_err(|error| FileError::of(self.given, &error))?;
        let base = self.resolved.strip_prefix(start).expect("it begins there");
        let mut ignored = Ignored::default();
        let above: Vec<&Path> = base.ancestors().collect();
        for dir in above.into_iter().rev().filter(|dir| site.may_read(&start.join(dir))) {
            ignored.enter(root.as_ref(), dir);
        }
        let walked = walk(
            site,
            Top { dir: self.top, resolved: &self.resolved },
            entries,
            |Found { path, kind }| {
                let inside = base.join(path);
                let skip = |skipped: &mut Skipped, why| {
                    skipped.add(why, path);
                    Ok(Step::Pass)
                };
                if ignored.covers(&inside, *kind) {
                    return skip(skipped, Why::Ignored);
                }
                match kind {
                    Kind::Dir => ignored.enter(root.as_ref(), &inside),
                    Kind::Link => return skip(skipped, Why::Link),
                    Kind::Other => return skip(skipped, Why::Special),
                    Kind::File => {
                        if self.include.as_ref().is_some_and(|filter| !filter.is_match(path)) {
                            return Ok(Step::Pass);
                        }
                        match self.content(path) {
                            Ok(content) => search.file(&shown_below(self.given, path), &content)?,
                            Err(why) => return skip(skipped, why),
                        }
                    }
                }
                Ok(if search.ended.is_some() { Step::Stop } else { Step::Enter })
            },
        )?;
        Ok(left_out(&walked))
    }

    fn content(&self, path: &Path) -> Result<Vec<u8>, Why> {
        let read = self.top.open(path, Access::Read).and_then(|file| {
            if file.stat()?.len > FILE_READ_BYTES_MAX {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            file.read_all(FILE_READ_BYTES_MAX)
        });
        let content = read.map_err(|error| match error.kind() {
            io::ErrorKind::FileTooLarge => Why::TooLarge,
            _ => Why::Unreadable,
        })?;
        match std::str::from_utf8(&content) {
            Ok(_) => Ok(content),
            Err(_) => Err(Why::NotText),
        }
    }
}

/// Why a search went no further.
#[derive(Clone, Copy)]
enum Ended {
    Matches,
    Room,
}

struct Search<'a> {
    site: &'a Site,
    matcher: &'a RegexMatcher,
    searcher: Searcher,
    sheet: Sheet,
    /// How many more matches may be shown.
    left: u64,
    matches: usize,
    files: usize,
    ended: Option<Ended>,
}

impl Search<'_> {
    fn file(&mut self, name: &str, content: &[u8]) -> Result<(), FileError> {
        let before = self.matches;
        let mut lines = Lines {
            name,
            matcher: self.matcher,
            sheet: &mut self.sheet,
            left: &mut self.left,
            matches: &mut self.matches,
            ended: &mut self.ended,
        };
        let pieces = Pieces { site: self.site, content };
        // The only error is the one of the reader, which asks the site.
        let searched = self.searcher.search_reader(self.matcher, pieces, &mut lines);
        if searched.is_err() {
            self.site.check_wanted()?;
        }
        self.files += usize::from(self.matches > before);
        Ok(())
    }

    fn result(self, skipped: &Skipped, notes_of_walk: Vec<String>) -> String {
        let matches = counted(self.matches, "match", "matches");
        let files = counted(self.files, "file", "files");
        let mut notes = vec![match self.ended {
            None if self.matches == 0 => "No matches.".to_owned(),
            None => format!("{matches} in {files}."),
            Some(Ended::Matches) => {
                format!("The first {matches}, in {files}. Narrow the search, or raise max_matches.")
            }
            Some(Ended::Room) => {
                format!("The first {matches}, in {files}: no more fit. Narrow the search.")
            }
        }];
        notes.extend(skipped.note());
        notes.extend(notes_of_walk);
        self.sheet.end(&notes)
    }
}

/// A file's content for the searcher, which stops where nobody waits for it.
struct Pieces<'a> {
    site: &'a Site,
    content: &'a [u8],
}

impl io::Read for Pieces<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.site.check_wanted().map_err(io::Error::other)?;
        self.content.read(to)
    }
}

/// Where the lines of one file go.
struct Lines<'a> {
    name: &'a str,
    matcher: &'a RegexMatcher,
    sheet: &'a mut Sheet,
    left: &'a mut u64,
    matches: &'a mut usize,
    ended: &'a mut Option<Ended>,
}

impl Lines<'_> {
    fn show(&mut self, mark: char, number: Option<u64>, line: &str) -> bool {
        let number = number.expect("the searcher counts lines");
        let fits = self.sheet.line(&format!("{}{mark}{number}{mark}{line}", self.name));
        if fits == Err(Full) {
            *self.ended = Some(Ended::Room);
        }
        fits.is_ok()
    }
}

impl Sink for Lines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        if *self.left == 0 {
            *self.ended = Some(Ended::Matches);
            return Ok(false);
        }
        let line = text(found.bytes());
        let at = self.matcher.find(line.as_bytes()).ok().flatten().map_or(0, |found| found.start());
        let is_shown = self.show(':', found.line_number(), &window(line, at));
        if is_shown {
            *self.left -= 1;
            *self.matches += 1;
        }
        Ok(is_shown)
    }

    fn context(&mut self, _: &Searcher, found: &SinkContext<'_>) -> io::Result<bool> {
        Ok(self.show('-', found.line_number(), &window(text(found.bytes()), 0)))
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        if self.sheet.line("--") == Err(Full) {
            *self.ended = Some(Ended::Room);
            return Ok(false);
        }
        Ok(true)
    }
}

/// A line without its end.
fn text(line: &[u8]) -> &str {
    let line = std::str::from_utf8(line).expect("the file was checked, and lines are whole");
    line.strip_suffix('\n').unwrap_or(line)
}

/// As much of a line as is shown: around the match that begins at `at`.
fn window(line: &str, at: usize) -> String {
    if line.len() <= SEARCH_LINE_BYTES_MAX {
        return line.to_owned();
    }
    let start = line.floor_char_boundary(at.saturating_sub(SEARCH_LINE_BYTES_BEFORE));
    let end = line.floor_char_boundary(start + SEARCH_LINE_BYTES_MAX);
    let before = if start > 0 { "…" } else { "" };
    let after = if end < line.len() { "…" } else { "" };
    format!("{before}{}{after}", &line[start..end])
}
