//! JSON with comments and trailing commas, and nothing else that its parser could also take; or, for
//! a variable, JSON or else text. It knows no key; the readers do.

use jsonc_parser::common::Ranged;
use jsonc_parser::errors::{ParseError, ParseErrorKind};
use jsonc_parser::{CollectOptions, ParseOptions, ParseStringErrorKind, parse_to_ast};

use super::problem::Problems;
use super::tree::{At, Tree};
use super::words::shown_key;

const JSON: ParseOptions = ParseOptions {
    allow_comments: false,
    allow_loose_object_property_names: false,
    allow_trailing_commas: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

const WITH_COMMENTS: ParseOptions =
    ParseOptions { allow_comments: true, allow_trailing_commas: true, ..JSON };

/// What a file says. None, with a problem added, where that is nothing.
pub(super) fn file(source: usize, text: &str, problems: &Problems<'_>) -> Option<Tree> {
    let parsed = match parse_to_ast(text, &CollectOptions::default(), &WITH_COMMENTS) {
        Ok(parsed) => parsed.value,
        Err(error) => {
            let (message, hint) = words(&error);
            let at = At { source, offset: error.range().start() };
            problems.add(at, message.to_owned(), hint.to_owned());
            return None;
        }
    };
    if parsed.is_none() {
        let hint = "write {} for a configuration that changes nothing".to_owned();
        problems.add(At { source, offset: 0 }, "the file holds no value".to_owned(), hint);
    }
    parsed.map(|value| Tree::parsed(source, &value))
}

/// What a file says whose keys no reader of ours knows; what is wrong with it, and where, without its text.
pub(super) fn plain(text: &str) -> Result<serde_json::Value, (String, usize)> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &WITH_COMMENTS);
    let parsed = parsed.map_err(|error| (words(&error).0.to_owned(), error.range().start()))?;
    let value = parsed.value.ok_or_else(|| ("the file holds no value".to_owned(), 0))?;
    let tree = Tree::parsed(0, &value);
    tree.plain().map_err(|(key, at)| (format!("{} stands there twice", shown_key(key)), at.offset))
}

/// What a variable says: JSON, else the text itself.
pub(super) fn variable(source: usize, text: &str) -> Tree {
    match parse_to_ast(text, &CollectOptions::default(), &JSON).map(|parsed| parsed.value) {
        Ok(Some(value)) => Tree::parsed(source, &value),
        Ok(None) | Err(_) => Tree::text(source, text),
    }
}

/// What a syntax error means to whoever wrote the file, and what to do.
fn words(error: &ParseError) -> (&'static str, &'static str) {
    use ParseErrorKind as Kind;
    match error.kind() {
        Kind::BareDecimalPointNumbersNotAllowed => (
            "a number needs digits on both sides of its point",
            "write 0.5 for .5, and 5.0 or 5 for 5.",
        ),
        Kind::ExpectedColonAfterObjectKey => {
            ("expected `:` after the key", "write \"key\": value, with the key in double quotes")
        }
        Kind::ExpectedObjectValue => {
            ("expected a value after `:`", "write the value, or remove the key")
        }
        Kind::ExpectedDigit
        | Kind::ExpectedDigitFollowingNegativeSign
        | Kind::ExpectedPlusMinusOrDigitInNumberLiteral
        | Kind::HexadecimalNumbersNotAllowed
        | Kind::UnaryPlusNumbersNotAllowed
        | Kind::NonFiniteNumbersNotAllowed => {
            ("this is no JSON number", "write a decimal number such as 5, 0.5 or -1")
        }
        Kind::ExpectedStringObjectProperty | Kind::UnexpectedTokenInObject => {
            ("expected a key or `}`", "write keys in double quotes, and a comma between members")
        }
        Kind::ExpectedComma => ("expected a comma", "put a comma between this value and the next"),
        Kind::MultipleRootJsonValues => (
            "expected the end of the file",
            "a configuration is one object; remove what follows it",
        ),
        Kind::SingleQuotedStringsNotAllowed => {
            ("strings have double quotes", "write \"text\" instead of 'text'")
        }
        Kind::String(kind) => string_words(kind),
        Kind::UnexpectedCloseBrace | Kind::UnexpectedCloseBracket => (
            "expected a value, found a closing bracket",
            "write the value, and check that every { has its } and every [ its ]",
        ),
        Kind::UnexpectedColon | Kind::UnexpectedComma => {
            ("expected a value here", "write the value, or remove the sign")
        }
        Kind::UnexpectedToken | Kind::UnexpectedWord => (
            "this is no JSON value",
            "write text in double quotes; only true, false and null stand without",
        ),
        Kind::UnterminatedArray => ("this `[` is never closed", "add the missing ]"),
        Kind::UnterminatedObject => ("this `{` is never closed", "add the missing }"),
        Kind::UnterminatedCommentBlock => ("this comment is never closed", "add the missing */"),
        Kind::NestingDepthExceeded => {
            ("the brackets are nested too deeply", "no key of a configuration lies this deep")
        }
        Kind::CommentsNotAllowed | Kind::TrailingCommasNotAllowed => {
            unreachable!("comments and trailing commas are allowed")
        }
    }
}

fn string_words(kind: &ParseStringErrorKind) -> (&'static str, &'static str) {
    use ParseStringErrorKind as Kind;
    match kind {
        Kind::UnterminatedStringLiteral => {
            ("this string is never closed", "add the missing double quote")
        }
        Kind::InvalidEscapeInSingleQuoteString
        | Kind::InvalidEscapeInDoubleQuoteString
        | Kind::ExpectedFourHexDigits
        | Kind::ExpectedTwoHexDigits
        | Kind::InvalidUnicodeEscapeSequence(_)
        | Kind::InvalidEscape => (
            "this escape is unknown",
            "after a backslash stands one of \" \\ / b f n r t, or u and four hex digits; \
             for a backslash itself write \\\\",
        ),
    }
}
