use smallvec::smallvec;

use super::effect::{Answer, Effect, PublishRefusal};
use super::input::Run;
use super::{Core, Counter, SubscriptionKey};
use crate::model::{Message, Ticket, Time};

/// Room kept for a publish between its two passes.
#[derive(Debug)]
pub struct Reservation {
    message: Message,
    /// Keys with the serial numbers of the subscriptions that were meant.
    targets: Vec<(SubscriptionKey, u64)>,
}

impl Core {
    /// One pass on one shard, message by message: enqueued in every matching subscription, or in none.
    pub(super) fn publish(&mut self, now: Time, ticket: Ticket, run: Run, effects: &mut Vec<Effect>) {
        let published = run.into_iter().map(|message| {
            let matched = self.match_topic(&message);
            let published = match self.refusal(&matched, &message) {
                Some(refusal) => Err(refusal),
                None => Ok(self.fan_out(now, &matched, message, effects)),
            };
            self.matched = matched;
            published
        });
        let published = published.collect();
        effects.push(Effect::Answer(ticket, Answer::Published(published)));
    }

    /// Enqueued in every matching subscription, which is not asked.
    pub(super) fn accept_everywhere(
        &mut self,
        now: Time,
        ticket: Ticket,
        run: Run,
        effects: &mut Vec<Effect>,
    ) {
        let published = run.into_iter().map(|message| {
            let matched = self.match_topic(&message);
            let taken = self.fan_out(now, &matched, message, effects);
            self.matched = matched;
            Ok(taken)
        });
        let published = published.collect();
        effects.push(Effect::Answer(ticket, Answer::Published(published)));
    }

    /// First of two passes: room is kept in every matching subscription, or in none.
    pub(super) fn reserve(&mut self, ticket: Ticket, message: Message, effects: &mut Vec<Effect>) {
        let matched = self.match_topic(&message);
        let answer = match self.refusal(&matched, &message) {
            Some(refusal) => Answer::Refused(refusal),
            None => {
                let mut targets = Vec::with_capacity(matched.len());
                for &key in &matched {
                    let subscription = &mut self.subscriptions[key];
                    subscription.reserved_messages += 1;
                    subscription.reserved_bytes += message.cost();
                    subscription.note_room(&mut self.books);
                    targets.push((key, subscription.serial));
                }
                let twin = self.reservations.insert(ticket, Reservation { message, targets });
                debug_assert!(twin.is_none(), "a ticket is used once");
                Answer::Reserved
            }
        };
        self.matched = matched;
        effects.push(Effect::Answer(ticket, answer));
    }

    /// Second pass, where every shard had room.
    pub(super) fn commit(&mut self, now: Time, ticket: Ticket, effects: &mut Vec<Effect>) {
        let Some(reservation) = self.reservations.remove(&ticket) else { return };
        self.release_room(&reservation);
        let mut targets = reservation.targets;
        targets.retain(|&(key, serial)| self.is_alive(key, serial));
        let targets: Vec<SubscriptionKey> = targets.iter().map(|&(key, _)| key).collect();
        let taken = self.fan_out(now, &targets, reservation.message, effects);
        effects.push(Effect::Answer(ticket, Answer::Published(smallvec![Ok(taken)])));
    }

    /// Second pass, where some shard had none.
    pub(super) fn abort(&mut self, ticket: Ticket) {
        if let Some(reservation) = self.reservations.remove(&ticket) {
            self.release_room(&reservation);
        }
    }

    fn release_room(&mut self, reservation: &Reservation) {
        for &(key, serial) in &reservation.targets {
            if self.is_alive(key, serial) {
                let subscription = &mut self.subscriptions[key];
                subscription.reserved_messages -= 1;
                subscription.reserved_bytes -= reservation.message.cost();
                subscription.note_room(&mut self.books);
            }
        }
    }

    pub(super) fn is_alive(&self, key: SubscriptionKey, serial: u64) -> bool {
        self.subscriptions.get(key).is_some_and(|subscription| subscription.serial == serial)
    }

    /// The scratch list, filled; to be given back. Messages of a topic mostly follow each other.
    fn match_topic(&mut self, message: &Message) -> Vec<SubscriptionKey> {
        let mut matched = std::mem::take(&mut self.matched);
        let topic = message.topic();
        if self.matched_topic == topic {
            return matched;
        }
        matched.clear();
        self.index.matching(topic, &mut matched);
        self.matched_topic.clear();
        self.matched_topic.push_str(topic);
        matched
    }

    fn refusal(&mut self, matched: &[SubscriptionKey], message: &Message) -> Option<Box<PublishRefusal>> {
        if !self.is_near_full() {
            return None;
        }
        let refusal =
            matched.iter().find_map(|&key| self.subscriptions[key].refusal(message, &self.books))?;
        self.books.counters.count(Counter::RefusedFull, 1);
        Some(Box::new(refusal))
    }
}
