//! Figures for people: units, Markdown, and what a figure was meant to be.

use comfy_table::Table;
use comfy_table::presets::ASCII_MARKDOWN;

/// Prints a heading and a table.
pub fn print(heading: &str, head: &[&str], rows: Vec<Vec<String>>) {
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN).set_header(head.to_vec()).add_rows(rows);
    println!("\n### {heading}\n\n{table}");
}

pub fn time(nanoseconds: f64) -> String {
    match nanoseconds {
        n if n < 1e3 => format!("{n:.0} ns"),
        n if n < 1e6 => format!("{:.2} µs", n / 1e3),
        n if n < 1e9 => format!("{:.2} ms", n / 1e6),
        n => format!("{:.2} s", n / 1e9),
    }
}
