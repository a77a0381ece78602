//! What came of a sweep as a page: what was reached, and the runs that failed, played again to be shown.

use super::sum::{Found, Sum};
use crate::explore::Profile;
use crate::report::{Report, Row, Run};
use crate::scenario::Scenario;
use crate::verdict;

/// How many runs that failed are shown in full; the others are told.
const RUNS_MAX: usize = 20;

pub fn report(profile: &Profile, sum: &Sum) -> Report {
    let found: Vec<&Found> = sum.found().collect();
    let mut left_out = Vec::new();
    if found.len() > RUNS_MAX {
        let rest = found.len() - RUNS_MAX;
        left_out.push(format!("{rest} runs that failed are told briefly: a page shows {RUNS_MAX}"));
    }
    if sum.runs > found.len() as u64 {
        left_out.push("runs that passed are counted, not shown".to_owned());
    }
    let runs = found.iter().enumerate().map(|(place, found)| {
        let shown = if place < RUNS_MAX { played(found) } else { None };
        told(found, shown.unwrap_or_default())
    });
    Report {
        title: format!("explore {}: {sum}", profile.name),
        summary: summary(profile, sum),
        runs: runs.collect(),
        left_out,
    }
}

/// A run that failed, again; `None` where its scenario is gone or a panic has ended it.
fn played(found: &Found) -> Option<Run> {
    let text = std::fs::read_to_string(&found.kept).ok()?;
    let scenario = Scenario::parse(&found.kept.display().to_string(), &text).ok()?;
    let verdict = verdict::of_recorded(&scenario);
    let run = Run::of(verdict.played.as_ref()?, &verdict.failures);
    Some(Run { about: scenario.about, ..run })
}

fn told(found: &Found, run: Run) -> Run {
    Run {
        file: found.file.clone(),
        seed: found.seed,
        good: false,
        failures: found.failures.clone(),
        led_to_it: found.led_to_it.clone(),
        again: found.again.clone(),
        ..run
    }
}

fn summary(profile: &Profile, sum: &Sum) -> Vec<Row> {
    let row = |group: &str, name: &str, told: String| Row {
        group: group.to_owned(),
        name: name.to_owned(),
        told,
    };
    let mut rows = vec![
        row("sweep", "profile", profile.name.clone()),
        row("sweep", "runs", sum.runs.to_string()),
        row("sweep", "violations", sum.found().count().to_string()),
    ];
    rows.extend(
        sum.kinds()
            .iter()
            .map(|(kind, count)| row("violations", &kind.to_string(), format!("{count} runs"))),
    );
    rows.extend(sum.files.iter().map(|(file, of)| {
        let most = of.parts.iter().max_by_key(|(_, count)| **count);
        let parts = most.map(|(event, count)| format!(", {count} part at {event}"));
        let (runs, failed, ends) = (of.runs, of.violations, of.ends.len());
        let parts = parts.unwrap_or_default();
        row("ends", file, format!("{runs} runs, {failed} failed, {ends} end states{parts}"))
    }));
    let unreached = sum.unreached(&profile.reaches);
    let never = unreached.iter().map(|mark| row("marks", mark, "never reached".to_owned()));
    rows.extend(never);
    rows.extend(sum.marks.iter().map(|(mark, count)| row("marks", mark, count.to_string())));
    rows
}
