//! The key of a provider: where it comes from, and keeping it out of every text.
//! It is read once at the start and never shown; `Debug` prints only where it came from.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use secrecy::{ExposeSecret, SecretString};

use super::models::ModelError;
use crate::config::{AuthMethod, HeaderText, ProviderConfig};
use crate::limits::KEY_BYTES_MAX;
use crate::world::{Access, Environment, Fs};

/// A key and where it came from.
#[derive(Clone, Debug)]
pub(super) struct Key {
    pub(super) value: SecretString,
    pub(super) source: KeySource,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum KeySource {
    Variable(String),
    File(PathBuf),
}

impl fmt::Display for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => write!(f, "the variable `{name}`"),
            Self::File(_) => f.write_str("its `api_key_file`"),
        }
    }
}

/// Where a provider may find its key.
#[derive(Clone, Copy)]
pub(super) struct KeyFinder<'a> {
    pub(super) environment: &'a dyn Environment,
    pub(super) fs: &'a dyn Fs,
}

impl KeyFinder<'_> {
    /// Reads the key of the provider `name`; `None` where it needs none.
    /// A variable named in the configuration comes before a file, and a file before the type's own
    /// variable, which counts only where neither is configured.
    pub(super) fn find(
        self,
        name: &str,
        config: &ProviderConfig,
        default_variable: Option<&str>,
    ) -> Result<Option<Key>, ModelError> {
        if config.auth_method == Some(AuthMethod::None) {
            return Ok(None);
        }
        let configured = config.api_key_env.as_deref();
        let variable = match (configured, &config.api_key_file) {
            (Some(variable), _) => Some(variable),
            (None, Some(_)) => None,
            (None, None) => default_variable,
        };
        if let Some(key) = variable.and_then(|variable| self.in_variable(variable)) {
            return Ok(Some(key));
        }
        if let Some(path) = &config.api_key_file {
            return self.in_file(name, path).map(Some);
        }
        match variable {
            Some(variable) => Err(ModelError::MissingKey {
                provider: name.to_owned(),
                variable: variable.to_owned(),
            }),
            None if config.auth_method.is_some() => {
                Err(ModelError::NoKeySource { provider: name.to_owned() })
            }
            None => Ok(None),
        }
    }

    /// The key in an environment variable; an empty one is none.
    pub(super) fn in_variable(self, variable: &str) -> Option<Key> {
        let value = self.environment.var(variable)?;
        let value = value.trim();
        (!value.is_empty()).then(|| Key {
            value: SecretString::from(value),
            source: KeySource::Variable(variable.to_owned()),
        })
    }

    fn in_file(self, provider: &str, path: &Path) -> Result<Key, ModelError> {
        let text = self.read(path).map_err(|source| ModelError::KeyFile {
            provider: provider.to_owned(),
            path: path.to_owned(),
            source,
        })?;
        if text.trim().is_empty() {
            return Err(ModelError::EmptyKeyFile {
                provider: provider.to_owned(),
                path: path.to_owned(),
            });
        }
        Ok(Key { value: SecretString::from(text.trim()), source: KeySource::File(path.to_owned()) })
    }

    fn read(self, path: &Path) -> io::Result<String> {
        let absolute = self.environment.current_dir()?.join(path);
        // Mounted secrets are links more often than not; an operator's own path may follow them.
        let file_path = self.fs.canonical(&absolute)?;
        let (Some(parent), Some(name)) = (file_path.parent(), file_path.file_name()) else {
            return Err(io::ErrorKind::IsADirectory.into());
        };
        let file = self.fs.dir(parent)?.open(Path::new(name), Access::Read)?;
        let content = file.read_all(KEY_BYTES_MAX)?;
        String::from_utf8(content).map_err(|_| io::ErrorKind::InvalidData.into())
    }
}

/// All secrets that this server was given, for whoever passes on a text that may hold one.
#[derive(Clone, Debug, Default)]
pub struct Secrets(pub(super) Arc<Redactor>);

impl Secrets {
    /// The text without them, and without tokens of servers like this one.
    pub fn hide(&self, text: &str) -> String {
        self.0.scrub_text(text)
    }

    /// Where they lie in a text, in order and apart from each other.
    pub fn found(&self, text: &str) -> Vec<Range<usize>> {
        self.0.found(text)
    }

