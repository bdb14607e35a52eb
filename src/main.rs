use std::process::ExitCode;

use clap::Parser;
use tinybroker::cli;
use tinybroker::config::Options;

fn main() -> ExitCode {
    match Options::try_parse() {
        Ok(options) => cli::run(options),
        Err(error) => cli::usage(&error),
    }
}
