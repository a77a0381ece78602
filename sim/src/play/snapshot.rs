//! Snapshots in insta's format: a header between two lines of dashes, then the transcript. They are
//! read and written here, on any machine; `cargo insta` can review them as well.

use std::fmt::Write;

/// The snapshot of a run.
pub fn written(scenario: &str, about: &str, transcript: &str) -> String {
    let about = serde_json::to_string(about).expect("a text is JSON");
    format!(
        "---\nsource: {scenario}\ndescription: {about}\nexpression: transcript\n---\n{transcript}"
    )
}

/// The transcript of a snapshot; `None` where the text is none.
pub fn transcript(snapshot: &str) -> Option<&str> {
    let (_, rest) = snapshot.strip_prefix("---\n")?.split_once("\n---\n")?;
    Some(rest)
}

/// Snapshots that no scenario has any more, by their stems.
pub fn orphans<'a>(scenarios: &[&str], snapshots: &[&'a str]) -> Vec<&'a str> {
    snapshots.iter().copied().filter(|snapshot| !scenarios.contains(snapshot)).collect()
}

/// Where two transcripts part, with the lines around it.
pub fn difference(kept: &str, found: &str) -> Option<String> {
    const BEFORE: usize = 3;
    if kept == found {
        return None;
    }
    let (kept, found): (Vec<&str>, Vec<&str>) = (kept.lines().collect(), found.lines().collect());
    let same = kept.iter().zip(&found).take_while(|(kept, found)| kept == found).count();
    let mut text = format!("line {}:\n", same + 1);
    for line in &kept[same.saturating_sub(BEFORE)..same] {
        let _ = writeln!(text, "    {line}");
    }
    let _ = writeln!(text, "  - {}", kept.get(same).unwrap_or(&"(the snapshot ends)"));
    let _ = write!(text, "  + {}", found.get(same).unwrap_or(&"(the run ends)"));
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let text = written("scenarios/x.toml", "A \"fact\".", "one\n---\ntwo\n");
        assert_eq!(transcript(&text), Some("one\n---\ntwo\n"));
        assert_eq!(transcript("no header"), None);
    }

    #[test]
    fn a_snapshot_without_a_scenario_is_an_orphan() {
        assert_eq!(orphans(&["a", "b"], &["a", "c"]), ["c"]);
        assert_eq!(orphans(&["a"], &["a"]), [""; 0]);
    }

    #[test]
    fn the_first_difference_is_shown_with_what_came_before() {
        assert_eq!(difference("a\nb\n", "a\nb\n"), None);
        let expected = "line 3:\n    a\n    b\n  - c\n  + x";
        assert_eq!(difference("a\nb\nc\n", "a\nb\nx\n").as_deref(), Some(expected));
        let expected = "line 2:\n    a\n  - b\n  + (the run ends)";
        assert_eq!(difference("a\nb\n", "a\n").as_deref(), Some(expected));
    }
}
