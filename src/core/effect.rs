use std::time::Duration;

use smallvec::SmallVec;

use super::counters::Counters;
use crate::model::{MemberId, Message, SubscriptionId, Ticket, Topic};

/// What follows from an input, in order. A shard routes it by its first field.
#[derive(Debug)]
pub enum Effect {
    /// For the stream of a member.
    Member(MemberId, MemberEvent),
    /// For the frontend that waits for an answer.
    Answer(Ticket, Answer),
    /// For a frontend, which publishes it anew.
    DeadLetter(Box<DeadLetter>),
    /// For the shard: a subscription lives here from now on.
    Created(SubscriptionId),
    /// For the shard: a subscription and all that it held are gone.
    Ended(SubscriptionId),
}

/// What a member's stream is told.
#[derive(Debug)]
pub enum MemberEvent {
    /// The open was accepted; no event of the stream goes with it.
    Attached,
    /// The open was refused; the stream ends.
    Refused(Box<OpenRefusal>),
    /// The member gets messages from now on: the `subscription_id` event.
    Started(SubscriptionId),
    /// SINGLETON with control events.
    Role(Role),
    Deliver(Delivery),
    /// Several of one input, in order.
    DeliverAll(Vec<Delivery>),
    /// So many messages of the subscription were dropped since the last event.
    Lagged(u64),
    /// The broker goes down.
    Draining(Duration),
    /// The broker ends the stream.
    End(Box<EndReason>),
    /// It has left, as its frontend said: what is published from now on does not find it.
    Left,
}

/// Deliveries for which there is room from the second on.
const SEVERAL: usize = 16;

impl MemberEvent {
    /// The deliveries that it is.
    pub fn deliveries(&self) -> &[Delivery] {
        match self {
            MemberEvent::Deliver(delivery) => std::slice::from_ref(delivery),
            MemberEvent::DeliverAll(deliveries) => deliveries,
            _ => &[],
        }
    }

    /// One more delivery behind those that it is.
    pub(super) fn append(&mut self, delivery: Delivery) {
        if let MemberEvent::DeliverAll(deliveries) = self {
            return deliveries.push(delivery);
        }
        let before = std::mem::replace(self, MemberEvent::DeliverAll(Vec::with_capacity(SEVERAL)));
        if let (MemberEvent::Deliver(first), MemberEvent::DeliverAll(deliveries)) = (before, self) {
            deliveries.extend([first, delivery]);
        }
    }
}

/// One delivery of a message to one member.
#[derive(Debug, Clone)]
pub struct Delivery {
    pub message: Message,
    /// Counts deliveries of the message in this subscription, from 1.
    pub delivery: u32,
    /// Counts attempts, from 1.
    pub attempt: u32,
    /// SINGLETON: the fencing number of the active member; else 0.
    pub epoch: u64,
}

/// A message that its subscription gives up, for its dead_letter_topic.
#[derive(Debug)]
pub struct DeadLetter {
    pub topic: Topic,
    pub message: Message,
    pub subscription: SubscriptionId,
    pub reason: GivenUp,
    pub attempts: u32,
}

/// Why a subscription gives a message up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GivenUp {
    /// It had as many attempts as max_deliveries allows.
    MaxDeliveries,
    /// A nack said so.
    Discarded,
}

impl GivenUp {
    /// As it stands in the header of the dead letter.
    pub fn name(self) -> &'static str {
        match self {
            GivenUp::MaxDeliveries => "max_deliveries",
            GivenUp::Discarded => "discarded",
        }
    }
}

/// A member's part in a SINGLETON group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Active {
        epoch: u64,
    },
    /// `position` 1 is the next to be promoted.
    Standby {
        epoch: u64,
        position: u32,
    },
}

/// Why an open was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenRefusal {
    #[error("the group is open with another {what}; a later member must agree with the first in it")]
    Differs { what: &'static str },
    #[error("subscription_id is in use by another {owner}; choose another or leave it empty")]
    IdInUse { owner: &'static str },
    #[error(transparent)]
    Index(#[from] crate::pattern::IndexError),
}

/// Why a member's stream is ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndReason {
    #[error(
        "the subscription fell {behind} messages behind and was ended (max_pending {limit}); read faster, raise max_pending or choose another overflow policy"
    )]
    Overflow { behind: u64, limit: u64 },
    #[error(
        "the subscription fell {behind_bytes} bytes behind and was ended (limit {limit_bytes} bytes); read faster or choose another overflow policy"
    )]
    OverflowBytes { behind_bytes: u64, limit_bytes: u64 },
    #[error("subscription_id in the command is not this stream's; leave it empty or use the unary call")]
    OtherSubscription,
    #[error("resign is for SINGLETON; this subscription is {mode}")]
    ResignOutsideSingleton { mode: &'static str },
}

/// Why a publish was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PublishRefusal {
    #[error("subscription {subscription} is full: {waiting} messages wait, limit {limit}; try again later")]
    Messages { subscription: SubscriptionId, waiting: u64, limit: u64 },
    #[error("subscription {subscription} is full: {waiting} bytes wait, limit {limit}; try again later")]
    Bytes { subscription: SubscriptionId, waiting: u64, limit: u64 },
}

/// In how many subscriptions here a message was enqueued, or why in none.
pub type Published = Result<u32, Box<PublishRefusal>>;

/// What a frontend asked for.
#[derive(Debug)]
pub enum Answer {
    /// How it went with each message of a run, in order.
    Published(SmallVec<[Published; 1]>),
    /// No room is kept: enqueued nowhere here.
    Refused(Box<PublishRefusal>),
    /// Room is kept until `Commit` or `Abort`.
    Reserved,
    Settled(Settlement),
    Stats(Box<Stats>),
}

/// How a unary ack, nack or extend went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settlement {
    /// So many deliveries were settled or extended, of all that were named.
    Done { settled: u32 },
    /// The subscription lives, but asks for no acks.
    NotAsked,
    /// Nothing named is in flight.
    NotInFlight,
    /// No such subscription on this shard.
    UnknownSubscription,
}

/// What one core holds and has done.
#[derive(Debug, Clone, Default)]
pub struct Stats {
    pub subscriptions: u64,
    pub members: u64,
    pub standbys: u64,
    pub waiting: u64,
    /// Those of the waiting that are parked.
    pub parked: u64,
    pub in_flight: u64,
    pub patterns: u64,
    /// Bytes of waiting and in-flight messages, each subscription counting its own.
    pub held_bytes: u64,
    /// Merges of the pattern index, each from its beginning to its end.
    pub pattern_index_merges: u64,
    pub counters: Counters,
}

impl Stats {
    /// Adds another shard's figures.
    pub fn add(&mut self, other: &Stats) {
        self.subscriptions += other.subscriptions;
        self.members += other.members;
        self.standbys += other.standbys;
        self.waiting += other.waiting;
        self.parked += other.parked;
        self.in_flight += other.in_flight;
        self.patterns += other.patterns;
        self.held_bytes += other.held_bytes;
        self.pattern_index_merges += other.pattern_index_merges;
        self.counters.add(&other.counters);
    }
}
