//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser};

use crate::broker::Target;
use crate::failure::Failure;
use crate::load::LoadOptions;
use crate::scenario::Scenario;

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
