//! What is being typed: some lines of text, a cursor, and what was typed before. Pure.

use std::collections::VecDeque;

use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation};

use super::clean::clean_typed;
use super::key::Key;
use crate::limits::terminal::{TYPED_BYTES_MAX, TYPED_KEPT_MAX};

#[derive(Debug, Default)]
pub struct Editor {
    text: String,
    /// A byte of the text, between characters as people see them.
    cursor: usize,
    typed: VecDeque<String>,
    /// Which of those is looked at, from the oldest, and what was being typed before.
    recalled: Option<(usize, String)>,
}

impl Editor {
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn cursor(&self) -> usize {
        self.cursor
    }

    pub fn before_cursor(&self) -> &str {
        &self.text[..self.cursor]
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Takes what was typed, which can be had again.
    pub fn take(&mut self) -> String {
        let text = std::mem::take(&mut self.text);
        self.clear();
        if !text.trim().is_empty() && self.typed.back() != Some(&text) {
            if self.typed.len() == TYPED_KEPT_MAX {
                self.typed.pop_front();
            }
            self.typed.push_back(text.clone());
        }
        text
    }

    /// What was typed at another time comes before what was typed here.
    pub fn recall_all(&mut self, typed: Vec<String>) {
        let room = TYPED_KEPT_MAX.saturating_sub(self.typed.len());
        let earlier = typed.len().saturating_sub(room);
        let added: Vec<String> =
            typed.into_iter().skip(earlier).map(|text| clean_typed(&text)).collect();
        if let Some((at, _)) = &mut self.recalled {
            *at += added.len();
        }
        self.typed = added.into_iter().chain(self.typed.drain(..)).collect();
    }

    pub fn clear(&mut self) {
        self.text.clear();
        self.cursor = 0;
        self.recalled = None;
    }

    pub fn insert(&mut self, text: &str) {
        let text = clean_typed(text);
        let room = TYPED_BYTES_MAX.saturating_sub(self.text.len());
        let fits = &text[..text.floor_char_boundary(room)];
        self.text.insert_str(self.cursor, fits);
        self.cursor += fits.len();
    }

    /// Replaces the end of what stands before the cursor.
    pub fn complete(&mut self, from: usize, with: &str) {
        self.text.replace_range(from..self.cursor, "");
        self.cursor = from;
        self.insert(with);
    }

    /// Does what keys of editors do. Others change nothing.
    pub fn on(&mut self, key: Key) {
        match key {
            Key::Char(c) => self.insert(c.encode_utf8(&mut [0; 4])),
            Key::NewLine => self.insert("\n"),
            Key::Backspace | Key::Control('h') => self.remove(self.left(), self.cursor),
            Key::Delete | Key::Control('d') => self.remove(self.cursor, self.right()),
            Key::Left | Key::Control('b') => self.cursor = self.left(),
            Key::Right | Key::Control('f') => self.cursor = self.right(),
            Key::WordLeft | Key::Alt('b') => self.cursor = self.word_left(),
            Key::WordRight | Key::Alt('f') => self.cursor = self.word_right(),
            Key::Home | Key::Control('a') => self.cursor = self.line_start(),
            Key::End | Key::Control('e') => self.cursor = self.line_end(),
            Key::Control('w') | Key::Alt('\u{7f}') => {
                self.remove(self.word_left(), self.cursor);
            }
            Key::Alt('d') => self.remove(self.cursor, self.word_right()),
            Key::Control('u') => self.remove(self.line_start(), self.cursor),
            Key::Control('k') => self.remove(self.cursor, self.line_end()),
            Key::Up | Key::Control('p') => self.up(),
            Key::Down | Key::Control('n') => self.down(),
            Key::Enter | Key::Tab | Key::Escape | Key::Control(_) | Key::Alt(_) => {}
        }
    }

    fn remove(&mut self, from: usize, to: usize) {
        self.text.replace_range(from..to, "");
        self.cursor = from;
    }

    fn left(&self) -> usize {
        let mut at = GraphemeCursor::new(self.cursor, self.text.len(), true);
        at.prev_boundary(&self.text, 0).ok().flatten().unwrap_or(0)
    }

    fn right(&self) -> usize {
        let mut at = GraphemeCursor::new(self.cursor, self.text.len(), true);
        at.next_boundary(&self.text, 0).ok().flatten().unwrap_or(self.text.len())
    }

    fn word_left(&self) -> usize {
        let mut words = self.before_cursor().unicode_word_indices();
        words.next_back().map_or(0, |(at, _)| at)
    }

    fn word_right(&self) -> usize {
        let next = self.text[self.cursor..].unicode_word_indices().next();
        next.map_or(self.text.len(), |(at, word)| self.cursor + at + word.len())
    }

    fn line_start(&self) -> usize {
        self.before_cursor().rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        self.text[self.cursor..].find('\n').map_or(self.text.len(), |at| self.cursor + at)
    }

    /// A line up, and from the first to what was typed before.
    fn up(&mut self) {
        let start = self.line_start();
        if start > 0 {
            let column = self.text[start..self.cursor].graphemes(true).count();
            let above = self.text[..start - 1].rfind('\n').map_or(0, |at| at + 1);
            self.cursor = self.column(above, column);
            return;
        }
        let looked_at = match &self.recalled {
            Some((at, _)) => *at,
            None => self.typed.len(),
        };
        if let Some(before) = looked_at.checked_sub(1) {
            let draft = match self.recalled.take() {
                Some((_, draft)) => draft,
                None => self.text.clone(),
            };
            self.recall(before, draft);
        }
    }

    fn down(&mut self) {
        let end = self.line_end();
        if end < self.text.len() {
            let column = self.text[self.line_start()..self.cursor].graphemes(true).count();
            self.cursor = self.column(end + 1, column);
            return;
        }
        let Some((at, draft)) = self.recalled.take() else {
            return;
        };
        if at + 1 < self.typed.len() {
            self.recall(at + 1, draft);
        } else {
            self.cursor = draft.len();
            self.text = draft;
        }
    }

    fn recall(&mut self, at: usize, draft: String) {
        self.text.clone_from(&self.typed[at]);
        self.cursor = self.text.len();
        self.recalled = Some((at, draft));
    }

    /// A place in the line that starts there.
    fn column(&self, start: usize, column: usize) -> usize {
        let line = self.text[start..].split('\n').next().unwrap_or_default();
        let at = line.grapheme_indices(true).nth(column).map_or(line.len(), |(at, _)| at);
        start + at
    }
}

#[cfg(test)]
#[path = "editor_tests.rs"]
mod tests;
