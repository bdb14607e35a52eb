//! A subscriber that reads nothing beside fast ones: what they lose by it, and what it costs the broker.
//!
//! Runs without and with the slow one follow each other in turns, and what is compared is the median round of each kind.
//! The slow one opens its stream and never reads from it: its events fill the stream's HTTP/2 window, and from
//! then on they wait in the broker, which drops the oldest above `--max-pending`. The windows are such that the unread
//! bytes of that one stream are a small part of its connection's window, so whatever the others on that connection
//! lose they lose in the broker. All streams of the connection have the same window, in both kinds of runs.

use std::rc::Rc;

use clap::Args;
use futures_util::future::try_join;

use crate::client::{Confirmed, Connection, Windows, rpc};
use crate::clock;
use crate::crew::{Crew, Station};
use crate::failure::{Doing, Failure};
use crate::lab::Lab;
use crate::ledger::{Kind, LaneId, LedgerPlan, ReceiverId};
use crate::pacer::{Alarm, Schedule};
use crate::payload::Template;
use crate::proto::{DeliveryMode, GetStatsResponse, OpenSubscription, OverflowPolicy, PublishRequest};
use crate::recorder::timed;
use crate::report::{Figure, Run};
use crate::role::{Acking, Desk, Pace, Publisher, Publishing, Session, Worker};
use crate::trial::Trial;

/// Of the connection on which the slow one is.
const WINDOWS: Windows = Windows { stream: 256 << 10, connection: 64 << 20 };
/// Unary calls a second beside the streams.
const CALLS: f64 = 200.0;
/// Copies of messages that are in the broker at once, where it goes as fast as it can.
const MOST_COPIES: u32 = 16_384;

#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Subscribers that read.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    fast: u32,

    /// Give the slow one a connection of its own; else it shares one with the fast ones.
    #[arg(long)]
    own_connection: bool,

    /// Messages that may wait in the broker for the slow one.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    max_pending: u64,

    /// How the publisher sends: unary, stream, batch or batch=SIZE.
    #[arg(long, value_name = "HOW", default_value = "unary")]
    publish: Publishing,

    /// Messages that the publisher has sent and not yet seen confirmed, at most.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    outstanding: u32,

    /// Messages a second [default: as fast as they go].
    #[arg(long, value_name = "R")]
    rate: Option<f64>,

    /// How often both kinds of runs are made.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
}

pub async fn run(lab: &Lab, options: &Options) -> Result<Vec<Run>, Failure> {
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for round in 0..options.rounds {
        // What changes on the machine meanwhile meets both kinds.
        for is_slow in [round % 2 == 1, round % 2 == 0] {
            lab.progress.run(&format!("slow: round {}, {}", round + 1, kind(is_slow)));
            let run = measure(lab, options, is_slow).await?;
            if is_slow { with.push(run) } else { without.push(run) }
        }
    }
    let (without, mut with) = (Run::median(without), Run::median(with));
    if let (Some(without), Some(with)) = (&without, &mut with)
        && let (Some(alone), Some(beside)) = (without.achieved, with.achieved)
    {
        with.figures.push(Figure { name: "rate kept".into(), value: beside / alone, unit: "share" });
    }
    Ok(without.into_iter().chain(with).collect())
}

fn kind(is_slow: bool) -> &'static str {
    if is_slow { "beside a slow one" } else { "without a slow one" }
}

