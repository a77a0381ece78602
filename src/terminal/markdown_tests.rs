//! What becomes of an answer that comes in pieces.

use proptest::prelude::*;

use super::*;

fn texts(lines: &[Line]) -> Vec<String> {
    lines.iter().map(Line::text).collect()
}

/// All lines of an answer that comes in such pieces.
fn shown<'a>(pieces: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut markdown = Markdown::new(80);
    let mut lines: Vec<Line> = pieces.into_iter().flat_map(|piece| markdown.push(piece)).collect();
    lines.extend(markdown.finish());
    texts(&lines)
}

const ANSWER: &str = "# Plan\nFirst *this*,\nthen **that**: `x`.\n\n\n- one\n- two\n  - below\n\n1. a\n2. b\n\n\
    > said\n\n```rust\nfn main() {\n\n}\n```\nSee [docs](http://x/).\n\n| a | bc |\n|---|---|\n| ddd | e |\n";

#[test]
fn an_answer_is_shown_as_it_is_meant() {
    let expected = [
        "Plan",
        "First this,",
        "then that: x.",
        "",
        "• one",
        "• two",
        "  • below",
        "",
        "1. a",
        "2. b",
        "",
        "│ said",
        "",
        "  fn main() {",
        "  ",
        "  }",
        "",
        "See docs (http://x/).",
        "",
        "a   │ bc",
        "────┼───",
        "ddd │ e",
    ];
    assert_eq!(shown([ANSWER]), expected);
}

#[test]
fn a_block_that_is_not_finished_can_still_change() {
    let mut markdown = Markdown::new(80);
    assert_eq!(markdown.push("so **far"), []);
    assert_eq!(texts(&markdown.open_lines()), ["so **far"]);
    assert_eq!(markdown.push("** good"), []);
    assert_eq!(texts(&markdown.open_lines()), ["so far good"]);
    assert_eq!(texts(&markdown.push("\n\nnext")), ["so far good"]);
    // Its distance from the block before does not come with its end.
    assert_eq!(texts(&markdown.open_lines()), ["", "next"]);
}

#[test]
fn what_belongs_to_an_item_stands_below_its_text() {
    let answer = "9. nine\n   goes on\n   - below\n     on\n10. ten\n\n    more of ten\n\n    - far\n\n\
        11. eleven\n\n   ```\n   code\n   ```\n\nNo item.\n\n    code\n";
    let expected = [
        "9. nine",
        "   goes on",
        "   • below",
        "     on",
        "10. ten",
        "",
        "    more of ten",
        "",
        "    • far",
        "",
        "11. eleven",
        "",
        "     code",
        "",
        "No item.",
        "",
        "  code",
    ];
    assert_eq!(shown([answer]), expected);
}

#[test]
fn a_long_table_stays_one() {
    let rows = "| a cell with some text | another |\n".repeat(200);
    let lines = shown([format!("| a | b |\n|---|---|\n{rows}").as_str()]);
    assert_eq!(lines.len(), 202);
    assert!(lines.iter().all(|line| !line.contains('|')), "{lines:?}");
}

#[test]
fn code_is_shown_line_by_line() {
    let mut markdown = Markdown::new(80);
    assert_eq!(texts(&markdown.push("```\na\nb")), ["  a"]);
    assert_eq!(texts(&markdown.open_lines()), ["  b"]);
    assert_eq!(texts(&markdown.push("\n```\n")), ["  b"]);
}

#[test]
fn a_block_without_end_is_printed_in_pieces() {
    let mut markdown = Markdown::new(80);
    let lines = markdown.push(&"line of text\n".repeat(2000));
    assert!(lines.len() > 1000, "{}", lines.len());
    assert!(markdown.open.len() <= OPEN_BLOCK_BYTES_MAX);
    let mut markdown = Markdown::new(80);
    assert!(!markdown.push(&"x".repeat(OPEN_BLOCK_BYTES_MAX + 1)).is_empty());
}

proptest! {
    #[test]
    fn pieces_make_no_difference(cuts in prop::collection::vec(0..ANSWER.len(), 0..12)) {
        let mut cuts = cuts;
        cuts.extend([0, ANSWER.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|pair| &ANSWER[pair[0]..pair[1]]);
        prop_assert_eq!(shown(pieces), shown([ANSWER]));
    }

    #[test]
    fn no_answer_breaks_it(text in "[a#`~\\-*>|_ \n\\[\\]()1.]{0,80}", at in 0usize..80) {
        let at = text.floor_char_boundary(at);
        shown([&text[..at], &text[at..]]);
    }
}
