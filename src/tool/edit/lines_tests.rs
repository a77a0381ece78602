//! Lines by their numbers, against a naive model and error by error.

use proptest::prelude::*;

use super::*;

fn edit(start_line: usize, end_line: Option<usize>, new_content: &str) -> LinesEdit {
    LinesEdit { start_line, end_line, new_content: new_content.to_owned() }
}

fn content(content: &str, edit: &LinesEdit) -> String {
    edit_lines(content, edit).expect("the edit applies").content
}

/// The lines of a text without their ends. New content of one line end is one empty line.
fn split(text: &str) -> Vec<&str> {
    let whole = text.strip_suffix('\n').unwrap_or(text);
    if text.is_empty() { Vec::new() } else { whole.split('\n').collect() }
}

/// What should become of the file, if anything.
fn model(content: &str, edit: &LinesEdit) -> Option<String> {
    let mut lines = split(content);
    let end = edit.end_line.unwrap_or(edit.start_line);
    let appends = edit.start_line == lines.len() + 1 && end == edit.start_line;
    let inside = 1 <= edit.start_line && edit.start_line <= end && end <= lines.len();
    if !appends && !inside {
        return None;
    }
    let range = edit.start_line - 1..if appends { lines.len() } else { end };
    lines.splice(range, split(&edit.new_content));
    let open = !content.is_empty() && !content.ends_with('\n');
    let last = if open || lines.is_empty() { "" } else { "\n" };
    let new = format!("{}{last}", lines.join("\n"));
    Some(new).filter(|new| new != content)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(3000) })]

    #[test]
    fn edits_do_what_the_naive_model_does(
        content in "[ab\n]{0,12}",
        start_line in 0_usize..8,
        end_line in prop::option::of(0_usize..8),
        new_content in "[ab\n]{0,4}",
    ) {
        let edit = LinesEdit { start_line, end_line, new_content };
        let edited = edit_lines(&content, &edit).map(|edited| edited.content).ok();
        prop_assert_eq!(edited, model(&content, &edit));
    }

    #[test]
    fn edits_keep_line_ends(
        content in "[ab\n]{0,12}",
        start_line in 0_usize..8,
        new_content in "[ab\n]{0,4}",
    ) {
        let content = format!("{content}\n~");
        let crlf = |text: &str| text.replace('\n', "\r\n");
        for given in [new_content.clone(), crlf(&new_content)] {
            let edit = LinesEdit { start_line, end_line: None, new_content: given };
            let edited = edit_lines(&crlf(&content), &edit).map(|edited| edited.content).ok();
            let edit = LinesEdit { new_content: new_content.clone(), ..edit };
            prop_assert_eq!(edited, model(&content, &edit).as_deref().map(crlf));
        }
    }
}

#[test]
fn new_content_is_whole_lines_with_or_without_a_last_line_end() {
    assert_eq!(content("a\nb\nc\n", &edit(2, None, "x")), "a\nx\nc\n");
    assert_eq!(content("a\nb\nc\n", &edit(2, None, "x\n")), "a\nx\nc\n");
    assert_eq!(content("a\nb\nc", &edit(2, Some(3), "x\n")), "a\nx");
    assert_eq!(content("a\nb\nc", &edit(3, None, "")), "a\nb");
    assert_eq!(content("a\nb", &edit(3, None, "c\n")), "a\nb\nc");
    assert_eq!(content("", &edit(1, None, "c")), "c\n");
}

#[test]
fn lines_that_are_not_there_are_refused_with_how_many_there_are() {
    let told = |wanted: &LinesEdit| {
        edit_lines("a\nb\n", wanted).expect_err("the edit is refused").to_string()
    };
    assert_eq!(
        told(&edit(4, None, "x")),
        "there is no line 4: the file has 2 lines (`start_line` 3 without `end_line` appends)"
    );
    assert_eq!(
        told(&edit(2, Some(9), "x")),
        "there is no line 9: the file has 2 lines (`start_line` 3 without `end_line` appends)"
    );
    assert_eq!(told(&edit(0, None, "x")), "lines are counted from 1");
    assert_eq!(told(&edit(2, Some(1), "x")), "`end_line` 1 is before `start_line` 2");
    assert_eq!(told(&edit(2, None, "b")), "the lines are already so, and nothing would change");
}

#[test]
fn a_report_says_what_was_done_and_how_long_the_file_is() {
    let report = |wanted: &LinesEdit| edit_lines("a\nb\n", wanted).expect("it applies").report;
    assert_eq!(
        report(&edit(1, None, "x\ny")),
        "Replaced line 1 with 2 lines; the file now has 3 lines.\n1\tx\n2\ty\n3\tb"
    );
    assert_eq!(report(&edit(2, None, "")), "Deleted line 2; the file now has 1 line.\n1\ta");
    assert_eq!(
        report(&edit(3, None, "c")),
        "Appended 1 line; the file now has 3 lines.\n1\ta\n2\tb\n3\tc"
    );
    assert_eq!(
        report(&edit(1, Some(2), "")),
        "Deleted lines 1 to 2; the file now has 0 lines.\nThe file is empty now."
    );
}
