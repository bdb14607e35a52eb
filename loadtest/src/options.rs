//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser};

use crate::broker::Target;
use crate::failure::Failure;
use crate::payload;
use crate::scenario::Scenario;
use crate::trial::Timing;

/// Drives a tinybroker and reports what it did, with a ledger that proves what was delivered.
#[derive(Debug, Parser)]
#[command(name = "tinybroker-loadtest", version, arg_required_else_help = true, max_term_width = 100)]
#[command(after_help = "Exit codes: 0 all promises kept, 1 a promise was broken (the messages are named), \
    2 wrong options, 3 the run could not be made.")]
pub struct Options {
    #[command(flatten)]
    pub broker: BrokerOptions,
    #[command(flatten)]
    pub load: LoadOptions,
    #[command(flatten)]
    pub output: OutputOptions,
    #[command(subcommand)]
    pub scenario: Scenario,
}

/// Which broker is measured.
#[derive(Debug, Args)]
#[command(next_help_heading = "Broker")]
pub struct BrokerOptions {
    /// Broker that runs already, HOST:PORT, on this machine or another.
    #[arg(
        long,
        global = true,
        value_name = "ADDR",
        env = "TINYBROKER_BROKER",
        default_value = "127.0.0.1:50051"
    )]
    broker: String,

    /// Its process, where it is on this machine: its cost is then read from /proc, else from its own metrics.
    #[arg(long, global = true, value_name = "PID", conflicts_with = "spawn")]
    broker_pid: Option<u32>,

    /// Start a broker for every run and end it afterwards; the program is `tinybroker` beside this one unless named.
    #[arg(long, global = true, value_name = "PATH", num_args = 0..=1, require_equals = true)]
    spawn: Option<Option<PathBuf>>,

    /// Further argument of `tinybroker serve` with --spawn, such as --serve=--shards=1; may be given several times.
    #[arg(long, global = true, value_name = "ARG", allow_hyphen_values = true)]
    serve: Vec<String>,
}

impl BrokerOptions {
    pub fn target(&self) -> Result<Target, Failure> {
        let Some(program) = &self.spawn else {
            if !self.serve.is_empty() {
                return Err(Failure::Usage("--serve says how to start a broker, which takes --spawn".into()));
            }
            return Ok(Target::Running { address: self.broker.clone(), pid: self.broker_pid });
        };
        let program = match program {
            Some(path) => path.clone(),
            None => std::env::current_exe()
                .map_err(|source| Failure::Io { doing: "finding this program".into(), source })?
                .with_file_name("tinybroker"),
        };
        Ok(Target::Spawn { program, arguments: self.serve.clone() })
    }
}

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

/// Where the report goes, beside the terminal.
#[derive(Debug, Args)]
#[command(next_help_heading = "Report")]
pub struct OutputOptions {
    /// Write everything that was measured as JSON.
    #[arg(long, global = true, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Write a page with plots, complete in one file.
    #[arg(long, global = true, value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// Write the tables as Markdown.
    #[arg(long, global = true, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
}
