//! A member of a receiver, and what a delivery to it means.

use std::sync::Arc;

use super::order::{Coming, Order};
use super::track::{Found, Was};
use super::verdict::Promise;
use super::{Kind, LaneId, Ledger, ReceiverId, lock};

/// One that takes messages for a receiver. It belongs to the task that reads them.
#[derive(Debug)]
pub struct Member {
    ledger: Arc<Ledger>,
    receiver: ReceiverId,
    /// Within its receiver, from 0.
    number: u32,
    order: Order,
}

/// What a delivery means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivered {
    /// The first of this message at this receiver.
    First,
    /// A message that the receiver had before comes again after a death, as it should.
    Again,
    /// A promise was broken; the verdict will say which.
    Violation,
}

/// A delivery's first broken promise, and how to say it after `message 7 of lane "a" came to "b"`.
struct Broken(Promise, String);

/// A message as it was delivered.
#[derive(Debug, Clone, Copy)]
struct Delivery {
    lane: LaneId,
    sequence: u64,
    attempt: u32,
}

impl Member {
    pub(super) fn join(ledger: Arc<Ledger>, receiver: ReceiverId) -> Self {
        let number = ledger.receiver(receiver).join();
        Member { ledger, receiver, number, order: Order::default() }
    }

    /// A message came. To be called in the order of coming; `attempt`: as the broker said, from 1.
    ///
    /// In a group a violation is to be acked like any other delivery: the broker waits for it.
    pub fn delivered(&mut self, lane: LaneId, sequence: u64, attempt: u32) -> Delivered {
        let delivery = Delivery { lane, sequence, attempt };
        match self.take(delivery).and_then(|found| self.check(delivery, found)) {
            Ok(delivered) => delivered,
            Err(Broken(promise, how)) => {
                let to = self.ledger.receiver(self.receiver).member(self.number);
                self.ledger.report(promise, lane, sequence, format_args!("came to {to}{how}"));
                Delivered::Violation
            }
        }
    }

    /// Enters a delivery unless it is one that must not be.
    fn take(&self, delivery: Delivery) -> Result<Found, Broken> {
        let Delivery { lane, sequence, attempt } = delivery;
        let receiver = self.ledger.receiver(self.receiver);
        receiver.count();
        let Some((lane, track)) = self.ledger.track(lane, self.receiver) else {
            return Err(Broken(Promise::Misdelivered, ", for which it was not meant".to_owned()));
        };
        if sequence >= lane.sent() {
            return Err(Broken(Promise::Unpublished, " and was never sent".to_owned()));
        }
        let asks_ack = receiver.kind != Kind::Multi;
        let is_dead = |member| receiver.is_dead(member);
        let found = lock(track).deliver(sequence, self.number, attempt, asks_ack, is_dead);
        match found.was {
            Was::Held { by } if by == self.number => {
                Err(Broken(Promise::Doubled, ", which still held it".to_owned()))
            }
            Was::Held { by } => Err(Broken(Promise::TwoHolders, format!(" while member {by} held it"))),
            Was::Acked { by } => Err(Broken(Promise::Doubled, format!(" after member {by} had acked it"))),
            Was::Final if lane.has_refused(sequence) => {
                Err(Broken(Promise::Unpublished, " though its publish was refused".to_owned()))
            }
            Was::Final => Err(Broken(Promise::Doubled, " when it was final there".to_owned())),
            Was::Awaited | Was::Returned { .. } | Was::AckLost { .. } => {
                self.ledger.took(found, asks_ack);
                Ok(found)
            }
        }
    }

    /// Whether a delivery came to the right member at the right time.
    fn check(&mut self, delivery: Delivery, found: Found) -> Result<Delivered, Broken> {
        let receiver = self.ledger.receiver(self.receiver);
        if receiver.kind == Kind::Singleton
            && let Some(active) = receiver.activate(self.number)
        {
            return Err(Broken(Promise::TwoHolders, format!(" while member {active} was active")));
        }
        let (kind, deaths) = (receiver.kind, receiver.deaths());
        let owes_order = self.ledger.lane(delivery.lane).ordered && !found.excused;
        if owes_order && let Some(newer) = self.overtaken_by(delivery, found, kind, deaths) {
            return Err(Broken(Promise::Reordered, format!(" after message {newer}")));
        }
        let attempt = delivery.attempt;
        let earlier = found.earlier_attempt();
        if attempt <= earlier || attempt > deaths.saturating_add(1) {
            let how =
                format!(" as attempt {attempt}, after attempt {earlier} and {deaths} deaths of members");
            return Err(Broken(Promise::Misnumbered, how));
        }
        Ok(if found.was == Was::Awaited { Delivered::First } else { Delivered::Again })
    }

    /// See [`Order`].
    fn overtaken_by(&mut self, delivery: Delivery, found: Found, kind: Kind, deaths: u32) -> Option<u64> {
        let Delivery { lane, sequence, attempt } = delivery;
        let is_first_attempt = attempt == 1 && found.was == Was::Awaited;
        // What only one member has at a time is in order over all members.
        if sequence < found.reached && (kind == Kind::Multi || kind == Kind::Singleton && is_first_attempt) {
            return Some(found.reached - 1);
        }
        if kind == Kind::Multi {
            return None;
        }
        let from = found.returned_from().filter(|_| attempt == found.earlier_attempt() + 1);
        self.order.overtaken_by(Coming { lane, sequence, is_first_attempt, from }, kind, deaths)
    }

    /// A message was acked. `certain`: the broker said so (the call settled 1); else the ack was sent.
    ///
    /// An ack by a call that is not answered when this member dies is told before that, as not certain: the broker
    /// may have carried it out.
    pub fn acked(&mut self, lane: LaneId, sequence: u64, certain: bool) {
        self.ledger.acked(lane, self.receiver, self.number, sequence, certain);
    }

    /// This member is about to leave, in whatever way; to be called before it does. What it holds may then
    /// come to others, and what it acked without certainty may come again.
    ///
    /// # Panics
    /// If the plan did not say that members may die, or if this is a MULTI subscriber, which must stay.
    pub fn died(self) {
        let receiver = self.ledger.receiver(self.receiver);
        assert!(self.ledger.members_may_die, "the plan must say that members may die");
        assert!(receiver.kind != Kind::Multi, "\"{}\" must stay to the end", receiver.name);
        receiver.died(self.number);
    }
}
