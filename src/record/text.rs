//! A scenario as TOML, written to be read: a heading for each part, its values in lines, long texts over
//! several of them. Pure; what it means is not known here.

use std::fmt::Write;

use serde::Serialize;
use toml::{Table, Value};

/// How wide a value may be before a list is written over several lines.
const LINE_CHARS: usize = 100;

/// Collects a file.
#[derive(Debug, Default)]
pub(super) struct Text(String);

impl Text {
    pub(super) fn comment(&mut self, line: &str) {
        let _ = writeln!(self.0, "# {}", line.replace(char::is_control, " "));
    }

    /// One value before the first heading.
    pub(super) fn value(&mut self, key: &str, value: &Value) {
        line(&mut self.0, key, value);
    }

    /// `[key]`; nothing where it is empty.
    pub(super) fn table(&mut self, key: &str, part: &impl Serialize) {
        let table = table(part);
        if !table.is_empty() {
            let _ = writeln!(self.0, "\n[{key}]");
            lines(&mut self.0, &table);
        }
    }

    /// One `[[key]]`.
    pub(super) fn item(&mut self, key: &str, part: &impl Serialize) {
        let _ = writeln!(self.0, "\n[[{key}]]");
        lines(&mut self.0, &table(part));
    }

    pub(super) fn into_string(self) -> String {
        self.0
    }
}

/// A part as TOML has it, which knows no null and no whole numbers beyond its own.
fn table(part: &impl Serialize) -> Table {
    let value = serde_json::to_value(part).expect("parts of a scenario have only string keys");
    match toml_of(value) {
        Some(Value::Table(table)) => table,
        _ => Table::new(),
    }
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
        Value::String(content) if content.trim_end_matches('\n').contains('\n') => several(content),
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
            let member = |(key, value): (&String, &Value)| {
                format!("{} = {}", name(key), wrapped(value, indent))
            };
            let members: Vec<String> = table.iter().map(member).collect();
            format!("{{ {} }}", members.join(", "))
        }
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
            let member =
                |(key, value): (&String, &Value)| format!("{} = {}", name(key), inline(value));
            let members: Vec<String> = table.iter().map(member).collect();
            format!("{{ {} }}", members.join(", "))
        }
    }
}

fn name(key: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !key.is_empty() && key.chars().all(is_bare) { key.to_owned() } else { quoted(key) }
}

/// The escapes of JSON are escapes of TOML, but one character more needs one.
fn quoted(text: &str) -> String {
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
            text.table("files", &json!({ "/a b": content }));
            text.item("step", &json!({ "params": { "x": [content, 1, 2.5, null] }, "y": null }));
            let text = text.into_string();
            let read: Table = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
            assert_eq!(read["files"]["/a b"].as_str(), Some(content), "{text}");
            assert_eq!(read["step"][0]["params"]["x"][0].as_str(), Some(content), "{text}");
            assert_eq!(read["step"][0].as_table().map(Table::len), Some(1), "{text}");
        }
    }

    #[test]
    fn a_long_list_has_a_line_for_each_item() {
        let mut text = Text::default();
        text.table("empty", &json!({}));
        text.item(
            "model",
            &json!({ "says": ["x".repeat(60), "y".repeat(60)], "usage": { "input": 3 } }),
        );
        let (x, y) = ("x".repeat(60), "y".repeat(60));
        let expected =
            format!("\n[[model]]\nsays = [\n  \"{x}\",\n  \"{y}\",\n]\nusage = {{ input = 3 }}\n");
        assert_eq!(text.into_string(), expected);
    }
}
