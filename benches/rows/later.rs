//! Targets that nothing can measure yet, each with what is missing. They are printed all the same,
//! so that nobody forgets one.

use crate::measure::Row;

/// Section, what, yardstick, target, what is missing.
const LATER: [[&str; 5]; 3] = [
    [
        "token-counting",
        "token counting",
        "tiktoken on the new text",
        "each message once; load off every path",
        "needs get_tokens with history",
    ],
    [
        "long-run",
        "long run: 1 M RPCs, 100 k turns, 10 k agents",
        "its first 1 %",
        "memory ≤ 1.1×; handles and tasks equal",
        "needs the store",
    ],
    [
        "cold-build",
        "cold release build of the server",
        "–",
        "≤ 5 min on 2 cores",
        "needs a clean target directory: timed by hand",
    ],
];

pub(crate) fn row(section: &str) -> Option<Row> {
    LATER
        .into_iter()
        .find(|[name, ..]| *name == section)
        .map(|[_, what, yardstick, target, missing]| Row::not_yet(what, yardstick, target, missing))
}
