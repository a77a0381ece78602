//! A report as one HTML page that needs nothing else: its style, its script and what it shows are all in
//! it, and it may load nothing. What models, tools and files said is data, never markup: it stands in the
//! page as JSON without a single `<`, and the script puts it on the screen as text.

use ring::digest::{SHA256, digest};

use super::Report;

const STYLE: &str = include_str!("page.css");
/// One after another, as one script.
const SCRIPT: [&str; 4] = [
    include_str!("layout.js"), // where everything is
    include_str!("chart.js"),  // draws what is visible
    include_str!("panel.js"),  // runs, failures and details
    include_str!("page.js"),   // what the reader does
];

pub fn html(report: &Report) -> String {
    let script = format!("'use strict';\n(() => {{\n{}}})();\n", SCRIPT.concat());
    let json = serde_json::to_string(report).expect("a report has only string keys");
    let title = &report.title;
    let (allowed_style, allowed_script) = (hash(STYLE), hash(&script));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src '{allowed_style}'; script-src '{allowed_script}'; base-uri 'none'; \
         form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <noscript>This report is drawn by a script of its own; it loads nothing.</noscript>\n\
         <svg id=\"pen\" width=\"0\" height=\"0\" hidden></svg>\n<div id=\"root\"></div>\n\
         <script type=\"application/json\" id=\"report\">{}</script>\n\
         <script>{script}</script>\n</body>\n</html>\n",
        escaped(title),
        harmless(&json)
    )
}

/// JSON that means the same and ends no element: outside of texts it has none of these signs.
fn harmless(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// What a policy calls a text that it allows.
fn hash(text: &str) -> String {
    format!("sha256-{}", base64(digest(&SHA256, text.as_bytes()).as_ref()))
}

fn base64(bytes: &[u8]) -> String {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for piece in bytes.chunks(3) {
        let bits = (0..3).fold(0, |bits, at| {
            bits << 8 | usize::from(piece.get(at).copied().unwrap_or_default())
        });
        for at in 0..4 {
            let sign = SIGNS[bits >> (18 - 6 * at) & 63];
            text.push(if at <= piece.len() { char::from(sign) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_written_as_base64() {
        let written = ["", "f", "fo", "foo", "foob"].map(|text| base64(text.as_bytes()));
        assert_eq!(written, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg=="]);
        assert_eq!(hash(""), "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
    }
}
