//! What stands at the foot of the screen, below all that is finished: rows, and a cursor among them.

use super::line::Line;

/// The live part of the screen. No row is wider than the screen, and it leaves room for a line above.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Foot {
    pub rows: Vec<Line>,
    /// Row and column.
    pub cursor: (usize, usize),
}

impl Foot {
    /// As plain text, for those who compare.
    pub fn text(&self) -> String {
        let rows: Vec<String> = self.rows.iter().map(Line::text).collect();
        rows.join("\n")
    }
}
