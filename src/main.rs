#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;
use tinybroker::cli;
use tinybroker::config::Options;

/// Memory that a backlog took goes back to the system within seconds, also while nothing happens, and also
/// where one thread frees what another allocated (docs/architecture.md, Memory).
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    match Options::try_parse() {
        Ok(options) => cli::run(options),
        Err(error) => cli::usage(&error),
    }
}
