//! What a search did not look at, counted by the reason, with a few names.

use std::collections::BTreeMap;
use std::path::Path;

use super::text::shown;
use crate::config::words;
use crate::limits::{FILE_READ_BYTES_MAX, SKIPPED_NAMES_MAX};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    Ignored,
    NotText,
    TooLarge,
    Link,
    Special,
    Unreadable,
}

impl Why {
    fn told(self) -> String {
        match self {
            Self::Ignored => "ignored".to_owned(),
            Self::NotText => "not UTF-8 text".to_owned(),
            Self::TooLarge => format!("larger than {FILE_READ_BYTES_MAX} bytes"),
            Self::Link => "linked".to_owned(),
            Self::Special => "no regular file".to_owned(),
            Self::Unreadable => "unreadable".to_owned(),
        }
    }
}

#[derive(Debug, Default)]
pub struct Skipped(BTreeMap<Why, (usize, Vec<String>)>);

impl Skipped {
    pub fn add(&mut self, why: Why, path: &Path) {
        let (count, names) = self.0.entry(why).or_default();
        *count += 1;
        if names.len() < SKIPPED_NAMES_MAX {
            names.push(words::shorten(&shown(path)));
        }
    }

    /// What there is to say; nothing where nothing was skipped.
    pub fn note(&self) -> Option<String> {
        let told = |(why, (count, names)): (&Why, &(usize, Vec<String>))| {
            let more = if *count > names.len() { ", …" } else { "" };
            format!("{count} {} ({}{more})", why.told(), names.join(", "))
        };
        let told: Vec<String> = self.0.iter().map(told).collect();
        (!told.is_empty()).then(|| format!("Skipped: {}.", told.join("; ")))
    }
}
