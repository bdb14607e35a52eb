//! Fan-out: one publisher, S subscribers by wildcard that get every message.

use std::sync::Arc;

use clap::Args;

use crate::failure::Failure;
use crate::lab::Lab;
use crate::ledger::{Kind, LedgerPlan};
use crate::payload::Template;
use crate::proto::{DeliveryMode, OpenSubscription};
use crate::report::{Figure, Run};
use crate::role::{Acking, Completion, Pace, Publisher, Publishing, Worker};
use crate::trial::Trial;

/// Copies of messages that are in the broker at once, where it goes as fast as it can.
const MOST_COPIES: u32 = 100_000;

#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Subscribers; each gets every message.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub subscribers: u32,

    /// Connections that they share.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    pub connections: u32,

    /// How the publisher sends: unary, stream, batch or batch=SIZE.
    #[arg(long, value_name = "HOW", default_value = "unary")]
    pub publish: Publishing,

    /// Messages that the publisher has sent and not yet seen confirmed, at most.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    pub outstanding: u32,

    /// Messages an event may have.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub max_batch: u32,

    /// Messages a second; each is delivered to every subscriber [default: as fast as they go].
    #[arg(long, value_name = "R")]
    pub rate: Option<f64>,
}

pub async fn run(lab: &Lab, options: &Options) -> Result<Vec<Run>, Failure> {
    let Options { subscribers, connections, publish, .. } = options;
    let name = format!("to {subscribers} over {connections} connections, {publish}");
    lab.progress.run(&format!("fanout: {name}"));
    let broker = lab.broker().await?;
    let mut plan = LedgerPlan::new();
    let receiver = |number| plan.receiver(format!("subscriber {number}"), Kind::Multi);
    let receivers: Vec<_> = (0..options.subscribers).map(receiver).collect();
    let is_ordered = options.publish.keeps_order(options.outstanding as usize);
    let lane = plan.lane("the publisher", .., is_ordered);
    let most = (options.outstanding * options.subscribers).max(MOST_COPIES);
    let trial = Trial::new(&broker, plan.build(), u64::from(most));

    let mut crew = lab.crew();
    let completion = Arc::new(Completion::new(options.subscribers));
    let worker = |receiver| Worker {
        receiver,
        open: OpenSubscription {
            topic_patterns: vec![trial.unique("fanout.*")],
            mode: DeliveryMode::Multi.into(),
            max_batch: options.max_batch,
            ..OpenSubscription::default()
        },
        acking: Acking::None,
        completion: Some(Arc::clone(&completion)),
    };
    Worker::enlist(&mut crew, receivers.into_iter().map(worker).collect(), options.connections as usize);
    let publisher = Publisher {
        lanes: vec![(lane, Template::new(&trial.unique("fanout.all"), lab.payload()))],
        publishing: options.publish,
        outstanding: options.outstanding as usize,
        pace: Pace::new(options.rate, 0, 1),
        bystanders: 0,
    };
    crew.active(|station| publisher.run(station));

    let run = lab.conduct(&trial, crew, broker).await?.into_run("fanout", name, "deliveries");
    let published = run.achieved.unwrap_or_default() / f64::from(options.subscribers);
    let figure = Figure { name: "published".into(), value: published, unit: "messages/s" };
    let offered = options.rate.map(|rate| rate * f64::from(options.subscribers));
    Ok(vec![Run { offered, figures: vec![figure], ..run }])
}