async fn measure(lab: &Lab, options: &Options, is_slow: bool) -> Result<Run, Failure> {
    let broker = lab.broker().await?;
    let mut plan = LedgerPlan::new();
    let receiver = |number| plan.receiver(format!("fast subscriber {number}"), Kind::Multi);
    let receivers: Vec<ReceiverId> = (0..options.fast).map(receiver).collect();
    let is_ordered = options.publish.keeps_order(options.outstanding as usize);
    let lane = plan.lane("the publisher", .., is_ordered);
    let most = (options.outstanding * options.fast).max(MOST_COPIES);
    let trial = Trial::new(&broker, plan.build(), u64::from(most));
    let mut crew = lab.crew();
    enlist(&mut crew, lab, options, is_slow, &trial, &receivers, lane);

    let before = broker.stats().await?;
    let measured = trial.conduct(crew, &broker, lab.load.timing(), &lab.progress).await?;
    let after = broker.stats().await?;
    broker.end().await?;
    let mut run = measured.into_run("slow", kind(is_slow).into(), "deliveries");
    run.offered = options.rate.map(|rate| rate * f64::from(options.fast));
    if is_slow {
        let dropped = |stats: &GetStatsResponse| stats.counters.get("dropped_oldest").copied();
        let dropped = dropped(&after).unwrap_or(0).saturating_sub(dropped(&before).unwrap_or(0));
        run.figures.push(Figure {
            name: "dropped for the slow one".into(),
            value: dropped as f64,
            unit: "messages",
        });
        if dropped == 0 {
            run.notes.push(
                "the slow one was never full: a longer run, or a lower --max-pending, tells more".into(),
            );
        }
    }
    Ok(run)
}

fn enlist(
    crew: &mut Crew,
    lab: &Lab,
    options: &Options,
    is_slow: bool,
    trial: &Trial,
    receivers: &[ReceiverId],
    lane: LaneId,
) {
    let topic = trial.unique("slow");
    let open = OpenSubscription {
        topic_patterns: vec![topic.clone()],
        mode: DeliveryMode::Multi.into(),
        ..OpenSubscription::default()
    };
    let worker = |&receiver| Worker { receiver, open: open.clone(), acking: Acking::None, completion: None };
    let fast: Vec<Worker> = receivers.iter().map(worker).collect();
    let slow = is_slow.then(|| OpenSubscription {
        max_pending: options.max_pending,
        overflow: OverflowPolicy::DropOldest.into(),
        ..open.clone()
    });
    let quiet = trial.unique("slow-nobody");
    if options.own_connection {
        crew.passive(|station| subscribe(fast, None, None, station));
        crew.passive(|station| subscribe(Vec::new(), slow, Some(quiet), station));
    } else {
        crew.passive(|station| subscribe(fast, slow, Some(quiet), station));
    }
    let publisher = Publisher {
        lanes: vec![(lane, Template::new(&topic, lab.payload()))],
        publishing: options.publish,
        outstanding: options.outstanding as usize,
        pace: Pace::new(options.rate, 0, 1),
        bystanders: is_slow.into(),
    };
    crew.active(|station| publisher.run(station));
}

/// One connection: fast subscribers, perhaps a slow one, and calls to a topic that nobody hears.
async fn subscribe(
    fast: Vec<Worker>,
    slow: Option<OpenSubscription>,
    quiet: Option<String>,
    station: Rc<Station>,
) -> Result<(), Failure> {
    let address = &station.trial.address;
    let connection = Connection::with_windows(address, WINDOWS).await.doing("connecting subscribers")?;
    let desks = Worker::open_all(fast, &connection, &station).await?;
    // Open to the end, and never read from again.
    let _unread = match slow {
        Some(open) => Some(Session::open(&connection, open).await.doing("opening the slow subscription")?),
        None => None,
    };
    let window = station.start().await;
    let calls = async {
        match quiet {
            Some(topic) => call(&connection, &topic, window.start, &station).await,
            None => Ok(()),
        }
    };
    try_join(Desk::work_all(desks, &connection), calls).await.map(drop)
}

/// Calls at a steady rate, each timed from the moment at which it was due.
async fn call(
    connection: &Connection,
    topic: &str,
    start: clock::Nanos,
    station: &Station,
) -> Result<(), Failure> {
    let alarm = Alarm::new().doing("making a timer")?;
    let mut schedule = Schedule::new(start, CALLS, 0, 1);
    let request = PublishRequest { topic: topic.to_owned(), ..PublishRequest::default() };
    loop {
        let due = schedule.due();
        alarm.until(due).await.doing("waiting for a timer")?;
        schedule.take(clock::now());
        let _: Confirmed =
            connection.unary(rpc::PUBLISH, &request).await.doing("calling beside the streams")?;
        station.recorder.borrow_mut().took(timed::CALL, due, clock::now());
    }
}
