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
/// A run that reaches less of what was offered is beyond the knee,
const KEPT: f64 = 0.97;
/// and so is one whose 99th percentile is longer, in microseconds.
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
        let is_beyond = is_beyond_the_knee(&run, rate);
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
    if is_beyond_the_knee(&run, rate) {
        run.notes.insert(0, "beyond the knee: what was offered was not kept up with".into());
    }
    Ok(run)
}

fn is_beyond_the_knee(run: &Run, offered: f64) -> bool {
    let kept = run.achieved.unwrap_or_default() >= KEPT * offered;
    let is_slow = run.distributions.first().is_some_and(|delivery| delivery.p99_us > SLOW_US);
    !kept || is_slow
}
