//! Diffs, made from random texts and by hand.

use proptest::prelude::*;

use super::*;

/// A line of a diff, its end included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step<'a> {
    Keep(&'a str),
    Remove(&'a str),
    Add(&'a str),
}

/// A shortest way from the old lines to the new, by the longest run they share.
fn steps<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<Step<'a>> {
    let mut shared = vec![vec![0; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            shared[i][j] = if old[i] == new[j] {
                shared[i + 1][j + 1] + 1
            } else {
                shared[i + 1][j].max(shared[i][j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut steps = Vec::new();
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            steps.push(Step::Keep(old[i]));
            (i, j) = (i + 1, j + 1);
        } else if i < old.len() && (j == new.len() || shared[i + 1][j] >= shared[i][j + 1]) {
            steps.push(Step::Remove(old[i]));
            i += 1;
        } else {
            steps.push(Step::Add(new[j]));
            j += 1;
        }
    }
    steps
}

/// A unified diff with so many lines of context. Without a difference there is no hunk.
fn diff(old: &str, new: &str, context: usize) -> String {
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let new: Vec<&str> = new.split_inclusive('\n').collect();
    let steps = steps(&old, &new);
    let changed = |step: &Step<'_>| !matches!(step, Step::Keep(_));
    let shown = |index: usize| {
        let near = index.saturating_sub(context)..(index + context + 1).min(steps.len());
        steps[near].iter().any(changed)
    };
    let mut text = vec!["--- a/file\n+++ b/file\n".to_owned()];
    let (mut old_line, mut new_line, mut index) = (0, 0, 0);
    while index < steps.len() {
        let length = (index..steps.len()).take_while(|index| shown(*index)).count();
        let hunk = &steps[index..index + length];
        let old_count = hunk.iter().filter(|step| !matches!(step, Step::Add(_))).count();
        let new_count = hunk.iter().filter(|step| !matches!(step, Step::Remove(_))).count();
        if length == 0 {
            (old_line, new_line, index) = (old_line + 1, new_line + 1, index + 1);
            continue;
        }
        let (old_start, new_start) =
            (old_line + usize::from(old_count > 0), new_line + usize::from(new_count > 0));
        text.push(format!("@@ -{old_start},{old_count} +{new_start},{new_count} @@\n"));
        for step in hunk {
            let (sign, line) = match step {
                Step::Keep(line) => (' ', line),
                Step::Remove(line) => ('-', line),
                Step::Add(line) => ('+', line),
            };
            let end = if line.ends_with('\n') { "" } else { "\n\\ No newline at end of file\n" };
            text.push(format!("{sign}{line}{end}"));
        }
        (old_line, new_line, index) = (old_line + old_count, new_line + new_count, index + length);
    }
    text.concat()
}

fn content(old: &str, diff: &str) -> Result<String, PatchError> {
    patch(old, diff).map(|patched| patched.content)
}

fn error(old: &str, diff: &str) -> String {
    patch(old, diff).expect_err("the diff is refused").to_string()
}

fn text() -> impl Strategy<Value = String> {
    let line =
        prop::sample::select(vec!["a", "b", "c", "", " ", "-- x", "++ y", "@@ z", "é", "x\ry"]);
    let open = prop::sample::select(vec!["", "", "a", "b"]);
    (prop::collection::vec(line, 0..12), open).prop_map(|(lines, open)| {
        lines.iter().map(|line| format!("{line}\n")).chain([open.to_owned()]).collect()
    })
}

/// A text whose lines are all different, and another made from it.
fn relatives() -> impl Strategy<Value = (String, String)> {
    let changes =
        prop::collection::vec(prop::sample::select(vec!["", "", "", "-", "+", "-+"]), 1..25);
    (changes, prop::bool::ANY, prop::bool::ANY).prop_map(|(changes, old_open, new_open)| {
        let (mut old, mut new) = (Vec::new(), Vec::new());
        for (index, change) in changes.iter().enumerate() {
            old.push(format!("line {index}\n"));
            if !change.contains('-') {
                new.push(format!("line {index}\n"));
            }
            if change.contains('+') {
                new.push(format!("new {index}\n"));
            }
        }
        let end = |text: String, open| if open { text.trim_end().to_owned() } else { text };
        (end(old.concat(), old_open), end(new.concat(), new_open))
    })
}

fn crlf(text: &str) -> String {
    text.replace('\n', "\r\n")
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn the_diff_of_two_texts_makes_one_of_the_other(old in text(), new in text(), context in 0_usize..4) {
        let diff = diff(&old, &new, context);
        if old == new {
            prop_assert_eq!(content(&old, &diff), Err(PatchError::NoHunks));
        } else {
            let patched = patch(&old, &diff).expect("it fits");
            prop_assert_eq!(&patched.content, &new);
            prop_assert!(patched.hunks.iter().all(|placed| placed.offset == 0));
        }
    }

    #[test]
    fn a_diff_fits_where_its_lines_have_moved(
        (old, new) in relatives(),
        context in 1_usize..4,
        lines_above in 0_usize..30,
    ) {
        prop_assume!(old != new);
        let diff = diff(&old, &new, context);
        let above: Vec<String> = (0..lines_above).map(|number| format!("above {number}\n")).collect();
        let above = above.concat();
        let patched = patch(&format!("{above}{old}"), &diff).expect("it fits");
        prop_assert_eq!(patched.content, format!("{above}{new}"));
        let offset = isize::try_from(lines_above).expect("a small number");
        prop_assert!(patched.hunks.iter().all(|placed| placed.offset == offset));
        // And up again, from a diff that has them above.
        let diff = self::diff(&format!("{above}{old}"), &format!("{above}{new}"), context);
        let upward = content(&old, &diff);
        if diff.contains("above") {
            let missed = matches!(upward, Err(PatchError::Mismatch { number: 1, .. }));
            prop_assert!(missed);
        } else {
            prop_assert_eq!(upward, Ok(new));
        }
    }

    #[test]
    fn patches_keep_line_ends((old, new) in relatives(), context in 0_usize..4) {
        prop_assume!(old != new && old.contains('\n'));
        let plain = diff(&old, &new, context);
        for diff in [crlf(&plain), plain] {
            prop_assert_eq!(content(&crlf(&old), &diff), Ok(crlf(&new)));
            prop_assert_eq!(content(&old, &diff), Ok(new.clone()));
        }
    }

    #[test]
    fn any_text_is_a_diff_or_refused(old in text(), diff in "(@@ -[0-3],[0-2] \\+[0-3],[0-2] @@\n|[-+ \\\\][ab]?\n|\n){0,9}") {
        if let Ok(patched) = patch(&old, &diff) {
            prop_assert_ne!(patched.content, old);
        }
    }
}

#[test]
fn a_diff_without_marks_keeps_an_open_last_line_open() {
    assert_eq!(content("a\nb", "@@ -1,2 +1,3 @@\n a\n b\n+c\n"), Ok("a\nb\nc".to_owned()));
    assert_eq!(content("a\nb\n", "@@ -1,2 +1,3 @@\n a\n b\n+c\n"), Ok("a\nb\nc\n".to_owned()));
    let mark = "\\ No newline at end of file\n";
    let closes = format!("@@ -1 +1 @@\n-a\n{mark}+a\n");
    assert_eq!(content("a", &closes), Ok("a\n".to_owned()));
    assert_eq!(
        error("a\n", &closes),
        "hunk 1 says that the file's last line has no line end, but it has one"
    );
    let inside = format!("@@ -1,2 +1,2 @@\n-a\n{mark}+c\n b\n");
    assert_eq!(content("a\nb\n", &inside), Err(PatchError::MisplacedMark { number: 1 }));
}

#[test]
fn a_new_file_is_made_from_nothing() {
    let diff = "--- /dev/null\n+++ b/x\n@@ -0,0 +1,2 @@\n+a\n+b\n";
    assert_eq!(content("", diff), Ok("a\nb\n".to_owned()));
    assert_eq!(content("x\n", diff), Err(PatchError::NotNew { count: 1 }));
}

#[test]
fn what_stands_around_a_diff_is_passed_over() {
    let mail = "From: x\n\nA change.\n---\n f | 2 +-\n\ndiff --git a/f b/f\nindex 1..2 100644\n--- a/f\n\
                +++ b/f\n@@ -1 +1 @@ fn x()\n-a\n+b\n-- \n2.30\n";
    assert_eq!(content("a\n", mail), Ok("b\n".to_owned()));
    let fenced = "```diff\n@@ -1,2 +1,2 @@\n-a\n+b\n\n```\n- a note\n";
    assert_eq!(content("a\n\n", fenced), Ok("b\n\n".to_owned()));
}

#[test]
fn what_is_no_change_of_one_text_is_refused() {
    let one = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n";
    let refused = |diff: &str| patch("a\n", diff).expect_err("the diff is refused");
    assert_eq!(refused(&format!("{one}{one}")), PatchError::SeveralFiles);
    assert_eq!(refused(&format!("{one}diff --git a/y b/y\n")), PatchError::SeveralFiles);
    assert_eq!(refused("Binary files a/x and b/x differ\n"), PatchError::Binary);
    assert_eq!(refused("--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"), PatchError::Deletes);
    assert_eq!(refused("diff --git a/x b/y\nrename from x\nrename to y\n"), PatchError::Renames);
    assert_eq!(refused("*** Begin Patch\n"), PatchError::NoHunks);
    assert_eq!(refused(""), PatchError::NoHunks);
    assert_eq!(refused("@@ -1 +1 @@\n a\n"), PatchError::Unchanging { number: 1 });
    assert_eq!(refused("@@ -1 +1 @@\n-a\n+a\n"), PatchError::NoChange);
}

#[test]
fn wrong_headers_are_explained() {
    assert_eq!(
        error("a\nb\n", "@@ -1,3 +1,2 @@\n a\n-b\n+c\n"),
        "hunk 1 says that it has 3 old and 2 new lines, but it has 2 and 2 (context counts as both): its \
         header should be `@@ -1,2 +1,2 @@`, unless lines are missing"
    );
    assert_eq!(
        error("a\nb\n", "@@ -1 +1 @@\n-a\n+b\n+c\n+d\n\n@@ -9 +9 @@\n-x\n+y\n"),
        "hunk 1 says that it has 1 old and 1 new lines, but it has 1 and 3 (context counts as both): its \
         header should be `@@ -1,1 +1,3 @@`, unless lines are missing"
    );
    assert_eq!(
        error("a\n", "@@ ... @@\n-a\n+b\n"),
        "hunk 1 begins with `@@ ... @@`, which must be like `@@ -3,4 +3,5 @@`: first line and count of \
         the old lines, then of the new"
    );
    assert_eq!(
        error("a\n", "@@ -3 +3 @@\n-a\n+b\n@@ -1 +1 @@\n-a\n+b\n"),
        "hunk 2 begins before hunk 1 ends: hunks must be in order and apart"
    );
}

#[test]
fn a_hunk_that_does_not_fit_is_shown_with_what_is_there() {
    let diff = "@@ -1 +1 @@\n-a\n+x\n@@ -3,2 +3,2 @@\n c\n-d\n+e\n";
    assert_eq!(
        error("a\nb\nc\nD\n", diff),
        "hunk 2 does not fit at line 3, nor within 1000 lines of it; line 4 is the first that differs\n\
         expected:\n3\tc\n4\td\nfound:\n3\tc\n4\tD"
    );
    let misfit = |old: &str| match patch(old, diff) {
        Err(PatchError::Mismatch { misfit, .. }) => misfit,
        other => panic!("{other:?}"),
    };
    assert_eq!(misfit("a\nb\nc\n\td\n"), Misfit::Whitespace);
    assert_eq!(misfit("a\nb\nc\ne\n"), Misfit::Applied);
    assert_eq!(misfit("a\n"), Misfit::From { line: 3 });
    let at_end = "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n";
    assert!(error("a\na\nc", at_end).contains("not at the end of the file"));
    assert_eq!(
        error("a\n", "@@ -5,0 +6 @@\n+x\n"),
        "hunk 1 begins at line 6, but the file has 1 lines"
    );
    assert_eq!(
        error("a\nb\na\n", "@@ -2 +2 @@\n-a\n+x\n"),
        "hunk 1 does not fit at line 2, and fits equally near at lines 1 and 3: correct its line number \
         or give more context"
    );
}

#[test]
fn a_report_tells_of_offsets_and_shows_the_lines() {
    let diff = "@@ -1 +1 @@\n-a\n+x\n@@ -3,2 +3 @@\n c\n-d\n";
    let patched = patch("a\nb\n.\nc\nd\n", diff).expect("it fits");
    assert_eq!(patched.hunks, [Placed { line: 1, offset: 0 }, Placed { line: 4, offset: 1 }]);
    assert_eq!(
        patched.report,
        "2 hunks fit. Hunk 2 is at line 4, +1 from where it says.\n1\tx\n2\tb\n3\t.\n4\tc"
    );
}

#[test]
fn what_moved_one_hunk_moves_those_after_it() {
    // The second hunk has no line that could tell its place.
    let diff = "@@ -1 +1 @@\n-a\n+x\n@@ -2,0 +3 @@\n+n\n";
    assert_eq!(content("top\na\nb\nc\n", diff), Ok("top\nx\nb\nn\nc\n".to_owned()));
}
