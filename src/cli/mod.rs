//! The commands of the binary. `serve` runs the broker; the others are its clients.

mod client;
mod descriptors;
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

/// Help and version as they are; a mistake in one line.
pub fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        // Nobody may be reading.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    if error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let _ = error.print();
    } else {
        let text = error.render().to_string();
        let lines = text.lines().map(str::trim);
        let mistake = lines.take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
        let mistake: Vec<_> = mistake.filter(|line| !line.is_empty()).collect();
        let mistake = mistake.join(" ");
        let mistake = mistake.strip_prefix("error: ").unwrap_or(&mistake);
        client::say(&format!("tinybroker: {mistake}; see --help"));
    }
    ExitCode::from(2)
}

/// What a command ends with where it fails.
type CommandResult = Result<(), Box<dyn std::error::Error>>;
