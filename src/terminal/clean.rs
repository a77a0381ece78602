//! Text of models, tools, files and other people, made fit for a terminal: nothing in it moves the
//! cursor, colours, rings, renames the window or turns the order of letters around. Pure.
//! Each character is judged by itself, so a text may come in pieces.

/// What stands in place of a character that is not shown.
const INSTEAD: char = '\u{fffd}';
const TAB: &str = "    ";

/// The text with its lines, and with nothing else that controls a terminal.
pub fn clean(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => cleaned.push('\n'),
            '\t' => cleaned.push_str(TAB),
            '\r' => {}
            c if c.is_control() || misleads(c) => cleaned.push(INSTEAD),
            c => cleaned.push(c),
        }
    }
    cleaned
}

/// What somebody typed or pasted: a tab in it is theirs, and is sent as it is.
pub fn clean_typed(text: &str) -> String {
    let cleaned: Vec<String> = text.split('\t').map(clean).collect();
    cleaned.join("\t")
}

/// The text in one line.
pub fn clean_line(text: &str) -> String {
    clean(text).replace('\n', " ")
}

/// Whether a character changes how others are shown, or hides.
fn misleads(c: char) -> bool {
    matches!(c,
        // Marks, embeddings, overrides and isolates of direction.
        '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        // Separators that are no line of ours, fillers and tags that nobody sees.
        | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{206a}'..='\u{206f}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nothing_controls_the_terminal() {
        assert_eq!(clean("a\tb\r\nc"), "a    b\nc");
        assert_eq!(clean("\x1b[31mred\x1b[0m"), "\u{fffd}[31mred\u{fffd}[0m");
        assert_eq!(clean("\x1b]0;title\x07"), "\u{fffd}]0;title\u{fffd}");
        assert_eq!(clean("\u{9b}2J\u{202e}txt.exe"), "\u{fffd}2J\u{fffd}txt.exe");
        assert_eq!(clean_line("one\ntwo"), "one two");
        assert_eq!(clean_typed("all:\r\n\tcc \x1bx"), "all:\n\tcc \u{fffd}x");
        assert_eq!(clean("grüße 👩‍👩‍👧 漢字"), "grüße 👩‍👩‍👧 漢字");
    }

    proptest! {
        #[test]
        fn whatever_comes_is_clean_in_pieces_too(text in any::<String>(), at in 0usize..64) {
            let cleaned = clean(&text);
            prop_assert!(cleaned.chars().all(|c| c == '\n' || (!c.is_control() && !misleads(c))));
            prop_assert_eq!(clean(&cleaned), cleaned.clone());
            let at = text.floor_char_boundary(at);
            prop_assert_eq!(clean(&text[..at]) + &clean(&text[at..]), cleaned);
        }

        #[test]
        fn bytes_of_terminals_are_clean(bytes in prop::collection::vec(0u8..=0x9f, 0..64)) {
            let text: String = bytes.iter().copied().map(char::from).collect();
            prop_assert!(!clean(&text).contains(|c: char| c.is_control() && c != '\n'));
        }
    }
}
