//! A scenario as TOML, written to be read: a heading for each part, its values in lines, long texts over
//! several of them. Whoever writes one writes it with this: recordings, and those who change a file.
//! Pure; what it means is not known here.

use std::fmt::Write;

use serde::Serialize;
use toml::{Table, Value};

/// How wide a value may be before a list is written over several lines.
const LINE_CHARS: usize = 100;

/// Collects a file.
#[derive(Debug, Default)]
pub struct Text(String);

impl Text {
    pub fn comment(&mut self, line: &str) {
        let _ = writeln!(self.0, "# {}", line.replace(char::is_control, " "));
    }

    /// One value before the first heading.
    pub fn value(&mut self, key: &str, value: &Value) {
        line(&mut self.0, key, value);
    }

    /// `[key]`; nothing where it is empty.
    pub fn table(&mut self, key: &str, table: &Table) {
        if !table.is_empty() {
            let _ = writeln!(self.0, "\n[{}]", name(key));
            lines(&mut self.0, table);
        }
    }

    /// One `[[key]]`.
    pub fn item(&mut self, key: &str, table: &Table) {
        let _ = writeln!(self.0, "\n[[{}]]", name(key));
        lines(&mut self.0, table);
    }

    /// One `[[of.key]]`, a part of the item before.
    pub fn item_of(&mut self, of: &str, key: &str, table: &Table) {
        let _ = writeln!(self.0, "[[{}.{}]]", name(of), name(key));
        lines(&mut self.0, table);
    }

    pub fn into_string(self) -> String {
        self.0
    }
}

/// A part as TOML has it, which knows no null and no whole numbers beyond its own.
pub fn table(part: &impl Serialize) -> Table {
    let value = serde_json::to_value(part).expect("parts of a scenario have only string keys");
    match toml_of(value) {
        Some(Value::Table(table)) => table,
        _ => Table::new(),
    }
}

/// Whether TOML can say all of it: it knows no null, and no whole numbers beyond its own.
pub fn fits_toml(members: &serde_json::Map<String, serde_json::Value>) -> bool {
    fn fits(value: &serde_json::Value) -> bool {
        use serde_json::Value as Json;
        match value {
            Json::Null => false,
            Json::Number(number) => number.is_i64() || number.is_f64(),
            Json::Bool(_) | Json::String(_) => true,
            Json::Array(items) => items.iter().all(fits),
            Json::Object(members) => members.values().all(fits),
        }
    }
    members.values().all(fits)
}

fn toml_of(value: serde_json::Value) -> Option<Value> {
    use serde_json::Value as Json;
    Some(match value {
        Json::Null => return None,
        Json::Bool(truth) => truth.into(),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => whole.into(),
            (None, Some(float)) => float.into(),
            (None, None) => number.to_string().into(),
        },
        Json::String(text) => text.into(),
        Json::Array(items) => {
            Value::Array(items.into_iter().filter_map(toml_of).collect::<Vec<_>>())
        }
        Json::Object(members) => {
            let members = members.into_iter();
            Value::Table(members.filter_map(|(key, item)| Some((key, toml_of(item)?))).collect())
        }
    })
}

fn lines(text: &mut String, table: &Table) {
    for (key, value) in table {
        line(text, key, value);
    }
}

fn line(text: &mut String, key: &str, value: &Value) {
    let key = name(key);
    let value = match value {
        Value::String(content) if has_lines(content) => several(content),
        value => wrapped(value, ""),
    };
    let _ = writeln!(text, "{key} = {value}");
}

/// A value in one line where it fits, else with every item of its lists in a line of its own: between
/// braces a line may only end inside of a list.
fn wrapped(value: &Value, indent: &str) -> String {
    let whole = inline(value);
    if whole.chars().count() + indent.len() <= LINE_CHARS {
        return whole;
    }
    match value {
        Value::Array(items) => {
            let inner = format!("{indent}  ");
            let item = |item: &Value| format!("{inner}{},\n", wrapped(item, &inner));
            format!("[\n{}{indent}]", items.iter().map(item).collect::<String>())
        }
        Value::Table(table) => {
            let members: Vec<String> =
                table.iter().map(|pair| member(pair, |value| wrapped(value, indent))).collect();
            format!("{{ {} }}", members.join(", "))
        }
        Value::String(text) if has_lines(text) => several(text),
        Value::String(_)
        | Value::Integer(_)
        | Value::Float(_)
        | Value::Boolean(_)
        | Value::Datetime(_) => whole,
    }
}

