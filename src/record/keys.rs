//! What looks like a key, whosever it is: agents meet keys that this server was never given, in files, in what
//! programs print and in what people type. Pure.
//!
//! A key that is known by how it begins is hidden wherever it stands. One that is known by what stands around
//! it, the value of `DB_PASSWORD=` or a line of a private key, is learnt, and hidden everywhere from then on:
//! what is hidden in one place and not in another would be another text in a replay.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;
use secrecy::SecretString;

/// What stands for a key.
const REDACTED: &str = "[redacted]";

/// By how the keys of common services begin.
static SHAPES: LazyLock<Regex> = LazyLock::new(|| {
    let shapes = [
        r"sk-[A-Za-z0-9_-]{16,}",
        r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,}",
        r"gh[oprsu]_[A-Za-z0-9]{20,}",
        r"github_pat_[A-Za-z0-9_]{20,}",
        r"glpat-[A-Za-z0-9_-]{16,}",
        r"xox[abeprs]-[A-Za-z0-9-]{10,}",
        r"(?:AKIA|ASIA)[A-Z0-9]{16}\b",
        r"AIza[A-Za-z0-9_-]{30,}",
        r"hf_[A-Za-z0-9]{20,}",
        r"npm_[A-Za-z0-9]{30,}",
        r"pypi-[A-Za-z0-9_-]{20,}",
        // A JSON web token.
        r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
    ];
    pattern(&format!(r"\b(?:{})", shapes.join("|")))
});

/// A name that says what its value is, and the value.
static ASSIGNED: LazyLock<Regex> = LazyLock::new(|| {
    let name = r"(?:key|token|secret|password|passwd|passphrase|credentials?)";
    let value = r"(?P<value>[A-Za-z0-9+/_.~!@\#%^&*=-]{10,})";
    pattern(&format!(r#"(?i){name}\\?["']?[ \t]*[=:][ \t]*\\?["']?{value}(?P<next>.?)"#))
});

/// The password in an address.
static ADDRESS: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"://[^/\s:@"']+:(?P<value>[^/\s:@"']{8,})@"#));

/// A private key, as far as it is there.
static PRIVATE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?P<lines>[A-Za-z0-9+/=\s]*)"));
const PRIVATE_LINE_MIN: usize = 16;

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is written here")
}

/// The text without what lies there, and without what begins like a key. Keys have digits; words that begin
/// like one have none.
pub(super) fn hide(text: &str, mut known: Vec<Range<usize>>) -> String {
    let alike = SHAPES.find_iter(text).filter(|found| has_digit(found.as_str()));
    known.extend(alike.map(|found| found.range()));
    known.sort_by_key(|range| range.start);
    let mut shown = String::with_capacity(text.len());
    let mut shown_to = 0;
    for range in known {
        if range.start >= shown_to {
            shown.push_str(&text[shown_to..range.start]);
            shown.push_str(REDACTED);
        }
        shown_to = shown_to.max(range.end);
    }
    shown.push_str(&text[shown_to..]);
    shown
}

/// Keys that are known by what stands around them.
pub(super) fn told_in(text: &str) -> Vec<SecretString> {
    let assigned = ASSIGNED.captures_iter(text).filter(|found| {
        let value = &found["value"];
        // Paths, names of variables and calls are no keys, though they are what a key is got from.
        let ends = found["next"].chars().all(|c| c.is_whitespace() || "\"'`,;\\)]}".contains(c));
        let is_word =
            value.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
                && value.contains('_');
        ends && has_digit(value) && has_letter(value) && !value.starts_with(['/', '.']) && !is_word
    });
    let assigned = assigned.map(|found| found["value"].to_owned());
    let passwords = ADDRESS.captures_iter(text).map(|found| found["value"].to_owned());
    let private = PRIVATE.captures_iter(text).flat_map(|found| {
        let lines = found["lines"].split_whitespace().filter(|line| line.len() >= PRIVATE_LINE_MIN);
        lines.map(str::to_owned).collect::<Vec<_>>()
    });
    assigned.chain(passwords).chain(private).map(SecretString::from).collect()
}

fn has_digit(text: &str) -> bool {
    text.contains(|c: char| c.is_ascii_digit())
}

fn has_letter(text: &str) -> bool {
    text.contains(|c: char| c.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    #[test]
    fn keys_of_services_are_known_by_how_they_begin() {
        let keys = [
            "sk-proj-ZZZZ9999888877776666",
            "sk-ant-api03-abcdefghijklmnop-0",
            "ghp_0123456789abcdefghij0123456789",
            "AKIAIOSFODNN7EXAMPLE",
            "xoxb-123456789012-abc",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
        ];
        for key in keys {
            let text = format!("It is {key}, so.");
            assert_eq!(hide(&text, Vec::new()), "It is [redacted], so.", "{key}");
            assert_eq!(hide(&text, vec![3..9, 10..11]), "It [redacted], so.", "{key}");
        }
        for word in ["task-0123456789abcdef0123", "sk-circle-fade-and-more", "risk-9", "AKIA"] {
            assert_eq!(hide(word, Vec::new()), word);
        }
    }

    fn told(text: &str) -> Vec<String> {
        told_in(text).iter().map(|key| key.expose_secret().to_owned()).collect()
    }

    #[test]
    fn a_value_is_a_key_where_its_name_says_so() {
        assert_eq!(told("DB_PASSWORD=hunter2hunter2\nA=1"), ["hunter2hunter2"]);
        assert_eq!(told(r#"{"api_key": "0a1b2c3d4e5f"}"#), ["0a1b2c3d4e5f"]);
        assert_eq!(told(r#"{\"token\":\"0a1b2c3d4e5f\"}"#), ["0a1b2c3d4e5f"]);
        assert_eq!(told("postgres://me:s3cr3ts3cr3t@db/x"), ["s3cr3ts3cr3t"]);
        for text in [
            "API_KEY=os.environ[\"KEY_2\"]",
            "token = next_token_2",
            "token: /home/me/rpc-8765.token",
            "key = keys_2(name)",
            "the token is 0123456789ab",
            "max_tokens: 0123456789ab",
        ] {
            assert_eq!(told(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn the_lines_of_a_private_key_are_keys() {
        let key =
            "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA7\nx2mW8yq0Zk3vT1pQ9\nab==\n-----END";
        assert_eq!(told(key), ["MIIEowIBAAKCAQEA7", "x2mW8yq0Zk3vT1pQ9"]);
    }
}
