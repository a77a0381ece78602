//! How scenario files write a length of time and a number of uses. Pure text to value and back.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use super::{Time, Times};
use crate::limits::SCRIPT_TIME_MAX;

/// A text that is no length of time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimeError {
    #[error("expected a number and one of ms, s, m, h, such as \"20ms\" or \"1.5s\"")]
    Form,
    #[error("a time is at most {}", Time(SCRIPT_TIME_MAX))]
    TooLong,
    #[error("a time is a whole number of nanoseconds")]
    TooFine,
}

const UNITS: [(&str, u64); 4] =
    [("h", 3_600_000_000_000), ("m", 60_000_000_000), ("s", 1_000_000_000), ("ms", 1_000_000)];
const PATTERN: &str = r"^[0-9]+(\.[0-9]+)?(ms|s|m|h)$";

impl Time {
    /// What schemas call a text of this form.
    pub const FORMAT: &str = "nexus-time";
}

impl FromStr for Time {
    type Err = TimeError;

    fn from_str(text: &str) -> Result<Self, TimeError> {
        let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).ok_or(TimeError::Form)?;
        let (number, unit) = text.split_at(unit_at);
        let (_, unit) = UNITS.iter().find(|(name, _)| *name == unit).ok_or(TimeError::Form)?;
        let (whole, fraction) = match number.split_once('.') {
            Some((_, "")) => return Err(TimeError::Form),
            Some((whole, fraction)) => (whole, fraction.trim_end_matches('0')),
            None => (number, ""),
        };
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !digits(whole) || !digits(fraction) {
            return Err(TimeError::Form);
        }
        let whole: u64 = whole.parse().map_err(|_| TimeError::TooLong)?;
        let fraction_nanos = nanos_of_fraction(fraction, *unit).ok_or(TimeError::TooFine)?;
        let nanos = whole.checked_mul(*unit).and_then(|nanos| nanos.checked_add(fraction_nanos));
        let time = Duration::from_nanos(nanos.ok_or(TimeError::TooLong)?);
        if time > SCRIPT_TIME_MAX { Err(TimeError::TooLong) } else { Ok(Self(time)) }
    }
}

/// None where the fraction of a unit is no whole number of nanoseconds.
fn nanos_of_fraction(digits: &str, unit: u64) -> Option<u64> {
    let mut rest = unit;
    let mut nanos = 0;
    for digit in digits.bytes() {
        if !rest.is_multiple_of(10) {
            return None;
        }
        rest /= 10;
        nanos += u64::from(digit - b'0') * rest;
    }
    Some(nanos)
}

/// The largest unit that needs no fraction, else milliseconds.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        if nanos == 0 {
            return f.write_str("0s");
        }
        for (name, unit) in UNITS {
            if nanos.is_multiple_of(unit.into()) {
                return write!(f, "{}{name}", nanos / u128::from(unit));
            }
        }
        let fraction = format!("{:06}", nanos % 1_000_000);
        write!(f, "{}.{}ms", nanos / 1_000_000, fraction.trim_end_matches('0'))
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for Time {
    fn schema_name() -> Cow<'static, str> {
        "Time".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A length of time: a number and one of ms, s, m, h.",
            "type": "string",
            "format": Self::FORMAT,
            "pattern": PATTERN,
            "examples": ["20ms", "1.5s", "5m"],
        })
    }
}

const ALWAYS: &str = "always";

impl Default for Times {
    fn default() -> Self {
        Self::Exactly(1)
    }
}

impl<'de> Deserialize<'de> for Times {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TimesVisitor)
    }
}

struct TimesVisitor;

impl Visitor<'_> for TimesVisitor {
    type Value = Times;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number from 1, or \"always\"")
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Times, E> {
        match number {
            0 => Err(E::invalid_value(de::Unexpected::Unsigned(0), &self)),
            number => Ok(Times::Exactly(number)),
        }
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Times, E> {
        match u64::try_from(number) {
            Ok(number) => self.visit_u64(number),
            Err(_) => Err(E::invalid_value(de::Unexpected::Signed(number), &self)),
        }
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Times, E> {
        match text {
            ALWAYS => Ok(Times::Always),
            text => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
        }
    }
}

impl Serialize for Times {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Exactly(number) => serializer.serialize_u64(*number),
            Self::Always => serializer.serialize_str(ALWAYS),
        }
    }
}

impl JsonSchema for Times {
    fn schema_name() -> Cow<'static, str> {
        "Times".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A number of uses, or \"always\".",
            "anyOf": [
                { "type": "integer", "minimum": 1 },
                { "type": "string", "const": ALWAYS },
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> Result<Duration, TimeError> {
        text.parse::<Time>().map(|time| time.0)
    }

    #[test]
    fn a_time_is_a_number_and_a_unit() {
        assert_eq!(time("20ms"), Ok(Duration::from_millis(20)));
        assert_eq!(time("2s"), Ok(Duration::from_secs(2)));
        assert_eq!(time("5m"), Ok(Duration::from_mins(5)));
        assert_eq!(time("1h"), Ok(Duration::from_hours(1)));
        assert_eq!(time("0.5s"), Ok(Duration::from_millis(500)));
        assert_eq!(time("0.0000010s"), Ok(Duration::from_micros(1)));
        for text in ["", "s", "2", "2 s", "-2s", "+2s", "2.s", ".5s", "2.5.1s", "2S", "2d", "२s"]
        {
            assert_eq!(time(text), Err(TimeError::Form), "{text:?}");
        }
        assert_eq!(time("0.0000001ms"), Err(TimeError::TooFine));
        assert_eq!(time("99999999999999999999s"), Err(TimeError::TooLong));
        assert_eq!(time("8761h").unwrap_err().to_string(), "a time is at most 8760h");
    }

    #[test]
    fn a_time_is_written_as_it_is_read() {
        for text in ["0s", "20ms", "2s", "1500ms", "5m", "1h", "0.000001ms", "1.25ms"] {
            let time: Time = serde_json::from_value(text.into()).unwrap();
            assert_eq!(serde_json::to_value(time).unwrap(), text);
        }
    }

    #[test]
    fn uses_are_a_number_or_always() {
        let read = |value: serde_json::Value| serde_json::from_value::<Times>(value).ok();
        assert_eq!(read(3.into()), Some(Times::Exactly(3)));
        assert_eq!(read("always".into()), Some(Times::Always));
        for value in [0.into(), (-1).into(), 1.5.into(), "never".into(), true.into()] {
            assert_eq!(read(value), None);
        }
        assert_eq!(serde_json::to_value(Times::default()).unwrap(), 1);
        assert_eq!(serde_json::to_value(Times::Always).unwrap(), "always");
    }
}
