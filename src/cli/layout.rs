//! Tables, facts and sentences for a terminal of any width, or for none. Pure.

/// Rows below a head, each column as wide as its widest cell. On a terminal that is narrower than
/// that: a block for each row, since cells that are torn over lines cannot be told apart.
pub fn table<const N: usize>(
    head: [&str; N],
    rows: &[[String; N]],
    width: Option<usize>,
) -> String {
    let titles = head.map(str::to_owned);
    let all: Vec<&[String; N]> = std::iter::once(&titles).chain(rows).collect();
    let widths: Vec<usize> =
        (0..N).map(|column| all.iter().map(|row| chars(&row[column])).max().unwrap_or(0)).collect();
    let lines: Vec<String> = all.iter().map(|row| line(row.as_slice(), &widths)).collect();
    let fits = |width: usize| lines.iter().all(|line| chars(line) <= width);
    if width.is_none_or(fits) {
        return lines.join("\n");
    }
    let block = |row: &[String; N]| {
        let rest = head.iter().zip(row).skip(1).filter(|(_, cell)| !cell.is_empty());
        let rest: Vec<(String, String)> =
            rest.map(|(name, cell)| (format!("  {}", name.to_lowercase()), cell.clone())).collect();
        format!("{}\n{}", row[0], facts(&rest, width))
    };
    rows.iter().map(block).collect::<Vec<_>>().join("\n")
}

/// What is known of one thing, a line each; what is too long goes on below itself.
pub fn facts<N: AsRef<str>>(facts: &[(N, String)], width: Option<usize>) -> String {
    let names = facts.iter().map(|(name, _)| chars(name.as_ref())).max().unwrap_or(0);
    let line = |(name, value): &(N, String)| {
        let start = format!("{:names$}  ", name.as_ref());
        hung(&start, value, width).trim_end().to_owned()
    };
    facts.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// What is left for a text beside its start, at least.
const ROOM_MIN: usize = 12;

/// A text after its start. What does not fit the terminal goes on below the beginning of the text.
pub fn hung(start: &str, text: &str, width: Option<usize>) -> String {
    let indent = chars(start);
    let room = width.map_or(usize::MAX, |width| width.saturating_sub(indent).max(ROOM_MIN));
    let mut lines = Vec::new();
    for paragraph in text.split('\n') {
        lines.extend(broken(paragraph, room));
    }
    let separator = format!("\n{}", " ".repeat(indent));
    format!("{start}{}", lines.join(&separator))
}

/// A text in lines of so many characters, broken at spaces where there are any.
fn broken(text: &str, room: usize) -> Vec<String> {
    if chars(text) <= room {
        return vec![text.to_owned()];
    }
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is one from the start");
        let used = chars(line) + usize::from(!line.is_empty());
        if used + chars(word) <= room {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
            continue;
        }
        let pieces: Vec<char> = word.chars().collect();
        let pieces = pieces.chunks(room).map(String::from_iter);
        if line.is_empty() {
            lines.pop();
        }
        lines.extend(pieces);
    }
    lines
}

fn line(cells: &[String], widths: &[usize]) -> String {
    let cells = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
    cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
}

fn chars(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> [[String; 3]; 2] {
        let row = |cells: [&str; 3]| cells.map(str::to_owned);
        [row(["scout", "idle", "/home/ann/code"]), row([".1", "", "/"])]
    }

    #[test]
    fn a_table_that_does_not_fit_becomes_blocks() {
        let head = ["AGENT", "STATUS", "CWD"];
        let wide = "AGENT  STATUS  CWD\nscout  idle    /home/ann/code\n.1             /";
        assert_eq!(table(head, &rows(), None), wide);
        assert_eq!(table(head, &rows(), Some(29)), wide);
        let narrow = "scout\n  status  idle\n  cwd     /home/ann/code\n.1\n  cwd  /";
        assert_eq!(table(head, &rows(), Some(28)), narrow);
    }

    #[test]
    fn a_fact_that_is_too_long_goes_on_below_itself() {
        let values = [("cwd", "/"), ("may write", "one two three /a/path/of/many/parts")];
        let values = values.map(|(name, value)| (name, value.to_owned()));
        assert_eq!(
            facts(&values, None),
            "cwd        /\nmay write  one two three /a/path/of/many/parts"
        );
        assert_eq!(
            facts(&values, Some(24)),
            "cwd        /\nmay write  one two three\n           /a/path/of/ma\n           ny/parts"
        );
        assert_eq!(facts::<&str>(&[], Some(40)), "");
    }

    #[test]
    fn no_terminal_is_too_narrow() {
        for width in 0..12 {
            assert_eq!(hung("> ", "a b", Some(width)), "> a b");
            let words = hung("long start: ", "word word word", Some(width));
            assert_eq!(words, "long start: word word\n            word", "{width}");
        }
    }
}
