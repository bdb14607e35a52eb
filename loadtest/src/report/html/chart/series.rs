//! What went on over time.

use super::{Chart, Item, Kind, Overlay, capitalized, named_by};
use crate::report::html::plot::{Axis, Line, Look, Mark, Plot, Shade};
use crate::report::html::scale::Scale;
use crate::report::summary::Grid;
use crate::report::{Run, Series, units};

/// Points of a line up to which each can be pointed at.
const POINTED_AT: usize = 150;

/// Lines whose peaks differ by more than this are not seen on one linear axis.
const FLAT: f64 = 20.0;

pub fn charts(runs: &[&Run]) -> Vec<Chart> {
    let kind =
        Kind { of: |run| &run.series, name: |series: &Series| &series.name, unit: |series| series.unit };
    kind.overlays(runs).iter().map(|overlay| Chart { plot: plot(overlay), data: data(overlay) }).collect()
}

fn plot(overlay: &Overlay<'_, Series>) -> Plot {
    let points = || overlay.items.iter().flat_map(|item| &item.data.points);
    let unit = overlay.items.first().map_or("", |item| item.data.unit);
    let last = points().map(|(at, _)| *at).filter(|at| at.is_finite()).fold(0.0, f64::max);
    let (size, time_unit) = match last {
        ..600.0 => (1.0, "seconds"),
        ..36_000.0 => (60.0, "minutes"),
        _ => (3_600.0, "hours"),
    };
    let (x_scale, x_ticks) = Scale::between(points().map(|(at, _)| at / size));
    let (y_scale, y_ticks) = value_scale(overlay);
    let (y_unit, name) = units::axis(unit);
    let y_title = match y_scale {
        Scale::Linear { .. } => y_unit.to_owned(),
        Scale::Log { .. } => format!("{y_unit} (logarithmic)").trim_start().to_owned(),
    };
    let line = |item: &Item<'_, Series>| {
        let points: Vec<(f64, f64)> =
            item.data.points.iter().map(|(at, value)| (at / size, *value)).collect();
        let marks = if points.len() <= POINTED_AT { points.as_slice() } else { &[] };
        let look = if points.len() == 1 { Look::Full } else { Look::Hidden };
        let mark = |&(at, value): &(f64, f64)| Mark {
            at: (at, value),
            title: format!("{}, {} {time_unit}: {}", item.name, units::count(at), units::value(value, unit)),
            look,
        };
        Line { name: item.name.clone(), ink: item.ink, marks: marks.iter().map(mark).collect(), points }
    };
    Plot {
        title: capitalized(&format!("{} over time", overlay.title)),
        x: Axis { title: time_unit.to_owned(), scale: x_scale, ticks: named_by(x_ticks, units::count) },
        y: Axis { title: y_title, scale: y_scale, ticks: named_by(y_ticks, name) },
        lines: overlay.items.iter().map(line).collect(),
        reference: None,
        shade: warm_up(points().map(|(at, _)| at / size)),
    }
}

/// From zero, except where that would press some of the lines flat.
fn value_scale(overlay: &Overlay<'_, Series>) -> (Scale, Vec<f64>) {
    let values =
        |item: &Item<'_, Series>| item.data.points.iter().map(|(_, value)| *value).collect::<Vec<_>>();
    let peaks = overlay.items.iter().map(|item| values(item).into_iter().fold(0.0, f64::max));
    let peaks: Vec<f64> = peaks.filter(|peak| *peak > 0.0).collect();
    let (least, greatest) =
        (peaks.iter().copied().fold(f64::MAX, f64::min), peaks.iter().copied().fold(0.0, f64::max));
    let all = overlay.items.iter().flat_map(values);
    if greatest > least * FLAT { Scale::log(all) } else { Scale::linear(all) }
}

/// What came before the measurement has negative times.
fn warm_up(times: impl Iterator<Item = f64>) -> Option<Shade> {
    let first = times.filter(|at| at.is_finite()).fold(0.0, f64::min);
    (first < 0.0).then(|| Shade { from: first, to: 0.0, reason: "warm-up".to_owned() })
}

fn data(overlay: &Overlay<'_, Series>) -> Grid {
    let (unit, write) = units::axis(overlay.items.first().map_or("", |item| item.data.unit));
    let mut grid = Grid::new(&[unit, "points", "first", "least", "mean", "most", "last"]);
    for item in &overlay.items {
        let measured = || item.data.points.iter().filter(|(at, _)| *at >= 0.0).map(|(_, value)| *value);
        let count = measured().count();
        let mean = measured().sum::<f64>() / count as f64;
        let told = [
            measured().next().unwrap_or(f64::NAN),
            measured().fold(f64::NAN, f64::min),
            mean,
            measured().fold(f64::NAN, f64::max),
            measured().next_back().unwrap_or(f64::NAN),
        ];
        let named = [item.name.clone(), count.to_string()];
        grid.row(named.into_iter().chain(told.map(write)));
    }
    grid
}
