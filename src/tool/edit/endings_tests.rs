//! Shapes of files, taken off and put back.

use proptest::prelude::*;

use super::*;

/// Texts with every shape: marks, both line ends, carriage returns alone, open last lines.
fn shaped() -> impl Strategy<Value = String> {
    let token = prop::sample::select(vec!["a", "é", "\n", "\r\n", "\r", "b c"]);
    let text = prop::collection::vec(token, 0..30).prop_map(|tokens| tokens.concat());
    (prop::bool::ANY, text).prop_map(
        |(marked, text)| {
            if marked { format!("{BYTE_ORDER_MARK}{text}") } else { text }
        },
    )
}

fn change(range: Range<usize>, with: &str) -> Change<'_> {
    Change { range, with: Cow::Borrowed(with) }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1000) })]

    #[test]
    fn a_file_without_a_change_is_the_same_to_the_byte(content in shaped()) {
        let mut text = Text::parse(&content);
        prop_assert!(!text.body().contains("\r\n") || content.contains("\r\r\n"));
        prop_assert_eq!(text.render(), Ok(content.clone()));
        text.close_last_line();
        prop_assert_eq!(text.render(), Ok(content.clone()));
        prop_assert_eq!(text.apply(&[]).expect("no change is too large").0.render(), Ok(content));
    }

    #[test]
    fn nothing_outside_of_a_change_is_touched(before in shaped(), after in shaped()) {
        // A mark inside of a text is a character as any other.
        let content = format!("{before}X{after}");
        let text = Text::parse(&content);
        let at = text.body().find('X').expect("it is there");
        let (changed, spans) = text.apply(&[change(at..at + 1, "Y\nZ")]).expect("it is small");
        prop_assert_eq!(&changed.body()[spans[0].clone()], "Y\nZ");
        let rendered = changed.render().expect("it is small");
        let inside = rendered.strip_prefix(&format!("{before}Y")).expect("what is before stays");
        let end = inside.strip_suffix(&format!("Z{after}")).expect("what is after stays");
        prop_assert!(end == "\n" || end == "\r\n");
        let (kinds, own) = (content.matches('\n').count(), content.matches("\r\n").count());
        prop_assert!(own == 0 || own < kinds || end == "\r\n", "all lines ended otherwise");
        prop_assert!(own > 0 || end == "\n", "no line ended so");
    }
}

#[test]
fn new_lines_of_a_mixed_file_end_as_those_they_replace() {
    let text = Text::parse("a\nb\r\nc\nd");
    let at = text.body().find('b').expect("it is there");
    let (changed, _) = text.apply(&[change(at..at + 2, "x\ny\n")]).expect("it is small");
    assert_eq!(changed.render(), Ok("a\nx\r\ny\r\nc\nd".to_owned()));
    let (changed, _) = text.apply(&[change(0..text.body().len(), "")]).expect("it is small");
    let (again, _) = changed.apply(&[change(0..0, "n\n")]).expect("it is small");
    assert_eq!(again.render(), Ok("n\n".to_owned()));
}

#[test]
fn an_open_last_line_stays_open() {
    let mut text = Text::parse("a\r\nb");
    text.close_last_line();
    assert_eq!((text.body(), text.last_line()), ("a\nb\n", LastLine::Open));
    let (changed, _) = text.apply(&[change(4..4, "c\n")]).expect("it is small");
    assert_eq!(changed.render(), Ok("a\r\nb\r\nc".to_owned()));
    let (emptied, _) = text.apply(&[change(0..4, "")]).expect("it is small");
    assert_eq!(emptied.render(), Ok(String::new()));
    let mut empty = Text::parse("");
    empty.close_last_line();
    assert_eq!((empty.body(), empty.last_line()), ("", LastLine::AsInBody));
}

#[test]
fn a_whole_new_content_takes_the_shape_of_the_old() {
    assert_eq!(in_shape_of("\u{feff}a\r\nb\r\n", "x\ny\n"), "\u{feff}x\r\ny\r\n");
    assert_eq!(in_shape_of("\u{feff}a", "\u{feff}x\n"), "\u{feff}x\n");
    assert_eq!(in_shape_of("a\r\nb\n", "x\n"), "x\n");
    assert_eq!(in_shape_of("a\r\n", "x\r\ny\n"), "x\r\ny\n");
    assert_eq!(in_shape_of("a\n", "x\r\n"), "x\r\n");
}

#[test]
fn what_would_be_too_large_is_refused_before_it_is_made() {
    let text = Text::parse("ab");
    let half = "x".repeat(EDIT_RESULT_BYTES_MAX / 2);
    let changes = [change(0..1, &half), change(1..2, &half)];
    assert!(text.apply(&changes).is_ok_and(|(text, _)| text.render().is_ok()));
    let changes = [change(0..1, &half), change(1..1, "y"), change(1..2, &half)];
    assert!(text.apply(&changes).is_err());
    let lines = "\r\n".repeat(EDIT_RESULT_BYTES_MAX / 2 + 1);
    assert_eq!(Text::parse(&lines).render(), Err(TOO_LARGE));
}
