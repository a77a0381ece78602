//! The replacement of `regex_replace`: text with references to groups, `$1`, `${1}` or `${name}`, and
//! `$$` for a dollar sign. Parsed once against the pattern: a reference to a group that the pattern
//! lacks is refused here, and never becomes nothing in a file.

use regex::{Captures, Regex};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    #[error(
        "`{reference}` in `replacement` names no group of the pattern: write `${{1}}` where letters \
         or digits follow, and `$$` for a dollar sign"
    )]
    UnknownGroup { reference: String },
    #[error(
        "`\\{group}` in `replacement` is no reference: write `${{{group}}}` (or use edit_file for a \
         real backslash and digit)"
    )]
    Backslash { group: usize },
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Template<'a> {
    pieces: Vec<Piece<'a>>,
}

#[derive(Debug, PartialEq, Eq)]
enum Piece<'a> {
    Text(&'a str),
    Group(usize),
}

impl<'a> Template<'a> {
    pub(super) fn parse(replacement: &'a str, regex: &Regex) -> Result<Self, TemplateError> {
        let mut pieces = Vec::new();
        let mut rest = replacement;
        while let Some(at) = rest.find(['$', '\\']) {
            let (text, found) = rest.split_at(at);
            pieces.push(Piece::Text(text));
            let (piece, length) = match found.strip_prefix('$') {
                Some(after) => reference(found, after, regex)?,
                None => backslash(found, regex)?,
            };
            pieces.push(piece);
            rest = &found[length..];
        }
        pieces.push(Piece::Text(rest));
        pieces.retain(|piece| *piece != Piece::Text(""));
        Ok(Self { pieces })
    }

    /// What takes the place of one match, appended to `out`.
    pub(super) fn expand(&self, captures: &Captures<'_>, out: &mut String) {
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => out.push_str(text),
                // A group that took no part in the match is empty.
                Piece::Group(group) => {
                    out.push_str(captures.get(*group).map_or("", |group| group.as_str()));
                }
            }
        }
    }
}

/// The piece at the start of `found`, a dollar sign and what is `after` it, and how long it is.
fn reference<'a>(
    found: &'a str,
    after: &'a str,
    regex: &Regex,
) -> Result<(Piece<'a>, usize), TemplateError> {
    if after.starts_with('$') {
        return Ok((Piece::Text("$"), 2));
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let (name, length) = if let Some(inside) = after.strip_prefix('{') {
        let Some((name, _)) = inside.split_once('}') else { return Ok((Piece::Text("$"), 1)) };
        (name, name.len() + "${}".len())
    } else {
        let name = &after[..after.find(|c| !is_name(c)).unwrap_or(after.len())];
        (name, name.len() + 1)
    };
    if length == 1 {
        return Ok((Piece::Text("$"), 1));
    }
    let group = match name.parse() {
        Ok(number) => Some(number).filter(|number| *number < regex.captures_len()),
        Err(_) => regex.capture_names().position(|known| known == Some(name)),
    };
    let unknown = || TemplateError::UnknownGroup { reference: found[..length].to_owned() };
    Ok((Piece::Group(group.ok_or_else(unknown)?), length))
}

/// A backslash is one, unless it looks like another dialect's reference to a group there is.
fn backslash<'a>(found: &'a str, regex: &Regex) -> Result<(Piece<'a>, usize), TemplateError> {
    let digit = found[1..].chars().next().and_then(|digit| digit.to_digit(10));
    match digit.and_then(|digit| usize::try_from(digit).ok()) {
        Some(group @ 1..) if group < regex.captures_len() => {
            Err(TemplateError::Backslash { group })
        }
        Some(_) | None => Ok((Piece::Text("\\"), 1)),
    }
}
