//! Exact replacement, against a naive model and error by error.

use proptest::prelude::*;

use super::*;
use crate::causes::told;

fn edit(old: &str, new: &str) -> Edit {
    Edit { old_string: old.to_owned(), new_string: new.to_owned(), replace_all: false }
}

fn every(old: &str, new: &str) -> Edit {
    Edit { replace_all: true, ..edit(old, new) }
}

fn error(content: &str, wanted: &Edit) -> String {
    told(&edit_file(content, wanted).expect_err("the edit is refused"))
}

/// Short texts of few letters, so that some of them are in each other.
fn text(tokens: Range<usize>) -> impl Strategy<Value = String> {
    let token = prop::sample::select(vec!["a", "b", "ab", " ", "\n", "é"]);
    prop::collection::vec(token, tokens).prop_map(|tokens| tokens.concat())
}

fn any_edit() -> impl Strategy<Value = Edit> {
    (text(0..4), text(0..4), prop::bool::ANY).prop_map(|(old_string, new_string, replace_all)| {
        Edit { old_string, new_string, replace_all }
    })
}

/// How often `old` is in `content`, overlapping or not.
fn occurrences(content: &str, old: &str) -> usize {
    content.char_indices().filter(|(at, _)| content[*at..].starts_with(old)).count()
}

/// What should become of `content`, and else the kind of the error.
fn model(content: &str, edit: &Edit) -> Result<String, &'static str> {
    if edit.old_string.is_empty() {
        return Err("empty");
    }
    if edit.old_string == edit.new_string {
        return Err("same");
    }
    match (occurrences(content, &edit.old_string), edit.replace_all) {
        (0, _) => Err("none"),
        (1, false) => Ok(content.replacen(&edit.old_string, &edit.new_string, 1)),
        (_, false) => Err("many"),
        (_, true) => Ok(content.replace(&edit.old_string, &edit.new_string)),
    }
}

fn kind(error: &EditError) -> &'static str {
    match error {
        EditError::EmptyOld => "empty",
        EditError::NoChange => "same",
        EditError::NotFound { .. } => "none",
        EditError::Ambiguous { .. } => "many",
        EditError::TooManyPlaces { .. } | EditError::TooLarge(_) => "large",
    }
}

fn outcome(content: &str, edit: &Edit) -> Result<String, &'static str> {
    edit_file(content, edit).map(|edited| edited.content).map_err(|error| kind(&error))
}

fn crlf(text: &str) -> String {
    text.replace('\n', "\r\n")
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1000) })]

    #[test]
    fn edits_do_what_the_naive_model_does(content in text(0..30), edit in any_edit()) {
        prop_assert_eq!(outcome(&content, &edit), model(&content, &edit));
    }

    #[test]
    fn edits_keep_line_ends_and_marks(content in text(0..30), edit in any_edit()) {
        // So that there is a line end to keep.
        let content = format!("{content}\n~");
        let expected = model(&content, &edit).map(|new| format!("\u{feff}{}", crlf(&new)));
        let shaped = format!("\u{feff}{}", crlf(&content));
        prop_assert_eq!(outcome(&shaped, &edit), expected.clone());
        let edit = Edit {
            old_string: crlf(&edit.old_string),
            new_string: crlf(&edit.new_string),
            ..edit
        };
        prop_assert_eq!(outcome(&shaped, &edit), expected);
        // A model that writes carriage returns for a file that has none adds none.
        prop_assert!(!outcome(&content, &edit).is_ok_and(|new| new.contains('\r')));
    }

    #[test]
    fn a_batch_is_its_edits_one_after_another_or_nothing(
        content in text(0..30),
        edits in prop::collection::vec(any_edit(), 1..5),
    ) {
        let content = crlf(&format!("{content}\n~"));
        let mut expected = Ok(content.clone());
        for (index, edit) in edits.iter().enumerate() {
            expected = expected.and_then(|content| {
                outcome(&content, edit).map_err(|kind| (index + 1, kind))
            });
            // From a file without any line end nobody but a batch knows how its lines ended.
            if expected.as_ref().is_ok_and(|content| !content.contains('\n')) {
                return Ok(());
            }
        }
        match edit_file_batch(&content, &edits) {
            Ok(edited) => prop_assert_eq!(Ok(edited.content), expected),
            Err(BatchError::NoChange) => prop_assert_eq!(Ok(content), expected),
            Err(BatchError::Edit { number, count, source }) => {
                prop_assert_eq!(Err((number, kind(&source))), expected);
                prop_assert_eq!(count, edits.len());
            }
            Err(other) => prop_assert!(false, "{other}"),
        }
    }

    #[test]
    fn a_miss_in_whitespace_alone_is_found(content in "[ab\n ]{1,30}", at in any::<prop::sample::Index>()) {
        let words: Vec<&str> = content.split_whitespace().collect();
        prop_assume!(!words.is_empty());
        let old = format!("\t{}\t", words[at.index(words.len())]);
        let found = Near::find(&content, &old);
        let Near::Whitespace { line, .. } = found else { panic!("{found:?}") };
        let dense = |text: &str| text.split_whitespace().collect::<String>();
        let from_there: String = content.split_inclusive('\n').skip(line - 1).collect();
        prop_assert!(dense(&from_there).contains(&dense(&old)));
    }
}

