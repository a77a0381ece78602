//! One question before there is a conversation.

use std::io;

use super::core::Input;
use super::drive::Face;
use super::key::Key;
use super::line::{Line, Tone};
use super::menu::{Answer, By, Menu};
use super::screen::Foot;

/// The size of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub columns: u16,
    pub rows: u16,
}

/// Asks until one of the items is chosen; `None` where somebody leaves.
pub async fn choose(
    face: &mut impl Face,
    size: &mut Size,
    about: &str,
    items: Vec<String>,
) -> io::Result<Option<usize>> {
    let mut menu = Menu::new(vec![Line::of(Tone::Heading, about)], items).on_first();
    let chosen = loop {
        let (width, rows) = (usize::from(size.columns.max(2)) - 1, usize::from(size.rows.max(4)));
        let mut rows = menu.lines(width, rows - 2, By::Number);
        rows.push(Line::of(Tone::Dim, "Enter or a number chooses · Esc leaves").cut(width));
        let cursor = (rows.len() - 1, 0);
        face.show(&[], &Foot { rows, cursor })?;
        match face.next().await {
            None | Some(Input::Key(Key::Escape | Key::Control('c' | 'd')) | Input::Stop) => {
                break None;
            }
            Some(Input::Key(key)) => {
                if let Answer::Item(item) = menu.on(key) {
                    break Some(item);
                }
            }
            Some(Input::Resized { columns, rows }) => *size = Size { columns, rows },
            Some(_) => {}
        }
    };
    face.show(&[], &Foot::default())?;
    Ok(chosen)
}
