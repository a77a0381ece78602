//! `serve`: the flags of `nexus3 serve` that have a meaning in a simulation, as words of a command line.

use schemars::JsonSchema;
use serde::Deserialize;

use super::place::Place;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServeFlag {
    AllowYolo,
    NoAuth,
    Resume,
    Verbose,
    RawLog,
    Record,
}

/// One word of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(rename = "ServeFlag")]
pub(super) enum ServeWord {
    #[serde(rename = "--allow-yolo")]
    AllowYolo,
    #[serde(rename = "--no-auth")]
    NoAuth,
    #[serde(rename = "--resume")]
    Resume,
    #[serde(rename = "--verbose")]
    Verbose,
    #[serde(rename = "--raw-log")]
    RawLog,
    #[serde(rename = "--record=/home/nexus/.nexus3/recording.toml")]
    RecordThere,
    #[serde(rename = "--record")]
    Record,
    #[serde(rename = "/home/nexus/.nexus3/recording.toml")]
    Recording,
}

/// What the words under `serve` of a place mean together.
pub(super) fn read(place: &Place<'_>, words: &[ServeWord]) -> Vec<ServeFlag> {
    let mut flags = Vec::new();
    for (index, word) in words.iter().enumerate() {
        let before = index.checked_sub(1).map(|before| words[before]);
        let flag = match word {
            ServeWord::AllowYolo => ServeFlag::AllowYolo,
            ServeWord::NoAuth => ServeFlag::NoAuth,
            ServeWord::Resume => ServeFlag::Resume,
            ServeWord::Verbose => ServeFlag::Verbose,
            ServeWord::RawLog => ServeFlag::RawLog,
            ServeWord::RecordThere => ServeFlag::Record,
            ServeWord::Record => {
                if words.get(index + 1) != Some(&ServeWord::Recording) {
                    let hint = "add \"/home/nexus/.nexus3/recording.toml\" after it";
                    refuse(place, index, "`--record` names no file", hint);
                }
                ServeFlag::Record
            }
            ServeWord::Recording => {
                if before != Some(ServeWord::Record) {
                    refuse(
                        place,
                        index,
                        "no flag comes before this file",
                        "add \"--record\" before it",
                    );
                }
                continue;
            }
        };
        flags.push(flag);
    }
    flags
}

fn refuse(place: &Place<'_>, index: usize, problem: &str, hint: &str) {
    if let Some(word) = place.items_of("serve").get(index) {
        word.refuse(problem, hint);
    }
}
