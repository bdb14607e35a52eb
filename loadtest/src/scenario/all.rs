//! Every scenario, one after the other: which of the sets.

use clap::Args;

#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Short runs: about three minutes in all.
    #[arg(long, conflicts_with = "smoke")]
    pub quick: bool,

    /// The shortest that still checks every promise: half a minute; the figures mean nothing.
    #[arg(long)]
    pub smoke: bool,
}
