//! Many live patterns, of which each message matches one: what matching costs, and what patterns do.
//!
//! The memory that they take is read from a broker that is new for each run; one that runs already may give
//! them memory that it had before.

mod mix;

use clap::Args;

use crate::failure::Failure;
use crate::lab::Lab;
use crate::ledger::{Kind, LaneId, LedgerPlan, ReceiverId};
use crate::measured::Measured;
use crate::payload::Template;
use crate::proto::{DeliveryMode, OpenSubscription};
use crate::report::{Figure, Run};
use crate::role::{Acking, Pace, Publisher, Publishing, Worker};
use crate::trial::Trial;
use mix::Mix;

/// Patterns that the broker takes in one subscription.
const MOST_IN_A_SUBSCRIPTION: u32 = 256;
/// Messages that may wait for subscribers beside those that wait for their confirm.
const MOST_WAITING: u32 = 4096;

#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Numbers of live patterns to measure.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "10000",
        value_parser = clap::value_parser!(u32).range(1..=2_000_000))]
    patterns: Vec<u32>,

    /// Distinct topics that are published to, each of another pattern; no more than there are patterns.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    topics: u32,

    /// Connections that the subscriptions share, each with 256 patterns.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    connections: u32,

    /// Publishers, each on a connection of its own.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    publishers: u32,

    /// How publishers send: unary, stream, batch or batch=SIZE.
    #[arg(long, value_name = "HOW", default_value = "unary")]
    publish: Publishing,

    /// Messages that one publisher has sent and not yet seen confirmed, at most.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    outstanding: u32,

    /// Messages a second of all publishers together [default: as fast as they go].
    #[arg(long, value_name = "R")]
    rate: Option<f64>,
}

pub async fn run(lab: &Lab, options: &Options) -> Result<Vec<Run>, Failure> {
    let mut runs = Vec::new();
    for &patterns in &options.patterns {
        runs.push(measure(lab, options, patterns).await?);
    }
    Ok(runs)
}

async fn measure(lab: &Lab, options: &Options, patterns: u32) -> Result<Run, Failure> {
    let name = format!("{patterns} patterns");
    lab.progress.run(&format!("patterns: {name}"));
    let broker = lab.broker().await?;
    let before = broker.usage().await?.resident_bytes;
    let topics = options.topics.min(patterns);
    let publishers = options.publishers.min(topics);
    let mut plan = LedgerPlan::new();
    let subscription = |number| plan.receiver(format!("subscription {number}"), Kind::Multi);
    let receivers: Vec<ReceiverId> =
        (0..patterns.div_ceil(MOST_IN_A_SUBSCRIPTION)).map(subscription).collect();
    let is_ordered = options.publish.keeps_order(options.outstanding as usize);
    let lanes: Vec<Vec<LaneId>> = (0..publishers)
        .map(|publisher| {
            let name =
                |receiver: &ReceiverId| format!("publisher {publisher} to subscription {}", receiver.0);
            receivers.iter().map(|to| plan.lane(name(to), *to..=*to, is_ordered)).collect()
        })
        .collect();
    let trial = Trial::new(&broker, plan.build(), u64::from(publishers * options.outstanding + MOST_WAITING));

    let mix = Mix::new(trial.unique("patterns"), patterns);
    let mut crew = lab.crew();
    let workers = receivers.iter().map(|&receiver| subscriber(receiver, &mix, patterns)).collect();
    Worker::enlist(&mut crew, workers, options.connections as usize);
    for (turn, lanes) in lanes.iter().enumerate() {
        let addressed = |number: u32| {
            let lane = lanes[(number / MOST_IN_A_SUBSCRIPTION) as usize];
            (lane, Template::new(&mix.topic(number), lab.payload()))
        };
        let publisher = Publisher {
            lanes: mix.spread(topics).skip(turn).step_by(publishers as usize).map(addressed).collect(),
            publishing: options.publish,
            outstanding: options.outstanding as usize,
            pace: Pace::new(options.rate, turn, publishers as usize),
            bystanders: 0,
        };
        crew.active(|station| publisher.run(station));
    }
    let measured = lab.conduct(&trial, crew, broker).await?;
    Ok(Run { offered: options.rate, ..told(measured, name, patterns, topics, before) })
}

/// One that holds the next patterns of all.
fn subscriber(receiver: ReceiverId, mix: &Mix, patterns: u32) -> Worker {
    let first = receiver.0 * MOST_IN_A_SUBSCRIPTION;
    let numbers = first..patterns.min(first + MOST_IN_A_SUBSCRIPTION);
    Worker {
        receiver,
        open: OpenSubscription {
            topic_patterns: numbers.map(|number| mix.pattern(number)).collect(),
            mode: DeliveryMode::Multi.into(),
            ..OpenSubscription::default()
        },
        acking: Acking::None,
        completion: None,
    }
}

/// `before`: the broker's memory without any pattern, in bytes.
fn told(measured: Measured, name: String, patterns: u32, topics: u32, before: u64) -> Run {
    let opening = measured.opening().as_secs_f64();
    let with_all = measured.idle().resident_bytes;
    let mut run = measured.into_run("patterns", name, "messages");
    let mut figure = |name: &str, value, unit| run.figures.push(Figure { name: name.into(), value, unit });
    figure("topics published to", f64::from(topics), "");
    figure("time to open all", opening, "s");
    figure("memory before", before as f64, "bytes");
    figure("memory with all patterns", with_all as f64, "bytes");
    figure("memory a pattern", (with_all as f64 - before as f64) / f64::from(patterns), "bytes");
    run
}
