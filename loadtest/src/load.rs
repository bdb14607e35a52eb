//! The options that every scenario has.

use std::time::Duration;

use clap::Args;

use crate::payload;
use crate::window::Timing;

/// What every scenario has.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Load")]
pub struct LoadOptions {
    /// How long is measured.
    #[arg(long, global = true, value_name = "D", default_value = "10s", value_parser = humantime::parse_duration)]
    pub duration: Duration,

    /// How long load goes on before it is measured.
    #[arg(long, global = true, value_name = "D", default_value = "2s", value_parser = humantime::parse_duration)]
    pub warm_up: Duration,

    /// How long what was published may take to be settled after the last publish; what is missing then is lost.
    #[arg(long, global = true, value_name = "D", default_value = "30s", value_parser = humantime::parse_duration)]
    pub drain: Duration,

    /// Bytes of payload, of which the first 24 tell the message.
    #[arg(long, global = true, value_name = "N", default_value_t = 100,
        value_parser = clap::value_parser!(u32).range(payload::SHORTEST as i64..=4_000_000))]
    pub payload: u32,

    /// Threads of the load test; each runs many streams.
    #[arg(long, global = true, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: u16,
}

impl LoadOptions {
    pub fn timing(&self) -> Timing {
        Timing { warm_up: self.warm_up, measured: self.duration, drain: self.drain }
    }
}
