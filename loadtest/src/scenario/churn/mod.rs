//! Churn: members of many groups come and go all the time, while all groups get messages.
//!
//! A BALANCED group has one member from before the first message to the end, and beside it one that is replaced in each turn
//! of the group. In a SINGLETON group the active member is the one that is replaced, each time after the
//! next one stands in line. The members of a group leave in turns: by cancel, by the cut of their connection, and politely,
//! with a last word before the end. All but those that are cut share few connections.
//!
//! A group *stalls* while a message waits for longer than 250 ms after its intended time.

mod group;
mod stalls;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use clap::Args;

use crate::failure::Failure;
use crate::lab::Lab;
use crate::ledger::{Kind, LaneId, LedgerPlan, ReceiverId};
use crate::payload::Template;
use crate::proto::{DeliveryMode, OpenSubscription};
use crate::report::{Figure, Run};
use crate::role::{Acking, Pace, Publisher, Publishing, Worker};
use crate::trial::Trial;
use group::{Churn, Seed};
use stalls::Stalls;

/// Less than this share of the joins that were asked for is told.
const KEPT: f64 = 0.98;
/// Name of the time from a leave to the first frame at the next member of a SINGLETON group.
const PROMOTION: &str = "leave to promotion";

#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Groups, each with a topic of its own.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    groups: u32,

    /// Every Nth group is SINGLETON, the others are BALANCED; 0: all are.
    #[arg(long, value_name = "N", default_value_t = 4)]
    singletons: u32,

    /// Members that join, and as many that leave, a second, over all groups.
    #[arg(long, value_name = "R", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    churn: u32,

    /// Messages a second, over all groups.
    #[arg(long, value_name = "R", default_value_t = 5000, value_parser = clap::value_parser!(u32).range(1..))]
    rate: u32,

    /// Publishers that share the groups out; each waits for a confirm before its next message, so that every group's
    /// order is owed.
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..))]
    publishers: u32,

    /// Connections that members share.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    connections: u32,

    /// How members settle; what a call has settled must not come again, whoever leaves.
    #[arg(long, value_name = "HOW", default_value = "unary")]
    ack: Acking,

    /// Messages that one member may hold at once.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..))]
    max_in_flight: u32,
}

/// How a member leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Parting {
    /// It cancels its stream, whatever is under way.
    Cancel,
    /// Its connection is closed.
    Cut,
    /// Its acks have left, it says that nothing more will come, and cancels then.
    Polite,
}

impl Parting {
    fn in_turns(turn: usize) -> Self {
        [Parting::Cancel, Parting::Cut, Parting::Polite][turn % 3]
    }

    fn figure(self) -> &'static str {
        match self {
            Parting::Cancel => "left by cancel",
            Parting::Cut => "left by cut",
            Parting::Polite => "left politely",
        }
    }
}

/// What was done and seen.
#[derive(Debug, Default)]
struct Tally {
    joined: u64,
    left: BTreeMap<Parting, u64>,
    stalls: Stalls,
}

