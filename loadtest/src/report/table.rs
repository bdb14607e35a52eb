//! The report as text: for a terminal, and as Markdown for the documentation.

use comfy_table::{Cell, CellAlignment, ContentArrangement, LineStyle, Table, TableStyle, presets};

use super::summary::{self, Grid, Section};
use super::{Report, Run, units};

/// Characters in a line of the terminal report, at most.
const WIDTH: u16 = 120;
const INDENT: u16 = 2;

/// Columns apart, and a rule below the header.
const RULED: TableStyle = presets::NOTHING.header_separator(LineStyle::none().fill('─').junction('─'));

/// The report for a terminal.
pub fn text(report: &Report) -> String {
    let mut text = String::new();
    for section in summary::sections(report) {
        text += &format!("{}\n", heading(&section));
        for grid in grids(&section) {
            text += &format!("{}\n\n", terminal_table(&grid));
        }
        let details: String = section.runs.iter().map(|run| terminal_details(run)).collect();
        text += &details;
        if !details.is_empty() {
            text.push('\n');
        }
    }
    text + &conclusion(report) + "\n"
}

/// The same as Markdown, with the environment above it.
pub fn markdown(report: &Report) -> String {
    let mut text = String::new();
    for (name, value) in report.environment.facts() {
        text += &format!("- {name}: {}\n", inline(&value));
    }
    text += &format!("\n```sh\n{}\n```\n\n", report.environment.command);
    for section in summary::sections(report) {
        text += &format!("## {}\n\n", inline(&heading(&section)));
        for grid in grids(&section) {
            text += &format!("{}\n\n", markdown_table(&grid));
        }
        let details: String = section.runs.iter().map(|run| markdown_details(run)).collect();
        text += &details;
        if !details.is_empty() {
            text.push('\n');
        }
    }
    text + &conclusion(report) + "\n"
}

fn grids(section: &Section<'_>) -> impl Iterator<Item = Grid> {
    let grids = [summary::summary(&section.runs), summary::more_times(&section.runs)];
    grids.into_iter().filter(|grid| !grid.rows.is_empty())
}

/// One sentence on all ledgers.
pub fn conclusion(report: &Report) -> String {
    let failed = report.runs.iter().filter(|run| !run.passed()).count();
    match (report.runs.len(), failed) {
        (0, _) => "Nothing was run.".to_owned(),
        (1, 0) => "The ledger is in order.".to_owned(),
        (1, _) => "FAILED: the ledger shows broken promises.".to_owned(),
        (runs, 0) => format!("All {runs} ledgers are in order."),
        (runs, failed) => format!("FAILED: {failed} of {runs} ledgers show broken promises."),
    }
}

fn heading(section: &Section<'_>) -> String {
    match summary::timed(&section.runs) {
        Some(timed) => format!("{}, times: {timed}", section.scenario),
        None => section.scenario.to_owned(),
    }
}

fn terminal_table(grid: &Grid) -> String {
    let mut table = drawn(grid, RULED, str::to_owned);
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(WIDTH);
    table.trim_fmt()
}

fn markdown_table(grid: &Grid) -> String {
    let table = drawn(grid, presets::ASCII_MARKDOWN, inline).to_string();
    let mut lines: Vec<String> = table.lines().map(str::to_owned).collect();
    // The style knows no alignment: a colon at a column's end sets it to the right.
    if let Some(rule) = lines.get_mut(1) {
        let columns: Vec<&str> = rule.trim_matches('|').split('|').collect();
        let (names, values) = columns.split_at(grid.names.min(columns.len()));
        let names = names.iter().map(|dashes| (*dashes).to_owned());
        let values = values.iter().map(|dashes| format!("{}:", &dashes[1..]));
        *rule = format!("|{}|", names.chain(values).collect::<Vec<_>>().join("|"));
    }
    lines.join("\n")
}

