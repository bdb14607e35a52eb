//! The ledger proves what was delivered. Every message has a lane and a sequence number in its payload; publishers
//! and members enter what they send, hear and get; at the end the [`Verdict`] names each message that was lost,
//! came twice, was with two members at once, came out of order, or should not have come.
//!
//! A *lane* is one publisher's row of messages to one audience, a *receiver* a consumer group or one MULTI
//! subscriber, a *copy* one message of a lane at one receiver:
//!
//! ```text
//! awaited ──refused, and never came──────▶ final
//!    ├──────delivered in MULTI───────────▶ final
//!    └──────delivered in a group──▶ held ──acked──▶ final, if that is certain or if nobody may die
//!                                   ▲  ▲   └──────▶ acked ──certain after all──▶ final
//!      its holder died, and it comes┘  │              │
//!      again                           └──────────────┘ its acker died, and it comes again
//! ```
//!
//! A publish whose outcome nobody knows may come or not. Any other delivery breaks a promise. There is no false
//! alarm as long as the ledger hears of what the load test does *before* it is done: of a publish before it is
//! sent, of a death before the member is killed. All receivers are there from before the first message to the end.
//!
//! Memory: some 200 bytes a lane, 64 for each of its receivers, 16 for each copy that is on its way, and about 16
//! for each refused publish. Where members may die, 16 bytes stay to the end for each message that was acked
//! without certainty: whether it may come again, only the death of its acker tells. Calls cost some tens of
//! nanoseconds, and do not allocate once a lane has seen its usual backlog.

mod lane;
mod member;
mod order;
mod receiver;
mod track;
mod verdict;
mod window;

#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::{Bound, RangeBounds};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lane::Lane;
pub use member::{Delivered, Member};
use receiver::Receiver;
use track::{Found, Track, Was};
use verdict::Breaches;
pub use verdict::{Promise, Verdict};

/// One publisher's row of messages to one audience; as it stands in the payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaneId(pub u32);

/// A consumer group, or one MULTI subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReceiverId(pub u32);

/// What is promised to a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Each message goes to one member, which acks it.
    Balanced,
    /// The same, and one member after the other gets them, in publish order.
    Singleton,
    /// One subscriber gets all messages once and in publish order, and acks none.
    Multi,
}

/// Who is to get what, settled before the first message.
#[derive(Debug, Default)]
pub struct LedgerPlan {
    lanes: Vec<Lane>,
    receivers: Vec<Receiver>,
    members_may_die: bool,
}

impl LedgerPlan {
    pub fn new() -> Self {
        Self::default()
    }

    /// Receivers are numbered in the order in which they are planned.
    pub fn receiver(&mut self, name: impl Into<String>, kind: Kind) -> ReceiverId {
        self.receivers.push(Receiver::new(name.into(), kind));
        ReceiverId(self.receivers.len() as u32 - 1)
    }

    /// A lane to receivers that are planned already.
    ///
    /// `ordered`: the broker owes its order, which is so for the messages of one stream or batch, and for unary
    /// calls each begun after the last was answered. An outcome that stays unknown is to be told before
    /// the next message is sent: such a message may come at any time.
    ///
    /// # Panics
    /// If a receiver of the audience is not planned.
    pub fn lane(
        &mut self,
        name: impl Into<String>,
        audience: impl RangeBounds<ReceiverId>,
        ordered: bool,
    ) -> LaneId {
        let planned = self.receivers.len() as u32;
        let start = match audience.start_bound() {
            Bound::Included(first) => first.0,
            Bound::Excluded(before) => before.0 + 1,
            Bound::Unbounded => 0,
        };
        let end = match audience.end_bound() {
            Bound::Included(last) => last.0 + 1,
            Bound::Excluded(end) => end.0,
            Bound::Unbounded => planned,
        };
        assert!(start <= end && end <= planned, "{planned} receivers are planned, not {start} to {end}");
        self.lanes.push(Lane::new(name.into(), start..end, ordered));
        LaneId(self.lanes.len() as u32 - 1)
    }

    /// Members of groups may leave before the end.
    pub fn members_may_die(&mut self, may_die: bool) {
        self.members_may_die = may_die;
    }

    pub fn build(self) -> Arc<Ledger> {
        Arc::new(Ledger {
            lanes: self.lanes.into(),
            receivers: self.receivers.into(),
            members_may_die: self.members_may_die,
            breaches: Mutex::default(),
            redelivered: AtomicU64::new(0),
            outstanding: OwnLine(AtomicU64::new(0)),
        })
    }
}

/// The books of one run; see the module. All threads enter into it.
#[derive(Debug)]
pub struct Ledger {
    lanes: Box<[Lane]>,
    receivers: Box<[Receiver]>,
    members_may_die: bool,
    breaches: Mutex<Breaches>,
    redelivered: AtomicU64,
    outstanding: OwnLine<AtomicU64>,
}

/// In a cache line of its own: all threads write it all the time, and read what lies beside it.
#[derive(Debug)]
#[repr(align(128))]
struct OwnLine<T>(T);

impl Ledger {
    /// The next `count` messages of a lane are about to be sent; the first of their sequence numbers.
    pub fn sent(&self, lane: LaneId, count: u64) -> u64 {
        let lane = self.lane(lane);
        self.outstanding.0.fetch_add(count * u64::from(lane.audience()), Ordering::Relaxed);
        lane.send(count)
    }