pub async fn run(lab: &Lab, options: &Options) -> Result<Vec<Run>, Failure> {
    let Options { groups, churn, ack, .. } = options;
    let name = format!("{churn} joins/s, {ack}");
    lab.progress.run(&format!("churn: {name}"));
    let broker = lab.broker().await?;
    let mut plan = LedgerPlan::new();
    plan.members_may_die(true);
    let receiver = |number: u32| {
        let kind = if options.is_singleton(number) { Kind::Singleton } else { Kind::Balanced };
        plan.receiver(format!("group {number}"), kind)
    };
    let receivers: Vec<ReceiverId> = (0..*groups).map(receiver).collect();
    let lane =
        |(number, &receiver)| plan.lane(format!("messages to group {number}"), receiver..=receiver, true);
    let lanes: Vec<LaneId> = receivers.iter().enumerate().map(lane).collect();
    let trial = Trial::new(&broker, plan.build(), u64::MAX);
    let topics: Vec<String> = (0..*groups).map(|number| trial.unique(&format!("churn.{number}"))).collect();

    let mut crew = lab.crew();
    let tally = Arc::new(Mutex::new(Tally::default()));
    let pace = Churn { rate: (*churn).into(), groups: receivers.len(), tally: Arc::clone(&tally) };
    let connections = options.connections.min(*groups) as usize;
    for seeds in dealt(options.seeds(&receivers, &topics), connections) {
        let pace = pace.clone();
        crew.passive(|station| group::run(seeds, pace, station));
    }
    let template = |(&lane, topic): (&LaneId, &String)| (lane, Template::new(topic, lab.payload()));
    let lanes: Vec<_> = lanes.iter().zip(&topics).map(template).collect();
    let publishers = options.publishers.min(*groups) as usize;
    for (turn, lanes) in dealt(lanes, publishers).into_iter().enumerate() {
        let publisher = Publisher {
            lanes,
            publishing: Publishing::Unary,
            outstanding: 1,
            pace: Pace::Rate { total: options.rate.into(), turn, publishers },
            bystanders: 0,
        };
        crew.active(|station| publisher.run(station));
    }
    let measured = lab.conduct(&trial, crew, broker).await?;
    let run = Run { offered: Some(options.rate.into()), ..measured.into_run("churn", name, "messages") };
    let tally = std::mem::take(&mut *tally.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(vec![report(run, options, tally)])
}

impl Options {
    fn is_singleton(&self, group: u32) -> bool {
        self.singletons != 0 && (group + 1).is_multiple_of(self.singletons)
    }

    fn seeds(&self, receivers: &[ReceiverId], topics: &[String]) -> Vec<Seed> {
        let seed = |((number, &receiver), topic): ((u32, &ReceiverId), &String)| {
            let is_singleton = self.is_singleton(number);
            let mode = if is_singleton { DeliveryMode::Singleton } else { DeliveryMode::Balanced };
            let open = OpenSubscription {
                topic_patterns: vec![topic.clone()],
                mode: mode.into(),
                consumer_group: topic.clone(),
                max_in_flight: self.max_in_flight,
                // So that a standby hears when it is in line.
                control_events: is_singleton,
                ..OpenSubscription::default()
            };
            let worker = Worker { receiver, open, acking: self.ack, completion: None };
            Seed { number: number as usize, worker, has_permanent: !is_singleton }
        };
        (0..).zip(receivers).zip(topics).map(seed).collect()
    }
}

/// Things in turns to so many hands.
fn dealt<T>(things: Vec<T>, hands: usize) -> Vec<Vec<T>> {
    let mut dealt: Vec<Vec<T>> = (0..hands).map(|_| Vec::new()).collect();
    for (at, thing) in things.into_iter().enumerate() {
        dealt[at % hands].push(thing);
    }
    dealt
}

/// Adds what the comings and goings brought.
fn report(mut run: Run, options: &Options, tally: Tally) -> Run {
    let Tally { joined, left, stalls } = tally;
    let mut figure =
        |name: &str, value: f64, unit| run.figures.push(Figure { name: name.to_owned(), value, unit });
    figure("joined", joined as f64, "");
    for (parting, count) in left {
        figure(parting.figure(), count as f64, "");
    }
    figure("stalls over 250 ms", stalls.count as f64, "");
    figure("late messages", stalls.late as f64, "");
    if stalls.count > 0 {
        figure("longest stall", stalls.longest as f64 / 1e6, "ms");
    }
    let asked = f64::from(options.churn) * run.seconds;
    if (joined as f64) < KEPT * asked {
        run.notes.push(format!("members came slower than asked: {joined} of {asked:.0}"));
    }
    run
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::parsed;

    fn options(line: &str) -> Options {
        parsed(line)
    }

    #[test]
    fn every_nth_group_is_a_singleton_and_has_nobody_who_stays() {
        let seeds = |line| {
            let topics = ["a", "b", "c", "d", "e"].map(String::from);
            let receivers: Vec<_> = (0..5).map(ReceiverId).collect();
            let seeds = options(line).seeds(&receivers, &topics);
            let told = |seed: &Seed| (seed.worker.open.mode() == DeliveryMode::Singleton, seed.has_permanent);
            seeds.iter().map(told).collect::<Vec<_>>()
        };
        let (balanced, singleton) = ((false, true), (true, false));
        let second = [balanced, singleton, balanced, singleton, balanced];
        assert_eq!(seeds("churn --groups 5 --singletons 2"), second);
        assert_eq!(seeds("churn --groups 5 --singletons 0"), [balanced; 5]);
        assert_eq!(seeds("churn --groups 5 --singletons 1"), [singleton; 5]);
    }

    #[test]
    fn all_are_dealt() {
        assert_eq!(dealt(vec![0, 1, 2, 3, 4], 2), [vec![0, 2, 4], vec![1, 3]]);
    }

    #[test]
    fn a_report_tells_what_was_done_and_what_was_not() {
        let left = BTreeMap::from([(Parting::Cancel, 3), (Parting::Polite, 4)]);
        let stalls = Stalls { count: 1, late: 5, longest: 300_000_000 };
        let run = Run { seconds: 2.0, ..Run::default() };
        let run = report(run, &options("churn --churn 10"), Tally { joined: 9, left, stalls });
        let told: Vec<_> = run.figures.iter().map(|figure| (figure.name.as_str(), figure.value)).collect();
        assert_eq!(
            told,
            [
                ("joined", 9.0),
                ("left by cancel", 3.0),
                ("left politely", 4.0),
                ("stalls over 250 ms", 1.0),
                ("late messages", 5.0),
                ("longest stall", 300.0)
            ]
        );
        assert_eq!(run.notes, ["members came slower than asked: 9 of 20"]);
        assert!(run.passed(), "a stall is no broken promise");
    }
}
