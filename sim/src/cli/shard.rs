//! The share that one of several processes has of all points or seeds. Pure.

use std::str::FromStr;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    index: u64,
    count: u64,
}

impl Shard {
    pub const WHOLE: Self = Self { index: 0, count: 1 };

    /// Neighbours go to different processes, so that each has as much to do.
    pub fn has(self, point: u64) -> bool {
        point % self.count == self.index
    }

    pub fn is_first(self) -> bool {
        self.index == 0
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/').map(|(index, count)| (index.parse(), count.parse()));
        match parts {
            Some((Ok(index), Ok(count))) if index < count => Ok(Self { index, count }),
            _ => Err(format!("{text:?} is no share; write 0/2")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_is_in_one_share() {
        let shards = ["0/3", "1/3", "2/3"].map(|text| text.parse::<Shard>().unwrap());
        for point in 1..20 {
            assert_eq!(shards.iter().filter(|shard| shard.has(point)).count(), 1);
            assert!(Shard::WHOLE.has(point));
        }
        for bad in ["", "1", "3/3", "a/b", "0/0"] {
            assert!(bad.parse::<Shard>().is_err(), "{bad}");
        }
    }
}
