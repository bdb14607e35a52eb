//! The report as one page that needs nothing else: styles and plots are inside, and there is no script.

mod chart;
mod plot;
mod scale;
mod section;
mod stroke;
#[cfg(test)]
mod tests;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::Report;
use super::summary::{self, Section};
use super::table;

const STYLE: &str = include_str!("style.css");

/// Forbids the page all requests and scripts, whatever may have got into it.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// The whole page.
pub fn render(report: &Report) -> String {
    let sections = summary::sections(report);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "tinybroker load test, " (report.environment.date) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { "tinybroker load test" }
                    (verdict(report))
                    (environment(report))
                    (overview(&sections))
                }
                main {
                    @for (index, section) in sections.iter().enumerate() {
                        (section::render(section, &id(index)))
                    }
                }
                footer { (reading()) }
            }
        }
    };
    page.into_string()
}

fn id(section: usize) -> String {
    format!("s{section}")
}

fn verdict(report: &Report) -> Markup {
    let failed = || report.runs.iter().filter(|run| !run.passed());
    html! {
        div class={ "verdict " (if report.passed() { "good" } else { "bad" }) } role="status" {
            p { strong { (table::conclusion(report)) } }
            @if report.passed() && !report.runs.is_empty() {
                p {
                    (summary::exact(report.runs.iter().map(|run| run.verdict.sent).sum())) " messages were sent, "
                    (summary::exact(report.runs.iter().map(|run| run.verdict.delivered).sum()))
                    " deliveries were checked against them; none was lost, doubled or out of place."
                }
            }
            @if !report.passed() {
                ul { @for run in failed() {
                    li { (run.scenario) ", " (run.name) ": " (summary::broken(&run.verdict).unwrap_or_default()) }
                } }
            }
        }
    }
}

fn environment(report: &Report) -> Markup {
    html! {
        dl class="facts" {
            @for (name, value) in report.environment.facts() {
                div { dt { (name) } dd { (value) } }
            }
        }
        p class="label" { "To repeat it" }
        pre { code { (report.environment.command) } }
    }
}

fn overview(sections: &[Section<'_>]) -> Markup {
    html! {
        nav aria-label="Scenarios" { ul {
            @for (index, section) in sections.iter().enumerate() {
                li { a href={ "#" (id(index)) } class=(if section.passed() { "good" } else { "bad" }) {
                    strong { (section.scenario) }
                    span {
                        (runs(section.runs.len())) (if section.passed() { ", ledger ok" } else { ", ledger FAILED" })
                    }
                } }
            }
        } }
    }
}

fn runs(count: usize) -> String {
    if count == 1 { "1 run".to_owned() } else { format!("{count} runs") }
}

/// What the columns mean.
fn reading() -> Markup {
    html! {
        h2 { "How to read this" }
        dl {
            dt { "Rates" }
            dd {
                "What came through a second, within the measured seconds alone. “a → b”: a was offered on a \
                 schedule that does not wait for the broker, b was achieved. “≥”: the load test had no time left, \
                 the broker could have done more."
            }
            dt { "Times" }
            dd {
                "p99 is the time that 99 % stayed within. Where a rate was offered, times count from the moment at \
                 which the schedule wanted a message sent, so a broker that stalls is charged with all that had to \
                 wait meanwhile."
            }
            dt { "CPU each, cores, peak RSS" }
            dd {
                "CPU time of all the broker's threads, user and system, by what was achieved; the cores that it kept \
                 busy on average; the most memory that it had in RAM."
            }
            dt { "Ledger" }
            dd {
                "Every message that was sent is entered, every delivery checked against it, and at the end what is \
                 missing is named. One broken promise fails the run. Refused: the broker said no. Outcome unknown: \
                 the publisher never learned whether the broker took it, so it may have come or not. Delivered \
                 again: its receiver had had it before, and one that held it had died."
            }
        }
    }
}
