use smallvec::SmallVec;

use super::effect::{Answer, Effect, EndReason, Settlement};
use super::inflight::Slot;
use super::input::{Action, Settle, SettleCall, SettleTarget};
use super::subscription::Subscription;
use super::{Books, Core, Counter, MemberKey};
use crate::model::{DeliveryId, MemberId, Time};

impl Core {
    /// A command in a stream settles that member's own deliveries; one that names nothing in flight is
    /// only counted, since nobody waits for an answer.
    pub(super) fn settle_in_stream(&mut self, now: Time, command: Settle, effects: &mut Vec<Effect>) {
        let Settle { member, subscription_id, target, action } = command;
        let Some(&(key, member_key)) = self.members.get(&member) else { return };
        let subscription = &mut self.subscriptions[key];
        if subscription_id.is_some_and(|id| id != subscription.id) {
            return self.end_member(now, member, EndReason::OtherSubscription, effects);
        }
        if subscription.asks_acks {
            subscription.settle(now, &target, Some(member_key), action, &mut self.books, effects);
            subscription.feed(now, &mut self.books, effects);
            self.note_deadline(key);
        }
    }

    /// The same for what is most common.
    pub(super) fn ack_in_stream(
        &mut self,
        now: Time,
        member: MemberId,
        ids: SmallVec<[DeliveryId; 1]>,
        effects: &mut Vec<Effect>,
    ) {
        let target = SettleTarget::Deliveries { ids, unknown: 0 };
        let command = Settle { member, subscription_id: None, target, action: Action::Ack };
        self.settle_in_stream(now, command, effects);
    }

    /// A command by call, from whatever connection.
    pub(super) fn settle_by_call(&mut self, now: Time, call: &SettleCall, effects: &mut Vec<Effect>) {
        let settlement = match self.by_id.get(&call.subscription_id) {
            None => Settlement::UnknownSubscription,
            Some(&key) if self.subscriptions[key].asks_acks => {
                let subscription = &mut self.subscriptions[key];
                let settled =
                    subscription.settle(now, &call.target, None, call.action, &mut self.books, effects);
                subscription.feed(now, &mut self.books, effects);
                self.note_deadline(key);
                if settled > 0 { Settlement::Done { settled } } else { Settlement::NotInFlight }
            }
            Some(_) => Settlement::NotAsked,
        };
        effects.push(Effect::Answer(call.ticket, Answer::Settled(settlement)));
    }
}

impl Subscription {
    /// Does to what `target` names, at `only` that member where given, what `action` says. Returns to how many.
    fn settle(
        &mut self,
        now: Time,
        target: &SettleTarget,
        only: Option<MemberKey>,
        action: Action,
        books: &mut Books,
        effects: &mut Vec<Effect>,
    ) -> u32 {
        let (mut settled, asked) = (0, target.named());
        match target {
            SettleTarget::Deliveries { ids, .. } => {
                for &id in ids {
                    let found = self.in_flight.find(id);
                    let own =
                        found.filter(|&slot| only.is_none_or(|member| self.in_flight.holder(slot) == member));
                    if let Some(slot) = own {
                        self.settle_one(now, slot, action, books, effects);
                        settled += 1;
                    }
                }
            }
            SettleTarget::Message(message_id) => {
                if let Some(slot) = self.in_flight.find_message(message_id, only) {
                    self.settle_one(now, slot, action, books, effects);
                    settled += 1;
                }
            }
        }
        let (done, not_found) = match action {
            Action::Ack => (Counter::Acked, Counter::AckNotFound),
            Action::Nack(_) => (Counter::Nacked, Counter::NackNotFound),
            Action::Extend { .. } => (Counter::Extended, Counter::ExtendNotFound),
        };
        books.counters.count(done, u64::from(settled));
        books.counters.count(not_found, u64::from(asked - settled));
        settled
    }

    fn settle_one(
        &mut self,
        now: Time,
        slot: Slot,
        action: Action,
        books: &mut Books,
        effects: &mut Vec<Effect>,
    ) {
        match action {
            Action::Ack => drop(self.release(slot, books)),
            Action::Nack(nack) => self.nack(now, slot, nack, books, effects),
            Action::Extend { ack_timeout } => {
                let own = if ack_timeout.is_zero() { self.options.ack_timeout } else { ack_timeout };
                // Where neither says a time, the holder has all the time there is.
                let due = (!own.is_zero()).then(|| now + own);
                self.in_flight.set_due(slot, due);
            }
        }
    }
}