    /// The broker confirmed a publish and said that it reached so many subscriptions.
    pub fn confirmed(&self, id: LaneId, sequence: u64, subscriptions: u32) {
        let audience = self.lane(id).audience();
        if self.answered(id, sequence) && subscriptions != audience {
            let how = format_args!("was said to reach {subscriptions} subscriptions, not {audience}");
            self.report(Promise::Miscounted, id, sequence, how);
        }
    }

    /// The broker refused a publish: nobody may get it.
    pub fn refused(&self, id: LaneId, sequence: u64) {
        if !self.answered(id, sequence) {
            return;
        }
        let lane = self.lane(id);
        lock(&lane.outcomes).refused.insert(sequence);
        for (receiver, track) in lane.tracks() {
            if lock(track).refuse(sequence) {
                self.outstanding.0.fetch_sub(1, Ordering::Relaxed);
            } else {
                let name = &self.receiver(receiver).name;
                let how = format_args!("was refused, but had come to \"{name}\"");
                self.report(Promise::Unpublished, id, sequence, how);
            }
        }
    }

    /// The publisher will never learn what became of a publish: each receiver may get it or not.
    pub fn unknown(&self, id: LaneId, sequence: u64) {
        if !self.answered(id, sequence) {
            return;
        }
        let lane = self.lane(id);
        lock(&lane.outcomes).unknown += 1;
        let missing = lane.tracks().filter(|(_, track)| lock(track).excuse(sequence)).count();
        self.outstanding.0.fetch_sub(missing as u64, Ordering::Relaxed);
    }

    /// Notes that a publish has an outcome; false, and reported, where it can't have one.
    fn answered(&self, id: LaneId, sequence: u64) -> bool {
        let lane = self.lane(id);
        let was_sent = sequence < lane.sent();
        let is_first = was_sent && lock(&lane.outcomes).tell(sequence);
        if !is_first {
            let how = if was_sent { "was answered twice" } else { "was answered though never sent" };
            self.report(Promise::Miscounted, id, sequence, format_args!("{how}"));
        }
        is_first
    }

    /// How many a message of this lane is to reach.
    pub fn audience(&self, lane: LaneId) -> u32 {
        self.lane(lane).audience()
    }

    /// A new member of a receiver; a MULTI receiver has one.
    pub fn join(self: &Arc<Self>, receiver: ReceiverId) -> Member {
        Member::join(Arc::clone(self), receiver)
    }

    /// Copies that were sent and are neither final nor acked. Those of a publish that was refused, or whose
    /// outcome is unknown, do not count unless they are with a member.
    pub fn outstanding(&self) -> u64 {
        self.outstanding.0.load(Ordering::Relaxed)
    }

    /// What is to be said when all is quiet: what has not come by now counts as lost.
    pub fn finish(&self) -> Verdict {
        let mut breaches = lock(&self.breaches).clone();
        let mut verdict =
            Verdict { redelivered: self.redelivered.load(Ordering::Relaxed), ..Verdict::default() };
        verdict.delivered = self.receivers.iter().map(Receiver::delivered).sum();
        for lane in &self.lanes {
            let outcomes = lock(&lane.outcomes);
            let sent = lane.sent();
            verdict.sent += sent;
            verdict.refused += outcomes.refused.len() as u64;
            verdict.unknown += outcomes.unknown + outcomes.untold(sent);
            for (receiver, track) in lane.tracks() {
                let receiver = self.receiver(receiver);
                let track = lock(track);
                let is_confirmed = |sequence| outcomes.is_told(sequence);
                let is_dead = |member| receiver.is_dead(member);
                for (sequence, missing) in track.missing(sent, is_confirmed, is_dead) {
                    let (promise, how) = missing.say(receiver);
                    breaches.report(promise, sequence, format!("of lane \"{}\" {how}", lane.name));
                }
            }
        }
        verdict.broken = breaches.counts();
        verdict.named = breaches.names();
        verdict
    }

    /// A delivery was entered.
    fn took(&self, found: Found, asks_ack: bool) {
        if found.was != Was::Awaited {
            self.redelivered.fetch_add(1, Ordering::Relaxed);
        }
        match (found.was_outstanding(), asks_ack) {
            (false, true) => self.outstanding.0.fetch_add(1, Ordering::Relaxed),
            (true, false) => self.outstanding.0.fetch_sub(1, Ordering::Relaxed),
            _ => return,
        };
    }

    fn acked(&self, lane: LaneId, receiver: ReceiverId, member: u32, sequence: u64, certain: bool) {
        let is_final = certain || !self.members_may_die;
        if let Some((_, track)) = self.track(lane, receiver)
            && lock(track).ack(sequence, member, is_final)
        {
            self.outstanding.0.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn lane(&self, lane: LaneId) -> &Lane {
        &self.lanes[lane.0 as usize]
    }

    fn receiver(&self, receiver: ReceiverId) -> &Receiver {
        &self.receivers[receiver.0 as usize]
    }

    /// None where the lane's messages are not for this receiver, or there is no such lane.
    fn track(&self, lane: LaneId, receiver: ReceiverId) -> Option<(&Lane, &Mutex<Track>)> {
        let lane = self.lanes.get(lane.0 as usize)?;
        Some((lane, lane.track(receiver)?))
    }

    fn report(&self, promise: Promise, lane: LaneId, sequence: u64, how: fmt::Arguments<'_>) {
        let what = match self.lanes.get(lane.0 as usize) {
            Some(lane) => format!("of lane \"{}\" {how}", lane.name),
            None => format!("of a lane {} that is not planned {how}", lane.0),
        };
        lock(&self.breaches).report(promise, sequence, what);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