fn drawn(grid: &Grid, style: TableStyle, write: impl Fn(&str) -> String) -> Table {
    let mut table = Table::new();
    table.load_style(style);
    table.set_header(grid.header.iter().map(|name| Cell::new(write(name))));
    for row in &grid.rows {
        table.add_row(row.iter().map(|cell| Cell::new(write(&cell.text))));
    }
    for column in table.column_iter_mut().skip(grid.names) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// What there is to say of a run beside its row in the table: what it is, and the words.
fn details(run: &Run) -> Vec<(String, String)> {
    let mut details = Vec::new();
    let figure = |figure: &super::Figure| (figure.name.clone(), units::value(figure.value, figure.unit));
    details.extend(run.figures.iter().map(figure));
    details.extend(summary::remarks(run).into_iter().map(|remark| ("note".to_owned(), remark)));
    if let Some(broken) = summary::broken(&run.verdict) {
        details.push(("FAILED".to_owned(), broken));
        details.extend(run.verdict.named.iter().map(|named| (String::new(), named.clone())));
    }
    details
}

fn terminal_details(run: &Run) -> String {
    let details = details(run);
    if details.is_empty() {
        return String::new();
    }
    let indented = |line: &str| format!("{:1$}{line}\n", "", usize::from(INDENT));
    let lines: String =
        plain(details.into_iter().map(|(what, words)| [what, words])).lines().map(indented).collect();
    format!("{}\n{lines}", plain([[run.name.clone()]]))
}

/// Words in columns, wrapped, without lines.
fn plain(rows: impl IntoIterator<Item = impl IntoIterator<Item = String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(WIDTH - INDENT);
    for row in rows {
        table.add_row(row);
    }
    table.trim_fmt()
}

fn markdown_details(run: &Run) -> String {
    let details = details(run);
    if details.is_empty() {
        return String::new();
    }
    let item = |(what, words): &(String, String)| match what.as_str() {
        "" => format!("    - {}\n", inline(words)),
        what => format!("  - {}: {}\n", inline(what), inline(words)),
    };
    format!("- {}\n{}", inline(&run.name), details.iter().map(item).collect::<String>())
}

/// Text that Markdown shows as it is, within a line and within a table's cell.
fn inline(text: &str) -> String {
    let mut inline = String::new();
    for character in text.chars() {
        match character {
            '\n' | '\r' => inline.push(' '),
            '<' => inline += "&lt;",
            '|' | '*' | '_' | '`' | '\\' | '[' => inline.extend(['\\', character]),
            other => inline.push(other),
        }
    }
    inline
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn width(line: &str) -> usize {
        line.chars().count()
    }

    #[test]
    fn text_says_what_came_out() {
        let text = text(&sample::report());
        for said in [
            "queue, times: intended send to delivery",
            "≥ 412 k/s",
            "200 k/s → 183 k/s",
            "14.6 MB",
            "91.5 % of the offered rate was reached",
            "12 lost, 1 out of order",
            "lost: message 0 of lane \"p3\" never came to \"s7\"",
            "longest without an owner  12.4 s",
            "FAILED: 1 of 15 ledgers show broken promises.",
        ] {
            assert!(text.contains(said), "{said} in\n{text}");
        }
        assert!(!text.contains("NaN"));
    }

    #[test]
    fn columns_are_aligned() {
        let text = text(&sample::report());
        let rule = |line: &&str| line.starts_with('─');
        let queue: Vec<&str> = text.lines().skip(1).take(6).filter(|line| !rule(line)).collect();
        assert!(queue.iter().all(|line| width(line) == width(queue[0])), "{queue:#?}");
        let ends = |line: &&&str| line.ends_with("ok") || line.ends_with("ledger");
        assert_eq!(queue.iter().filter(ends).count(), 5, "{queue:#?}");
    }

    #[test]
    fn the_longest_words_stay_within_the_width() {
        let mut report = sample::report();
        for run in &mut report.runs {
            run.name = "a name of many words that goes on and on ".repeat(4);
            run.notes.push("unbroken".repeat(40));
            run.unit = "deliveries";
        }
        let text = text(&report);
        let widest = text.lines().map(width).max();
        assert!(widest <= Some(usize::from(WIDTH)), "{widest:?}\n{text}");
    }

    #[test]
    fn a_percentile_that_too_few_times_tell_is_not_told() {
        let few = sample::distribution("takeover", 60, 10.0, 1.0);
        assert_eq!(summary::percentiles(&few)[2..], [units::NONE, units::NONE]);
        let many = sample::distribution("takeover", 1_000, 10.0, 1.0);
        assert!(summary::percentiles(&many).iter().all(|told| told != units::NONE));
    }

    #[test]
    fn cpu_is_compared_with_that_of_another_run() {
        let mut report = sample::report();
        report.runs.truncate(2);
        assert!(!text(&report).contains("CPU ratio"), "where none is to be compared with another");
        let first = report.runs[0].name.clone();
        for (run, each) in report.runs.iter_mut().zip([10.0, 12.5]) {
            run.compared_with = Some(first.clone());
            if let Some(cost) = &mut run.cost {
                cost.cpu_us_per_message = Some(each);
            }
        }
        let text = text(&report);
        assert!([" CPU ratio ", " 1.00 ", " 1.25 "].iter().all(|said| text.contains(said)), "{text}");
    }

    #[test]
    fn markdown_has_tables_that_markdown_reads() {
        let mut report = sample::report();
        report.runs[0].name = "a|b <i> *c*".to_owned();
        let text = markdown(&report);
        assert!(text.contains("| a\\|b &lt;i> \\*c\\* "), "{text}");
        let tables: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
        let columns = |line: &str| line.replace("\\|", "").matches('|').count();
        let rules: Vec<usize> = (0..tables.len()).filter(|&at| tables[at].starts_with("|--")).collect();
        assert!(rules.len() >= 5);
        for rule in rules {
            assert!(tables[rule].ends_with("-:|") && columns(tables[rule]) == columns(tables[rule - 1]));
            assert_eq!(columns(tables[rule]), columns(tables[rule + 1]));
        }
        assert!(text.contains("```sh\ntinybroker-loadtest all"));
    }

    #[test]
    fn a_report_of_nothing_is_a_sentence() {
        let report = Report { environment: sample::environment(), runs: vec![] };
        assert_eq!(text(&report), "Nothing was run.\n");
    }
}
