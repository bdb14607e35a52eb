use std::process::ExitCode;

use clap::Parser;
use tinybroker::cli;
use tinybroker::config::Options;

fn main() -> ExitCode {
    cli::run(Options::parse())
}
