//! The commands of the binary. `serve` runs the broker; the others are its clients.

mod client;
mod publish;
mod serve;
mod subscribe;

use std::process::ExitCode;

use crate::config::{Command, Options};

/// Runs a command to its end. What goes wrong is one line on standard error.
pub fn run(options: Options) -> ExitCode {
    let done = match options.command {
        Command::Serve(options) => serve::serve(options),
        Command::Pub(options) => publish::publish(options),
        Command::Sub(options) => subscribe::subscribe(options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            client::say(&format!("tinybroker: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// What a command ends with where it fails.
type CommandResult = Result<(), Box<dyn std::error::Error>>;
