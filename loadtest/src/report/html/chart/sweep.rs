//! Runs that differ in the rate that was offered: what they reached, and what it cost in time.

use std::collections::BTreeMap;

use super::{Chart, capitalized, named_by};
use crate::report::html::plot::{Axis, Ink, Line, Look, Mark, Plot, Shade};
use crate::report::html::scale::Scale;
use crate::report::summary::{self, Grid};
use crate::report::{Distribution, KEPT_UP, Run, units};

/// Fewer rates than this make no curve.
const LEAST_RATES: usize = 3;

type Pick = fn(&Distribution) -> f64;
const TIMES: [(&str, Pick); 3] =
    [("p50", |times| times.p50_us), ("p99", |times| times.p99_us), ("p99.9", |times| times.p999_us)];

/// Runs of rising offered rate and otherwise equal parameters.
struct Sweep<'a> {
    /// The parameters that tell it from other sweeps.
    name: String,
    steps: Vec<Step<'a>>,
}

struct Step<'a> {
    run: &'a Run,
    offered: f64,
}

impl Step<'_> {
    fn mark(&self, line: &str, y: f64, value: String) -> Mark {
        let (look, more) = match summary::saturated(self.run) {
            true => (Look::Hollow, ", the load test was saturated"),
            false => (Look::Full, ""),
        };
        let title = format!("{line} at {} offered: {value}{more}", units::rate(self.offered));
        Mark { at: (self.offered, y), title, look }
    }
}

pub fn charts(runs: &[&Run]) -> Vec<Chart> {
    let charts = |sweep: Sweep<'_>| [sweep.times(), sweep.rates()].into_iter().flatten().collect::<Vec<_>>();
    sweeps(runs).into_iter().flat_map(charts).collect()
}

fn sweeps<'a>(runs: &[&'a Run]) -> Vec<Sweep<'a>> {
    let (shared, _) = summary::parameters(runs);
    let mut sweeps: BTreeMap<String, Vec<Step<'a>>> = BTreeMap::new();
    for run in runs {
        let Some(offered) = run.offered.filter(|offered| offered.is_finite() && *offered > 0.0) else {
            continue;
        };
        let is_rate = |value: &str| value.parse() == Ok(offered);
        let own =
            run.parameters.iter().filter(|(name, value)| !shared.contains_key(*name) && !is_rate(value));
        let name = own.map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ");
        sweeps.entry(name).or_default().push(Step { run, offered });
    }
    let ordered = |(name, mut steps): (String, Vec<Step<'a>>)| {
        steps.sort_by(|a, b| a.offered.total_cmp(&b.offered));
        let rates = 1 + steps.windows(2).filter(|pair| pair[0].offered < pair[1].offered).count();
        (rates >= LEAST_RATES).then_some(Sweep { name, steps })
    };
    sweeps.into_iter().filter_map(ordered).collect()
}

impl Sweep<'_> {
    fn title(&self, what: &str) -> String {
        if self.name.is_empty() { what.to_owned() } else { format!("{what} ({})", self.name) }
    }

    /// Times by offered rate: where they turn upwards is the knee.
    fn times(&self) -> Option<Chart> {
        let timed: Vec<(&Step<'_>, &Distribution)> =
            self.steps.iter().filter_map(|step| Some((step, step.run.distributions.first()?))).collect();
        let (_, first) = timed.first()?;
        let values = timed.iter().flat_map(|(_, times)| TIMES.map(|(_, pick)| pick(times)));
        let (scale, ticks) = Scale::log(values);
        let line = |(index, (name, pick)): (usize, (&str, Pick))| Line {
            name: name.to_owned(),
            ink: Ink::Category(index),
            points: timed.iter().map(|(step, times)| (step.offered, pick(times))).collect(),
            marks: timed
                .iter()
                .map(|(step, times)| step.mark(name, pick(times), units::time(pick(times))))
                .collect(),
        };
        let mut data = Grid::new(&["offered", "p50", "p90", "p99", "p99.9", "p99.99", "max"]);
        for (step, times) in &timed {
            let at = [times.p50_us, times.p90_us, times.p99_us, times.p999_us, times.p9999_us, times.max_us];
            data.row([units::rate(step.offered)].into_iter().chain(at.map(units::time)));
        }
        let plot = Plot {
            title: self.title(&capitalized(&format!("{} by offered rate", first.name))),
            x: self.offered_axis(),
            y: Axis { title: "time".to_owned(), scale, ticks: named_by(ticks, units::time) },
            lines: TIMES.into_iter().enumerate().map(line).collect(),
            reference: None,
            shade: self.fallen_behind(),
        };
        Some(Chart { plot, data })
    }

    fn rates(&self) -> Option<Chart> {
        let reached: Vec<(&Step<'_>, f64)> =
            self.steps.iter().filter_map(|step| Some((step, step.run.achieved?))).collect();
        let unit = reached.first()?.0.run.unit;
        let both = || reached.iter().flat_map(|(step, achieved)| [step.offered, *achieved]);
        let (scale, ticks) = Scale::linear(both());
        let axis = |what: &str| Axis {
            title: format!("{what}, {unit}/s"),
            scale,
            ticks: named_by(ticks.clone(), units::count),
        };
        let most = self.steps.last().map_or(1.0, |step| step.offered);
        let mut data = Grid::new(&["offered", "achieved", "share", "load test saturated"]);
        for (step, achieved) in &reached {
            let saturated = if summary::saturated(step.run) { "yes" } else { "no" };
            let rates = [units::rate(step.offered), units::rate(*achieved)];
            let share = units::share(achieved / step.offered);
            data.row(rates.into_iter().chain([share, saturated.to_owned()]));
        }
        let line = Line {
            name: "achieved".to_owned(),
            ink: Ink::Category(0),
            points: reached.iter().map(|(step, achieved)| (step.offered, *achieved)).collect(),
            marks: reached
                .iter()
                .map(|(step, achieved)| step.mark("achieved", *achieved, units::rate(*achieved)))
                .collect(),
        };
        let plot = Plot {
            title: self.title("Achieved by offered rate"),
            x: axis("offered"),
            y: axis("achieved"),
            lines: vec![line],
            reference: Some(("as much as offered".to_owned(), vec![(0.0, 0.0), (most, most)])),
            shade: self.fallen_behind(),
        };
        Some(Chart { plot, data })
    }

    fn offered_axis(&self) -> Axis {
        let (scale, ticks) = Scale::log(self.steps.iter().map(|step| step.offered));
        let unit = self.steps.first().map_or("", |step| step.run.unit);
        Axis { title: format!("offered, {unit}/s"), scale, ticks: named_by(ticks, units::count) }
    }

    /// The rates above the highest that was kept up with.
    fn fallen_behind(&self) -> Option<Shade> {
        let kept = self.steps.iter().rev().find(|step| step.run.kept_up()).map_or(0.0, |step| step.offered);
        let most = self.steps.last()?.offered;
        let reason = format!("less than {} of the offered rate achieved", units::share(KEPT_UP));
        (kept < most).then_some(Shade { from: kept, to: f64::INFINITY, reason })
    }
}
