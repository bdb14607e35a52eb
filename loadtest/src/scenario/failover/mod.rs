//! Failover: members of a group die one at a time, under load. How long until another has what the dead one held?
//!
//! ```text
//!          acks nothing   kill              first frame     first message that the victim
//!          from here on    │                at the next     held, at another
//!   due ──▶ hold ──▶ holds N ──────────────────┬───────────────┬────────────▶ a new member joins ──▶ due
//!                          └─ promotion ───────┘               │
//!                          └─ redelivery ──────────────────────┘
//! ```
//!
//! A victim dies by SIGKILL as a process of its own, by a cancel of its stream, or by the cut of its connection. The time
//! counts from the moment before the system call, or before the stream or connection is dropped; it ends when the
//! frame was read. It includes what the kernel needs to take a process down and to close its socket.

mod body;
mod hand_over;
mod line;
mod member;
pub mod victim;
mod word;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::failure::Failure;
use crate::lab::Lab;
use crate::ledger::{Kind, LedgerPlan, Promise};
use crate::payload::Template;
use crate::proto::{DeliveryMode, OpenSubscription};
use crate::report::{Figure, Run};
use crate::role::{Pace, Publisher, Publishing};
use crate::trial::Trial;
use line::{Group, Line};

/// Messages that a member may hold at once.
const MAX_IN_FLIGHT: u32 = 16;
/// How many wrong hand-overs are told one by one.
const NAMED: usize = 10;

#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Members to kill in each mode, spread evenly over --duration.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    kills: u32,

    /// How they die, in turns.
    #[arg(long, value_name = "WAY,…", value_delimiter = ',', default_value = "process,cancel,cut")]
    ways: Vec<Way>,

    /// Whose members are killed.
    #[arg(long, value_name = "MODE,…", value_delimiter = ',', default_value = "workers,singletons")]
    modes: Vec<Mode>,

    /// Messages a second meanwhile.
    #[arg(long, value_name = "R", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    rate: u32,

    /// Publishers that share them; each waits for a confirm before its next message, so that the order is owed.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    publishers: u32,

    /// Workers of the BALANCED group.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(2..=64))]
    workers: u32,

    /// Standbys of the SINGLETON group.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    standbys: u32,

    /// Messages that a victim holds when it is killed; with many and a low rate, it waits for them.
    #[arg(long, value_name = "N", default_value_t = 4,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_IN_FLIGHT)))]
    held: u32,

    /// How long it may take until others have all that a victim had; what takes longer fails the run.
    #[arg(long, value_name = "D", default_value = "5s", value_parser = humantime::parse_duration)]
    limit: Duration,
}

/// How a member dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Way {
    /// Its process is killed.
    Process,
    /// Its stream is cancelled.
    Cancel,
    /// Its connection is closed.
    Cut,
}

impl Way {
    fn redelivery(self) -> &'static str {
        match self {
            Way::Process => "redelivery after process kill",
            Way::Cancel => "redelivery after cancel",
            Way::Cut => "redelivery after cut",
        }
    }

    fn promotion(self) -> &'static str {
        match self {
            Way::Process => "promotion after process kill",
            Way::Cancel => "promotion after cancel",
            Way::Cut => "promotion after cut",
        }
    }

    fn killed(self) -> &'static str {
        match self {
            Way::Process => "processes killed",
            Way::Cancel => "streams cancelled",
            Way::Cut => "connections cut",
        }
    }
}

/// Whose members die.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// Those of a BALANCED group.
    Workers,
    /// The active one of a SINGLETON group.
    Singletons,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mode::Workers => "workers",
            Mode::Singletons => "singletons",
        })
    }
}

impl Mode {
    fn kind(self) -> Kind {
        match self {
            Mode::Workers => Kind::Balanced,
            Mode::Singletons => Kind::Singleton,
        }
    }

    fn open(self, topic: &str) -> OpenSubscription {
        let mode = match self {
            Mode::Workers => DeliveryMode::Balanced,
            Mode::Singletons => DeliveryMode::Singleton,
        };
        OpenSubscription {
            topic_patterns: vec![topic.to_owned()],
            mode: mode.into(),
            consumer_group: topic.to_owned(),
            max_in_flight: MAX_IN_FLIGHT,
            // So that a standby hears when it is in line.
            control_events: true,
            ..OpenSubscription::default()
        }
    }
}

/// What came of the kills.
#[derive(Debug, Default)]
struct Toll {
    kills: BTreeMap<Way, u64>,
    /// A sentence for each hand-over that took too long or went to the wrong member.
    wrong: Vec<String>,
}

pub async fn run(lab: &Lab, options: &Options) -> Result<Vec<Run>, Failure> {
    let mut runs = Vec::new();
    for &mode in &options.modes {
        runs.push(measure(lab, options, mode).await?);
    }
    Ok(runs)
}

