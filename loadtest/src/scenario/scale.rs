//! What a message costs from publish to ack as work grows, everything else equal.
//!
//! Three rows of runs begin at one group with one member and no backlog. In the first the groups become more, each with a
//! topic and a member; in the second the members of the one group; in the third the messages that wait in it while
//! others come and go at its two ends. Publishers, connections, and how many messages are in the broker at once beside
//! the backlog stay the same, so the more receivers there are the fewer messages each has: the work of all together is
//! equal.

use clap::Args;

use super::queue;
use crate::failure::Failure;
use crate::lab::Lab;
use crate::report::Run;
use crate::role::{Acking, Publishing};

const PUBLISHERS: u32 = 4;
const MAX_IN_FLIGHT: u32 = 256;
/// Messages that each publisher has unconfirmed at most; all together may be in the broker.
const OUTSTANDING: u32 = 1024;

#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Numbers of groups to measure.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1,10,100,1000,10000",
        value_parser = clap::value_parser!(u32).range(1..=10_000))]
    groups: Vec<u32>,

    /// Numbers of members of one group to measure.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1,10,100,1000,10000",
        value_parser = clap::value_parser!(u32).range(1..=10_000))]
    members: Vec<u32>,

    /// Numbers of waiting messages to measure.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "10,1000,100000,1000000",
        value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    waiting: Vec<u32>,

    /// Connections that the members share.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    connections: u32,
}

pub async fn run(lab: &Lab, options: &Options) -> Result<Vec<Run>, Failure> {
    let base = base(options.connections);
    let groups = |groups| queue::Options { groups, workers: groups, ..base.clone() };
    let members = |workers| queue::Options { workers, ..base.clone() };
    let waiting = |backlog| queue::Options { backlog, ..base.clone() };
    let mut runs = row(lab, "groups", &options.groups, groups).await?;
    runs.extend(row(lab, "members", &options.members, members).await?);
    runs.extend(row(lab, "waiting", &options.waiting, waiting).await?);
    Ok(runs)
}

async fn row(
    lab: &Lab,
    kind: &str,
    counts: &[u32],
    queue: impl Fn(u32) -> queue::Options,
) -> Result<Vec<Run>, Failure> {
    let name = |count: &u32| format!("{kind}: {count}");
    let least = counts.iter().min().map(name);
    let mut runs = Vec::new();
    for count in counts {
        let run = queue::measure(lab, "scale", name(count), &queue(*count)).await?;
        runs.push(Run { compared_with: least.clone(), ..run });
    }
    Ok(runs)
}

/// One group with one member and no backlog.
fn base(connections: u32) -> queue::Options {
    queue::Options {
        publishers: PUBLISHERS,
        workers: 1,
        groups: 1,
        connections: Some(connections),
        max_in_flight: MAX_IN_FLIGHT,
        max_batch: 1,
        publish: Publishing::Stream,
        outstanding: OUTSTANDING,
        ack: Acking::Stream,
        rate: None,
        backlog: 0,
        in_broker: Some(PUBLISHERS * OUTSTANDING),
    }
}
