//! What can be measured: one file a scenario. Each takes a [`Lab`] and its options, and returns the runs it made.

pub mod all;
pub mod confirm;
pub mod fanout;
pub mod latency;
pub mod prefetch;
pub mod queue;

use clap::Subcommand;

use crate::failure::Failure;
use crate::lab::Lab;
use crate::report::Run;

#[derive(Debug, Clone, Subcommand)]
pub enum Scenario {
    /// A work queue: publishers, and workers in groups that ack each message.
    Queue(queue::Options),
    /// Fan-out: one publisher, and subscribers by wildcard that get every message.
    Fanout(fanout::Options),
    /// Latency at fixed rates, and at rising ones up to the knee.
    Latency(latency::Options),
    /// Confirmed publishes with so many outstanding.
    Confirm(confirm::Options),
    /// A work queue at rising max_in_flight.
    Prefetch(prefetch::Options),
    /// Every scenario, one after the other.
    All(all::Options),
}

impl Scenario {
    pub async fn run(&self, lab: &Lab) -> Result<Vec<Run>, Failure> {
        match self {
            Scenario::Queue(options) => queue::run(lab, options).await,
            Scenario::Fanout(options) => fanout::run(lab, options).await,
            Scenario::Latency(options) => latency::run(lab, options).await,
            Scenario::Confirm(options) => confirm::run(lab, options).await,
            Scenario::Prefetch(options) => prefetch::run(lab, options).await,
            Scenario::All(options) => all::run(lab, options).await,
        }
    }
}
