//! Pieces of what is told about a file that people wrote: short, on one line, and cheap whatever the
//! file holds. They never decide that something is wrong.

use std::path::Path;

use super::tree::Value;

const SHOWN_CHARS_MAX: usize = 60;
const LISTED_MAX: usize = 20;
const COMPARED_MAX: usize = 100;

pub(super) fn unsupported(name: &str) -> (String, String) {
    (
        format!("`{name}` is part of the contract but not supported by this version yet"),
        "remove it".to_owned(),
    )
}

/// A hint: the known word that was probably meant, or all of them.
pub fn nearest(word: &str, known: &[&str], all: &str) -> String {
    if let Some(known) = meant(word, known) {
        return format!("did you mean `{}`?", shown_key(known));
    }
    let listed: Vec<_> = known.iter().take(LISTED_MAX).map(|w| shown_key(w)).collect();
    let more = if known.len() > LISTED_MAX { ", …" } else { "" };
    format!("{all}: {}{more}", listed.join(", "))
}

/// The known word that was probably meant.
pub fn meant<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    // A comparison costs the product of both lengths, and a hostile file has many long names.
    let short = |word: &&str| word.len() <= SHOWN_CHARS_MAX;
    if !short(&word) {
        return None;
    }
    let known = known.iter().copied().filter(short).take(COMPARED_MAX);
    let distance = |known: &&str| strsim::damerau_levenshtein(word, known);
    // A third of the letters may be wrong.
    let close = |known: &&str| distance(known) <= known.len() / 3;
    known.min_by_key(distance).filter(close)
}

pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Text(text) => format!("a string {}", quoted(text)),
        Value::Number(number) => shorten(number),
        Value::Flag(flag) => flag.to_string(),
        Value::Object(_) => "an object".to_owned(),
        Value::List(_) => "a list".to_owned(),
        Value::Null => "null".to_owned(),
    }
}

/// A key as it may stand in a message.
pub fn shown_key(key: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    if !key.is_empty() && key.chars().all(plain) { shorten(key) } else { quoted(key) }
}

/// A path as it may stand in a line that people read, and copy into a shell: with what would change
/// the line, the terminal or the command made harmless.
pub fn shell_word(path: &Path) -> String {
    let text = path.to_string_lossy();
    let plain = |c: char| c.is_alphanumeric() || "/._-+@:,".contains(c);
    let visible = |c: char| plain(c) || c == ' ' || c.is_ascii_graphic();
    if !text.is_empty() && text.chars().all(plain) {
        text.into_owned()
    } else if text.chars().all(visible) {
        format!("'{}'", text.replace('\'', r"'\''"))
    } else {
        let escaped = text.chars().map(|c| match c {
            '\'' | '\\' => format!("\\{c}"),
            c if visible(c) => c.to_string(),
            c => format!("\\U{:08x}", u32::from(c)),
        });
        format!("$'{}'", escaped.collect::<String>())
    }
}

/// Text of the file as it may stand in a message: on one line, and short.
pub fn quoted(text: &str) -> String {
    format!("{:?}", shorten(text))
}

/// The beginning of a text, and whether there is more.
pub fn shorten(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_changes_neither_line_nor_terminal_nor_command() {
        let shown = |path: &str| shell_word(Path::new(path));
        assert_eq!(shown("/srv/a-b_c.d"), "/srv/a-b_c.d");
        assert_eq!(shown("/a b/$(reboot)"), "'/a b/$(reboot)'");
        assert_eq!(shown("/it's"), r"'/it'\''s'");
        assert_eq!(
            shown("/a\n'\\\u{1b}[2J\u{202e}"),
            r"$'/a\U0000000a\'\\\U0000001b[2J\U0000202e'"
        );
        assert_eq!(shown(""), "''");
    }
}
