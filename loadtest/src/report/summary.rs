//! What the reports say, before they say it their own way: sections, tables and remarks.

use std::collections::BTreeMap;

use super::{Distribution, Report, Run, units};
use crate::ledger::Verdict;

/// The runs of one scenario.
pub struct Section<'a> {
    pub scenario: &'a str,
    pub runs: Vec<&'a Run>,
}

impl Section<'_> {
    pub fn passed(&self) -> bool {
        self.runs.iter().all(|run| run.passed())
    }
}

/// A table.
#[derive(Debug, Default)]
pub struct Grid {
    /// How many columns name the row; the others are values.
    pub names: usize,
    pub header: Vec<String>,
    pub rows: Vec<Vec<Cell>>,
}

#[derive(Debug, Clone, Default)]
pub struct Cell {
    pub text: String,
    pub tone: Tone,
    /// Length of a bar beside the text, as a share of the longest.
    pub bar: Option<f64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Tone {
    #[default]
    Plain,
    Good,
    Bad,
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Cell { text, ..Cell::default() }
    }
}

impl Grid {
    pub fn new(header: &[&str]) -> Self {
        Grid { names: 1, header: header.iter().map(|&name| name.to_owned()).collect(), rows: Vec::new() }
    }

    pub fn row(&mut self, cells: impl IntoIterator<Item = impl Into<Cell>>) {
        let mut cells: Vec<Cell> = cells.into_iter().map(Into::into).collect();
        cells.resize_with(self.header.len(), Cell::default);
        self.rows.push(cells);
    }

    /// Leaves out the columns in which no row has anything.
    fn without_empty_columns(mut self) -> Self {
        let told = |column: usize| {
            column < self.names || self.rows.iter().any(|row| row[column].text != units::NONE)
        };
        let keep: Vec<bool> = (0..self.header.len()).map(told).collect();
        let mut kept = keep.iter();
        self.header.retain(|_| *kept.next().unwrap_or(&true));
        for row in &mut self.rows {
            let mut kept = keep.iter();
            row.retain(|_| *kept.next().unwrap_or(&true));
        }
        self
    }
}

/// The scenarios in the order in which they ran.
pub fn sections(report: &Report) -> Vec<Section<'_>> {
    let mut sections: Vec<Section<'_>> = Vec::new();
    for run in &report.runs {
        match sections.iter_mut().find(|section| section.scenario == run.scenario) {
            Some(section) => section.runs.push(run),
            None => sections.push(Section { scenario: run.scenario, runs: vec![run] }),
        }
    }
    sections
}

/// What was timed in every run's first distribution, if that is the same throughout.
pub fn timed<'a>(runs: &[&'a Run]) -> Option<&'a str> {
    let mut names = runs.iter().filter_map(|run| run.distributions.first()).map(|first| first.name.as_str());
    let name = names.next()?;
    names.all(|other| other == name).then_some(name)
}

/// The table that every report begins a scenario with.
pub fn summary(runs: &[&Run]) -> Grid {
    let unit = runs.first().map_or("", |run| run.unit);
    let one_unit = runs.iter().all(|run| run.unit == unit) && !unit.is_empty();
    let rate = if one_unit { unit } else { "rate" };
    let mut grid = Grid::new(&[
        "run",
        rate,
        "p50",
        "p99",
        "p99.9",
        "max",
        "CPU each",
        "CPU ratio",
        "cores",
        "peak RSS",
        "ledger",
    ]);
    let fastest = runs.iter().filter_map(|run| run.achieved).fold(0.0, f64::max);
    for run in runs {
        let first = run.distributions.first();
        let time = |write: fn(&Distribution) -> String| or_none(first, write);
        let mut rate = rate_of(run);
        if !one_unit && rate != units::NONE {
            rate = format!("{rate} {}", run.unit);
        }
        let bar = run.achieved.filter(|_| one_unit && runs.len() > 1).map(|achieved| achieved / fastest);
        let cost = run.cost.as_ref();
        grid.row([
            run.name.clone().into(),
            Cell { text: rate, bar: bar.filter(|bar| bar.is_finite()), ..Cell::default() },
            time(|times| percentile(times, 0.5, times.p50_us)),
            time(|times| percentile(times, 0.99, times.p99_us)),
            time(|times| percentile(times, 0.999, times.p999_us)),
            time(|times| units::time(times.max_us)),
            or_none(cost.and_then(|cost| cost.cpu_us_per_message), units::time),
            or_none(cpu_ratio(run, runs), |ratio| format!("{ratio:.2}")),
            or_none(cost, |cost| units::cores(cost.cores)),
            or_none(cost, |cost| units::bytes(cost.peak_resident_bytes as f64)),
            judgement(run),
        ]);
    }
    grid.without_empty_columns()
}

