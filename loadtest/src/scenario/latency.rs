//! Latency in open loop: at fixed rates, and at rising ones up to the knee.
//!
//! Times count from the moment at which the schedule wanted a message sent, so what a stall holds up is charged to it.

use clap::Args;

use super::queue;
use crate::failure::Failure;
use crate::lab::Lab;
use crate::report::Run;

/// The sweep goes up by this factor,
const STEP: f64 = 1.5;
/// from this rate,
const LOWEST: f64 = 2_000.0;
/// and not beyond this.
const HIGHEST: f64 = 20e6;
/// A run is beyond the knee where what was offered is not reached, or where the 99th percentile is longer than this, in
/// microseconds.
const SLOW_US: f64 = 50_000.0;

#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Rates to measure, in messages a second.
    #[arg(long, value_name = "R,…", value_delimiter = ',', default_value = "1000,10000,50000")]
    rates: Vec<f64>,

    /// Then raise the rate from 2,000 a second by half each time until the broker no longer keeps up.
    #[arg(long)]
    sweep: bool,

    #[command(flatten)]
    queue: queue::Options,
}

pub async fn run(lab: &Lab, options: &Options) -> Result<Vec<Run>, Failure> {
    if options.queue.rate.is_some() {
        return Err(Failure::Usage("latency takes --rates, not --rate".into()));
    }
    let mut runs = Vec::new();
    for &rate in &options.rates {
        runs.push(at_rate(lab, options, rate, "fixed").await?);
    }
    let mut rate = LOWEST;
    while options.sweep && rate < HIGHEST {
        let run = at_rate(lab, options, rate, "sweep").await?;
        let is_beyond = !run.kept_up() || is_slow(&run);
        runs.push(run);
        if is_beyond {
            break;
        }
        rate *= STEP;
    }
    Ok(runs)
}

async fn at_rate(lab: &Lab, options: &Options, rate: f64, why: &str) -> Result<Run, Failure> {
    let queue = queue::Options { rate: Some(rate), ..options.queue.clone() };
    let mut run = queue::measure(lab, "latency", format!("{rate:.0}/s, {why}"), &queue).await?;
    if run.kept_up() && is_slow(&run) {
        run.notes.push(
            "beyond the knee: the rate was kept up with, and one message in a hundred waited long".into(),
        );
    }
    Ok(run)
}

fn is_slow(run: &Run) -> bool {
    run.distributions.first().is_some_and(|delivery| delivery.p99_us > SLOW_US)
}
