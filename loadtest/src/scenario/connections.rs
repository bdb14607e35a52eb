//! Many idle streams: what they cost, and how fast all are reached when each gets one message.
//!
//! ```text
//! memory  ──open N streams──▶  memory   idle for --duration   a message to each ──▶ all have theirs
//! before     time to open      with all    CPU while idle             time to reach all
//! ```

use std::rc::Rc;

use clap::Args;
use futures_util::stream::{self, StreamExt, TryStreamExt};

use crate::client::Connection;
use crate::clock::{self, Nanos};
use crate::crew::Station;
use crate::failure::{Doing, Failure};
use crate::lab::Lab;
use crate::ledger::{Kind, LaneId, LedgerPlan, ReceiverId};
use crate::measured::Measured;
use crate::payload::Template;
use crate::proto::{DeliveryMode, OpenSubscription};
use crate::recorder::timed;
use crate::report::{Figure, Run};
use crate::role::{Sleeper, publish_one};
use crate::trial::Trial;

/// Subscriptions that the broker takes on one connection.
const MOST_ON_A_CONNECTION: u32 = 10_000;
/// From the end of the idle time to the first message, so that what the broker used until then is read.
const WAKE_DELAY: Nanos = 50_000_000;

#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Numbers of streams to measure; each is a subscription with a topic of its own.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1000",
        value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    streams: Vec<u32>,

    /// Connections that they share; each takes 10,000 streams at most.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    connections: u32,

    /// Messages of the wake-up that are sent and not yet confirmed, at most.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    outstanding: u32,
}

pub async fn run(lab: &Lab, options: &Options) -> Result<Vec<Run>, Failure> {
    let mut runs = Vec::new();
    for &streams in &options.streams {
        if streams.div_ceil(options.connections) > MOST_ON_A_CONNECTION {
            let what = format!("{streams} streams are too many for --connections {}", options.connections);
            return Err(Failure::Usage(what));
        }
        runs.push(measure(lab, options, streams).await?);
    }
    Ok(runs)
}

async fn measure(lab: &Lab, options: &Options, streams: u32) -> Result<Run, Failure> {
    let connections = options.connections.min(streams);
    let over =
        if connections == 1 { "one connection".to_owned() } else { format!("{connections} connections") };
    let name = format!("{streams} streams over {over}");
    lab.progress.run(&format!("connections: {name}"));
    let broker = lab.broker().await?;
    let before = broker.usage().await?.resident_bytes;
    let mut plan = LedgerPlan::new();
    let receivers: Vec<ReceiverId> =
        (0..streams).map(|number| plan.receiver(format!("stream {number}"), Kind::Multi)).collect();
    let lane =
        |receiver: &ReceiverId| plan.lane(format!("to stream {}", receiver.0), *receiver..=*receiver, true);
    let lanes: Vec<LaneId> = receivers.iter().map(lane).collect();
    let trial = Trial::new(&broker, plan.build(), u64::from(streams));

    let topics: Vec<String> =
        (0..streams).map(|number| trial.unique(&format!("connections.{number}"))).collect();
    let mut crew = lab.crew();
    let mut hands: Vec<Vec<Sleeper>> = (0..connections).map(|_| Vec::new()).collect();
    for (at, (receiver, topic)) in receivers.into_iter().zip(&topics).enumerate() {
        let open = OpenSubscription {
            topic_patterns: vec![topic.clone()],
            mode: DeliveryMode::Multi.into(),
            ..OpenSubscription::default()
        };
        hands[at % connections as usize].push(Sleeper { receiver, open });
    }
    for sleepers in hands {
        crew.passive(|station| Sleeper::run_all(sleepers, WAKE_DELAY, station));
    }
    let template = |topic: &String| Template::new(topic, lab.payload());
    let messages = lanes.into_iter().zip(topics.iter().map(template)).collect();
    let outstanding = options.outstanding as usize;
    crew.active(move |station| wake_all(messages, outstanding, station));

    let measured = lab.conduct(&trial, crew, broker).await?;
    Ok(told(measured, name, streams, before))
}

/// One message to each, when the idle time is over.
async fn wake_all(
    messages: Vec<(LaneId, Template)>,
    outstanding: usize,
    station: Rc<Station>,
) -> Result<(), Failure> {
    let connection = Connection::open(&station.trial.address).await.doing("connecting the publisher")?;
    let wake = station.start().await.until + WAKE_DELAY;
    clock::sleep_until(wake).await;
    let publish = |(lane, template): (LaneId, Template)| {
        let (connection, station) = (&connection, &station);
        async move { publish_one(connection, station, lane, &template, clock::now()).await }
    };
    stream::iter(messages).map(publish).buffer_unordered(outstanding).try_collect().await
}

/// `before`: the broker's memory without any stream, in bytes.
fn told(measured: Measured, name: String, streams: u32, before: u64) -> Run {
    let opening = measured.opening().as_secs_f64();
    let with_all = measured.idle().resident_bytes;
    let mut run = measured.into_run("connections", name, "messages");
    run.distributions.sort_by_key(|distribution| distribution.name != timed::WAKE);
    // Nothing is delivered while it is measured: that is the idle time.
    run.achieved = None;
    run.series.retain(|series| series.unit == "bytes");
    let streams = f64::from(streams);
    let idle_cores = run.cost.as_ref().map_or(0.0, |cost| cost.cores);
    let mut figure = |name: &str, value, unit| run.figures.push(Figure { name: name.into(), value, unit });
    figure("time to open all", opening, "s");
    figure("memory before", before as f64, "bytes");
    figure("memory with all streams", with_all as f64, "bytes");
    figure("memory a stream", (with_all as f64 - before as f64) / streams, "bytes");
    figure("CPU while idle, of a core", idle_cores, "share");
    if let Some(reached) = run.distributions.first().filter(|first| first.name == timed::WAKE) {
        figure("time to reach all", reached.max_us, "us");
        figure("reached", streams / reached.max_us * 1e6, "streams/s");
    }
    run
}
