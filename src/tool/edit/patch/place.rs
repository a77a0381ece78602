//! Where a hunk fits: at the line its header says, else at the nearest one where every old line is as
//! the hunk has it. Never two places for one hunk: equally near ones are refused.

use super::error::{Misfit, PatchError};
use super::parse::Hunk;
use crate::limits::PATCH_OFFSET_LINES_MAX;
use crate::tool::edit::snippet::numbered;

/// The lines of a body of whole lines.
pub(super) struct Lines<'a> {
    body: &'a str,
    /// Where each line begins, and the end of the last.
    offsets: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub(super) fn of(body: &'a str) -> Self {
        let ends = body.match_indices('\n').map(|(at, _)| at + 1);
        Self { body, offsets: std::iter::once(0).chain(ends).collect() }
    }

    pub(super) fn count(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Where the line begins that has so many before it; behind the last line, the end.
    pub(super) fn offset(&self, index: usize) -> usize {
        self.offsets[index]
    }

    /// The lines that have at least `index` before them, without their ends.
    fn after(&self, index: usize) -> impl Iterator<Item = &'a str> {
        let rest = self.offsets.get(index).map_or("", |start| &self.body[*start..]);
        rest.split_inclusive('\n').map(|line| line.strip_suffix('\n').unwrap_or(line))
    }

    /// The line, counted from 0, at which a hunk fits, not before `from`. `offset` is by how much the
    /// hunk before it was off: what moved that one moved this one too.
    pub(super) fn place(
        &self,
        hunk: &Hunk<'_>,
        from: usize,
        offset: isize,
    ) -> Result<usize, PatchError> {
        let number = hunk.number;
        let wanted = hunk.at.saturating_add_signed(offset).max(from);
        let line = wanted + 1;
        let fits = |at: &usize| *at >= from && self.fits(hunk, *at);
        if fits(&wanted) {
            return Ok(wanted);
        }
        if hunk.old_count == 0 {
            // Without a line to compare, every other place would be as good.
            return Err(PatchError::Beyond { number, line, count: self.count() });
        }
        for distance in 1..=PATCH_OFFSET_LINES_MAX {
            let before = wanted.checked_sub(distance).filter(fits);
            let after = Some(wanted.saturating_add(distance)).filter(fits);
            match (before, after) {
                (Some(before), Some(after)) => {
                    let (before, after) = (before + 1, after + 1);
                    return Err(PatchError::Ambiguous { number, line, before, after });
                }
                (Some(at), None) | (None, Some(at)) => return Ok(at),
                (None, None) => {}
            }
        }
        Err(self.mismatch(hunk, wanted))
    }

    fn fits(&self, hunk: &Hunk<'_>, at: usize) -> bool {
        let end = at.saturating_add(hunk.old_count);
        let room = if hunk.marked() { end == self.count() } else { end <= self.count() };
        room && hunk.old_lines().eq(self.after(at).take(hunk.old_count))
    }

    fn mismatch(&self, hunk: &Hunk<'_>, at: usize) -> PatchError {
        let found = || self.after(at).take(hunk.old_count);
        let new = hunk.new_lines().count();
        let applied = new > 0 && hunk.new_lines().eq(self.after(at).take(new));
        let dense = |line: &str| line.split_whitespace().collect::<String>();
        let misfit = if applied {
            Misfit::Applied
        } else if hunk.old_lines().eq(found()) {
            Misfit::NotAtEnd
        } else if hunk.old_lines().map(dense).eq(found().map(dense)) {
            Misfit::Whitespace
        } else {
            let alike = hunk.old_lines().zip(found()).take_while(|(old, found)| old == found);
            Misfit::From { line: at + 1 + alike.count() }
        };
        let shown = numbered(at + 1, found());
        let nothing = || format!("nothing: the file has {} lines", self.count());
        PatchError::Mismatch {
            number: hunk.number,
            line: at + 1,
            misfit,
            expected: numbered(at + 1, hunk.old_lines()),
            found: if shown.is_empty() { nothing() } else { shown },
        }
    }
}
