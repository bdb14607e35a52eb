use super::effect::{Answer, Effect, EndReason, Settlement};
use super::inflight::Slot;
use super::input::{Settle, SettleTarget};
use super::subscription::Subscription;
use super::{Books, Core, Counter, MemberKey};
use crate::model::{MemberId, SubscriptionId, Time};

impl Core {
    /// An ack in a stream settles that member's own deliveries; one that names nothing in flight is
    /// only counted, since nobody waits for an answer.
    pub(super) fn ack_in_stream(
        &mut self,
        now: Time,
        member: MemberId,
        subscription_id: Option<SubscriptionId>,
        target: &SettleTarget,
        effects: &mut Vec<Effect>,
    ) {
        let Some(&(key, member_key)) = self.members.get(&member) else { return };
        let subscription = &mut self.subscriptions[key];
        if subscription_id.is_some_and(|id| id != subscription.id) {
            return self.end_member(now, member, EndReason::OtherSubscription, effects);
        }
        if subscription.asks_acks {
            subscription.ack(target, Some(member_key), &mut self.books);
            subscription.feed(&mut self.books, effects);
        }
    }

    /// An ack by call, from whatever connection.
    pub(super) fn ack_by_call(&mut self, settle: Settle, effects: &mut Vec<Effect>) {
        let settlement = match self.by_id.get(&settle.subscription_id) {
            None => Settlement::UnknownSubscription,
            Some(&key) => {
                let subscription = &mut self.subscriptions[key];
                if subscription.asks_acks {
                    let settled = subscription.ack(&settle.target, None, &mut self.books);
                    subscription.feed(&mut self.books, effects);
                    if settled > 0 { Settlement::Done { settled } } else { Settlement::NotInFlight }
                } else {
                    Settlement::NotAsked
                }
            }
        };
        effects.push(Effect::Answer(settle.ticket, Answer::Settled(settlement)));
    }
}

impl Subscription {
    /// Settles what `target` names, at `only` that member where given. Returns how many.
    fn ack(&mut self, target: &SettleTarget, only: Option<MemberKey>, books: &mut Books) -> u32 {
        let (settled, asked) = match target {
            SettleTarget::Deliveries { ids, unknown } => {
                let mut settled = 0;
                for &id in ids {
                    let slot = self
                        .in_flight
                        .find(id)
                        .filter(|&slot| only.is_none_or(|member| self.in_flight.holder(slot) == member));
                    settled += u32::from(self.ack_slot(slot, books));
                }
                (settled, ids.len() as u32 + unknown)
            }
            SettleTarget::Message(message_id) => {
                let slot = self.in_flight.find_message(message_id, only);
                (u32::from(self.ack_slot(slot, books)), 1)
            }
        };
        books.counters.count(Counter::Acked, u64::from(settled));
        books.counters.count(Counter::AckNotFound, u64::from(asked - settled));
        settled
    }

    fn ack_slot(&mut self, slot: Option<Slot>, books: &mut Books) -> bool {
        let Some(slot) = slot else { return false };
        let key = self.in_flight.holder(slot);
        let member = &mut self.members[key];
        debug_assert!(member.in_flight > 0, "I1: what is in flight is held by its member");
        self.in_flight.release(slot, &mut member.held);
        member.in_flight -= 1;
        books.in_flight -= 1;
        self.roster.note_room(key, &mut self.members);
        true
    }
}