/// CPU a message, as a multiple of that of the run that it is to be compared with.
fn cpu_ratio(run: &Run, runs: &[&Run]) -> Option<f64> {
    let name = run.compared_with.as_ref()?;
    let other = runs.iter().find(|other| other.name == *name)?;
    let each = |run: &Run| run.cost.as_ref()?.cpu_us_per_message;
    Some(each(run)? / each(other)?).filter(|ratio| ratio.is_finite())
}

/// As in `100 k/s → 98.2 k/s`; `≥` where the load test and not the broker was at its end.
fn rate_of(run: &Run) -> String {
    let floor = if saturated(run) { "≥ " } else { "" };
    match (run.offered, run.achieved) {
        (Some(offered), Some(achieved)) => format!("{} → {}", units::rate(offered), units::rate(achieved)),
        (Some(offered), None) => format!("{} →", units::rate(offered)),
        (None, Some(achieved)) => format!("{floor}{}", units::rate(achieved)),
        (None, None) => units::NONE.to_owned(),
    }
}

fn judgement(run: &Run) -> Cell {
    let (text, tone) = if run.passed() { ("ok", Tone::Good) } else { ("FAILED", Tone::Bad) };
    Cell { text: text.to_owned(), tone, bar: None }
}

fn or_none<T>(value: Option<T>, write: impl FnOnce(T) -> String) -> Cell {
    value.map_or_else(|| units::NONE.to_owned(), write).into()
}

/// Whether so many times can tell a percentile: beyond it lies one of them at least.
pub fn tells(count: u64, share: f64) -> bool {
    count as f64 * (1.0 - share) > 1.0 - 1e-6
}

/// p50, p90, p99 and p99.9, as far as there are times enough to tell.
pub fn percentiles(times: &Distribution) -> [String; 4] {
    let Distribution { p50_us, p90_us, p99_us, p999_us, .. } = *times;
    [(0.5, p50_us), (0.9, p90_us), (0.99, p99_us), (0.999, p999_us)]
        .map(|(share, us)| percentile(times, share, us))
}

pub fn percentile(times: &Distribution, share: f64, us: f64) -> String {
    if tells(times.count, share) { units::time(us) } else { units::NONE.to_owned() }
}

/// What was timed beside the first distributions: all runs of one time, then of the next.
pub fn more_times(runs: &[&Run]) -> Grid {
    let mut grid = Grid::new(&["timed", "run", "count", "p50", "p90", "p99", "p99.9", "max"]);
    grid.names = 2;
    let further = || runs.iter().flat_map(|run| run.distributions.iter().skip(1).map(|times| (*run, times)));
    let mut names: Vec<&str> = Vec::new();
    for (_, times) in further() {
        if !names.contains(&times.name.as_str()) {
            names.push(&times.name);
        }
    }
    for name in names {
        for (run, times) in further().filter(|(_, times)| times.name == name) {
            let named = [times.name.clone(), run.name.clone(), exact(times.count)];
            grid.row(named.into_iter().chain(percentiles(times)).chain([units::time(times.max_us)]));
        }
    }
    grid
}

/// What each run measures beyond rates and times.
pub fn figures(runs: &[&Run]) -> Grid {
    let mut grid = Grid::new(&["run"]);
    for figure in runs.iter().flat_map(|run| &run.figures) {
        if !grid.header[1..].contains(&figure.name) {
            grid.header.push(figure.name.clone());
        }
    }
    for run in runs.iter().filter(|run| !run.figures.is_empty()) {
        let named = |name: &String| {
            let figure = run.figures.iter().find(|figure| figure.name == *name);
            or_none(figure, |figure| units::value(figure.value, figure.unit))
        };
        let cells: Vec<Cell> =
            std::iter::once(run.name.clone().into()).chain(grid.header[1..].iter().map(named)).collect();
        grid.row(cells);
    }
    grid
}

