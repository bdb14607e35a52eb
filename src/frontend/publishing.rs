use std::rc::Rc;
use std::sync::Arc;

use futures_channel::oneshot;
use smallvec::SmallVec;

use super::series::{Outcome, Series};
use super::{Failure, FrontendCounter, FrontendCounters};
use crate::core::{Answer, Input, PublishRefusal};
use crate::model::{Message, Ticket};
use crate::shard::Shared;

/// Numbers of shards, few as a rule.
pub type Shards = SmallVec<[u16; 6]>;

/// A publish on its way through the shards.
///
/// ```text
///   one shard (which may refuse), or none near full:   Direct ──all answered──▶ Done
///   else:  Reserving ──all have room──▶ Committing ──all answered──▶ Done
///                    └─some refuse: abort the others──▶ Done
/// ```
pub struct Publishing {
    pub message: Arc<Message>,
    shards: Shards,
    pass: Pass,
    unanswered: usize,
    /// Shards that keep room.
    reserved: Shards,
    taken: u32,
    refusal: Option<Box<PublishRefusal>>,
    waiter: Waiter,
}

/// Who is told how a publish went.
pub enum Waiter {
    Call(oneshot::Sender<Outcome>),
    Series {
        series: Rc<Series>,
        index: u64,
    },
    /// A dead letter: how it went is counted, and the next one may wait for its end.
    DeadLetter(oneshot::Sender<()>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    Direct,
    Reserving,
    Committing,
    Done,
}

impl Publishing {
    pub fn new(shared: &Shared, message: Arc<Message>, waiter: Waiter) -> Self {
        let mut shards: Shards = shared.live_shards().map(|shard| shard as u16).collect();
        if shards.is_empty() {
            // Nobody listens anywhere: some shard says so, which keeps one way for all.
            shards.push(0);
        }
        let pass = if shards.len() > 1 && shared.is_near_full() { Pass::Reserving } else { Pass::Direct };
        let unanswered = shards.len();
        Publishing {
            message,
            shards,
            pass,
            unanswered,
            reserved: SmallVec::new(),
            taken: 0,
            refusal: None,
            waiter,
        }
    }

    /// The shards that it concerns.
    pub fn shards(&self) -> Shards {
        self.shards.clone()
    }

    /// What to ask each of them first.
    pub fn first_input(&self, ticket: Ticket) -> Input {
        let message = self.message.clone();
        match self.pass {
            Pass::Reserving => Input::Reserve { ticket, message },
            _ if self.shards.len() == 1 => Input::Publish { ticket, message },
            _ => Input::Accept { ticket, message },
        }
    }

    /// Takes the answer of one shard. Returns what to ask next.
    pub fn advance(&mut self, ticket: Ticket, from: usize, answer: Answer) -> Vec<(usize, Input)> {
        match answer {
            Answer::Published { subscriptions } => self.taken += subscriptions,
            Answer::Reserved => self.reserved.push(from as u16),
            Answer::Refused(refusal) => self.refusal = Some(Box::new(refusal)),
            Answer::Settled(_) | Answer::Stats(_) => debug_assert!(false, "no answer to a publish"),
        }
        self.unanswered -= 1;
        if self.unanswered > 0 {
            return Vec::new();
        }
        if self.pass != Pass::Reserving {
            self.pass = Pass::Done;
            return Vec::new();
        }
        if self.refusal.is_some() {
            self.pass = Pass::Done;
            return self.reserved.drain(..).map(|shard| (shard.into(), Input::Abort { ticket })).collect();
        }
        self.pass = Pass::Committing;
        self.unanswered = self.reserved.len();
        self.reserved.drain(..).map(|shard| (shard.into(), Input::Commit { ticket })).collect()
    }

    pub fn is_done(&self) -> bool {
        self.pass == Pass::Done
    }

    /// Whether what is sent after it may overtake it.
    pub fn is_two_pass(&self) -> bool {
        self.pass == Pass::Reserving
    }

    /// Tells whoever still waits, and counts.
    pub fn finish(self, counters: &FrontendCounters) {
        let outcome = match self.refusal {
            Some(refusal) => Err(Failure::Publish(*refusal)),
            None => Ok(self.taken),
        };
        if let Ok(taken) = outcome {
            counters.count(FrontendCounter::Published);
            if taken == 0 {
                counters.count(FrontendCounter::Unheard);
            }
        }
        match self.waiter {
            // A caller that has gone gets no answer; the message was published all the same.
            Waiter::Call(caller) => drop(caller.send(outcome)),
            Waiter::Series { series, index } => {
                if outcome.is_err() {
                    counters.count(FrontendCounter::PublishFailed);
                }
                series.settle(index, outcome);
            }
            Waiter::DeadLetter(settled) => {
                match outcome {
                    Ok(0) => counters.count(FrontendCounter::DeadLettersUnheard),
                    Ok(_) => {}
                    Err(_) => counters.count(FrontendCounter::DeadLettersRefused),
                }
                drop(settled);
            }
        }
    }
}
