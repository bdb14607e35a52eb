//! A work queue: P publishers, W workers in G groups, every message acked.
//!
//! Without `--rate` it goes as fast as it can: publishers keep a bounded number of messages in the broker,
//! so the rate is the broker's (or the client's) limit and the latency is that of a full system.

use clap::Args;

use crate::failure::Failure;
use crate::lab::Lab;
use crate::ledger::{Kind, LaneId, LedgerPlan, ReceiverId};
use crate::payload::Template;
use crate::proto::{DeliveryMode, OpenSubscription};
use crate::report::Run;
use crate::role::{Acking, Pace, Publisher, Publishing, Worker};
use crate::trial::Trial;

#[derive(Debug, Clone, Args)]
#[group(skip)]
pub struct Options {
    /// Publishers, each on a connection of its own.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    pub publishers: u32,

    /// Workers, shared out over the groups.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    pub workers: u32,

    /// Groups, each with a topic of its own.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub groups: u32,

    /// Connections that the workers share [default: one each].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub connections: Option<u32>,

    /// Messages that one worker may hold at once.
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..))]
    pub max_in_flight: u32,

    /// Messages an event to a worker may have.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub max_batch: u32,

    /// How publishers send: unary, stream, batch or batch=SIZE.
    #[arg(long, value_name = "HOW", default_value = "unary")]
    pub publish: Publishing,

    /// Messages that one publisher has sent and not yet seen confirmed, at most.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    pub outstanding: u32,

    /// How workers settle.
    #[arg(long, value_name = "HOW", default_value = "stream")]
    pub ack: Acking,

    /// Messages a second of all publishers together [default: as fast as they go].
    #[arg(long, value_name = "R")]
    pub rate: Option<f64>,

    /// Messages that are in the queues, all together, before it begins, and wait there while others come and go.
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "rate")]
    pub backlog: u32,

    /// Messages in the broker at most, beside the backlog [default: what publishers and workers together may have].
    #[arg(long, value_name = "N", conflicts_with = "rate", value_parser = clap::value_parser!(u32).range(1..))]
    pub in_broker: Option<u32>,
}

impl Options {
    fn worker(&self, receiver: ReceiverId, topic: &str) -> Worker {
        Worker {
            receiver,
            open: OpenSubscription {
                topic_patterns: vec![topic.to_owned()],
                mode: DeliveryMode::Balanced.into(),
                consumer_group: topic.to_owned(),
                max_in_flight: self.max_in_flight,
                max_batch: self.max_batch,
                ..OpenSubscription::default()
            },
            acking: self.ack,
            completion: None,
        }
    }

    fn name(&self) -> String {
        let Options { publishers, workers, groups, max_in_flight, ack, .. } = self;
        let groups = if *groups == 1 { String::new() } else { format!(", {groups} groups") };
        let backlog = if self.backlog == 0 { String::new() } else { format!(", {} waiting", self.backlog) };
        format!(
            "{publishers} → {workers}{groups}{backlog}, {max_in_flight} in flight, {}, {ack}",
            self.publish
        )
    }

    /// Messages that the broker has at most.
    fn most(&self) -> u64 {
        let many = |count: u32, each: u32| u64::from(count) * u64::from(each);
        let all = many(self.publishers, self.outstanding) + many(self.workers, self.max_in_flight);
        u64::from(self.backlog) + self.in_broker.map_or(all, u64::from)
    }

    /// What one of the publishers adds to the backlog.
    fn share(&self, publisher: usize) -> u64 {
        let (each, rest) = (self.backlog / self.publishers, self.backlog % self.publishers);
        u64::from(each) + u64::from((publisher as u32) < rest)
    }
}

pub async fn run(lab: &Lab, options: &Options) -> Result<Vec<Run>, Failure> {
    Ok(vec![measure(lab, "queue", options.name(), options).await?])
}

/// One run of a queue, for whichever scenario asks.
pub async fn measure(
    lab: &Lab,
    scenario: &'static str,
    name: String,
    options: &Options,
) -> Result<Run, Failure> {
    if options.workers < options.groups {
        return Err(Failure::Usage(
            "every group needs a worker: --workers must not be below --groups".into(),
        ));
    }
    lab.progress.run(&format!("{scenario}: {name}"));
    let broker = lab.broker().await?;
    let mut plan = LedgerPlan::new();
    let groups: Vec<ReceiverId> =
        (0..options.groups).map(|group| plan.receiver(format!("group {group}"), Kind::Balanced)).collect();
    let is_ordered = options.publish.keeps_order(options.outstanding as usize);
    let mut lanes = Vec::new();
    for publisher in 0..options.publishers {
        for (number, group) in groups.iter().enumerate() {
            let name = format!("publisher {publisher} to group {number}");
            lanes.push(plan.lane(name, *group..=*group, is_ordered));
        }
    }
    let trial = Trial::new(&broker, plan.build(), options.most());
    let topics: Vec<String> =
        (0..options.groups).map(|group| trial.unique(&format!("queue.{group}"))).collect();

    let mut crew = lab.crew();
    let group_of = |worker: u32| (worker % options.groups) as usize;
    let worker = |worker| options.worker(groups[group_of(worker)], &topics[group_of(worker)]);
    let workers = (0..options.workers).map(worker).collect();
    Worker::enlist(&mut crew, workers, options.connections.unwrap_or(options.workers) as usize);
    for (turn, lanes) in lanes.chunks(groups.len()).enumerate() {
        let template = |(&lane, topic): (&LaneId, &String)| (lane, Template::new(topic, lab.payload()));
        let lanes = lanes.iter().zip(&topics).map(template).collect();
        let publisher = Publisher {
            lanes,
            publishing: options.publish,
            outstanding: options.outstanding as usize,
            pace: Pace::new(options.rate, turn, options.publishers as usize),
            bystanders: 0,
        };
        let backlog = options.share(turn);
        crew.active(move |station| publisher.run_behind(backlog, station));
    }
    let measured = lab.conduct(&trial, crew, broker).await?;
    let least = measured.least_outstanding();
    let mut run = Run { offered: options.rate, ..measured.into_run(scenario, name, "messages") };
    if least < u64::from(options.backlog) {
        run.notes.push(format!("the backlog was down to {least}: publishers did not keep up with workers"));
    }
    Ok(run)
}
