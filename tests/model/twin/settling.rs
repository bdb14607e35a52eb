//! Acks, nacks and extends; what returns, and what is given up.

use tinybroker::core::{Action, EndReason, GivenUp, SettleCall, SettleTarget, Settlement};
use tinybroker::model::{MemberId, SubscriptionId};

use super::{Held, Item, Twin};
use crate::outcome::{Outcome, Reply, Told};

impl Twin {
    pub(super) fn settle_in_stream(
        &mut self,
        member: MemberId,
        given: Option<&SubscriptionId>,
        target: &SettleTarget,
        action: Action,
    ) {
        let Some(s) = self.of_member(member) else { return };
        if given.is_some_and(|given| *given != s.id) {
            self.tell(member, Told::End(EndReason::OtherSubscription));
            return self.leave(member);
        }
        if s.asks_acks {
            let serial = s.serial;
            self.settle(serial, Some(member), target, action);
        }
    }

    pub(super) fn settle_by_call(&mut self, call: &SettleCall) {
        let settlement = match self.subscriptions.iter().find(|s| s.id == call.subscription_id) {
            None => Settlement::UnknownSubscription,
            Some(s) if !s.asks_acks => Settlement::NotAsked,
            Some(s) => match self.settle(s.serial, None, &call.target, call.action) {
                0 => Settlement::NotInFlight,
                settled => Settlement::Done { settled },
            },
        };
        self.said.push(Outcome::Answer(call.ticket, Reply::Settled(settlement)));
    }

    /// Settles what is named, at `only` that member where given. What returns is handed out when all is settled.
    fn settle(&mut self, serial: u64, only: Option<MemberId>, target: &SettleTarget, action: Action) -> u32 {
        let (settled, asked) = match target {
            SettleTarget::Deliveries { ids, unknown } => {
                let mut settle =
                    |id| self.settle_first(serial, only, action, |item| item.delivery_id() == id);
                (ids.iter().filter(|id| settle(**id)).count(), ids.len() + *unknown as usize)
            }
            SettleTarget::Message(id) => {
                (usize::from(self.settle_first(serial, only, action, |item| item.is_called(id))), 1)
            }
        };
        let (done, not_found) = match action {
            Action::Ack => ("acked", "ack_not_found"),
            Action::Nack(_) => ("nacked", "nack_not_found"),
            Action::Extend { .. } => ("extended", "extend_not_found"),
        };
        self.count(done, settled);
        self.count(not_found, asked - settled);
        self.feed(serial);
        settled as u32
    }

    /// Settles the first delivered of what is named, if there is one.
    fn settle_first(
        &mut self,
        serial: u64,
        only: Option<MemberId>,
        action: Action,
        is_named: impl Fn(&Item) -> bool,
    ) -> bool {
        let s = self.by_serial(serial).expect("is there");
        let wanted = |held: &Held| only.is_none_or(|only| only == held.holder) && is_named(&held.item);
        let Some(at) = s.in_flight.iter().position(wanted) else { return false };
        match action {
            Action::Ack => drop(s.take(at)),
            Action::Extend { ack_timeout } => {
                let usual = s.spec.options.ack_timeout;
                let due = self.after(if ack_timeout.is_zero() { usual } else { ack_timeout });
                self.by_serial(serial).expect("is there").in_flight[at].due = due;
            }
            Action::Nack(nack) if nack.discard => {
                let item = s.take(at);
                self.give_up(serial, &item, GivenUp::Discarded);
            }
            Action::Nack(nack) => {
                let mut item = s.take(at);
                item.attempts -= u32::from(nack.keep_attempt);
                item.parked_until = self.after(nack.delay);
                self.put_back(serial, item);
            }
        }
        true
    }

    /// Back to its old place; given up where it has had its attempts.
    pub(super) fn put_back(&mut self, serial: u64, item: Item) {
        let s = self.by_serial(serial).expect("is there");
        if has_had_its_attempts(&item, s.spec.options.max_deliveries) {
            return self.give_up(serial, &item, GivenUp::MaxDeliveries);
        }
        s.waiting.push(item);
        s.waiting.sort_by_key(|item| item.place);
    }

    fn give_up(&mut self, serial: u64, item: &Item, reason: GivenUp) {
        let s = self.by_serial(serial).expect("is there");
        let subscription = s.id.clone();
        match (s.spec.options.dead_letter_topic.clone(), reason) {
            (Some(topic), _) => {
                let (message, attempts) = (item.message.number(), item.attempts);
                self.said.push(Outcome::DeadLetter { subscription, topic, message, reason, attempts });
                self.count("dead_lettered", 1);
            }
            (None, GivenUp::MaxDeliveries) => self.count("dropped_max_deliveries", 1),
            (None, GivenUp::Discarded) => self.count("dropped_discarded", 1),
        }
    }

    /// A member holds nothing any more.
    pub(super) fn take_back(&mut self, serial: u64, member: MemberId) {
        loop {
            let s = self.by_serial(serial).expect("is there");
            let Some(at) = s.in_flight.iter().position(|held| held.holder == member) else { return };
            let item = s.take(at);
            self.put_back(serial, item);
        }
    }

    /// The subscription ends: nobody will try again what is on its last attempt.
    pub(super) fn give_up_last_attempts(&mut self, serial: u64) {
        let s = self.by_serial(serial).expect("is there");
        let most = s.spec.options.max_deliveries;
        s.in_flight.sort_by_key(|held| held.item.place);
        let (spent, rest) = std::mem::take(&mut s.in_flight)
            .into_iter()
            .partition(|held| has_had_its_attempts(&held.item, most));
        s.in_flight = rest;
        let spent: Vec<Held> = spent;
        spent.iter().for_each(|held| self.give_up(serial, &held.item, GivenUp::MaxDeliveries));
    }
}

/// `most` 0 is no limit.
fn has_had_its_attempts(item: &Item, most: u32) -> bool {
    most > 0 && item.attempts >= most
}
