//! One scenario: what stands out, its table, its plots, its ledgers.

use maud::{Markup, html};

use super::chart::{self, Chart};
use crate::report::Run;
use crate::report::summary::{self, Grid, Section, Tone};

pub fn render(section: &Section<'_>, id: &str) -> Markup {
    let runs = &section.runs;
    let (shared, differing) = summary::parameters(runs);
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
            div class="charts" {
                @for (index, chart) in chart::charts(runs).iter().enumerate() {
                    (figure(chart, &format!("{id}-{index}")))
                }
            }
            @if runs.iter().any(|run| !run.figures.is_empty()) {
                (grid(&summary::figures(runs), "Figures"))
            }
            (grid(&summary::ledgers(runs), "Ledger"))
            (details("What both sides used", &summary::costs(runs)))
            @if differing.header.len() > 1 { (details("Parameters of each run", &differing)) }
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
            (details("The numbers", &chart.data))
        }
    }
}

fn details(summary: &str, content: &Grid) -> Markup {
    html! {
        @if !content.rows.is_empty() {
            details {
                summary { (summary) }
                (grid(content, ""))
            }
        }
    }
}

fn grid(grid: &Grid, caption: &str) -> Markup {
    html! {
        div class="scroll" tabindex="0" {
            table {
                @if !caption.is_empty() { caption { (caption) } }
                thead { tr { @for name in &grid.header { th scope="col" { (name) } } } }
                tbody {
                    @for row in &grid.rows { tr {
                        @for (column, cell) in row.iter().enumerate() {
                            @if column == 0 {
                                th scope="row" { (cell.text) }
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
