//! Confirmed publishes: how many a second with so many outstanding, and how long a confirm takes.
//!
//! One subscriber takes what is published, so that a confirm means what it says: the message is in a queue.

use clap::Args;

use crate::failure::Failure;
use crate::lab::Lab;
use crate::ledger::{Kind, LedgerPlan};
use crate::payload::Template;
use crate::proto::{DeliveryMode, OpenSubscription};
use crate::recorder::timed;
use crate::report::Run;
use crate::role::{Acking, Pace, Publisher, Publishing, Worker};
use crate::trial::Trial;

#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Numbers of outstanding publishes to measure, of all publishers together.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1,64,512",
        value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    outstanding: Vec<u32>,

    /// Publishers that share them, each on a connection of its own; no more than there are outstanding publishes.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    publishers: u32,

    /// How publishers send: unary, stream, batch or batch=SIZE.
    #[arg(long, value_name = "HOW", default_value = "unary")]
    publish: Publishing,
}

pub async fn run(lab: &Lab, options: &Options) -> Result<Vec<Run>, Failure> {
    let mut runs = Vec::new();
    for &outstanding in &options.outstanding {
        runs.push(measure(lab, options, outstanding).await?);
    }
    Ok(runs)
}

async fn measure(lab: &Lab, options: &Options, outstanding: u32) -> Result<Run, Failure> {
    let name = format!("{outstanding} outstanding, {}", options.publish);
    lab.progress.run(&format!("confirm: {name}"));
    let publishers = options.publishers.min(outstanding);
    let each = (outstanding / publishers) as usize;
    let broker = lab.broker().await?;
    let mut plan = LedgerPlan::new();
    let receiver = plan.receiver("the subscriber", Kind::Multi);
    let is_ordered = options.publish.keeps_order(each);
    let lane = |number| plan.lane(format!("publisher {number}"), .., is_ordered);
    let lanes: Vec<_> = (0..publishers).map(lane).collect();
    // What is confirmed may wait for the subscriber, but not without end.
    let trial = Trial::new(&broker, plan.build(), u64::from(outstanding) + 4096);

    let topic = trial.unique("confirm");
    let mut crew = lab.crew();
    let worker = Worker {
        receiver,
        open: OpenSubscription {
            topic_patterns: vec![topic.clone()],
            mode: DeliveryMode::Multi.into(),
            ..OpenSubscription::default()
        },
        acking: Acking::None,
        completion: None,
    };
    Worker::enlist(&mut crew, vec![worker], 1);
    for lane in lanes {
        let publisher = Publisher {
            lanes: vec![(lane, Template::new(&topic, lab.payload()))],
            publishing: options.publish,
            outstanding: each,
            pace: Pace::Saturate,
            bystanders: 0,
        };
        crew.active(|station| publisher.run(station));
    }
    let mut run = lab.conduct(&trial, crew, broker).await?.into_run("confirm", name, "messages");
    // The confirm is what is asked for here.
    run.distributions.sort_by_key(|distribution| distribution.name != timed::CONFIRM);
    Ok(run)
}
