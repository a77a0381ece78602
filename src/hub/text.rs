//! The text of a running turn, which grows while it is read: pieces that are full are shared, so that
//! whoever takes the text at one moment copies no more than the last of them. Pure.

use std::sync::Arc;

/// What is copied at most when the text is taken.
const PIECE_BYTES_MIN: usize = 16 * 1024;

#[derive(Clone, Debug, Default)]
pub(super) struct Text {
    full: Vec<Arc<str>>,
    rest: String,
}

impl Text {
    pub(super) fn push(&mut self, text: &str) {
        self.rest.push_str(text);
        if self.rest.len() >= PIECE_BYTES_MIN {
            self.full.push(std::mem::take(&mut self.rest).into());
        }
    }

    /// All of it as one.
    pub(super) fn whole(&self) -> String {
        let bytes = self.full.iter().map(|piece| piece.len()).sum::<usize>() + self.rest.len();
        let mut whole = String::with_capacity(bytes);
        self.full.iter().for_each(|piece| whole.push_str(piece));
        whole.push_str(&self.rest);
        whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_taken_at_one_moment_stays_as_it_was() {
        let mut text = Text::default();
        let (mut taken, mut expected) = (Vec::new(), String::new());
        for number in 0..10_000 {
            let piece = format!("{number} é ");
            text.push(&piece);
            expected.push_str(&piece);
            if number % 1000 == 0 {
                taken.push((text.clone(), expected.clone()));
            }
        }
        assert_eq!(text.whole(), expected);
        assert!(text.full.len() > 2, "some of it is shared");
        assert!(taken.iter().all(|(text, expected)| text.whole() == *expected));
    }
}
