//! What goes on, on a terminal; nothing where there is none.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// One line that changes.
pub struct Progress {
    bar: ProgressBar,
    /// Before the name of each run.
    prefix: String,
}

impl Progress {
    pub fn new() -> Self {
        // Draws on standard error, and not at all where that is no terminal.
        let bar = ProgressBar::new_spinner();
        let style = ProgressStyle::with_template("{spinner} {prefix} {wide_msg} {elapsed}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        bar.enable_steady_tick(Duration::from_millis(120));
        Progress { bar, prefix: String::new() }
    }

    /// The same line for one of several rounds.
    pub fn round(&self, round: u32, rounds: u32) -> Progress {
        let prefix = if rounds == 1 { String::new() } else { format!("round {round} of {rounds}, ") };
        Progress { bar: self.bar.clone(), prefix }
    }

    /// A run begins.
    pub fn run(&self, name: &str) {
        self.bar.set_prefix(format!("{}{name}", self.prefix));
        self.step("opening");
    }

    pub fn step(&self, what: impl Into<String>) {
        self.bar.set_message(what.into());
    }

    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}
