//! What is shown, and that it is never much.

use proptest::prelude::*;

use super::*;

fn spans(body: &str, found: &str) -> Vec<Range<usize>> {
    body.match_indices(found).map(|(at, text)| at..at + text.len()).collect()
}

#[test]
fn changes_are_shown_with_the_lines_around_them() {
    let body = "1\n2\n3\nX\n5\n6\n7\n8\n9\n10\nX\n12\n";
    let expected = "2\t2\n3\t3\n4\tX\n5\t5\n6\t6\n…\n9\t9\n10\t10\n11\tX\n12\t12";
    assert_eq!(around(body, &spans(body, "X")), expected);
    // The line feed of a whole line does not pull in one line more.
    assert_eq!(around("a\nX\nc\nd\ne", &spans("a\nX\nc\nd\ne", "X\n")), "1\ta\n2\tX\n3\tc\n4\td");
    // Lines that follow each other are not shown as if some were left out.
    let body = "X\n2\n3\n4\n5\nX\n";
    assert_eq!(around(body, &spans(body, "X")), "1\tX\n2\t2\n3\t3\n4\t4\n5\t5\n6\tX");
    // Behind the last line, after a deletion.
    assert_eq!(around("a\nb\nc\n", &[6..6, 6..6]), "2\tb\n3\tc");
    assert_eq!(around("", &[0..0, 0..0]), "The file is empty now.");
}

#[test]
fn a_long_change_is_shown_by_its_ends() {
    let body: Vec<String> = (1..=100).map(|number| format!("line {number}\n")).collect();
    let body = body.concat();
    let lines: Vec<String> =
        around(&body, &spans(&body, &body)).lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), SNIPPET_LINES_MAX + 1);
    assert_eq!(lines[SNIPPET_LINES_MAX / 2], format!("… {} lines", 100 - SNIPPET_LINES_MAX));
    assert_eq!(lines[SNIPPET_LINES_MAX], "100\tline 100");
}

#[test]
fn many_lines_are_told_by_the_first_of_them() {
    assert_eq!(LineNumbers::of("a\nb", [2]).to_string(), "line 2");
    assert_eq!(LineNumbers::of("a\na\n\na", [0, 2, 5]).to_string(), "lines 1, 2, 4");
    let body = "a\n".repeat(11);
    let all = LineNumbers::of(&body, body.match_indices('a').map(|(at, _)| at));
    assert_eq!(all.to_string(), "lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and more");
    assert_eq!(numbered(7, ["x"; 25]).lines().count(), SNIPPET_LINES_MAX + 1);
    assert_eq!(cut(&"é".repeat(300)).chars().count(), SNIPPET_LINE_CHARS_MAX + 1);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn whatever_changed_little_is_shown(body in "[aX\n]{0,400}") {
        let changes = spans(&body, "X");
        let shown = around(&body, &changes);
        let lines_max = SNIPPET_SPANS_MAX * (SNIPPET_LINES_MAX + 2) + 1;
        prop_assert!(shown.lines().count() <= lines_max);
        let lines: Vec<&str> = body.lines().collect();
        for line in shown.lines() {
            // Every numbered line is one of the file, under its number.
            if let Some((number, text)) = line.split_once('\t') {
                let number: usize = number.parse().expect("a number");
                prop_assert_eq!(text, cut(lines[number - 1]));
            }
        }
        let more = changes.len().saturating_sub(SNIPPET_SPANS_MAX);
        prop_assert_eq!(shown.ends_with(&format!("… and {more} more places")), more > 0);
    }
}
