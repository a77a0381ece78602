//! What keys do to a text.

use proptest::prelude::*;

use super::*;

fn typed(text: &str) -> Editor {
    let mut editor = Editor::default();
    editor.insert(text);
    editor
}

fn after(text: &str, keys: &[Key]) -> (String, usize) {
    let mut editor = typed(text);
    for key in keys {
        editor.on(*key);
    }
    (editor.text().to_owned(), editor.cursor())
}

#[test]
fn characters_are_what_people_see() {
    assert_eq!(after("a👩‍👧", &[Key::Backspace]), ("a".to_owned(), 1));
    assert_eq!(after("e\u{301}x", &[Key::Left, Key::Left]), ("e\u{301}x".to_owned(), 0));
}

#[test]
fn words_and_lines_are_left_and_removed() {
    assert_eq!(after("one two", &[Key::Control('w')]), ("one ".to_owned(), 4));
    assert_eq!(after("one two", &[Key::WordLeft, Key::Control('k')]), ("one ".to_owned(), 4));
    assert_eq!(after("one\ntwo", &[Key::Control('u')]), ("one\n".to_owned(), 4));
    assert_eq!(after("one\ntwo", &[Key::Up, Key::Char('!')]), ("one!\ntwo".to_owned(), 4));
    assert_eq!(after("one\nto", &[Key::Home, Key::Up, Key::Down]), ("one\nto".to_owned(), 4));
}

#[test]
fn what_was_typed_before_comes_back_and_a_draft_is_kept() {
    let mut editor = typed("first");
    assert_eq!(editor.take(), "first");
    editor.insert("second");
    editor.take();
    editor.insert("draft");
    let mut seen = Vec::new();
    for key in [Key::Up, Key::Up, Key::Up, Key::Down, Key::Down, Key::Down] {
        editor.on(key);
        seen.push(editor.text().to_owned());
    }
    assert_eq!(seen, ["second", "first", "first", "second", "draft", "draft"]);
}

#[test]
fn what_is_pasted_is_clean_and_bounded() {
    let mut editor = typed("\x1b[2Jx\r\ny");
    assert_eq!(editor.text(), "\u{fffd}[2Jx\ny");
    editor.insert(&"ä".repeat(TYPED_BYTES_MAX));
    assert!(editor.text().len() <= TYPED_BYTES_MAX);
}

fn key() -> impl Strategy<Value = Key> {
    prop_oneof![
        any::<char>().prop_map(Key::Char),
        prop::sample::select(vec![
            Key::NewLine,
            Key::Backspace,
            Key::Delete,
            Key::Left,
            Key::Right,
            Key::WordLeft,
            Key::WordRight,
            Key::Home,
            Key::End,
            Key::Up,
            Key::Down,
            Key::Control('w'),
            Key::Control('k'),
            Key::Control('u'),
        ]),
    ]
}

proptest! {
    #[test]
    fn no_keys_break_a_text(keys in prop::collection::vec(key(), 0..60)) {
        let mut editor = typed("läuft\nso");
        for (index, key) in keys.into_iter().enumerate() {
            editor.on(key);
            prop_assert!(editor.text().is_char_boundary(editor.cursor()));
            if index % 9 == 8 {
                editor.take();
            }
        }
    }
}
