//! What a publisher sends when, and what the ledger is told of it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::client::CallError;
use crate::clock::{self, Nanos};
use crate::crew::Station;
use crate::failure::{Doing, Failure};
use crate::ledger::LaneId;
use crate::pacer::{Alarm, Schedule};
use crate::payload::{Stamp, Template};
use crate::recorder::timed;
use crate::window::Window;

/// A publisher that goes as fast as it can may have one more message outstanding for each that was answered within
/// this: a broker that is very slow gets no backlog that would outlast the run.
const QUICK: Nanos = 500_000_000;

/// How fast a publisher sends.
#[derive(Debug, Clone, Copy)]
pub enum Pace {
    /// As fast as the broker confirms and the trial's gate lets it.
    Saturate,
    /// The same, and no more than so many.
    Count(u64),
    /// Open loop: so many a second of all publishers together; this is number `turn` of `publishers`.
    Rate { total: f64, turn: usize, publishers: usize },
}

impl Pace {
    /// That of one among so many publishers that reach `total` a second together, or go as fast as they can.
    pub fn new(total: Option<f64>, turn: usize, publishers: usize) -> Self {
        total.map_or(Pace::Saturate, |total| Pace::Rate { total, turn, publishers })
    }
}

/// What is still to come.
enum Supply {
    Endless,
    Count(u64),
    Schedule(Schedule),
}

/// One message on its way.
#[derive(Debug, Clone, Copy)]
pub struct Sent {
    pub stamp: Stamp,
    /// Of the publisher's lanes.
    lane: usize,
}

/// Gives out what is to be sent, and books what came of it.
pub struct Source {
    station: Rc<Station>,
    window: Window,
    lanes: Vec<(LaneId, Template)>,
    /// How many receivers a message of each lane reaches.
    audiences: Vec<u32>,
    supply: RefCell<Supply>,
    next_lane: RefCell<usize>,
    /// Messages sent and not answered yet.
    unanswered: Cell<usize>,
    /// How many of those there may be.
    allowed: Cell<usize>,
    bystanders: u32,
    alarm: Alarm,
}

impl Source {
    pub fn new(
        lanes: Vec<(LaneId, Template)>,
        pace: Pace,
        bystanders: u32,
        station: Rc<Station>,
        window: Window,
        alarm: Alarm,
    ) -> Self {
        let supply = match pace {
            Pace::Saturate => Supply::Endless,
            Pace::Count(count) => Supply::Count(count),
            Pace::Rate { total, turn, publishers } => {
                Supply::Schedule(Schedule::new(window.start, total, turn, publishers))
            }
        };
        let audience = |(lane, _): &(LaneId, Template)| station.trial.ledger.audience(*lane);
        let audiences = lanes.iter().map(audience).collect();
        Source {
            lanes,
            audiences,
            station,
            window,
            next_lane: RefCell::new(0),
            unanswered: Cell::new(0),
            allowed: Cell::new(if matches!(supply, Supply::Schedule(_)) { usize::MAX } else { 1 }),
            supply: RefCell::new(supply),
            bystanders,
            alarm,
        }
    }

    /// The next message, if it may go now.
    pub fn next(&self, now: Nanos) -> Option<Sent> {
        let trial = &self.station.trial;
        if !self.is_allowed() || now >= self.window.until {
            return None;
        }
        let has_room = || trial.gate.room(&trial.ledger) > 0;
        let intended = match &mut *self.supply.borrow_mut() {
            Supply::Endless if has_room() => now,
            Supply::Count(left) if *left > 0 && has_room() => {
                *left -= 1;
                now
            }
            Supply::Schedule(schedule) if schedule.due() < self.window.until => schedule.take(now)?,
            _ => return None,
        };
        let lane = self.next_lane.replace_with(|lane| (*lane + 1) % self.lanes.len());
        let id = self.lanes[lane].0;
        let sequence = trial.ledger.sent(id, 1);
        self.unanswered.update(|unanswered| unanswered + 1);
        Some(Sent { stamp: Stamp { run: trial.run, lane: id, sequence, intended }, lane })
    }

    fn is_allowed(&self) -> bool {
        self.unanswered.get() < self.allowed.get()
    }

    pub fn template(&self, sent: &Sent) -> &Template {
        &self.lanes[sent.lane].1
    }

    /// Whether there will be no next message.
    pub fn is_over(&self, now: Nanos) -> bool {
        now >= self.window.until
            || match &*self.supply.borrow() {
                Supply::Endless => false,
                Supply::Count(left) => *left == 0,
                Supply::Schedule(schedule) => schedule.due() >= self.window.until,
            }
    }

    /// Waits until there may be a next message, or none will come.
    pub async fn wait(&self) -> Result<(), Failure> {
        let trial = &self.station.trial;
        let due = match &*self.supply.borrow() {
            Supply::Schedule(schedule) => Some(schedule.due()),
            Supply::Endless | Supply::Count(_) => None,
        };
        match due {
            Some(due) => self.alarm.until(due.min(self.window.until)).await.doing("waiting for a timer"),
            // An answer comes first.
            None if !self.is_allowed() => std::future::pending().await,
            None => {
                tokio::select! {
                    () = trial.gate.open(&trial.ledger) => Ok(()),
                    () = clock::sleep_until(self.window.until) => Ok(()),
                }
            }
        }
    }

    /// The broker confirmed a message; `subscriptions`: how many it said to have reached, where it says so.
    pub fn confirmed(&self, sent: &Sent, subscriptions: Option<u32>) {
        let Stamp { lane, sequence, intended, .. } = sent.stamp;
        let now = clock::now();
        self.unanswered.update(|unanswered| unanswered - 1);
        if now.saturating_sub(intended) < QUICK {
            self.allowed.update(|allowed| allowed.saturating_add(1));
        }
        let audience = self.audiences[sent.lane];
        let reached = subscriptions.map_or(audience, |all| all.saturating_sub(self.bystanders));
        self.station.trial.ledger.confirmed(lane, sequence, reached);
        let mut recorder = self.station.recorder.borrow_mut();
        recorder.took(timed::CONFIRM, intended, now);
        if audience == 0 {
            // Nobody will count its arrival.
            recorder.count(now);
        }
    }

    /// The broker refused a message, for a reason that lets the run go on.
    pub fn refused(&self, sent: &Sent, reason: &str) {
        self.unanswered.update(|unanswered| unanswered - 1);
        self.station.trial.ledger.refused(sent.stamp.lane, sent.stamp.sequence);
        self.station.trial.note(format!("publishes were refused: {reason}"));
    }

    /// A whole call failed: refused if the broker had no room, else an end of the run.
    pub fn failed(&self, sent: &[Sent], error: CallError) -> Result<(), Failure> {
        if error.is_refusal() {
            let reason = error.to_string();
            sent.iter().for_each(|sent| self.refused(sent, &reason));
            return Ok(());
        }
        for Sent { stamp, .. } in sent {
            self.station.trial.ledger.unknown(stamp.lane, stamp.sequence);
        }
        Err(error).doing("publishing")
    }

    /// Books what the schedule wanted sent and this publisher never got to.
    pub fn finish(&self) {
        let Supply::Schedule(schedule) = &mut *self.supply.borrow_mut() else { return };
        let now = clock::now();
        let mut recorder = self.station.recorder.borrow_mut();
        let mut unsent = 0_u64;
        while schedule.due() < self.window.until {
            let Some(due) = schedule.take(now) else { break };
            recorder.unsent(due, now);
            unsent += 1;
        }
        self.station.trial.unsent(unsent);
    }
}
