//! A scenario file for those who change it and write it again: its tree, without places. What it
//! means is not known here; [`super::Scenario`] reads the text that comes out.

use nexus3::record::text::Text;
use toml::{Table, Value};

/// What the parts of a file are in, in the order in which people read them; the rest comes behind.
const PARTS: [&str; 10] =
    ["env", "config", "files", "agent", "model", "program", "mcp", "step", "fault", "expect"];

#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    #[error("the text is no TOML")]
    Toml {
        #[source]
        source: Box<toml::de::Error>,
    },
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    root: Table,
}

impl From<Table> for Document {
    fn from(root: Table) -> Self {
        Self { root }
    }
}

impl Document {
    pub fn parse(text: &str) -> Result<Self, DocumentError> {
        let root = text.parse::<Table>();
        let root = root.map_err(|source| DocumentError::Toml { source: Box::new(source) })?;
        Ok(Self { root })
    }

    pub fn root(&self) -> &Table {
        &self.root
    }

    pub fn root_mut(&mut self) -> &mut Table {
        &mut self.root
    }

    pub fn get(&self, key: &str) -> Option<&Value> {
        self.root.get(key)
    }

    pub fn set(&mut self, key: &str, value: impl Into<Value>) {
        self.root.insert(key.to_owned(), value.into());
    }

    pub fn remove(&mut self, key: &str) {
        self.root.remove(key);
    }

    /// The tables of `[[key]]`.
    pub fn list(&self, key: &str) -> Vec<Table> {
        let items = self.root.get(key).and_then(Value::as_array);
        items.into_iter().flatten().filter_map(Value::as_table).cloned().collect()
    }

    pub fn set_list(&mut self, key: &str, items: Vec<Table>) {
        if items.is_empty() {
            self.remove(key);
        } else {
            self.set(key, items.into_iter().map(Value::Table).collect::<Vec<_>>());
        }
    }

    /// The file, written to be read.
    pub fn text(&self) -> String {
        let mut text = Text::default();
        for (key, value) in &self.root {
            if !is_part(value) {
                text.value(key, value);
            }
        }
        let known = PARTS.iter().filter_map(|key| self.root.get_key_value(*key));
        let others = self.root.iter().filter(|(key, _)| !PARTS.contains(&key.as_str()));
        for (key, value) in known.chain(others) {
            part(&mut text, key, value);
        }
        text.into_string()
    }
}

/// Whether a value of the file stands under a heading.
fn is_part(value: &Value) -> bool {
    match value {
        Value::Table(_) => true,
        Value::Array(items) => items.first().is_some_and(Value::is_table),
        Value::String(_)
        | Value::Integer(_)
        | Value::Float(_)
        | Value::Boolean(_)
        | Value::Datetime(_) => false,
    }
}

fn part(text: &mut Text, key: &str, value: &Value) {
    match value {
        Value::Table(table) => text.table(key, table),
        Value::Array(items) => {
            for table in items.iter().filter_map(Value::as_table) {
                text.item(key, table);
            }
        }
        Value::String(_)
        | Value::Integer(_)
        | Value::Float(_)
        | Value::Boolean(_)
        | Value::Datetime(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
schema = 1
about  = "One \"quoted\" line\nand another"
[[step]]
call   = "send"
params = { content = "x", list = [1, 2.5, true], "odd key" = {} }
[config.providers.sim]
type   = "vllm"
[files]
"/project/a b" = "\u007f\u0000"
"/project/c"   = { text = "x", mode = 0o600 }
"#;

    #[test]
    fn what_is_written_reads_as_the_same() {
        let document = Document::parse(TEXT).unwrap();
        let written = document.text();
        assert_eq!(Document::parse(&written).unwrap(), document, "{written}");
        let expected = "schema = 1\nabout = \"\"\"\nOne \"quoted\" line\nand another\"\"\"\n\n\
             [config]\nproviders = { sim = { type = \"vllm\" } }\n\n\
             [files]\n\"/project/a b\" = \"\\u007f\\u0000\"\n\
             \"/project/c\" = { text = \"x\", mode = 0o600 }\n\n\
             [[step]]\ncall = \"send\"\n\
             params = { content = \"x\", list = [1, 2.5, true], \"odd key\" = {} }\n";
        assert_eq!(written, expected);
    }

    #[test]
    fn a_list_without_entries_is_no_part() {
        let mut document = Document::parse(TEXT).unwrap();
        document.set_list("step", Vec::new());
        assert_eq!(document.list("step"), Vec::<Table>::new());
        assert!(!document.text().contains("step"));
    }
}
