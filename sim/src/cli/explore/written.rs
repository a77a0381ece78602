//! What came of a sweep, for programs: JSON, and the XML that readers of `JUnit` files know. Pure.

use std::fmt::Write;
use std::time::Duration;

use serde_json::{Value, json};

use super::sum::Sum;

pub fn json(profile: &str, sum: &Sum, wall: Duration) -> Value {
    let kinds = sum.kinds().into_iter().map(|(kind, count)| (kind.to_string(), count.into()));
    let files = sum.files.iter().map(|(file, of)| {
        let mut told = serde_json::to_value(of).expect("it has only string keys");
        told["end_states"] = of.ends.len().into();
        (file.clone(), told)
    });
    json!({
        "profile": profile,
        "runs": sum.runs,
        "violations": sum.found().count(),
        "seconds": wall.as_secs_f64(),
        "kinds": kinds.collect::<serde_json::Map<String, Value>>(),
        "files": files.collect::<serde_json::Map<String, Value>>(),
        "marks": sum.marks,
        "found": sum.found().collect::<Vec<_>>(),
    })
}

/// A test case for each file, with what failed in its runs.
pub fn junit(profile: &str, sum: &Sum, wall: Duration) -> String {
    let failed = sum.files.values().filter(|file| file.violations > 0).count();
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(
        text,
        "<testsuite name=\"explore {}\" tests=\"{}\" failures=\"{failed}\" time=\"{:.3}\">",
        escaped(profile),
        sum.files.len(),
        wall.as_secs_f64()
    );
    for (file, of) in &sum.files {
        let _ = write!(text, "  <testcase classname=\"explore\" name=\"{}\"", escaped(file));
        if of.violations == 0 {
            text.push_str("/>\n");
            continue;
        }
        text.push_str(">\n");
        for found in sum.found().filter(|found| found.file == *file) {
            let kinds: Vec<String> = found.kinds.iter().map(ToString::to_string).collect();
            let _ = writeln!(
                text,
                "    <failure type=\"{}\" message=\"seed {}\">{}</failure>",
                kinds.join(" "),
                found.seed,
                escaped(&found.to_string())
            );
        }
        text.push_str("  </testcase>\n");
    }
    text.push_str("</testsuite>\n");
    text
}

/// What may stand in XML: its own signs as entities, and no control characters.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' => escaped.push(c),
            c if c.is_control() => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::super::sum::{Found, Run};
    use super::*;
    use crate::verdict::Kind;

    fn sum() -> Sum {
        let run = |file: &str, seed, found| Run {
            file: file.to_owned(),
            seed,
            turns: 1,
            virtual_ms: 1,
            end_state: 1,
            marks: [("fault:crash".to_owned(), 1)].into(),
            parts_at: None,
            found,
        };
        let found = Found {
            file: "b.toml".to_owned(),
            seed: 7,
            kinds: [Kind::Rest].into(),
            failures: vec!["a < b".to_owned()],
            led_to_it: Vec::new(),
            kept: "found/b.toml".into(),
            again: "nexus3-sim run found/b.toml --trace".to_owned(),
        };
        let mut sum = Sum::default();
        sum.add(run("a.toml", 6, None));
        sum.add(run("b.toml", 7, Some(found)));
        sum
    }

    #[test]
    fn json_has_what_was_found() {
        let json = json("chaos", &sum(), Duration::from_secs(1));
        assert_eq!(json["violations"], 1);
        assert_eq!(json["kinds"], json!({ "rest": 1 }));
        assert_eq!(
            json["files"]["a.toml"],
            json!({ "runs": 1, "violations": 0, "end_states": 1, "parts": {} })
        );
        assert_eq!(json["found"][0]["failures"], json!(["a < b"]));
    }

    #[test]
    fn junit_has_a_case_for_each_file() {
        let expected = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
            <testsuite name=\"explore chaos\" tests=\"2\" failures=\"1\" time=\"1.000\">\n  \
            <testcase classname=\"explore\" name=\"a.toml\"/>\n  \
            <testcase classname=\"explore\" name=\"b.toml\">\n    \
            <failure type=\"rest\" message=\"seed 7\">FAILED b.toml seed 7\n    a &lt; b\n    \
            again: nexus3-sim run found/b.toml --trace</failure>\n  \
            </testcase>\n</testsuite>\n";
        assert_eq!(junit("chaos", &sum(), Duration::from_secs(1)), expected);
    }
}
