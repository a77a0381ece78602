//! A table of an answer as lines: its columns side by side as far as there is room, else row by row. Pure.

use super::line::{Line, Tone, cells};

/// Between two columns, and where the line under their names crosses that.
const GAP: &str = " │ ";
const CROSSING: &str = "─┼─";
/// A column that would be narrower than this cannot be read.
const COLUMN_CELLS_MIN: usize = 8;

/// The lines of a table whose first row has the names of its columns, none wider than that.
pub fn table(rows: &[Vec<Line>], width: usize) -> Vec<Line> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let wide = |column| rows.iter().filter_map(|row| row.get(column)).map(Line::cells).max();
    let wanted: Vec<usize> = (0..columns).map(|column| wide(column).unwrap_or(0)).collect();
    match fitted(&wanted, width) {
        Some(widths) => side_by_side(rows, &widths),
        None => row_by_row(rows),
    }
}

/// As wide as is wanted, or the widest columns narrower; `None` where that leaves too little of them.
fn fitted(wanted: &[usize], width: usize) -> Option<Vec<usize>> {
    let gaps = cells(GAP) * wanted.len().saturating_sub(1);
    let room = width.checked_sub(gaps)?;
    let within = |limit: usize| wanted.iter().map(move |wide| (*wide).min(limit));
    let widest = wanted.iter().copied().max().unwrap_or(0);
    let least = COLUMN_CELLS_MIN.min(widest);
    let limit = (least..=widest).rev().find(|limit| within(*limit).sum::<usize>() <= room)?;
    Some(within(limit).collect())
}

fn side_by_side(rows: &[Vec<Line>], widths: &[usize]) -> Vec<Line> {
    let mut lines = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let broken: Vec<Vec<Line>> =
            row.iter().zip(widths).map(|(cell, width)| cell.wrapped((*width).max(1))).collect();
        let height = broken.iter().map(Vec::len).max().unwrap_or(0);
        for part in 0..height {
            let mut line = Line::new();
            for (column, (cell, width)) in broken.iter().zip(widths).enumerate() {
                if column > 0 {
                    line.push(Tone::Dim, GAP);
                }
                let part = cell.get(part).cloned().unwrap_or_default();
                put(&mut line, &part, index);
                if column + 1 < widths.len() {
                    line.push(Tone::Plain, &" ".repeat(width.saturating_sub(part.cells())));
                }
            }
            lines.push(line);
        }
        if index == 0 {
            let rule: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
            lines.push(Line::of(Tone::Dim, &rule.join(CROSSING)));
        }
    }
    lines
}

/// Each row as lines of its own, with the name of the column before each cell.
fn row_by_row(rows: &[Vec<Line>]) -> Vec<Line> {
    let Some((names, rows)) = rows.split_first() else {
        return Vec::new();
    };
    let mut lines = Vec::new();
    for row in rows {
        if !lines.is_empty() {
            lines.push(Line::new());
        }
        for (column, cell) in row.iter().enumerate() {
            let name = names.get(column).map(Line::text).filter(|name| !name.is_empty());
            let mut line = Line::new().hanging(2);
            if let Some(name) = name {
                line.push(Tone::Strong, &format!("{name}: "));
            }
            cell.spans.iter().for_each(|span| line.push(span.tone, &span.text));
            lines.push(line);
        }
    }
    lines
}

/// A cell, or a part of one; the names of columns stand out.
fn put(line: &mut Line, cell: &Line, index: usize) {
    for span in &cell.spans {
        let tone = if index == 0 { Tone::Strong } else { span.tone };
        line.push(tone, &span.text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(width: usize) -> Vec<String> {
        let row = |cells: [&str; 3]| cells.map(|cell| Line::of(Tone::Plain, cell)).to_vec();
        let rows = [
            row(["name", "what it does", "漢字"]),
            row(["alpha", "reads all files and tells what is in them", "3 s"]),
        ];
        table(&rows, width).iter().map(|line| line.text().trim_end().to_owned()).collect()
    }

    #[test]
    fn a_table_is_as_wide_as_there_is_room() {
        assert_eq!(
            shown(79),
            [
                "name  │ what it does                              │ 漢字",
                "──────┼───────────────────────────────────────────┼─────",
                "alpha │ reads all files and tells what is in them │ 3 s",
            ]
        );
        assert_eq!(
            shown(39),
            [
                "name  │ what it does             │ 漢字",
                "──────┼──────────────────────────┼─────",
                "alpha │ reads all files and      │ 3 s",
                "      │ tells what is in them    │",
            ]
        );
        assert_eq!(
            shown(19),
            ["name: alpha", "what it does: reads all files and tells what is in them", "漢字: 3 s",]
        );
    }

    #[test]
    fn no_column_makes_a_line_wider_than_there_is_room() {
        for width in 23..80 {
            for line in shown(width) {
                assert!(cells(&line) <= width, "{width}: {line}");
            }
        }
    }
}
