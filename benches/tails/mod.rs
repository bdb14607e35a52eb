//! The sections of `pattern_tails`.

pub mod churn;
pub mod matching;
pub mod memory;

use crate::table::time;

/// Times of single calls, in nanoseconds.
#[derive(Default)]
struct Times(Vec<u64>);

impl Times {
    fn mean(&self) -> f64 {
        self.0.iter().sum::<u64>() as f64 / self.0.len() as f64
    }

    /// The time that so many of a thousand calls do not take longer than; with 1,000 the longest of all.
    fn permille(&mut self, permille: usize) -> f64 {
        let last = self.0.len() - 1;
        *self.0.select_nth_unstable(last * permille / 1000).1 as f64
    }
}

/// A time beside the most that it was meant to be, in nanoseconds. What misses is bold.
fn against(target: f64, figure: f64) -> String {
    beside(figure <= target, time(figure), time(target))
}

fn beside(is_met: bool, figure: String, target: String) -> String {
    if is_met { format!("{figure} (≤ {target})") } else { format!("**{figure}** (≤ {target})") }
}
