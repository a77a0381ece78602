//! How long to wait before a request is repeated.
//! Pure: whether it is repeated at all is told by the failure, and chance is handed in.

use std::time::Duration;

use http::{HeaderMap, HeaderName, header};
use jiff::Timestamp;
use jiff::fmt::rfc2822;

use crate::limits::{PROVIDER_BACKOFF_FIRST, PROVIDER_BACKOFF_MAX, PROVIDER_RETRY_AFTER_MAX};

/// A server's wish in milliseconds, which OpenAI and Azure send besides the one in seconds.
const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");

/// The wait after so many failed attempts: anything up to a bound that doubles, so that those who
/// failed together do not come back together, but never less than the server asked for.
/// `fraction` is chance, from 0 to 1.
pub(super) fn wait(failed: u32, asked_for: Option<Duration>, fraction: f64) -> Duration {
    let doublings = failed.saturating_sub(1).min(u32::BITS - 1);
    let bound = PROVIDER_BACKOFF_FIRST.saturating_mul(1 << doublings).min(PROVIDER_BACKOFF_MAX);
    let drawn = bound.mul_f64(fraction.clamp(0.0, 1.0));
    // Whole milliseconds: what is told is what is waited.
    let drawn = Duration::from_millis(drawn.as_millis().try_into().unwrap_or(u64::MAX));
    drawn.max(asked_for.unwrap_or_default().min(PROVIDER_RETRY_AFTER_MAX))
}

/// How long a server asks to be left alone.
pub(super) fn asked_for(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &HeaderName| headers.get(name)?.to_str().ok().map(str::trim);
    let number = |text: &str, unit: f64| {
        let number = text.parse::<f64>().ok()?;
        Duration::try_from_secs_f64(number * unit).ok()
    };
    if let Some(wait) = text(&RETRY_AFTER_MS).and_then(|text| number(text, 0.001)) {
        return Some(wait);
    }
    let asked = text(&header::RETRY_AFTER)?;
    number(asked, 1.0).or_else(|| {
        // Its own clock is the one that its date is by.
        let until = date(asked)?.duration_since(date(text(&header::DATE)?)?);
        until.try_into().ok()
    })
}

/// A date as HTTP writes it.
fn date(text: &str) -> Option<Timestamp> {
    let parser = rfc2822::DateTimeParser::new();
    parser.parse_timestamp(text).ok()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn the_wait_is_drawn_below_a_bound_that_doubles() {
        let bounds: Vec<_> = (1..=4).map(|failed| wait(failed, None, 1.0)).collect();
        let first = PROVIDER_BACKOFF_FIRST;
        assert_eq!(bounds, [first, first * 2, first * 4, first * 8]);
        assert_eq!(wait(u32::MAX, None, 1.0), PROVIDER_BACKOFF_MAX);
        assert_eq!(wait(3, None, 0.0), Duration::ZERO);
        assert_eq!(wait(1, None, 0.5), first / 2);
    }

    #[test]
    fn what_the_server_asks_for_is_waited_at_least_and_within_reason() {
        let asked = Some(Duration::from_secs(7));
        assert_eq!(wait(1, asked, 1.0), Duration::from_secs(7));
        assert_eq!(wait(5, Some(Duration::from_millis(1)), 1.0), PROVIDER_BACKOFF_FIRST * 16);
        assert_eq!(wait(1, Some(Duration::from_hours(1)), 0.0), PROVIDER_RETRY_AFTER_MAX);
    }

    #[test]
    fn a_server_asks_in_seconds_milliseconds_or_by_a_date() {
        let read = |pairs: &[(&'static str, &'static str)]| {
            let pairs = pairs.iter().map(|(name, value)| {
                (HeaderName::from_static(name), HeaderValue::from_static(value))
            });
            asked_for(&pairs.collect())
        };
        assert_eq!(read(&[("retry-after", "2")]), Some(Duration::from_secs(2)));
        assert_eq!(read(&[("retry-after", " 0.5 ")]), Some(Duration::from_millis(500)));
        let both = [("retry-after", "2"), ("retry-after-ms", "1500")];
        assert_eq!(read(&both), Some(Duration::from_millis(1500)));
        let until = ("retry-after", "Mon, 16 Nov 2026 08:00:30 GMT");
        let now = ("date", "Mon, 16 Nov 2026 08:00:00 GMT");
        assert_eq!(read(&[until, now]), Some(Duration::from_secs(30)));
        assert_eq!(read(&[until]), None, "without its clock a date says nothing");
        assert_eq!(read(&[("retry-after", now.1), ("date", until.1)]), None, "it is over");
        for bad in ["", "-1", "NaN", "inf", "1e300", "soon"] {
            assert_eq!(read(&[("retry-after", bad)]), None, "{bad}");
        }
    }
}