fn inline(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Integer(number) => number.to_string(),
        // The shortest form that reads as the same number, always with a point or an exponent.
        Value::Float(number) => format!("{number:?}"),
        Value::Boolean(truth) => truth.to_string(),
        Value::Datetime(date) => date.to_string(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(inline).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Table(table) if table.is_empty() => "{}".to_owned(),
        Value::Table(table) => {
            let members: Vec<String> = table.iter().map(|pair| member(pair, inline)).collect();
            format!("{{ {} }}", members.join(", "))
        }
    }
}

fn member((key, value): (&String, &Value), written: impl Fn(&Value) -> String) -> String {
    match value {
        // The bits of a file are only taken as an octal number.
        Value::Integer(bits @ 0..) if key == "mode" => format!("mode = 0o{bits:o}"),
        _ => format!("{} = {}", name(key), written(value)),
    }
}

/// Whether a text is more than a line.
fn has_lines(text: &str) -> bool {
    text.trim_end_matches('\n').contains('\n')
}

fn name(key: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !key.is_empty() && key.chars().all(is_bare) { key.to_owned() } else { quoted(key) }
}

/// Between single quotes nothing is escaped, which is better to read where something would be. Else the
/// escapes of JSON are escapes of TOML, but one character more needs one.
fn quoted(text: &str) -> String {
    if text.contains(['"', '\\']) && !text.contains(|c: char| c == '\'' || c.is_control()) {
        return format!("'{text}'");
    }
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

/// A text over several lines. The line feed after the opening quotes is none of its own.
fn several(text: &str) -> String {
    let mut written = "\"\"\"\n".to_owned();
    let mut quotes = 0;
    for c in text.chars() {
        quotes = if c == '"' { quotes + 1 } else { 0 };
        match c {
            '\n' | '\t' => written.push(c),
            '\\' => written.push_str("\\\\"),
            '\r' => written.push_str("\\r"),
            // Three of them would end it, and so would one before those that do.
            '"' if quotes == 3 => {
                written.push_str("\\\"");
                quotes = 0;
            }
            c if c.is_control() => {
                let _ = write!(written, "\\u{:04x}", u32::from(c));
            }
            c => written.push(c),
        }
    }
    if written.ends_with('"') && quotes > 0 {
        written.truncate(written.len() - quotes);
        written.push_str(&"\\\"".repeat(quotes));
    }
    written + "\"\"\""
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_written_reads_as_the_same() {
        let texts = [
            "one\ntwo",
            "a\r\nb\n",
            "\n\n",
            "\"\"\"\"\n\"",
            "x\n\"\"",
            "\\u0041\n\t\u{7f}\u{0}",
            "${x}\n",
            "plain",
            "'''\n'''",
        ];
        for content in texts {
            let mut text = Text::default();
            text.value("about", &"line\nfeed".into());
            text.table("files", &table(&json!({ "/a b": content })));
            let long = "l".repeat(100);
            let params = json!({ "x": [content, 1, 2.5, null], "y": content, "z": long });
            text.item("step", &table(&json!({ "params": params, "y": null })));
            let text = text.into_string();
            let read: Table = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
            assert_eq!(read["files"]["/a b"].as_str(), Some(content), "{text}");
            assert_eq!(read["step"][0]["params"]["x"][0].as_str(), Some(content), "{text}");
            assert_eq!(read["step"][0]["params"]["y"].as_str(), Some(content), "{text}");
            assert_eq!(read["step"][0].as_table().map(Table::len), Some(1), "{text}");
        }
    }

    #[test]
    fn a_long_list_has_a_line_for_each_item() {
        let mut text = Text::default();
        text.table("empty", &Table::new());
        let says = ["x".repeat(60), "y".repeat(60)];
        text.item("model", &table(&json!({ "says": says, "usage": { "input": 3 } })));
        let (x, y) = ("x".repeat(60), "y".repeat(60));
        let expected =
            format!("\n[[model]]\nsays = [\n  \"{x}\",\n  \"{y}\",\n]\nusage = {{ input = 3 }}\n");
        assert_eq!(text.into_string(), expected);
    }

    #[test]
    fn the_bits_of_a_file_are_octal() {
        let mut text = Text::default();
        let script = format!("#!/bin/sh\n{}\n", "x".repeat(90));
        text.table("files", &table(&json!({ "/a": { "text": script, "mode": 0o755 } })));
        let expected =
            format!("\n[files]\n\"/a\" = {{ text = \"\"\"\n{script}\"\"\", mode = 0o755 }}\n");
        assert_eq!(text.into_string(), expected);
    }
}