async fn measure(lab: &Lab, options: &Options, mode: Mode) -> Result<Run, Failure> {
    let size = match mode {
        Mode::Workers => options.workers,
        Mode::Singletons => 1 + options.standbys,
    };
    let name = match mode {
        Mode::Workers => format!("workers of {size}"),
        Mode::Singletons => format!("1 active of {size}"),
    };
    lab.progress.run(&format!("failover: {name}"));
    let broker = lab.broker().await?;
    let mut plan = LedgerPlan::new();
    plan.members_may_die(true);
    let receiver = plan.receiver(format!("the {mode}"), mode.kind());
    let lanes: Vec<_> =
        (0..options.publishers).map(|number| plan.lane(format!("publisher {number}"), .., true)).collect();
    let trial = Trial::new(&broker, plan.build(), u64::MAX);

    let topic = trial.unique(&format!("failover.{mode}"));
    let toll = Arc::new(Mutex::new(Toll::default()));
    let mut crew = lab.crew();
    let group = Group {
        receiver,
        mode,
        topic: topic.clone(),
        size,
        ways: options.ways.clone(),
        kills: options.kills,
        held: options.held as usize,
        limit: options.limit,
        toll: Arc::clone(&toll),
    };
    crew.passive(|station| Line::run(group, station));
    for (turn, lane) in lanes.into_iter().enumerate() {
        let publisher = Publisher {
            lanes: vec![(lane, Template::new(&topic, lab.payload()))],
            publishing: Publishing::Unary,
            outstanding: 1,
            pace: Pace::Rate { total: options.rate.into(), turn, publishers: options.publishers as usize },
            bystanders: 0,
        };
        crew.active(|station| publisher.run(station));
    }
    let run = lab.conduct(&trial, crew, broker).await?.into_run("failover", name, "messages");
    let toll = std::mem::take(&mut *toll.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(report(Run { offered: Some(options.rate.into()), ..run }, options, toll))
}

/// Adds what the kills brought.
fn report(mut run: Run, options: &Options, toll: Toll) -> Run {
    // What is asked for here is how long a hand-over takes; the load is background.
    run.distributions
        .sort_by_key(|times| !(times.name.starts_with("promotion") || times.name.starts_with("redelivery")));
    let figure = |name: &str, count: u64| Figure { name: name.to_owned(), value: count as f64, unit: "" };
    run.figures.extend(toll.kills.iter().map(|(way, &count)| figure(way.killed(), count)));
    let wrong = toll.wrong.len() as u64;
    run.figures.push(figure(&Promise::NotHandedOn.to_string(), wrong));
    if wrong > 0 {
        run.verdict.broken.insert(Promise::NotHandedOn, wrong);
        let named = |how| format!("{}: {how}", Promise::NotHandedOn);
        run.verdict.named.extend(toll.wrong.into_iter().take(NAMED).map(named));
    }
    let done: u64 = toll.kills.values().sum();
    if done < u64::from(options.kills) {
        run.notes.push(format!("{done} of {} kills fitted into the time", options.kills));
    }
    if toll.kills.contains_key(&Way::Process) {
        run.notes
            .push("the times after a process kill include what the kernel takes to end the process".into());
    }
    run
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::Verdict;
    use crate::scenario::parsed;

    fn options(line: &str) -> Options {
        parsed(line)
    }

    #[test]
    fn a_wrong_hand_over_fails_the_run() {
        let options = options("failover --kills 3");
        let kills = BTreeMap::from([(Way::Process, 1), (Way::Cut, 2)]);
        let clean = report(Run::default(), &options, Toll { kills: kills.clone(), wrong: Vec::new() });
        assert!(clean.passed());
        let told: Vec<_> = clean.figures.iter().map(|figure| (figure.name.as_str(), figure.value)).collect();
        assert_eq!(
            told,
            [("processes killed", 1.0), ("connections cut", 2.0), ("not handed on as it should be", 0.0)]
        );

        let failed = report(Run::default(), &options, Toll { kills, wrong: vec!["it stayed".to_owned()] });
        let broken = BTreeMap::from([(Promise::NotHandedOn, 1)]);
        let named = vec!["not handed on as it should be: it stayed".to_owned()];
        assert_eq!(failed.verdict, Verdict { broken, named, ..Verdict::default() });
        assert!(!failed.passed());
    }

    #[test]
    fn kills_that_were_not_made_are_told() {
        let toll = Toll { kills: BTreeMap::from([(Way::Cancel, 2)]), wrong: Vec::new() };
        let run = report(Run::default(), &options("failover --kills 3"), toll);
        assert_eq!(run.notes, ["2 of 3 kills fitted into the time"]);
    }
}