/// What the broker and the load test used meanwhile.
pub fn costs(runs: &[&Run]) -> Grid {
    let mut grid = Grid::new(&[
        "run",
        "seconds",
        "broker CPU s",
        "broker cores",
        "peak RSS",
        "read from",
        "client threads",
        "client cores",
        "machine busy",
        "client saturated",
    ]);
    for run in runs.iter().filter(|run| run.cost.is_some() || run.client.is_some()) {
        let (broker, client) = (run.cost.as_ref(), run.client.as_ref());
        grid.row([
            run.name.clone().into(),
            units::count(run.seconds).into(),
            or_none(broker, |cost| units::count(cost.cpu_seconds)),
            or_none(broker, |cost| units::cores(cost.cores)),
            or_none(broker, |cost| units::bytes(cost.peak_resident_bytes as f64)),
            or_none(broker, |cost| cost.source.to_owned()),
            or_none(client, |cost| cost.threads.to_string()),
            or_none(client, |cost| units::cores(cost.cores)),
            or_none(client, |cost| units::share(cost.machine_busy)),
            or_none(client, |cost| if cost.saturated { "yes" } else { "no" }.to_owned()),
        ]);
    }
    grid.without_empty_columns()
}

/// What was sent, what came of it, and what was broken.
pub fn ledgers(runs: &[&Run]) -> Grid {
    let mut grid = Grid::new(&[
        "run",
        "sent",
        "refused",
        "outcome unknown",
        "delivered",
        "delivered again",
        "broken",
        "ledger",
    ]);
    for run in runs {
        let Verdict { sent, refused, unknown, delivered, redelivered, .. } = run.verdict;
        let mut cells: Vec<Cell> = vec![run.name.clone().into()];
        cells.extend([sent, refused, unknown, delivered, redelivered].map(|count| exact(count).into()));
        cells.extend([broken(&run.verdict).unwrap_or_else(|| "none".to_owned()).into(), judgement(run)]);
        grid.row(cells);
    }
    grid
}

/// The broken promises with their counts, as in `3 lost, 1 out of order`.
pub fn broken(verdict: &Verdict) -> Option<String> {
    let kinds: Vec<String> =
        verdict.broken.iter().map(|(promise, &count)| format!("{} {promise}", exact(count))).collect();
    (!kinds.is_empty()).then(|| kinds.join(", "))
}

/// The parameters that all runs share, and a table of the others.
pub fn parameters(runs: &[&Run]) -> (BTreeMap<String, String>, Grid) {
    let Some((first, rest)) = runs.split_first() else { return Default::default() };
    let mut shared = first.parameters.clone();
    shared.retain(|name, value| rest.iter().all(|run| run.parameters.get(name) == Some(value)));
    let mut grid = Grid::new(&["run"]);
    for name in runs.iter().flat_map(|run| run.parameters.keys()) {
        if !shared.contains_key(name) && !grid.header[1..].contains(name) {
            grid.header.push(name.clone());
        }
    }
    if grid.header.len() == 1 {
        return (shared, grid);
    }
    for run in runs {
        let given = |name: &String| or_none(run.parameters.get(name), String::clone);
        let cells: Vec<Cell> =
            std::iter::once(run.name.clone().into()).chain(grid.header[1..].iter().map(given)).collect();
        grid.row(cells);
    }
    (shared, grid)
}

/// A run's notes, and what follows from its numbers.
pub fn remarks(run: &Run) -> Vec<String> {
    let mut remarks = run.notes.clone();
    if let (Some(offered), Some(achieved)) = (run.offered, run.achieved)
        && !run.kept_up()
    {
        remarks.push(format!(
            "{} of the offered rate was reached: the times are those of a queue that grows, and depend on how \
             long the run is.",
            units::share(achieved / offered)
        ));
    }
    remarks
}

pub fn saturated(run: &Run) -> bool {
    run.client.as_ref().is_some_and(|client| client.saturated)
}

/// All digits, in groups of three, as in `1,234,567`.
pub fn exact(count: u64) -> String {
    let digits = count.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}
