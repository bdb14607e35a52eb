//! How times are distributed: by percentile where there are enough for a tail, else as a whole.

use super::{Chart, Item, Kind, Overlay, capitalized, named_by};
use crate::report::html::plot::{Axis, Line, Look, Mark, Plot};
use crate::report::html::scale::Scale;
use crate::report::summary::{self, Grid};
use crate::report::{Distribution, Run, units};

/// Fewer times than this have no tail to speak of.
const TAIL_COUNT: u64 = 1_000;

const PERCENTILES: [(&str, f64); 8] = [
    ("50 %", 0.5),
    ("90 %", 0.9),
    ("99 %", 0.99),
    ("99.9 %", 0.999),
    ("99.99 %", 0.9999),
    ("99.999 %", 0.99999),
    ("99.9999 %", 0.999_999),
    ("99.99999 %", 0.999_999_9),
];

pub fn charts(runs: &[&Run]) -> Vec<Chart> {
    let kind =
        Kind { of: |run| &run.distributions, name: |times: &Distribution| &times.name, unit: |_| "µs" };
    let chart = |overlay: Overlay<'_, Distribution>| {
        let most = overlay.items.iter().map(|item| item.data.count).max().unwrap_or(0);
        let plot = if most < TAIL_COUNT { cumulative(&overlay) } else { percentiles(&overlay, most) };
        Chart { plot, data: data(&overlay) }
    };
    kind.overlays(runs).into_iter().map(chart).collect()
}

/// Time by percentile. The axis is stretched towards the tail: each step is a tenth of what is left.
fn percentiles(overlay: &Overlay<'_, Distribution>, most: u64) -> Plot {
    let most = most as f64;
    let (scale, ticks) = Scale::log(times(overlay));
    let named = PERCENTILES.into_iter().map(|(name, share)| (1.0 / (1.0 - share), name.to_owned()));
    let line = |item: &Item<'_, Distribution>| {
        // The last percentile that so many times can tell is the longest's own.
        let one_in = |share: f64| 1.0 / (1.0 - share).max(1.0 / item.data.count as f64);
        Line {
            name: item.name.clone(),
            ink: item.ink,
            points: item.data.curve.iter().map(|(share, us)| (one_in(*share), *us)).collect(),
            marks: marks(item, |share, us| (one_in(share), us)),
        }
    };
    Plot {
        title: capitalized(&format!("{}: percentiles", overlay.title)),
        x: Axis {
            title: "percentile".to_owned(),
            scale: Scale::Log { low: 1.0, high: most },
            ticks: named.filter(|(one_in, _)| *one_in <= most * (1.0 + 1e-6)).collect(),
        },
        y: Axis { title: "time".to_owned(), scale, ticks: named_by(ticks, units::time) },
        lines: overlay.items.iter().map(line).collect(),
        reference: None,
        shade: None,
    }
}

/// Share by time.
fn cumulative(overlay: &Overlay<'_, Distribution>) -> Plot {
    let (scale, ticks) = Scale::log(times(overlay));
    let (share_scale, share_ticks) = Scale::linear([1.0]);
    let line = |item: &Item<'_, Distribution>| {
        let start = item.data.curve.first().map(|(_, us)| (*us, 0.0));
        Line {
            name: format!("{} ({} times)", item.name, summary::exact(item.data.count)),
            ink: item.ink,
            points: start
                .into_iter()
                .chain(item.data.curve.iter().map(|(share, us)| (*us, *share)))
                .collect(),
            marks: marks(item, |share, us| (us, share)),
        }
    };
    Plot {
        title: capitalized(&format!("{}: cumulative distribution", overlay.title)),
        x: Axis { title: "time".to_owned(), scale, ticks: named_by(ticks, units::time) },
        y: Axis {
            title: "share that took no longer".to_owned(),
            scale: share_scale,
            ticks: named_by(share_ticks, units::share),
        },
        lines: overlay.items.iter().map(line).collect(),
        reference: None,
        shade: None,
    }
}

fn times(overlay: &Overlay<'_, Distribution>) -> impl Iterator<Item = f64> {
    overlay.items.iter().flat_map(|item| item.data.curve.iter().map(|(_, us)| *us))
}

/// The percentiles that so many times can tell.
fn marks(item: &Item<'_, Distribution>, at: impl Fn(f64, f64) -> (f64, f64)) -> Vec<Mark> {
    let Distribution { count, p50_us, p90_us, p99_us, p999_us, p9999_us, .. } = item.data;
    let told = PERCENTILES.into_iter().zip([p50_us, p90_us, p99_us, p999_us, p9999_us]);
    told.filter(|((_, share), _)| summary::tells(*count, *share))
        .map(|((name, share), us)| Mark {
            at: at(share, *us),
            title: format!("{}, {name}: {}", item.name, units::time(*us)),
            look: Look::Full,
        })
        .collect()
}

fn data(overlay: &Overlay<'_, Distribution>) -> Grid {
    let mut grid = Grid::new(&["", "count", "mean", "min", "p50", "p90", "p99", "p99.9", "p99.99", "max"]);
    for Item { name, data: times, .. } in &overlay.items {
        let named = [name.clone(), summary::exact(times.count)];
        let ends = [units::time(times.mean_us), units::time(times.min_us)];
        let tail = [summary::percentile(times, 0.9999, times.p9999_us), units::time(times.max_us)];
        grid.row(named.into_iter().chain(ends).chain(summary::percentiles(times)).chain(tail));
    }
    grid
}
