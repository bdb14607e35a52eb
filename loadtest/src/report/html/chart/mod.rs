//! Which plots a scenario's runs call for. The data decide: what was offered, how much was timed, over what time.

mod distribution;
mod series;
mod sweep;

use super::plot::{Ink, Plot, RAMP};
use crate::report::Run;
use crate::report::summary::Grid;

/// A plot, and its numbers for those who cannot or will not look at it.
pub struct Chart {
    pub plot: Plot,
    pub data: Grid,
}

pub fn charts(runs: &[&Run]) -> Vec<Chart> {
    let mut charts = sweep::charts(runs);
    charts.extend(distribution::charts(runs));
    charts.extend(series::charts(runs));
    charts
}

/// What is to be compared in one plot.
struct Overlay<'a, T> {
    title: String,
    items: Vec<Item<'a, T>>,
}

struct Item<'a, T> {
    /// What the legend calls it.
    name: String,
    ink: Ink,
    data: &'a T,
}

/// A kind of thing that runs measure.
struct Kind<T> {
    of: fn(&Run) -> &[T],
    name: fn(&T) -> &str,
    /// Only what has the same unit goes into one plot.
    unit: fn(&T) -> &str,
}

impl<T> Kind<T> {
    /// Where several runs measured a thing, they are laid over each other, a plot for each thing. Where only one
    /// run did, its things are.
    fn overlays<'a>(&self, runs: &[&'a Run]) -> Vec<Overlay<'a, T>> {
        let measured = runs.iter().filter(|run| !(self.of)(run).is_empty()).count();
        let mut overlays: Vec<Overlay<'a, T>> = Vec::new();
        for (index, run) in runs.iter().enumerate() {
            for data in (self.of)(run) {
                let (name, unit) = ((self.name)(data), (self.unit)(data));
                let fits = |overlay: &Overlay<'a, T>| {
                    overlay.items.iter().any(|item| {
                        (self.unit)(item.data) == unit && (measured == 1 || (self.name)(item.data) == name)
                    })
                };
                let at = overlays.iter().position(fits).unwrap_or_else(|| {
                    overlays.push(Overlay { title: String::new(), items: Vec::new() });
                    overlays.len() - 1
                });
                let Overlay { title, items } = &mut overlays[at];
                if measured == 1 {
                    *title = match items.as_slice() {
                        [] => name.to_owned(),
                        [first] => format!("{}, {name}", first.name),
                        _ => run.name.clone(),
                    };
                    items.push(Item { name: name.to_owned(), ink: Ink::Category(items.len()), data });
                } else {
                    *title = name.to_owned();
                    items.push(Item { name: run.name.clone(), ink: ink(runs, index), data });
                }
            }
        }
        overlays
    }
}

/// Runs of different offered rates are inked in their order; others as so many equals.
fn ink(runs: &[&Run], index: usize) -> Ink {
    let mut rates: Vec<f64> = runs.iter().filter_map(|run| run.offered).collect();
    rates.sort_by(f64::total_cmp);
    let is_ordered = rates.len() == runs.len() && rates.len() > 2 && rates.first() < rates.last();
    match rates.iter().position(|rate| Some(*rate) == runs[index].offered) {
        Some(rank) if is_ordered => Ink::Ramp(rank * (RAMP - 1) / (rates.len() - 1)),
        _ => Ink::Category(index),
    }
}

fn named_by(ticks: Vec<f64>, name: impl Fn(f64) -> String) -> Vec<(f64, String)> {
    ticks.into_iter().map(|tick| (tick, name(tick))).collect()
}

fn capitalized(title: &str) -> String {
    let mut characters = title.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}