#[test]
fn a_missed_text_is_answered_with_what_is_near() {
    let content = "fn a() {\n\tone();\n\ttwo();\n}\nfn b() {}";
    assert_eq!(
        error(content, &edit("fn a() {\n    one();\n", "x")),
        "`old_string` is not in the file, but from line 1 on it is, with other whitespace; copy it \
         from there:\n1\tfn a() {\n2\t\tone();"
    );
    assert_eq!(
        error(content, &edit("  one();\n  three();\n", "x")),
        "`old_string` is not in the file: line 2 is like its first line, but line 3 differs:\n\
         2\t\tone();\n3\t\ttwo();"
    );
    assert_eq!(
        error(content, &edit("fn b() {}\n", "x")),
        "`old_string` is not in the file: it ends with a line end, and line 5, which is the last, has \
         none; leave it out"
    );
    assert_eq!(
        error(content, &edit("fn c() {}", "x")),
        "`old_string` is not in the file, and no line is like its first: read the file to see what it \
         has"
    );
}

#[test]
fn wrong_edits_are_refused_with_guidance() {
    assert_eq!(
        error("a\nb\na\n", &edit("a", "c")),
        "`old_string` is in the file 2 times, at lines 1, 3: give more context to make it unique, or \
         set `replace_all`"
    );
    assert_eq!(
        error("aaa", &edit("aa", "c")),
        "`old_string` is in the file 2 times, at lines 1, 1: give more context to make it unique, or \
         set `replace_all`"
    );
    assert_eq!(
        error("a", &edit("", "c")),
        "`old_string` is empty: give the text to replace, or use write_file for a new file"
    );
    assert_eq!(
        error("a\nb", &edit("a\nb", "a\r\nb")),
        "`old_string` and `new_string` are the same (lines end as they do in the file), so nothing \
         would change"
    );
    let many = "a".repeat(EDIT_PLACES_MAX + 1);
    assert_eq!(
        error(&many, &every("a", "b")),
        "`old_string` is in the file more than 100000 times"
    );
    let long = "b".repeat(1024);
    assert_eq!(error(&many[1..], &every("a", &long)), "the file would grow beyond 10485760 bytes");
}

#[test]
fn a_batch_names_the_edit_that_fails() {
    let failed =
        edit_file_batch("a b", &[edit("a", "x"), edit("a", "y")]).expect_err("no `a` is left");
    assert_eq!(
        told(&failed),
        "edit 2 of 2 does not apply, and none was made: `old_string` is not in the file, and no line \
         is like its first: read the file to see what it has"
    );
    assert_eq!(edit_file_batch("a", &[]), Err(BatchError::Empty));
    let back = [edit("a", "b"), edit("b", "a")];
    assert_eq!(edit_file_batch("a", &back), Err(BatchError::NoChange));
    let many = vec![edit("a", "b"); BATCH_EDITS_MAX + 1];
    let refused = BatchError::TooMany { count: BATCH_EDITS_MAX + 1, edits_max: BATCH_EDITS_MAX };
    assert_eq!(edit_file_batch("a", &many), Err(refused));
}

#[test]
fn a_report_shows_every_edit_where_it_is_at_last() {
    let content = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
    let edits = [edit("9", "nine"), edit("1\n", "one\nand a half\n")];
    let edited = edit_file_batch(content, &edits).expect("both apply");
    assert_eq!(edited.content, "one\nand a half\n2\n3\n4\n5\n6\n7\n8\nnine\n");
    assert_eq!(
        edited.report,
        "Made 2 edits. Replaced 2 places.\n1\tone\n2\tand a half\n3\t2\n4\t3\n…\n8\t7\n9\t8\n10\tnine"
    );
    let edited = edit_file("a\nb\n", &edit("a\nb\n", "")).expect("it is there");
    assert_eq!(edited.report, "Replaced 1 place.\nThe file is empty now.");
}
