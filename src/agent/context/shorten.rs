//! A text with its middle left out, and a note that says so. Pure. It is counted whole once; the guesses
//! after that cost what the wanted length costs.

use super::super::tokens::Encoding;
use crate::limits::{SHORTENED_TOKENS_MIN, SHORTENING_GUESSES_MAX};

/// What the note has in most cases.
const NOTE_TOKENS: usize = 12;

/// The text, or as much of its begin and end as has at most `tokens` in the form that is sent.
pub(super) fn to_tokens(
    text: &str,
    tokens: u64,
    encoding: Encoding,
    sent: impl Fn(&str) -> String,
) -> String {
    assert!(tokens >= SHORTENED_TOKENS_MIN, "there is room for the note");
    let tokens_max = usize::try_from(tokens).unwrap_or(usize::MAX);
    let whole = encoding.text(&sent(text));
    if whole <= tokens {
        return text.to_owned();
    }
    let whole = usize::try_from(whole).unwrap_or(usize::MAX);
    let mut bytes = text.len().saturating_mul(tokens_max - NOTE_TOKENS) / whole;
    for _ in 0..SHORTENING_GUESSES_MAX {
        let guess = without_middle(text, bytes);
        let found = encoding.text(&sent(&guess));
        if found <= tokens {
            return guess;
        }
        // A tenth less than the rule of three says: texts are not the same everywhere.
        let found = usize::try_from(found).unwrap_or(usize::MAX);
        bytes = bytes.saturating_mul(tokens_max) / found / 10 * 9;
    }
    // A token has at least one byte, and the note has fewer bytes than there is room for tokens.
    without_middle(text, 0)
}

/// Two thirds of `bytes` from the begin of the text, one from its end.
fn without_middle(text: &str, bytes: usize) -> String {
    let head = text.floor_char_boundary(bytes / 3 * 2);
    let tail = text.ceil_char_boundary(text.len().saturating_sub(bytes / 3)).max(head);
    let left_out = tail - head;
    format!("{}\n[{left_out} bytes left out]\n{}", &text[..head], &text[tail..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn short(text: &str, tokens: u64) -> String {
        let short = to_tokens(text, tokens, Encoding::O200k, str::to_owned);
        assert!(Encoding::O200k.text(&short) <= tokens, "{short:?}");
        short
    }

    #[test]
    fn a_text_that_fits_stays() {
        let text = "hello ".repeat(64);
        assert_eq!(short(&text, 70), text);
        assert_eq!(short("", 64), "");
    }

    #[test]
    fn a_long_text_keeps_its_begin_and_end_and_says_what_is_missing() {
        let text = format!("first{} last", " word".repeat(10_000));
        let short = short(&text, 100);
        assert!(short.starts_with("first word word") && short.ends_with(" word last"), "{short}");
        assert!(short.contains(" bytes left out]\n"), "{short}");
        assert!(Encoding::O200k.text(&short) >= 85, "not much less than there is room for");
    }

    #[test]
    fn characters_stay_whole_and_dense_texts_fit_as_well() {
        for text in ["😀".repeat(5000), "é\u{301}".repeat(9000), "\u{1}\u{2}".repeat(90_000)] {
            short(&text, 64);
        }
        let spaces = " ".repeat(1_000_000);
        assert!(short(&spaces, 64).contains("bytes left out"));
    }
}
