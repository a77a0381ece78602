//! Results to stdout, everything else to stderr. A reader that went away is no error of ours.

use std::io::Write;

pub fn line(text: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{text}");
}

pub fn text(text: &str) {
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}

pub fn note(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}
