//! Every option once: name, environment, default, bounds and words. `--help` and `docs/options.md` say the same.
//!
//! A flag wins over the environment, the environment over the default.

mod client;
mod logging;
mod memory;

use std::time::Duration;

use clap::{Parser, Subcommand};

pub use client::{AckMode, ConnectionOptions, Header, PubOptions, SubOptions};
pub use logging::{LogFormat, LogOptions};

use crate::limits;

/// Work queues, leader election and fan-out over gRPC: one binary, single node, in memory.
#[derive(Debug, Parser)]
#[command(name = "tinybroker", version, arg_required_else_help = true, max_term_width = 100)]
#[command(after_help = "Three terminals to the first job:\n  \
    tinybroker serve\n  \
    tinybroker sub 'jobs.*' --group workers\n  \
    tinybroker pub jobs.hello 'my first job'")]
pub struct Options {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the broker.
    Serve(ServeOptions),
    /// Publish messages.
    Pub(PubOptions),
    /// Subscribe and print what comes.
    Sub(SubOptions),
}

/// Options of `tinybroker serve`.
#[derive(Debug, clap::Args)]
#[command(after_help = "SIGTERM or SIGINT drains: no new work is taken, what is in flight may be settled, \
    then every stream ends with UNAVAILABLE. A second signal ends at once.")]
pub struct ServeOptions {
    /// Address to listen on, HOST:PORT; may be given several times. Every address that a name
    /// resolves to is listened on. The traffic is plaintext: listen beyond loopback only in a
    /// network that you trust.
    #[arg(
        long,
        value_name = "ADDR",
        env = "TINYBROKER_LISTEN",
        value_delimiter = ',',
        default_value = "localhost:50051"
    )]
    pub listen: Vec<String>,

    /// Shards that subscriptions are spread over, 1 to 256 [default: one for each of --cores].
    #[arg(long, value_name = "N", env = "TINYBROKER_SHARDS")]
    pub shards: Option<usize>,

    /// Frontends that connections are spread over, 1 to 256 [default: one for each of --cores].
    #[arg(long, value_name = "N", env = "TINYBROKER_FRONTENDS")]
    pub frontends: Option<usize>,

    /// Cores to use, for example 0-3 or 0,2,4 [default: the first half of those that the process may use; the rest is
    /// left to clients on this machine and to the kernel].
    #[arg(long, value_name = "LIST", env = "TINYBROKER_CORES")]
    pub cores: Option<String>,

    /// Largest message in bytes: topic, message_id, headers and payload together.
    #[arg(long, value_name = "N", env = "TINYBROKER_MAX_MESSAGE_BYTES",
        default_value_t = limits::MESSAGE_BYTES as u64,
        value_parser = clap::value_parser!(u64).range(1..=limits::MESSAGE_BYTES as u64))]
    pub max_message_bytes: u64,

    /// Messages that may wait in one subscription: default and ceiling of its max_pending.
    #[arg(long, value_name = "N", env = "TINYBROKER_MAX_PENDING",
        default_value_t = limits::MAX_PENDING, value_parser = clap::value_parser!(u64).range(1..))]
    pub max_pending: u64,

    /// Bytes that may wait in one subscription; each message counts 160 bytes more than it has.
    #[arg(long, value_name = "N", env = "TINYBROKER_MAX_PENDING_BYTES",
        default_value_t = limits::MAX_PENDING_BYTES,
        value_parser = clap::value_parser!(u64).range(limits::MESSAGE_COST..))]
    pub max_pending_bytes: u64,

    /// Bytes that messages may take in the whole process; at the limit every publish is refused
    /// [default: half of the smaller of the machine's memory and the cgroup's limit].
    #[arg(long, value_name = "N", env = "TINYBROKER_MEMORY_LIMIT",
        value_parser = clap::value_parser!(u64).range(limits::MESSAGE_COST..))]
    pub memory_limit: Option<u64>,

    /// How long a shutdown waits for what is in flight, for example 5s or 1m.
    #[arg(long, value_name = "D", env = "TINYBROKER_DRAIN_TIMEOUT",
        default_value = limits::DRAIN_TIMEOUT, value_parser = duration)]
    pub drain_timeout: Duration,

    /// How long an executor that has nothing left to do looks around before it sleeps, for
    /// example 20us: a shorter way for the next message against CPU time.
    #[arg(long, value_name = "D", env = "TINYBROKER_SPIN",
        default_value = "0s", value_parser = duration)]
    pub spin: Duration,

    #[command(flatten)]
    pub log: LogOptions,
}

impl ServeOptions {
    /// `--memory-limit`, or its default on this machine.
    pub fn memory_limit(&self) -> u64 {
        self.memory_limit.unwrap_or_else(memory::default_limit)
    }
}

/// A duration with its unit, bounded so that deadlines made from it can be reckoned.
fn duration(text: &str) -> Result<Duration, String> {
    let duration = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if duration > limits::OPTION_DURATION {
        return Err(format!("limit {}", humantime::format_duration(limits::OPTION_DURATION)));
    }
    Ok(duration)
}
