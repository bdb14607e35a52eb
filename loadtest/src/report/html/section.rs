//! One scenario: what stands out, its table, its plots, its ledgers.

use maud::{Markup, html};

use super::chart::{self, Chart};
use crate::report::Run;
use crate::report::summary::{self, Grid, Section, Tone};

pub fn render(section: &Section<'_>, id: &str) -> Markup {
    let runs = &section.runs;
    let (shared, differing) = summary::parameters(runs);
    let charts = chart::charts(runs);
    let costs = summary::costs(runs);
    let further = summary::more_times(runs);
    html! {
        section id=(id) aria-labelledby={ (id) "-name" } {
            h2 id={ (id) "-name" } { (section.scenario) }
            @if !shared.is_empty() {
                p class="parameters" {
                    @for (name, value) in &shared { span { (name) " " strong { (value) } } " " }
                }
            }
            (broken(runs))
            (remarks(runs))
            (grid(&summary::summary(runs), &caption(runs)))
            @if !further.rows.is_empty() { (grid(&further, "Further times")) }
            div class="charts" {
                @for (index, chart) in charts.iter().enumerate() {
                    (figure(chart, &format!("{id}-{index}")))
                }
            }
            @if runs.iter().any(|run| !run.figures.is_empty()) {
                (grid(&summary::figures(runs), "Figures"))
            }
            @if !costs.rows.is_empty() { (grid(&costs, "What both sides used")) }
            (grid(&summary::ledgers(runs), "Ledger"))
            (details("The numbers behind the plots", charts.iter().map(|chart| (&*chart.plot.title, &chart.data))))
            (details("Parameters of each run", [("", &differing)]))
        }
    }
}

fn caption(runs: &[&Run]) -> String {
    summary::timed(runs).map_or_else(|| "Summary".to_owned(), |timed| format!("Summary. Times: {timed}"))
}

fn broken(runs: &[&Run]) -> Markup {
    html! {
        @for run in runs.iter().filter(|run| !run.passed()) {
            div class="callout bad" {
                p { strong { "FAILED, " (run.name) ": " } (summary::broken(&run.verdict).unwrap_or_default()) }
                ul { @for named in &run.verdict.named { li { code { (named) } } } }
            }
        }
    }
}

fn remarks(runs: &[&Run]) -> Markup {
    let remarks: Vec<_> =
        runs.iter().map(|run| (run, summary::remarks(run))).filter(|(_, told)| !told.is_empty()).collect();
    html! {
        @if !remarks.is_empty() {
            div class="callout note" {
                p { strong { "Know before you read on" } }
                ul { @for (run, told) in remarks { @for remark in told {
                    li { strong { (run.name) ": " } (remark) }
                } } }
            }
        }
    }
}

fn figure(chart: &Chart, id: &str) -> Markup {
    html! {
        figure {
            figcaption { (chart.plot.title) }
            div class="plot" { (chart.plot.svg(id)) }
            (chart.plot.legend())
        }
    }
}

/// Tables that are there for those who want them.
fn details<'a>(summary: &str, tables: impl IntoIterator<Item = (&'a str, &'a Grid)>) -> Markup {
    let tables: Vec<_> = tables.into_iter().filter(|(_, table)| !table.rows.is_empty()).collect();
    html! {
        @if !tables.is_empty() {
            details {
                summary { (summary) }
                @for (caption, table) in tables { (grid(table, caption)) }
            }
        }
    }
}

fn grid(grid: &Grid, caption: &str) -> Markup {
    html! {
        div class="scroll" tabindex="0" {
            table {
                @if !caption.is_empty() { caption { (caption) } }
                thead { tr { @for (column, name) in grid.header.iter().enumerate() {
                    th scope="col" class=[(column < grid.names).then_some("name")] { (name) }
                } } }
                tbody {
                    @for row in &grid.rows { tr {
                        @for (column, cell) in row.iter().enumerate() {
                            @if column < grid.names {
                                th scope="row" class="name" { (cell.text) }
                            } @else {
                                td class=[tone(cell.tone)] {
                                    (cell.text)
                                    @if let Some(bar) = cell.bar {
                                        span class="bar" style={ "width:" (format!("{:.0}", bar * 100.0)) "%" } {}
                                    }
                                }
                            }
                        }
                    } }
                }
            }
        }
    }
}

fn tone(tone: Tone) -> Option<&'static str> {
    match tone {
        Tone::Plain => None,
        Tone::Good => Some("good"),
        Tone::Bad => Some("bad"),
    }
}