    /// These and others.
    #[must_use]
    pub fn and(&self, others: impl IntoIterator<Item = SecretString>) -> Self {
        let mut all = Redactor::clone(&self.0);
        let others = others.into_iter();
        all.values.extend(others.filter(|other| other.expose_secret().len() >= HIDDEN_BYTES_MIN));
        Self(Arc::new(all))
    }
}

/// Secrets that must not be seen in any text.
#[derive(Clone, Debug, Default)]
pub(super) struct Redactor {
    keys: Vec<SecretString>,
    /// Values of configured headers, which may be keys too.
    values: Vec<SecretString>,
}

/// How much of a secret is enough to take a word for it. Providers quote keys with their middle
/// masked, so the whole key is never found.
pub(super) const SIGN_BYTES: usize = 8;
pub(super) const REDACTED: &str = "[redacted]";

/// What stands for the asking agent in a configured header.
pub(super) const AGENT_PLACE: &str = "${agent_id}";
/// A shorter header value is no secret worth hiding, and common words would vanish from messages.
const HIDDEN_BYTES_MIN: usize = 8;

impl Redactor {
    /// Hides what a provider is configured with.
    pub(super) fn hide_all(&mut self, config: &ProviderConfig, key: Option<&Key>) {
        let values = config.headers.values().map(HeaderText::expose);
        for fixed in values.flat_map(|value| value.split(AGENT_PLACE)) {
            if fixed.len() >= HIDDEN_BYTES_MIN {
                self.values.push(SecretString::from(fixed));
            }
            // A provider quotes a key without the word before it, as in `Bearer KEY`.
            for word in fixed.split_whitespace().filter(|word| is_like_a_key(word)) {
                self.hide_key(word);
            }
        }
        if let Some(key) = key {
            self.hide_key(key.value.expose_secret());
        }
    }

    pub(super) fn hide_key(&mut self, key: &str) {
        assert!(!key.is_empty(), "an empty secret would be found everywhere");
        self.keys.push(SecretString::from(key));
    }

    pub(super) fn keys(&self) -> &[SecretString] {
        &self.keys
    }

    pub(super) fn secrets(&self) -> impl Iterator<Item = &SecretString> {
        self.values.iter().chain(&self.keys)
    }

    /// Returns `text` on one line, of at most `chars_max` characters, without the secrets.
    pub(super) fn safe(&self, text: &str, chars_max: usize) -> String {
        let whole = self
            .secrets()
            .fold(text.to_owned(), |text, secret| text.replace(secret.expose_secret(), REDACTED));
        let words = whole
            .split(|c: char| c.is_whitespace() || c.is_control())
            .filter(|word| !word.is_empty())
            .map(|word| if self.has_sign(word) { REDACTED } else { word });
        let line = words.collect::<Vec<_>>().join(" ");
        match line.char_indices().nth(chars_max) {
            Some((cut, _)) => format!("{}…", &line[..cut]),
            None => line,
        }
    }

    fn has_sign(&self, word: &str) -> bool {
        self.secrets().any(|secret| {
            let sign = secret.expose_secret().get(..SIGN_BYTES);
            sign.is_some_and(|sign| word.contains(sign))
        })
    }
}

/// Keys are long and have digits; words that people write into headers have none.
fn is_like_a_key(word: &str) -> bool {
    word.len() >= HIDDEN_BYTES_MIN && word.contains(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_hidden_whole_masked_and_before_the_text_is_cut() {
        let mut redactor = Redactor::default();
        redactor.hide_key("sk-canary-0123456789");
        redactor.hide_key("two words");
        assert_eq!(
            redactor.safe("key (sk-canary-0123456789),\n\tor sk-canary-****6789. two words", 80),
            "key ([redacted]), or [redacted] [redacted]"
        );
        assert_eq!(redactor.safe("is sk-canary-0123456789", 5), "is [r…");
    }

    #[test]
    fn a_key_in_a_header_is_hidden_without_the_words_around_it() {
        let mut config = ProviderConfig::of(crate::config::ProviderKind::Vllm);
        config.headers = [
            ("authorization".to_owned(), "Bearer sk-canary-0123456789".into()),
            ("x-auth".to_owned(), "${agent_id}:s3cr3t-token of wonderful people".into()),
        ]
        .into();
        let mut redactor = Redactor::default();
        redactor.hide_all(&config, None);
        assert_eq!(
            redactor.safe("Bearer sk-canary-0123456789, sk-canary-****, :s3cr3t-token", 90),
            "[redacted], [redacted] [redacted]"
        );
        assert_eq!(redactor.safe("a wonderful Bearer", 90), "a wonderful Bearer");
    }
}
