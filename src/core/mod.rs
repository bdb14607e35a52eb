//! The broker as a pure state machine: `apply(now, input)` appends effects, and nothing else happens.
//!
//! No clock, no socket, no thread, no atomics. One [`Core`] holds the subscriptions of one shard;
//! the shard applies one input, drains all effects, then takes the next. What must always hold is
//! numbered in [`invariants`].

mod backlog;
mod balanced;
mod counters;
mod deadline;
mod deliver;
mod effect;
mod entry;
mod fan_out;
mod inflight;
mod input;
mod invariants;
mod leave;
mod member;
mod open;
mod overflow;
mod parked;
mod promotion;
mod publish;
mod retry;
mod roster;
mod settle;
mod singleton;
mod spec;
mod subscription;

use std::collections::{BTreeSet, VecDeque};

use ahash::AHashMap;
use slab::Slab;

pub use counters::{Counter, Counters};
pub use effect::{
    Answer, DeadLetter, Delivery, Effect, EndReason, GivenUp, MemberEvent, OpenRefusal, PublishRefusal,
    Published, Role, Settlement, Stats,
};
pub use input::{Action, Input, Nack, Run, Settle, SettleCall, SettleTarget};
pub use spec::{OpenSpec, Overflow, SharedOptions};

use crate::model::{GroupName, MemberId, SubscriptionId, Ticket, Time};
use crate::pattern::{Index, MergeJob, Merged, Retired};
use publish::Reservation;
use subscription::Subscription;

/// Where a subscription lies in its core. Reused after its end: pair it with the serial number.
pub(crate) type SubscriptionKey = usize;
/// Where a member lies in its subscription.
pub(crate) type MemberKey = usize;

/// What a core must be told at its making.
#[derive(Debug, Clone)]
pub struct CoreConfig {
    /// Epochs start above this. Taken from the wall clock, so that they grow over restarts too.
    pub epoch: u64,
    /// Bytes that may wait in one subscription.
    pub max_pending_bytes: u64,
    /// A REJECT subscription with less room than this is near full: what all frontends may have
    /// outstanding at once and at least 1, so that a publish begun while nothing is near full cannot be refused.
    pub near_full_messages: u64,
    /// The same in bytes, and at least the cost of the largest message.
    pub near_full_bytes: u64,
    /// Subscriptions that one input hands a message out to; the others follow with the next ticks. At least 1.
    pub fan_out_slice: usize,
}

/// The state machine of one shard.
pub struct Core {
    subscriptions: Slab<Subscription>,
    by_id: AHashMap<SubscriptionId, SubscriptionKey>,
    by_group: AHashMap<GroupName, SubscriptionKey>,
    members: AHashMap<MemberId, (SubscriptionKey, MemberKey)>,
    index: Index<SubscriptionKey>,
    /// Subscriptions by the time at which one of them has something to do next.
    deadlines: BTreeSet<(Time, SubscriptionKey)>,
    /// Subscriptions, with their serial numbers, that have something to hand out and were left for the next tick.
    unserved: VecDeque<(SubscriptionKey, u64)>,
    reservations: AHashMap<Ticket, Reservation>,
    /// Serial number of the last subscription made.
    serial: u64,
    books: Books,
    /// The subscriptions that the last message matched,
    matched: Vec<SubscriptionKey>,
    /// and its topic; empty, as no topic is, where patterns have come or gone since.
    matched_topic: String,
    #[cfg(debug_assertions)]
    applied: u64,
}

/// What all subscriptions of a core write to.
pub(crate) struct Books {
    config: CoreConfig,
    counters: Counters,
    /// The number of the input that is applied.
    input: u64,
    /// The last epoch given to an active member.
    epoch: u64,
    /// REJECT subscriptions with little room left.
    near_full: usize,
    /// Deliveries that nobody has settled yet.
    in_flight: u64,
    draining: bool,
}

impl Core {
    pub fn new(config: CoreConfig) -> Self {
        debug_assert!(
            config.near_full_messages > 0,
            "a subscription that the next message fills is near full"
        );
        debug_assert!(config.fan_out_slice > 0, "a tick serves somebody");
        Core {
            subscriptions: Slab::new(),
            by_id: AHashMap::new(),
            by_group: AHashMap::new(),
            members: AHashMap::new(),
            index: Index::new(),
            deadlines: BTreeSet::new(),
            unserved: VecDeque::new(),
            reservations: AHashMap::new(),
            serial: 0,
            books: Books {
                input: 0,
                epoch: config.epoch,
                config,
                counters: Counters::default(),
                near_full: 0,
                in_flight: 0,
                draining: false,
            },
            matched: Vec::new(),
            matched_topic: String::new(),
            #[cfg(debug_assertions)]
            applied: 0,
        }
    }

