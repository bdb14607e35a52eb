//! A message that many subscriptions want is in all of their queues at once, but handed out to so many of them in one go:
//! nobody else waits for the rest.

use super::effect::Effect;
use super::{Core, SubscriptionKey};
use crate::model::{Message, Time};

impl Core {
    /// Enqueues in each of these subscriptions, which are not asked. Returns how many took it.
    pub(super) fn fan_out(
        &mut self,
        now: Time,
        targets: &[SubscriptionKey],
        message: Message,
        effects: &mut Vec<Effect>,
    ) -> u32 {
        let Some((&last, others)) = targets.split_last() else { return 0 };
        let mut taken = 0;
        for (nth, &key) in others.iter().enumerate() {
            taken += u32::from(self.give(now, key, nth, message.clone(), effects));
        }
        taken + u32::from(self.give(now, last, others.len(), message, effects))
    }

    /// Enqueues a message in the `nth` of the subscriptions that want it. Tells whether it took it.
    fn give(
        &mut self,
        now: Time,
        key: SubscriptionKey,
        nth: usize,
        message: Message,
        effects: &mut Vec<Effect>,
    ) -> bool {
        if !self.admit(key, &message, effects) {
            return false;
        }
        let is_now = nth < self.books.config.fan_out_slice;
        let subscription = &mut self.subscriptions[key];
        let entry = subscription.backlog.arrive(message);
        if is_now && let Some(member) = subscription.next_idle(&self.books) {
            subscription.deliver(now, member, entry, &mut self.books, effects);
            subscription.note_room(&mut self.books);
            self.note_deadline(key);
            return true;
        }
        subscription.backlog.push(entry);
        if is_now || !self.serve_later(key) {
            self.serve(now, key, effects);
        }
        true
    }

    /// Hands out to the next of those that were left for later.
    pub(super) fn serve_slice(&mut self, now: Time, effects: &mut Vec<Effect>) {
        for _ in 0..self.books.config.fan_out_slice {
            let Some((key, serial)) = self.unserved.pop_front() else { return };
            if self.is_alive(key, serial) {
                self.subscriptions[key].is_unserved = false;
                self.serve(now, key, effects);
            }
        }
    }

    fn serve(&mut self, now: Time, key: SubscriptionKey, effects: &mut Vec<Effect>) {
        self.subscriptions[key].feed(now, &mut self.books, effects);
        self.note_deadline(key);
    }

    /// Leaves a subscription for later, unless its limits are near: what waits for its turn must not count as
    /// a slow reader's.
    fn serve_later(&mut self, key: SubscriptionKey) -> bool {
        let subscription = &mut self.subscriptions[key];
        if subscription.is_half_full(&self.books) {
            return false;
        }
        subscription.note_room(&mut self.books);
        if !std::mem::replace(&mut subscription.is_unserved, true) {
            self.unserved.push_back((key, subscription.serial));
        }
        true
    }
}
