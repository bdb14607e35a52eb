//! A mix of everything for a long time: whether memory or descriptors grow, and whether all is given back.
//!
//! A work queue, a fan-out, a singleton whose active member leaves now and then, a group whose members come
//! and go, connections that are opened for one publish, and a subscription that gets nothing. The rates are
//! moderate and in open loop. Memory, descriptors and CPU time are sampled, and the broker is asked for its gauges.
//!
//! Drift is what grows over the second half of `--duration`, since caches and pools fill in the first. When the load
//! has gone every gauge must come back to what it was before; on a broker that others use meanwhile it cannot.
//!
//! The load test itself keeps 16 bytes for each message that a group acked, until the end (see the ledger).

mod mix;
mod samples;

use std::sync::PoisonError;
use std::time::Duration;

use clap::Args;

use crate::broker::Usage;
use crate::client::Connection;
use crate::clock;
use crate::failure::{Doing, Failure};
use crate::lab::Lab;
use crate::ledger::LedgerPlan;
use crate::proto::GetStatsResponse;
use crate::report::{Figure, Run, Series};
use crate::trial::Trial;
use mix::Mix;
use samples::{Samples, gauges};

/// Copies that publishers keep in the broker at most; at the rates of a soak it is never reached.
const MOST_COPIES: u64 = 100_000;
/// How long gauges may take to come back when the load has gone.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(20);
/// A drift that is measured for less says little.
const SHORT: Duration = Duration::from_secs(300);

#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Messages a second, of all parts of the mix together.
    #[arg(long, value_name = "R", default_value_t = 1000.0, value_parser = positive)]
    rate: f64,

    /// Members that leave the group with visitors, and come back at once, a second.
    #[arg(long, value_name = "R", default_value_t = 2.0, value_parser = positive)]
    visits: f64,

    /// Connections a second that are opened for one publish.
    #[arg(long, value_name = "R", default_value_t = 5.0)]
    short_connections: f64,
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(rate) if rate > 0.0 && rate < 1e9 => Ok(rate),
        _ => Err("a number above 0 is needed".into()),
    }
}

pub async fn run(lab: &Lab, options: &Options) -> Result<Vec<Run>, Failure> {
    let name = format!("{:.0} messages/s, {} visits/s", options.rate, options.visits);
    lab.progress.run(&format!("soak: {name}"));
    let broker = lab.broker().await?;
    let watch = Connection::open(broker.address()).await.doing("reaching the broker")?;
    let before = AtRest { stats: samples::ask(&watch).await?, usage: broker.usage().await? };
    let mut plan = LedgerPlan::new();
    let mix = Mix::plan(&mut plan);
    let trial = Trial::new(&broker, plan.build(), MOST_COPIES);
    let mut crew = lab.crew();
    mix.enlist(&mut crew, &trial, options, lab.payload());
    let samples = Samples::default();
    let role = samples.clone();
    crew.passive(|station| samples::sample(role, station));

    let measured = trial.conduct(crew, &broker, lab.load.timing(), &lab.progress).await?;
    let took = calm(&watch, &before.stats).await?;
    let after = AtRest { stats: samples::ask(&watch).await?, usage: broker.usage().await? };
    broker.end().await?;
    let (memory, descriptors, cores) = (measured.memory(), measured.descriptors(), measured.cores());
    let mut run = measured.into_run("soak", name, "deliveries");
    run.offered = Some(mix::offered(options));
    tell_drift(&mut run, &memory, &descriptors);
    tell_end(&mut run, &before, &after, took);
    let samples = samples.lock().unwrap_or_else(PoisonError::into_inner);
    run.series.extend([descriptors, cores].into_iter().chain(samples::series(&samples)));
    Ok(vec![run])
}

/// The broker before or after the load.
struct AtRest {
    stats: GetStatsResponse,
    usage: Usage,
}

/// How long it takes until every gauge is as before; none if one does not come back.
async fn calm(watch: &Connection, before: &GetStatsResponse) -> Result<Option<Duration>, Failure> {
    let begun = clock::now();
    loop {
        let stats = samples::ask(watch).await?;
        let waited = clock::duration(clock::now() - begun);
        if gauges(&stats) == gauges(before) {
            return Ok(Some(waited));
        }
        if waited > PATIENCE {
            return Ok(None);
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn tell_drift(run: &mut Run, memory: &Series, descriptors: &Series) {
    let drifts =
        [("memory drift", memory, "bytes/hour"), ("descriptor drift", descriptors, "descriptors/hour")];
    for (name, series, unit) in drifts {
        if let Some(value) = samples::drift(&series.points, run.seconds) {
            run.figures.push(Figure { name: name.into(), value, unit });
        }
    }
    if run.seconds < SHORT.as_secs_f64() {
        run.notes.push(format!(
            "the drift is that of {:.0} s and mostly noise: what counts takes a --duration of {} or more",
            run.seconds / 2.0,
            humantime::format_duration(SHORT)
        ));
    }
}

/// `took`: until all gauges were back.
fn tell_end(run: &mut Run, before: &AtRest, after: &AtRest, took: Option<Duration>) {
    let mut figure = |name: &str, value, unit| run.figures.push(Figure { name: name.into(), value, unit });
    figure("memory before", before.usage.resident_bytes as f64, "bytes");
    figure("memory after the end", after.usage.resident_bytes as f64, "bytes");
    figure("descriptors before", before.usage.descriptors as f64, "");
    figure("descriptors after the end", after.usage.descriptors as f64, "");
    if let Some(took) = took {
        figure("all gauges back after", took.as_secs_f64(), "s");
        return;
    }
    for ((name, was), (_, is)) in gauges(&before.stats).into_iter().zip(gauges(&after.stats)) {
        if was != is {
            let patience = humantime::format_duration(PATIENCE);
            run.notes.push(format!(
                "LEFT OVER: {name} was {was} before and is {is}, {patience} after the end of the load"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_rest(members: u64, in_flight: u64) -> AtRest {
        let stats = GetStatsResponse { connections: 1, members, in_flight, ..GetStatsResponse::default() };
        AtRest { stats, usage: Usage::default() }
    }

    #[test]
    fn what_is_left_over_is_named_with_both_values() {
        let mut run = Run::default();
        tell_end(&mut run, &at_rest(0, 0), &at_rest(3, 7), None);
        assert_eq!(run.notes.len(), 2);
        assert!(run.notes[0].contains("members was 0 before and is 3"), "{}", run.notes[0]);
        assert!(run.notes[1].contains("in flight was 0 before and is 7"), "{}", run.notes[1]);
    }

    #[test]
    fn a_clean_end_says_how_long_it_took() {
        let mut run = Run::default();
        tell_end(&mut run, &at_rest(1, 0), &at_rest(1, 0), Some(Duration::from_millis(40)));
        let back = run.figures.iter().find(|figure| figure.name == "all gauges back after");
        assert_eq!(back.map(|figure| figure.value), Some(0.04));
        assert!(run.notes.is_empty());
    }
}
