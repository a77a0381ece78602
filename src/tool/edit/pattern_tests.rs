//! Regular expressions, against the library's own replacement and error by error.

use proptest::prelude::*;

use super::*;

fn edit(pattern: &str, replacement: &str) -> PatternEdit {
    PatternEdit {
        pattern: pattern.to_owned(),
        replacement: replacement.to_owned(),
        ..PatternEdit::default()
    }
}

fn replaced(content: &str, edit: &PatternEdit) -> Result<Edited, PatternError> {
    regex_replace(content, edit, || true)
}

fn content(content: &str, edit: &PatternEdit) -> String {
    replaced(content, edit).expect("the edit applies").content
}

fn error(content: &str, edit: &PatternEdit) -> String {
    replaced(content, edit).expect_err("the edit is refused").to_string()
}

fn any_edit() -> impl Strategy<Value = PatternEdit> {
    let patterns = vec!["a", "(a)(b)?", "^a", "b$", "a*", "(?P<x>a)b", "[^b]", "a.b", "A|(\n)", ""];
    let replacements =
        vec!["", "x", "$1", "<$0>", "${1}y", "$1y", "${x}", "$$", "$", "${", "\\", "\n"];
    let pattern = prop::sample::select(patterns);
    let replacement = prop::sample::select(replacements);
    let count = prop::option::of(1_usize..4);
    let flags = (prop::bool::ANY, prop::bool::ANY, prop::bool::ANY);
    (pattern, replacement, count, flags).prop_map(
        |(pattern, replacement, count, (ignore_case, multiline, dotall))| PatternEdit {
            count,
            ignore_case,
            multiline,
            dotall,
            ..edit(pattern, replacement)
        },
    )
}

/// What the library makes of it, where the replacement names groups that there are.
fn model(content: &str, edit: &PatternEdit) -> Option<String> {
    let flags = [(edit.ignore_case, "i"), (edit.multiline, "m"), (edit.dotall, "s")];
    let flags: String = flags.iter().filter(|(set, _)| *set).map(|(_, flag)| *flag).collect();
    let pattern = format!("(?{flags}:{})", edit.pattern);
    let pattern = if flags.is_empty() { edit.pattern.clone() } else { pattern };
    let regex = Regex::new(&pattern).expect("the patterns are good");
    let known = match edit.replacement.as_str() {
        "$1" | "${1}y" => regex.captures_len() > 1,
        "${x}" => regex.capture_names().any(|name| name == Some("x")),
        "$1y" => false,
        _ => true,
    };
    let new = regex.replacen(content, edit.count.unwrap_or(0), edit.replacement.as_str());
    (known && new != content).then(|| new.into_owned())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1000) })]

    #[test]
    fn edits_do_what_the_library_does(content in "[abAé\n]{0,20}", edit in any_edit()) {
        let edited = replaced(&content, &edit).map(|edited| edited.content).ok();
        prop_assert_eq!(edited, model(&content, &edit));
    }

    #[test]
    fn a_pattern_without_signs_is_a_text(content in "[ab.*\n]{0,20}", old in "[ab.*]{1,2}") {
        let edited = replaced(&content, &edit(&regex::escape(&old), "x"));
        let expected = Some(content.replace(&old, "x")).filter(|new| *new != content);
        prop_assert_eq!(edited.map(|edited| edited.content).ok(), expected);
    }

    #[test]
    fn edits_keep_line_ends(content in "[abA\n]{0,20}", edit in any_edit()) {
        let content = format!("{content}\n~");
        let crlf = |text: &str| text.replace('\n', "\r\n");
        let edited = replaced(&crlf(&content), &edit).map(|edited| edited.content).ok();
        prop_assert_eq!(edited, model(&content, &edit).as_deref().map(crlf));
    }
}

#[test]
fn groups_are_put_back() {
    assert_eq!(content("a=1, b=2", &edit(r"(\w)=(\d)", "$2=$1")), "1=a, 2=b");
    assert_eq!(content("a=1", &edit(r"(?<key>\w)=", "${key}${key}=$$")), "aa=$1");
    assert_eq!(content("x", &edit("x", r"\n")), r"\n");
    let counted = PatternEdit { count: Some(2), ..edit("a", "b") };
    let edited = replaced("aaa", &counted).expect("it matches");
    assert_eq!(
        (edited.content.as_str(), edited.report.as_str()),
        ("bba", "Replaced 2 matches.\n1\tbba")
    );
}

#[test]
fn references_that_lead_nowhere_are_refused() {
    assert_eq!(
        error("ab", &edit("(a)", "$1b")),
        "`$1b` in `replacement` names no group of the pattern: write `${1}` where letters or digits \
         follow, and `$$` for a dollar sign"
    );
    assert_eq!(
        error("ab", &edit("(a)", r"\1")),
        r"`\1` in `replacement` is no reference: write `${1}` (or use edit_file for a real backslash and digit)"
    );
    assert_eq!(content("ab", &edit("a", r"\1")), r"\1b");
}

#[test]
fn patterns_that_are_none_are_refused_in_our_words() {
    assert_eq!(error("", &edit("(a", "")), "`pattern` is no regular expression: unclosed group");
    for other in ["(?=a)", r"(a)\1"] {
        assert_eq!(
            error("", &edit(other, "")),
            "`pattern` is no regular expression: it has no look-around and no backreferences here; \
             match the surroundings as groups and put them back with `$1`"
        );
    }
    assert_eq!(
        error("", &edit("((a{1000}){1000}){1000}", "")),
        "`pattern` is too large: what it repeats takes more than 1048576 bytes once compiled"
    );
    let long = "a".repeat(EDIT_PATTERN_BYTES_MAX + 1);
    assert_eq!(error("", &edit(&long, "")), "`pattern` has more than 65536 bytes");
    let none = PatternEdit { count: Some(0), ..edit("a", "b") };
    assert_eq!(
        error("a", &none),
        "`count` must be at least 1; leave it out to replace all matches"
    );
}

#[test]
fn a_pattern_that_matches_nowhere_is_told_what_is_missing() {
    let hint = |content: &str, pattern: &str| match replaced(content, &edit(pattern, "x")) {
        Err(PatternError::NoMatch { hint }) => hint.split([':', '`']).nth(1).unwrap_or(hint),
        other => panic!("{other:?}"),
    };
    assert_eq!(hint("a\nb", "^b"), "multiline");
    assert_eq!(hint("a\nb", "a.b"), "dotall");
    assert_eq!(hint("a", "A"), "ignore_case");
    assert_eq!(hint("a\r\nb", r"a\r\nb"), "\\n");
    assert_eq!(hint("a", "b"), "");
    assert_eq!(
        error("aa", &edit("a", "a")),
        "`pattern` matches 2 times, but what replaces it is the same text"
    );
}

#[test]
fn many_matches_and_long_results_meet_a_bound() {
    let long = "a".repeat(EDIT_PLACES_MAX + 1);
    assert_eq!(
        error(&long, &edit("a", "b")),
        "`pattern` matches at more than 100000 places: narrow it, or give a `count`"
    );
    let grown = "b".repeat(1024);
    assert_eq!(error(&long[1..], &edit("a", &grown)), "the file would grow beyond 10485760 bytes");
}

#[test]
fn it_ends_at_the_next_match_once_nobody_waits() {
    let asked = std::cell::Cell::new(0);
    let is_wanted = || {
        asked.set(asked.get() + 1);
        asked.get() < 3
    };
    let edited = regex_replace(&"a".repeat(100), &edit("a", "b"), is_wanted);
    assert_eq!((edited, asked.get()), (Err(PatternError::Unwanted), 3));
}
