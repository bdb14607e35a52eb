use std::rc::Rc;

use futures_channel::oneshot;
use smallvec::{SmallVec, smallvec};

use super::series::Series;
use super::{FrontendCounter, FrontendCounters};
use crate::core::{Answer, Input, Published, Run};
use crate::model::{Message, Ticket};
use crate::shard::Shared;

/// Numbers of shards, few as a rule.
type Shards = SmallVec<[u16; 6]>;

/// How the next publish goes through the shards.
///
/// ```text
///   one shard (which may refuse), or none near full:   Direct ──all answered──▶ Done
///   else:  Reserving ──all have room──▶ Committing ──all answered──▶ Done
///                    └─some refuse: abort the others──▶ Done
/// ```
pub struct Way {
    shards: Shards,
    pass: Pass,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    Direct,
    Reserving,
    Committing,
    Done,
}

impl Way {
    pub fn now(shared: &Shared) -> Self {
        let mut shards: Shards = shared.live_shards().map(|shard| shard as u16).collect();
        if shards.is_empty() {
            // Nobody listens anywhere: some shard says so, which keeps one way for all.
            shards.push(0);
        }
        let pass = if shards.len() > 1 && shared.is_near_full() { Pass::Reserving } else { Pass::Direct };
        Way { shards, pass }
    }

    /// Whether what is sent after it may overtake it: then a run has one message.
    pub fn is_two_pass(&self) -> bool {
        self.pass == Pass::Reserving
    }

    /// What to ask each shard first.
    pub fn inputs(self, ticket: Ticket, run: Run) -> impl Iterator<Item = (usize, Input)> {
        let is_only = self.shards.len() == 1;
        let last = self.shards.len() - 1;
        let mut run = run;
        self.shards.into_iter().enumerate().filter_map(move |(nth, shard)| {
            let run = if nth == last { std::mem::take(&mut run) } else { run.clone() };
            let input = match self.pass {
                Pass::Direct if is_only => Input::Publish { ticket, run },
                Pass::Direct => Input::Accept { ticket, run },
                _ => Input::Reserve { ticket, message: run.into_iter().next()? },
            };
            Some((usize::from(shard), input))
        })
    }
}

/// A run of messages on its way through the shards, which have them: what is left to know of it.
pub struct Publishing {
    /// What it has of the credits.
    messages: u64,
    bytes: u64,
    pass: Pass,
    unanswered: usize,
    /// Shards that keep room.
    reserved: Vec<u16>,
    published: SmallVec<[Published; 1]>,
    waiter: Waiter,
}

/// Who is told how a publish went.
pub enum Waiter {
    Call(oneshot::Sender<Published>),
    /// The run that has this number in its series.
    Series {
        series: Rc<Series>,
        number: u64,
    },
    /// A dead letter: how it went is counted, and the next one may wait for its end.
    DeadLetter(oneshot::Sender<()>),
}

impl Publishing {
    pub fn new(way: &Way, run: &Run, waiter: Waiter) -> Self {
        debug_assert!(!way.is_two_pass() || run.len() == 1, "a publish in two passes goes alone");
        Publishing {
            messages: run.len() as u64,
            bytes: run.iter().map(Message::cost).sum(),
            pass: way.pass,
            unanswered: way.shards.len(),
            reserved: Vec::new(),
            published: SmallVec::new(),
            waiter,
        }
    }

    /// Takes the answer of one shard. Returns what to ask next.
    pub fn advance(&mut self, ticket: Ticket, from: usize, answer: Answer) -> Vec<(usize, Input)> {
        match answer {
            Answer::Published(published) => self.add(published),
            Answer::Reserved => self.reserved.push(from as u16),
            Answer::Refused(refusal) => self.published = smallvec![Err(refusal)],
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
        let reserved = std::mem::take(&mut self.reserved).into_iter().map(usize::from);
        if !self.published.is_empty() {
            self.pass = Pass::Done;
            return reserved.map(|shard| (shard, Input::Abort { ticket })).collect();
        }
        self.pass = Pass::Committing;
        self.unanswered = reserved.len();
        reserved.map(|shard| (shard, Input::Commit { ticket })).collect()
    }

    /// The subscriptions of one more shard.
    fn add(&mut self, published: SmallVec<[Published; 1]>) {
        if self.published.is_empty() {
            self.published = published;
            return;
        }
        debug_assert_eq!(self.published.len(), published.len(), "each shard has the whole run");
        for (sum, more) in self.published.iter_mut().zip(published) {
            if let (Ok(sum), Ok(more)) = (sum, more) {
                *sum += more;
            }
        }
    }

    pub fn is_done(&self) -> bool {
        self.pass == Pass::Done
    }

    /// Messages and bytes that it has of the credits.
    pub fn credits(&self) -> (u64, u64) {
        (self.messages, self.bytes)
    }

    /// Tells whoever still waits, and counts.
    pub fn finish(self, counters: &FrontendCounters) {
        let mut published = self.published;
        let refused = published.iter().filter(|published| published.is_err()).count() as u64;
        let unheard = published.iter().filter(|published| matches!(published, Ok(0))).count() as u64;
        counters.add(FrontendCounter::Published, published.len() as u64 - refused);
        counters.add(FrontendCounter::Unheard, unheard);
        match self.waiter {
            // A caller that has gone gets no answer; the message was published all the same.
            Waiter::Call(caller) => drop(published.pop().map(|published| caller.send(published))),
            Waiter::Series { series, number } => {
                counters.add(FrontendCounter::PublishFailed, refused);
                series.settle(number, published);
            }
            Waiter::DeadLetter(settled) => {
                counters.add(FrontendCounter::DeadLettersUnheard, unheard);
                counters.add(FrontendCounter::DeadLettersRefused, refused);
                drop(settled);
            }
        }
    }
}
