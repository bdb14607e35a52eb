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
    /// Enqueue everywhere here that matches, or, where a subscription refuses, nowhere here: each message for itself.
    Publish { ticket: Ticket, run: Run },
    /// Enqueue everywhere here that matches, whatever its limit: the part of a publish that concerns
    /// several shards and was begun while none was near full, so that no shard may refuse it alone.
    /// By how much it can go beyond a limit is bounded by what frontends may have outstanding.
    Accept { ticket: Ticket, run: Run },
    /// First pass of a publish that concerns several shards while one is near full: keep room.
    Reserve { ticket: Ticket, message: Message },
    /// Second pass: every shard had room.
    Commit { ticket: Ticket },
    /// Second pass: some shard had none.
    Abort { ticket: Ticket },
    /// Acks in a member's own stream that name deliveries of this broker's, and no subscription.
    Ack { member: MemberId, ids: SmallVec<[DeliveryId; 1]> },
    /// Any ack, nack or extend in a member's own stream.
    Settle(Box<Settle>),
    /// The same by a unary call, from any connection.
    SettleCall(Box<SettleCall>),
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

impl Input {
    /// The messages or deliveries that it is about; 1 where it is about something else.
    pub fn items(&self) -> usize {
        match self {
            Input::Publish { run, .. } | Input::Accept { run, .. } => run.len(),
            Input::Ack { ids, .. } => ids.len(),
            _ => 1,
        }
    }
}

/// Messages that are published one after the other, at least one, and answered together.
pub type Run = SmallVec<[Message; 2]>;

/// What is done with deliveries in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Done with: never again.
    Ack,
    Nack(Nack),
    /// The holder needs more time: this long from now; zero: as long as the subscription's ack_timeout.
    Extend {
        ack_timeout: Duration,
    },
}

/// How a delivery goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Nack {
    /// How long it is parked before it may be delivered again.
    pub delay: Duration,
    /// Never again: to the dead letters, or dropped. Delay and keep_attempt mean nothing then.
    pub discard: bool,
    /// Put back unstarted: the delivery was no attempt.
    pub keep_attempt: bool,
}

/// Which deliveries a command names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettleTarget {
    /// By system_id, each once. `unknown` counts those texts that this broker cannot have made.
    Deliveries { ids: SmallVec<[DeliveryId; 1]>, unknown: u32 },
    /// The delivery in flight of the message with this message_id.
    Message(Box<str>),
}

impl SettleTarget {
    /// How many deliveries it names, found or not.
    pub fn named(&self) -> u32 {
        match self {
            SettleTarget::Deliveries { ids, unknown } => ids.len() as u32 + unknown,
            SettleTarget::Message(_) => 1,
        }
    }
}

/// An ack, nack or extend in a stream.
#[derive(Debug)]
pub struct Settle {
    pub member: MemberId,
    /// As the client gave it; only its own is right.
    pub subscription_id: Option<SubscriptionId>,
    pub target: SettleTarget,
    pub action: Action,
}

/// A unary ack, nack or extend.
#[derive(Debug)]
pub struct SettleCall {
    pub ticket: Ticket,
    pub subscription_id: SubscriptionId,
    pub target: SettleTarget,
    pub action: Action,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::Effect;

    /// What is rare is boxed, so that what crosses from executor to executor takes a cache line.
    #[test]
    fn inputs_and_effects_are_small() {
        assert!(size_of::<Input>() <= 48, "{}", size_of::<Input>());
        assert!(size_of::<Effect>() <= 56, "{}", size_of::<Effect>());
    }
}
