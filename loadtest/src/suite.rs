//! Every scenario, as the command lines that one would type.

use std::sync::Arc;

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
    "queue --publish batch=256 --outstanding 1024 --max-batch 256 --ack bulk --duration 3s --warm-up 1s",
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
    "scale --groups 1,100,10000 --members 1,100,10000 --waiting 10,1000,1000000 --duration 2s --warm-up 500ms",
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
    "scale --groups 1,20 --members 1,20 --waiting 10,1000 --duration 300ms --warm-up 0s",
];

/// What a decision is based on: more than half an hour.
const FULL: &[&str] = &[
    "queue --max-in-flight 1 --outstanding 1",
    "queue --max-in-flight 16",
    "queue",
    "queue --ack unary",
    "queue --ack bulk",
    "queue --publish stream --outstanding 1000",
    "queue --publish batch=256 --outstanding 1024 --max-batch 256 --ack bulk",
    "queue --groups 1000 --workers 1000 --connections 4",
    "fanout --subscribers 1",
    "fanout --subscribers 50",
    "fanout --subscribers 1000 --connections 10",
    "fanout --subscribers 10000 --connections 10",
    "latency --sweep --duration 5s",
    "patterns --patterns 10000,100000,1000000",
    "patterns --patterns 10000,100000,1000000 --publish stream --outstanding 1000",
    "patterns --patterns 1000000 --topics 1000000 --publish stream --outstanding 1000",
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
    "scale --duration 5s --warm-up 1s",
];

/// Goes through the set as often as asked: all of it each time, so that what changes on the machine meanwhile meets all
/// runs alike.
pub async fn run(lab: &Lab, options: &all::Options) -> Result<Vec<Run>, Failure> {
    let lines = lines(options)?;
    let mut made: Vec<Vec<Run>> = lines.iter().map(|_| Vec::new()).collect();
    for round in 1..=options.repeat {
        for (line, made) in lines.iter().zip(&mut made) {
            let parsed = parse(line)?;
            let progress = Arc::new(lab.progress.round(round, options.repeat));
            let lab = Lab { target: lab.target.clone(), load: parsed.load, progress };
            let runs = parsed.scenario.run(&lab).await?;
            made.extend(runs.into_iter().map(|mut run| {
                run.parameters.insert("command".into(), (*line).into());
                run
            }));
        }
    }
    Ok(made.into_iter().flat_map(by_name).filter_map(Run::median).collect())
}

/// What is to be run, in its order.
fn lines(options: &all::Options) -> Result<Vec<&'static str>, Failure> {
    let set = match options {
        all::Options { smoke: true, .. } => SMOKE,
        all::Options { quick: true, .. } => QUICK,
        all::Options { .. } => FULL,
    };
    let mut known: Vec<&str> = set.iter().map(|line| scenario(line)).collect();
    known.dedup();
    if let Some(unknown) = options.only.iter().find(|name| !known.contains(&name.as_str())) {
        let known = known.join(", ");
        return Err(Failure::Usage(format!("--only: `{unknown}` is not in this set, which has {known}")));
    }
    let is_wanted =
        |line: &&&str| options.only.is_empty() || options.only.iter().any(|name| name == scenario(line));
    Ok(set.iter().filter(is_wanted).copied().collect())
}

/// The name that a line begins with.
fn scenario(line: &str) -> &str {
    line.split(' ').next().unwrap_or_default()
}

/// The rounds of each run of one line, in the order in which the runs came first. A sweep may go further in one round
/// than in another.
fn by_name(runs: Vec<Run>) -> Vec<Vec<Run>> {
    let mut grouped: Vec<Vec<Run>> = Vec::new();
    for run in runs {
        match grouped.iter_mut().find(|rounds| rounds.iter().all(|round| round.name == run.name)) {
            Some(rounds) => rounds.push(run),
            None => grouped.push(vec![run]),
        }
    }
    grouped
}

fn parse(line: &str) -> Result<Options, Failure> {
    let words = std::iter::once("tinybroker-loadtest").chain(line.split_whitespace());
    Options::try_parse_from(words).map_err(|error| Failure::Unexpected(format!("`{line}`: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    #[test]
    fn every_line_is_one_that_can_be_typed() {
        for line in QUICK.iter().chain(SMOKE).chain(FULL) {
            parse(line).unwrap_or_else(|error| panic!("{error}"));
        }
    }

    fn options(line: &str) -> all::Options {
        match parse(line).map(|options| options.scenario) {
            Ok(Scenario::All(options)) => options,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn scenarios_of_a_set_are_chosen_by_name() {
        let chosen = lines(&options("all --smoke --only slow,queue")).expect("both are in it");
        let of_two = |line: &&&str| line.starts_with("queue ") || line.starts_with("slow ");
        assert_eq!(chosen, SMOKE.iter().filter(of_two).copied().collect::<Vec<_>>());
        assert_eq!(lines(&options("all --quick")).expect("all of them"), QUICK);
        for unknown in ["all --smoke --only queue,latency", "all --only slow,que"] {
            let refused = lines(&options(unknown)).map_err(|error| error.to_string());
            let name = &unknown[unknown.rfind(',').map_or(0, |comma| comma + 1)..];
            let begin = format!("--only: `{name}` is not in this set, which has queue, fanout, ");
            assert!(matches!(&refused, Err(why) if why.starts_with(&begin)), "{refused:?}");
        }
    }

    #[test]
    fn rounds_of_a_run_come_together_in_the_order_of_the_first() {
        let runs = ["a", "b", "a", "b", "c"].map(|name| Run { name: name.into(), ..Run::default() });
        let grouped = by_name(runs.into());
        let names: Vec<Vec<&str>> =
            grouped.iter().map(|rounds| rounds.iter().map(|run| run.name.as_str()).collect()).collect();
        assert_eq!(names, [vec!["a", "a"], vec!["b", "b"], vec!["c"]]);
    }
}
