//! The member that is a process of its own, so that it can be killed: this program once more.
//!
//! It says on its output what it sees ([`Word`]); a byte on its input tells it to hold, and the end of the input
//! that its parent is gone.

use std::io::{self, Write};
use std::os::fd::AsFd;

use clap::Args;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::sync::Notify;

use super::Mode;
use super::member::serve;
use super::word::Word;
use crate::client::Connection;
use crate::failure::{Doing, Failure};

#[derive(Debug, Clone, PartialEq, Args)]
pub struct Options {
    address: String,
    topic: String,
    mode: Mode,
}

impl Options {
    /// The command line that means this.
    pub fn arguments(address: &str, topic: &str, mode: Mode) -> [String; 4] {
        ["victim".into(), address.into(), topic.into(), mode.to_string()]
    }

    /// Serves until it is killed, or its parent is gone.
    pub async fn run(&self) -> Result<(), Failure> {
        let connection = Connection::open(&self.address).await.doing("connecting a member")?;
        let hold = Notify::new();
        tokio::select! {
            ended = serve(&connection, self.mode.open(&self.topic), &hold, say) => match ended? {},
            heeded = heed(&hold) => heeded.doing("listening to the load test"),
        }
    }
}

/// In one write, before anything else happens.
fn say(words: Vec<Word>) -> io::Result<()> {
    let lines: String = words.iter().map(|word| format!("{word}\n")).collect();
    let mut output = io::stdout().lock();
    output.write_all(lines.as_bytes())?;
    output.flush()
}

async fn heed(hold: &Notify) -> io::Result<()> {
    let mut input = pipe::Receiver::from_owned_fd(io::stdin().as_fd().try_clone_to_owned()?)?;
    let mut byte = [0];
    while input.read(&mut byte).await? > 0 {
        hold.notify_one();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::{Parser, ValueEnum};

    use super::*;
    use crate::scenario::Scenario;

    #[test]
    fn the_command_line_means_what_it_was_made_of() {
        for &mode in Mode::value_variants() {
            let arguments = Options::arguments("[::1]:50051", "a.topic", mode);
            let words = std::iter::once("tinybroker-loadtest".to_owned()).chain(arguments);
            let parsed = crate::options::Options::try_parse_from(words).map(|options| options.scenario);
            let Ok(Scenario::Victim(victim)) = parsed else { panic!("{parsed:?}") };
            assert_eq!(victim, Options { address: "[::1]:50051".into(), topic: "a.topic".into(), mode });
        }
    }
}
