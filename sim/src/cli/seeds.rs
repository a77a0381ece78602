//! `--seed N` and `--seed A..B`.

use std::ops::Range;
use std::str::FromStr;

/// One seed or a range of them, the end not included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seeds(pub Range<u64>);

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| {
            text.parse::<u64>().map_err(|_| format!("{text:?} is no seed; write 7 or 1..20"))
        };
        let range = if let Some((first, end)) = text.split_once("..") {
            number(first)?..number(end)?
        } else {
            let seed = number(text)?;
            seed..seed.checked_add(1).ok_or("the seed is too large")?
        };
        if range.is_empty() {
            Err("the range of seeds is empty".to_owned())
        } else {
            Ok(Self(range))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_numbers_or_ranges() {
        assert_eq!("7".parse(), Ok(Seeds(7..8)));
        assert_eq!("1..20".parse(), Ok(Seeds(1..20)));
        for bad in ["", "x", "-1", "3..3", "5..2", "1..", "18446744073709551615"] {
            assert!(bad.parse::<Seeds>().is_err(), "{bad}");
        }
    }
}
