//! How much a worker should hold at once: a queue at rising max_in_flight.

use clap::Args;

use super::queue;
use crate::failure::Failure;
use crate::lab::Lab;
use crate::report::Run;

#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Values of max_in_flight to measure.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1,2,4,8,16,64,256,1024")]
    depths: Vec<u32>,

    #[command(flatten)]
    queue: queue::Options,
}

pub async fn run(lab: &Lab, options: &Options) -> Result<Vec<Run>, Failure> {
    let mut runs = Vec::new();
    for &max_in_flight in &options.depths {
        let queue = queue::Options { max_in_flight, ..options.queue.clone() };
        runs.push(queue::measure(lab, "prefetch", format!("{max_in_flight} in flight"), &queue).await?);
    }
    Ok(runs)
}
