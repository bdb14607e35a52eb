//! What can be measured: one file a scenario. Each takes a [`Lab`] and its options, and returns the runs it made.

pub mod all;
pub mod churn;
pub mod confirm;
pub mod connections;
pub mod failover;
pub mod fanout;
pub mod latency;
pub mod patterns;
pub mod prefetch;
pub mod queue;
pub mod scale;
pub mod slow;
pub mod soak;

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
    /// What a message costs as groups, members and waiting messages grow in number.
    Scale(scale::Options),
    /// Many live patterns, of which each message matches one.
    Patterns(patterns::Options),
    /// Workers and active singletons killed under load, and how long until others have what they held.
    Failover(failover::Options),
    /// Members that join and leave many groups all the time, under load.
    Churn(churn::Options),
    /// A subscriber that reads nothing beside fast ones.
    Slow(slow::Options),
    /// Many idle streams, woken by one message each.
    Connections(connections::Options),
    /// A mix for a long time, and whether memory or descriptors grow.
    Soak(soak::Options),
    /// Every scenario, one after the other.
    All(all::Options),
    /// A member that `failover` starts to kill it.
    #[command(hide = true)]
    Victim(failover::victim::Options),
}

impl Scenario {
    pub async fn run(&self, lab: &Lab) -> Result<Vec<Run>, Failure> {
        match self {
            Scenario::Queue(options) => queue::run(lab, options).await,
            Scenario::Fanout(options) => fanout::run(lab, options).await,
            Scenario::Latency(options) => latency::run(lab, options).await,
            Scenario::Confirm(options) => confirm::run(lab, options).await,
            Scenario::Prefetch(options) => prefetch::run(lab, options).await,
            Scenario::Scale(options) => scale::run(lab, options).await,
            Scenario::Patterns(options) => patterns::run(lab, options).await,
            Scenario::Failover(options) => failover::run(lab, options).await,
            Scenario::Churn(options) => churn::run(lab, options).await,
            Scenario::Slow(options) => slow::run(lab, options).await,
            Scenario::Connections(options) => connections::run(lab, options).await,
            Scenario::Soak(options) => soak::run(lab, options).await,
            // The program runs these itself.
            Scenario::All(_) | Scenario::Victim(_) => {
                Err(Failure::Usage("this is no scenario that can be measured".into()))
            }
        }
    }
}

/// The options of one scenario, as its command line says them; a wrong one fails the test.
#[cfg(test)]
fn parsed<O: clap::Args>(line: &str) -> O {
    let command = O::augment_args(clap::Command::new("tinybroker-loadtest"));
    let matches = command.try_get_matches_from(line.split(' ')).unwrap_or_else(|error| panic!("{error}"));
    O::from_arg_matches(&matches).unwrap_or_else(|error| panic!("{error}"))
}
