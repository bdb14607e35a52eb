use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;

use super::spec::OpenSpec;
use crate::model::{DeliveryId, MemberId, Message, SubscriptionId, Ticket};

/// What can happen to a core. Made by frontends, carried by rings, applied by the shard.
#[derive(Debug)]
pub enum Input {
    /// A Subscribe stream has said `open`.
    Open { member: MemberId, spec: Box<OpenSpec> },
    /// The response side of a stream is over, for whatever reason.
    Leave { member: MemberId },
    /// Enqueue everywhere here that matches, or, where a subscription refuses, nowhere here.
    Publish { ticket: Ticket, message: Arc<Message> },
    /// Enqueue everywhere here that matches, whatever its limit: the part of a publish that concerns
    /// several shards and was begun while none was near full, so that no shard may refuse it alone.
    /// By how much it can go beyond a limit is bounded by what frontends may have outstanding.
    Accept { ticket: Ticket, message: Arc<Message> },
    /// First pass of a publish that concerns several shards while one is near full: keep room.
    Reserve { ticket: Ticket, message: Arc<Message> },
    /// Second pass: every shard had room.
    Commit { ticket: Ticket },
    /// Second pass: some shard had none.
    Abort { ticket: Ticket },
    /// An ack in a member's own stream.
    Ack {
        member: MemberId,
        /// As the client gave it; only its own is right.
        subscription_id: Option<SubscriptionId>,
        target: SettleTarget,
    },
    /// An ack by the unary call, from any connection.
    Settle(Box<Settle>),
    /// A member's connection has taken this many delivered messages, `bytes` being their cost.
    Credit { member: MemberId, messages: u32, bytes: u64 },
    /// The active member of a SINGLETON group hands over.
    Resign { member: MemberId },
    /// A deadline has come.
    Tick,
    /// The broker goes down in `grace`.
    Drain { grace: Duration },
    /// A question for [`super::Stats`].
    Stats { ticket: Ticket },
}

/// Which deliveries an ack names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettleTarget {
    /// By system_id. `unknown` counts those texts that this broker cannot have made.
    Deliveries { ids: SmallVec<[DeliveryId; 1]>, unknown: u32 },
    /// The delivery in flight of the message with this message_id.
    Message(Box<str>),
}

/// The unary ack.
#[derive(Debug)]
pub struct Settle {
    pub ticket: Ticket,
    pub subscription_id: SubscriptionId,
    pub target: SettleTarget,
}
