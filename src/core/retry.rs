//! What becomes of a delivery that was not acked: back to its place, parked, or given up.

use super::effect::{DeadLetter, Effect, GivenUp};
use super::entry::Entry;
use super::inflight::Slot;
use super::input::Nack;
use super::subscription::Subscription;
use super::{Books, Counter, MemberKey};
use crate::model::Time;

impl Subscription {
    /// Takes a delivery from its member.
    pub(super) fn release(&mut self, slot: Slot, books: &mut Books) -> Entry {
        let key = self.in_flight.holder(slot);
        let member = &mut self.members[key];
        debug_assert!(member.in_flight > 0, "I1: what is in flight is held by its member");
        let entry = self.in_flight.release(slot, &mut member.held);
        member.in_flight -= 1;
        books.in_flight -= 1;
        self.roster.note_room(key, &mut self.members);
        entry
    }

    pub(super) fn nack(
        &mut self,
        now: Time,
        slot: Slot,
        nack: Nack,
        books: &mut Books,
        effects: &mut Vec<Effect>,
    ) {
        let mut entry = self.release(slot, books);
        if nack.discard {
            return self.give_up(entry, GivenUp::Discarded, books, effects);
        }
        entry.attempts -= u32::from(nack.keep_attempt);
        let due = (!nack.delay.is_zero()).then(|| now + nack.delay);
        self.put_back(entry, due, books, effects);
    }

    /// Back to its old place, parked until `due` where that is given; given up where it has had its attempts.
    pub(super) fn put_back(
        &mut self,
        entry: Entry,
        due: Option<Time>,
        books: &mut Books,
        effects: &mut Vec<Effect>,
    ) {
        if self.is_spent(&entry) {
            return self.give_up(entry, GivenUp::MaxDeliveries, books, effects);
        }
        match due {
            Some(due) => self.backlog.park(due, entry),
            None => self.backlog.put_back(entry),
        }
    }

    /// Whether a message has had all its attempts.
    pub(super) fn is_spent(&self, entry: &Entry) -> bool {
        let most = self.options.max_deliveries;
        most > 0 && entry.attempts >= most
    }

    fn give_up(&mut self, entry: Entry, reason: GivenUp, books: &mut Books, effects: &mut Vec<Effect>) {
        let counter = match (&self.options.dead_letter_topic, reason) {
            (Some(topic), _) => {
                effects.push(Effect::DeadLetter(Box::new(DeadLetter {
                    topic: topic.clone(),
                    message: entry.message,
                    subscription: self.id.clone(),
                    reason,
                    attempts: entry.attempts,
                })));
                Counter::DeadLettered
            }
            (None, GivenUp::MaxDeliveries) => Counter::DroppedMaxDeliveries,
            (None, GivenUp::Discarded) => Counter::DroppedDiscarded,
        };
        books.counters.count(counter, 1);
    }

    /// Gives up what is in flight and has had all its attempts: the subscription ends, and nobody will try again.
    pub(super) fn give_up_spent(&mut self, books: &mut Books, effects: &mut Vec<Effect>) {
        let in_flight = self.in_flight.iter();
        let spent = in_flight.filter(|(_, _, entry)| self.is_spent(entry));
        let mut spent: Vec<(u64, Slot)> = spent.map(|(slot, _, entry)| (entry.position, slot)).collect();
        spent.sort_unstable();
        for (_, slot) in spent {
            let entry = self.release(slot, books);
            self.give_up(entry, GivenUp::MaxDeliveries, books, effects);
        }
    }

    /// Puts all that a member holds back.
    pub(super) fn take_back(&mut self, key: MemberKey, books: &mut Books, effects: &mut Vec<Effect>) {
        while let Some(slot) = self.in_flight.oldest(&self.members[key].held) {
            let entry = self.release(slot, books);
            self.put_back(entry, None, books, effects);
        }
        debug_assert_eq!(self.members[key].in_flight, 0, "I5: nothing is in flight at a member that left");
    }
}
