//! Every scenario, as the command lines that one would type.

use clap::{Args, Parser};

use crate::failure::Failure;
use crate::lab::Lab;
use crate::options;
use crate::report::Run;

/// What a first look takes: about three minutes.
const QUICK: &[&str] = &["queue --max-in-flight 1 --outstanding 1 --duration 3s", "queue --duration 3s"];

/// What proves that the promises are kept, and measures nothing: about half a minute.
const SMOKE: &[&str] = &["queue --duration 1s --warm-up 0s"];

/// What a decision is based on: about half an hour.
const FULL: &[&str] = &["queue --max-in-flight 1", "queue --max-in-flight 16", "queue"];

#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Short runs: about three minutes in all.
    #[arg(long, conflicts_with = "smoke")]
    quick: bool,

    /// The shortest that still checks every promise: half a minute; the figures mean nothing.
    #[arg(long)]
    smoke: bool,
}

pub async fn run(lab: &Lab, options: &Options) -> Result<Vec<Run>, Failure> {
    let lines = match options {
        Options { smoke: true, .. } => SMOKE,
        Options { quick: true, .. } => QUICK,
        Options { .. } => FULL,
    };
    let mut runs = Vec::new();
    for line in lines {
        let parsed = parse(line)?;
        let lab = Lab { target: lab.target.clone(), load: parsed.load, progress: lab.progress.clone() };
        runs.extend(Box::pin(parsed.scenario.run(&lab)).await?);
    }
    Ok(runs)
}

fn parse(line: &str) -> Result<options::Options, Failure> {
    let words = std::iter::once("tinybroker-loadtest").chain(line.split_whitespace());
    options::Options::try_parse_from(words).map_err(|error| Failure::Unexpected(format!("`{line}`: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_one_that_can_be_typed() {
        for line in QUICK.iter().chain(SMOKE).chain(FULL) {
            parse(line).unwrap_or_else(|error| panic!("{error}"));
        }
    }
}
