//! Every scenario, one after the other: which of the sets, and how often.

use clap::Args;

#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Short runs: about three minutes in all.
    #[arg(long, conflicts_with = "smoke")]
    pub quick: bool,

    /// The shortest that still checks every promise: half a minute; the figures mean nothing.
    #[arg(long)]
    pub smoke: bool,

    /// Only these scenarios of the set, by name.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub only: Vec<String>,

    /// How often the set is gone through. The report shows of each run the round of the median rate, or of the median
    /// p50 where a rate was offered; --json keeps all.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub repeat: u32,
}
