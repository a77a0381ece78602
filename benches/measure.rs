//! Pairs of measurements, their ratios, and what a target says about them.
//! Absolute figures are shown for orientation only; verdicts come from ratios, and from sizes in
//! memory, which hold from machine to machine. The simulation has no yardstick: what it must reach
//! is a rate on one core.

use crate::Bench;

/// The median of several measurements, and how far they lay apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Spread {
    pub(crate) fn of(mut values: Vec<f64>) -> Self {
        assert!(!values.is_empty(), "a spread has at least one value");
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        let median = if values.len() % 2 == 1 {
            values[middle]
        } else {
            f64::midpoint(values[middle - 1], values[middle])
        };
        Self { median, min: values[0], max: values[values.len() - 1] }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    pub(crate) ours: Spread,
    pub(crate) yardstick: Spread,
    pub(crate) ratio: Spread,
}

impl Figures {
    /// From pairs of (ours, yardstick).
    pub(crate) fn of(pairs: &[(f64, f64)]) -> Self {
        Self {
            ours: Spread::of(pairs.iter().map(|pair| pair.0).collect()),
            yardstick: Spread::of(pairs.iter().map(|pair| pair.1).collect()),
            ratio: Spread::of(pairs.iter().map(|pair| pair.0 / pair.1).collect()),
        }
    }
}

/// Measures both sides in turn, as often as this run wants; a first pair warms up and is dropped.
pub(crate) async fn alternate(
    bench: &Bench,
    mut ours: impl AsyncFnMut() -> anyhow::Result<f64>,
    mut yardstick: impl AsyncFnMut() -> anyhow::Result<f64>,
) -> anyhow::Result<Figures> {
    let mut pairs = Vec::with_capacity(bench.pairs);
    for round in 0..=bench.pairs {
        let pair = (ours().await?, yardstick().await?);
        if round > 0 {
            pairs.push(pair);
        }
    }
    Ok(Figures::of(&pairs))
}

/// Measures one side alone, for a row whose other side does not exist yet.
pub(crate) async fn alone(
    bench: &Bench,
    mut side: impl AsyncFnMut() -> anyhow::Result<f64>,
) -> anyhow::Result<Spread> {
    side().await?;
    let mut values = Vec::with_capacity(bench.pairs);
    for _ in 0..bench.pairs {
        values.push(side().await?);
    }
    Ok(Spread::of(values))
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Unit {
    PerSecond,
    Seconds,
    Bytes,
    Share,
    Count,
}

impl Unit {
    pub(crate) fn show(self, value: f64) -> String {
        match self {
            Self::PerSecond if value.abs() >= 10_000.0 => format!("{:.1} k/s", value / 1e3),
            Self::PerSecond => format!("{value:.0} /s"),
            Self::Seconds if value.abs() < 1e-6 => format!("{:.0} ns", value * 1e9),
            Self::Seconds if value.abs() < 1e-3 => format!("{:.1} µs", value * 1e6),
            Self::Seconds => format!("{:.2} ms", value * 1e3),
            Self::Bytes if value.abs() < 1024.0 * 1024.0 => format!("{:.1} KiB", value / 1024.0),
            Self::Bytes => format!("{:.1} MiB", value / 1024.0 / 1024.0),
            Self::Share => format!("{:.0} %", value * 100.0),
            Self::Count => format!("{value:.0}"),
        }
    }
}

/// What the median must keep to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bound {
    RatioAtLeast(f64),
    RatioAtMost(f64),
    OursAtLeast(f64, Unit),
    OursAtMost(f64, Unit),
}

impl Bound {
    fn holds(self, figures: &Figures) -> bool {
        match self {
            Self::RatioAtLeast(bound) => figures.ratio.median >= bound,
            Self::RatioAtMost(bound) => figures.ratio.median <= bound,
            Self::OursAtLeast(bound, _) => figures.ours.median >= bound,
            Self::OursAtMost(bound, _) => figures.ours.median <= bound,
        }
    }

    fn show(self) -> String {
        match self {
            Self::RatioAtLeast(bound) => format!("≥ {bound:.2}"),
            Self::RatioAtMost(bound) => format!("≤ {bound:.1}×"),
            Self::OursAtLeast(bound, unit) => format!("≥ {}", unit.show(bound)),
            Self::OursAtMost(bound, unit) => format!("≤ {}", unit.show(bound)),
        }
    }
}

#[derive(Debug)]
pub(crate) enum Verdict {
    Ok,
    Missed,
    /// With the reason.
    NotYet(String),
    /// With the error.
    Broken(String),
}

/// One line of the table.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) what: String,
    pub(crate) ours: String,
    pub(crate) yardstick: String,
    pub(crate) ratio: Option<Spread>,
    pub(crate) target: String,
    pub(crate) verdict: Verdict,
}

impl Row {
    pub(crate) fn new(
        what: impl Into<String>,
        yardstick: &str,
        unit: Unit,
        figures: &Figures,
        bound: Bound,
    ) -> Self {
        Self {
            what: what.into(),
            ours: unit.show(figures.ours.median),
            yardstick: format!("{yardstick}: {}", unit.show(figures.yardstick.median)),
            ratio: Some(figures.ratio),
            target: bound.show(),
            verdict: if bound.holds(figures) { Verdict::Ok } else { Verdict::Missed },
        }
    }

    /// A rate or a time that has nothing to be compared with.
    pub(crate) fn absolute(
        what: impl Into<String>,
        unit: Unit,
        found: Spread,
        bound: Bound,
    ) -> Self {
        let figures = Figures { ours: found, yardstick: found, ratio: found };
        Self {
            what: what.into(),
            ours: format!(
                "{} ({}–{})",
                unit.show(found.median),
                unit.show(found.min),
                unit.show(found.max)
            ),
            yardstick: "–".to_owned(),
            ratio: None,
            target: bound.show(),
            verdict: if bound.holds(&figures) { Verdict::Ok } else { Verdict::Missed },
        }
    }

    /// A target nothing can be said about yet.
    pub(crate) fn not_yet(
        what: impl Into<String>,
        yardstick: impl Into<String>,
        target: &str,
        reason: &str,
    ) -> Self {
        Self {
            what: what.into(),
            ours: String::new(),
            yardstick: yardstick.into(),
            ratio: None,
            target: target.to_owned(),
            verdict: Verdict::NotYet(reason.to_owned()),
        }
    }

    /// Keeps the figures but withholds the verdict: what was measured is not yet what is meant.
    pub(crate) fn but_not_yet(self, reason: &str) -> Self {
        Self { verdict: Verdict::NotYet(reason.to_owned()), ..self }
    }

    /// For shares, where the yardstick's may be nothing.
    pub(crate) fn without_ratio(self) -> Self {
        Self { ratio: None, ..self }
    }

    pub(crate) fn broken(section: &str, error: &anyhow::Error) -> Self {
        Self {
            what: section.to_owned(),
            ours: String::new(),
            yardstick: String::new(),
            ratio: None,
            target: String::new(),
            verdict: Verdict::Broken(format!("{error:#}")),
        }
    }
}
