//! Every scenario, as the command lines that one would type.

use clap::Parser;

use crate::failure::Failure;
use crate::lab::Lab;
use crate::options::Options;
use crate::report::Run;
use crate::scenario::all;

/// What a first look takes: about three minutes.
const QUICK: &[&str] = &[
    "queue --max-in-flight 1 --outstanding 1 --duration 3s --warm-up 1s",
    "queue --max-in-flight 16 --duration 3s --warm-up 1s",
    "queue --duration 3s --warm-up 1s",
    "queue --ack unary --duration 3s --warm-up 1s",
    "queue --publish stream --outstanding 1000 --duration 3s --warm-up 1s",
    "queue --publish batch=64 --outstanding 256 --max-batch 64 --ack bulk --duration 3s --warm-up 1s",
    "fanout --subscribers 1 --duration 2s --warm-up 1s",
    "fanout --subscribers 50 --duration 3s --warm-up 1s",
    "fanout --subscribers 50 --publish stream --outstanding 1000 --max-batch 64 --duration 3s --warm-up 1s",
    "fanout --subscribers 1000 --connections 10 --duration 3s --warm-up 1s",
    "latency --rates 1000,10000 --duration 3s --warm-up 1s",
    "latency --rates 5000 --sweep --duration 1s --warm-up 500ms",
    "patterns --duration 3s --warm-up 500ms",
    "confirm --duration 3s --warm-up 500ms",
    "confirm --publish stream --outstanding 64,4096 --duration 2s --warm-up 500ms",
    "failover --kills 60 --duration 4s --warm-up 500ms",
    "churn --duration 5s --warm-up 500ms",
    "slow --duration 700ms --warm-up 300ms",
    "connections --duration 2s --warm-up 0s",
    "soak --duration 8s --warm-up 500ms",
    "prefetch --depths 1,16,256 --duration 2s --warm-up 500ms",
];

/// What proves that the promises are kept, and measures nothing: about half a minute.
const SMOKE: &[&str] = &[
    "queue --groups 2 --max-in-flight 1 --outstanding 1 --duration 1s --warm-up 0s",
    "queue --ack unary --duration 1s --warm-up 0s",
    "queue --ack bulk --rate 2000 --duration 1s --warm-up 0s",
    "queue --publish stream --groups 3 --max-batch 10 --duration 1s --warm-up 0s",
    "queue --publish batch=16 --duration 1s --warm-up 0s",
    "fanout --subscribers 20 --outstanding 1 --duration 1s --warm-up 0s",
    "failover --kills 9 --duration 1s --warm-up 0s",
    "churn --groups 40 --publishers 20 --churn 200 --rate 1000 --duration 1s --warm-up 0s",
    "slow --rounds 1 --duration 1s --warm-up 0s",
    "connections --streams 200 --duration 200ms --warm-up 0s",
    "patterns --patterns 1000 --duration 1s --warm-up 0s",
    "soak --duration 2s --warm-up 0s",
];

/// What a decision is based on: about half an hour.
const FULL: &[&str] = &[
    "queue --max-in-flight 1 --outstanding 1",
    "queue --max-in-flight 16",
    "queue",
    "queue --ack unary",
    "queue --ack bulk",
    "queue --publish stream --outstanding 1000",
    "queue --publish batch=64 --outstanding 256 --max-batch 64 --ack bulk",
    "queue --groups 1000 --workers 1000 --connections 4",
    "fanout --subscribers 1",
    "fanout --subscribers 50",
    "fanout --subscribers 1000 --connections 10",
    "fanout --subscribers 10000 --connections 10",
    "latency --sweep --duration 5s",
    "patterns --patterns 10000,100000,1000000",
    "confirm",
    "confirm --publish stream --outstanding 64,4096",
    "failover",
    "failover --kills 1000 --duration 40s",
    "churn",
    "churn --ack stream --churn 2000 --duration 30s",
    "slow",
    "slow --own-connection",
    "slow --rate 5000",
    "connections --streams 1000,10000",
    "soak --duration 10m",
    "prefetch",
];

pub async fn run(lab: &Lab, options: &all::Options) -> Result<Vec<Run>, Failure> {
    let lines = match options {
        all::Options { smoke: true, .. } => SMOKE,
        all::Options { quick: true, .. } => QUICK,
        all::Options { .. } => FULL,
    };
    let mut runs = Vec::new();
    for line in lines {
        let parsed = parse(line)?;
        let lab = Lab { target: lab.target.clone(), load: parsed.load, progress: lab.progress.clone() };
        let made = parsed.scenario.run(&lab).await?;
        runs.extend(made.into_iter().map(|mut run| {
            run.parameters.insert("command".into(), (*line).into());
            run
        }));
    }
    Ok(runs)
}

fn parse(line: &str) -> Result<Options, Failure> {
    let words = std::iter::once("tinybroker-loadtest").chain(line.split_whitespace());
    Options::try_parse_from(words).map_err(|error| Failure::Unexpected(format!("`{line}`: {error}")))
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