    /// Applies one input at `now` and appends what follows from it to `effects`, in order.
    pub fn apply(&mut self, now: Time, input: Input, effects: &mut Vec<Effect>) {
        self.books.input += 1;
        // What a deadline has ended by now is gone, even where its tick comes later.
        self.expire(now, effects);
        match input {
            Input::Open { member, spec } => self.open(now, member, *spec, effects),
            Input::Leave { member } => self.leave_as_told(now, member, effects),
            Input::Publish { ticket, run } => self.publish(now, ticket, run, effects),
            Input::Accept { ticket, run } => self.accept_everywhere(now, ticket, run, effects),
            Input::Reserve { ticket, message } => self.reserve(ticket, message, effects),
            Input::Commit { ticket } => self.commit(now, ticket, effects),
            Input::Abort { ticket } => self.abort(ticket),
            Input::Ack { member, ids } => self.ack_in_stream(now, member, ids, effects),
            Input::Settle(command) => self.settle_in_stream(now, *command, effects),
            Input::SettleCall(call) => self.settle_by_call(now, &call, effects),
            Input::Credit { member, messages, bytes } => {
                self.credit(now, member, messages, bytes, effects);
            }
            Input::Resign { member } => self.resign(now, member, effects),
            Input::Tick => self.serve_slice(now, effects),
            Input::Drain { grace } => self.drain(grace, effects),
            Input::Stats { ticket } => {
                let answer = Answer::Stats(Box::new(self.stats()));
                effects.push(Effect::Answer(ticket, answer));
            }
        }
        #[cfg(debug_assertions)]
        self.check_sometimes();
    }

    /// The work of packing the pattern index anew, where it is due, or with little to pack where the shard `is_idle`.
    /// To be run elsewhere; nothing that a client sees depends on when, or whether, it is done.
    pub fn begin_merge(&mut self, is_idle: bool) -> Option<MergeJob> {
        if self.index.is_merge_due(is_idle) { self.index.begin_merge() } else { None }
    }

    /// Takes the result of that work. What it returns is to be dropped elsewhere too.
    pub fn finish_merge(&mut self, merged: Merged) -> Retired {
        self.index.finish_merge(merged)
    }

    /// When [`Input::Tick`] is due next: the beginning of time is at once.
    pub fn next_deadline(&self) -> Option<Time> {
        if !self.unserved.is_empty() {
            return Some(Time::default());
        }
        self.deadlines.first().map(|&(at, _)| at)
    }

    /// Whether a publish may be refused: some REJECT subscription has little room left.
    pub fn is_near_full(&self) -> bool {
        self.books.near_full > 0
    }

    /// Whether no subscription lives here: a publish need not come.
    pub fn is_empty(&self) -> bool {
        self.subscriptions.is_empty()
    }

    /// Messages that wait or are in flight, each subscription counting its own.
    pub fn held(&self) -> u64 {
        self.books.counters.held()
    }

    /// Deliveries that nobody has settled yet.
    pub fn in_flight(&self) -> u64 {
        self.books.in_flight
    }

    /// Tells those who asked that the broker is going down; from here on nothing new is delivered.
    fn drain(&mut self, grace: std::time::Duration, effects: &mut Vec<Effect>) {
        self.books.draining = true;
        for (_, subscription) in &mut self.subscriptions {
            for (_, member) in &mut subscription.members {
                if member.control_events {
                    member.tell(MemberEvent::Draining(grace), effects);
                }
            }
        }
    }

    fn stats(&self) -> Stats {
        let mut stats = Stats {
            subscriptions: self.subscriptions.len() as u64,
            members: self.members.len() as u64,
            patterns: self.index.patterns() as u64,
            pattern_index_merges: self.index.merges(),
            in_flight: self.books.in_flight,
            counters: self.books.counters.clone(),
            ..Stats::default()
        };
        for (_, subscription) in &self.subscriptions {
            stats.waiting += subscription.backlog.len();
            stats.parked += subscription.backlog.parked();
            stats.held_bytes += subscription.backlog.bytes() + subscription.in_flight.bytes();
            stats.standbys += subscription.roster.standbys() as u64;
        }
        stats
    }

    #[cfg(debug_assertions)]
    fn check_sometimes(&mut self) {
        self.applied += 1;
        let small = self.subscriptions.len() + self.members.len() + (self.held() as usize) < 32;
        if small || self.applied.is_multiple_of(4096) {
            self.check();
        }
    }
}
