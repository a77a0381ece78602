//! Prints the rows as one aligned table.

use std::io::{self, Write as _};

use crate::Bench;
use crate::measure::{Row, Spread, Verdict};

const COLUMNS: usize = 6;
const HEAD: [&str; COLUMNS] = ["what", "ours", "yardstick", "ratio (min–max)", "target", "verdict"];

pub(crate) fn print(rows: &[Row], bench: &Bench) -> io::Result<()> {
    let lines: Vec<[String; COLUMNS]> =
        std::iter::once(HEAD.map(str::to_owned)).chain(rows.iter().map(cells)).collect();
    let widths: [usize; COLUMNS] = std::array::from_fn(|column| {
        lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0)
    });
    let mut out = io::stdout().lock();
    for (index, line) in lines.iter().enumerate() {
        writeln!(out, "{}", joined(line, &widths))?;
        if index == 0 {
            writeln!(out, "{}", joined(&widths.map(|width| "-".repeat(width)), &widths))?;
        }
    }
    let stand_in = if bench.stand_in { "; yardsticks in the server's place" } else { "" };
    writeln!(
        out,
        "median of {} pairs, alternating; {} build{stand_in}",
        bench.pairs,
        if cfg!(debug_assertions) { "debug" } else { "release" },
    )?;
    out.flush()
}

fn cells(row: &Row) -> [String; COLUMNS] {
    [
        row.what.clone(),
        row.ours.clone(),
        row.yardstick.clone(),
        row.ratio.as_ref().map_or_else(|| "–".to_owned(), ratio),
        row.target.clone(),
        match &row.verdict {
            Verdict::Ok => "ok".to_owned(),
            Verdict::Missed => "MISSED".to_owned(),
            Verdict::NotYet(reason) => format!("not yet: {reason}"),
            Verdict::Broken(error) => format!("BROKEN: {error}"),
        },
    ]
}

fn ratio(spread: &Spread) -> String {
    format!("{:.2} ({:.2}–{:.2})", spread.median, spread.min, spread.max)
}

fn joined(line: &[String; COLUMNS], widths: &[usize; COLUMNS]) -> String {
    let mut text = String::new();
    for (cell, width) in line.iter().zip(widths) {
        text.push_str(cell);
        let padding = width.saturating_sub(cell.chars().count()) + 2;
        text.extend(std::iter::repeat_n(' ', padding));
    }
    text.trim_end().to_owned()
}
