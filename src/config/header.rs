//! The value of a configured header. People put keys there, so that nothing shows it but by asking
//! for it by name.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use secrecy::{ExposeSecret, SecretString};
use serde::{Serialize, Serializer};

const HIDDEN: &str = "[hidden]";

#[derive(Clone)]
pub struct HeaderText(SecretString);

impl HeaderText {
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl From<&str> for HeaderText {
    fn from(text: &str) -> Self {
        Self(SecretString::from(text))
    }
}

impl fmt::Debug for HeaderText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

impl PartialEq for HeaderText {
    fn eq(&self, other: &Self) -> bool {
        self.expose() == other.expose()
    }
}

impl Eq for HeaderText {}

impl Serialize for HeaderText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(HIDDEN)
    }
}

impl JsonSchema for HeaderText {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "HeaderText".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, ProviderConfig, ProviderKind};

    #[test]
    fn no_print_of_a_configuration_shows_a_header() {
        let mut provider = ProviderConfig::of(ProviderKind::Openai);
        provider.headers.insert("x-key".to_owned(), "canary-value".into());
        let mut config = Config::default();
        config.providers.insert("p".to_owned(), provider);
        let json = serde_json::to_value(&config).unwrap();
        assert_eq!(json["providers"]["p"]["headers"], serde_json::json!({"x-key": HIDDEN}));
        let printed = [format!("{config:?}"), format!("{config:#?}"), json.to_string()];
        assert_eq!(printed.map(|text| text.contains("canary")), [false; 3]);
    }
}
