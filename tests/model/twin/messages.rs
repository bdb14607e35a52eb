//! What becomes of messages: published, refused, delivered.

use tinybroker::core::{EndReason, Overflow, PublishRefusal};
use tinybroker::model::{MemberId, Message, Ticket, Time};

use super::{Held, Item, Reservation, Subscription, Twin};
use crate::outcome::{Outcome, Reply, Told};

impl Twin {
    fn matching(&self, message: &Message) -> Vec<u64> {
        let topic = message.topic();
        let wanted = |s: &&Subscription| s.spec.patterns.iter().any(|pattern| pattern.matches(topic));
        self.subscriptions.iter().filter(wanted).map(|s| s.serial).collect()
    }

    /// Room kept for publishes that a later commit must not find refused.
    pub(super) fn reserved(&self, subscription: &Subscription) -> (u64, u64) {
        let kept = self.reservations.iter().filter(|kept| kept.serials.contains(&subscription.serial));
        kept.fold((0, 0), |(messages, bytes), kept| (messages + 1, bytes + kept.message.cost()))
    }

    /// The subscriptions that refuse a message, with their figures.
    fn refusals(&self, message: &Message) -> Vec<PublishRefusal> {
        let matching = self.matching(message);
        let mut refusals = Vec::new();
        for s in self.subscriptions.iter().filter(|s| matching.contains(&s.serial)) {
            let (kept, kept_bytes) = self.reserved(s);
            let (waiting, waiting_bytes) = (s.waiting.len() as u64 + kept, s.waiting_bytes() + kept_bytes);
            let (subscription, limit) = (s.id.clone(), s.spec.options.max_pending);
            if s.spec.options.overflow != Overflow::Reject {
                continue;
            } else if waiting >= limit {
                refusals.push(PublishRefusal::Messages { subscription, waiting, limit });
            } else if waiting_bytes + message.cost() > self.config.max_pending_bytes {
                let limit = self.config.max_pending_bytes;
                refusals.push(PublishRefusal::Bytes { subscription, waiting: waiting_bytes, limit });
            }
        }
        refusals
    }

    pub(super) fn publish(&mut self, ticket: Ticket, run: &[Message]) {
        let replies = run.iter().map(|message| {
            let refusals = self.refusals(message);
            if refusals.is_empty() {
                return self.offer_all(self.matching(message), message);
            }
            self.count("refused_subscription_full", 1);
            Reply::Full(refusals)
        });
        let reply = replies.collect();
        self.said.push(Outcome::Answer(ticket, reply));
    }

    pub(super) fn accept(&mut self, ticket: Ticket, run: &[Message]) {
        let reply = run.iter().map(|message| self.offer_all(self.matching(message), message)).collect();
        self.said.push(Outcome::Answer(ticket, reply));
    }

    pub(super) fn reserve(&mut self, ticket: Ticket, message: &Message) {
        let refusals = self.refusals(message);
        let reply = if refusals.is_empty() {
            let serials = self.matching(message);
            self.reservations.push(Reservation { ticket, message: message.clone(), serials });
            Reply::Reserved
        } else {
            self.count("refused_subscription_full", 1);
            Reply::Full(refusals)
        };
        self.said.push(Outcome::Answer(ticket, reply));
    }

    pub(super) fn commit(&mut self, ticket: Ticket) {
        let Some(at) = self.reservations.iter().position(|kept| kept.ticket == ticket) else { return };
        let Reservation { message, serials, .. } = self.reservations.remove(at);
        let reply = self.offer_all(serials, &message);
        self.said.push(Outcome::Answer(ticket, reply));
    }

    /// To each, in order of their places; beyond a slice they have it, and hand it out with a later tick.
    fn offer_all(&mut self, serials: Vec<u64>, message: &Message) -> Reply {
        let alive = |s: &&Subscription| serials.contains(&s.serial);
        let mut targets: Vec<(usize, u64)> =
            self.subscriptions.iter().filter(alive).map(|s| (s.place, s.serial)).collect();
        targets.sort();
        let mut taken = 0;
        for (nth, (_, serial)) in targets.into_iter().enumerate() {
            if !self.offer(serial, message) {
                continue;
            }
            taken += 1;
            if nth < self.config.fan_out_slice || self.is_half_full(serial) {
                self.feed(serial);
            } else if !self.unserved.contains(&serial) {
                self.unserved.push(serial);
            }
        }
        Reply::Published(taken)
    }

    fn is_half_full(&mut self, serial: u64) -> bool {
        let limit_bytes = self.config.max_pending_bytes;
        let s = self.subscriptions.iter().find(|s| s.serial == serial).expect("is there");
        let (mut kept, mut kept_bytes) = self.reserved(s);
        if s.spec.options.overflow != Overflow::Reject {
            (kept, kept_bytes) = (0, 0);
        }
        (s.waiting.len() as u64 + kept) * 2 >= s.spec.options.max_pending
            || (s.waiting_bytes() + kept_bytes) * 2 >= limit_bytes
    }

    pub(super) fn serve_slice(&mut self) {
        let slice = self.unserved.len().min(self.config.fan_out_slice);
        let served: Vec<u64> = self.unserved.drain(..slice).collect();
        served.into_iter().for_each(|serial| self.feed(serial));
    }

    pub(super) fn at_once(&self) -> Option<Time> {
        self.unserved.first().map(|_| Time::default())
    }

    /// Whether a subscription took the message that nobody refused.
    fn offer(&mut self, serial: u64, message: &Message) -> bool {
        let limit_bytes = self.config.max_pending_bytes;
        self.offered += 1;
        let place = self.offered;
        let Some(s) = self.by_serial(serial) else { return false };
        let (overflow, limit) = (s.spec.options.overflow, s.spec.options.max_pending);
        let is_full = |s: &Subscription| {
            s.waiting.len() as u64 >= limit || s.waiting_bytes() + message.cost() > limit_bytes
        };
        let mut dropped = 0;
        match overflow {
            Overflow::DropNewest if is_full(s) => {
                s.lagged += 1;
                self.count("dropped_newest", 1);
                return false;
            }
            Overflow::Disconnect if is_full(s) => {
                self.disconnect(serial);
                return false;
            }
            Overflow::DropOldest => {
                while is_full(s) && !s.waiting.is_empty() {
                    s.waiting.remove(0);
                    dropped += 1;
                }
            }
            _ => {}
        }
        s.lagged += dropped;
        s.waiting.push(Item {
            place,
            message: message.clone(),
            deliveries: 0,
            attempts: 0,
            parked_until: None,
        });
        self.count("dropped_oldest", dropped as usize);
        self.count("accepted", 1);
        true
    }

    fn disconnect(&mut self, serial: u64) {
        let limit_bytes = self.config.max_pending_bytes;
        let s = self.by_serial(serial).expect("is there");
        let (behind, limit) = (s.waiting.len() as u64, s.spec.options.max_pending);
        let reason = if behind >= limit {
            EndReason::Overflow { behind, limit }
        } else {
            EndReason::OverflowBytes { behind_bytes: s.waiting_bytes(), limit_bytes }
        };
        let members: Vec<MemberId> = s.members.iter().map(|member| member.id).collect();
        members.into_iter().for_each(|member| self.tell(member, Told::End(reason.clone())));
        self.count("disconnected_subscriptions", 1);
        self.end(serial, "dropped_disconnect");
    }

    /// Hands out what is ready, as long as somebody has room.
    pub(super) fn feed(&mut self, serial: u64) {
        while !self.draining && self.deliver_next(serial) {}
    }

    fn deliver_next(&mut self, serial: u64) -> bool {
        let Some(s) = self.by_serial(serial) else { return false };
        s.update_round();
        let (Some(at), Some(receiver)) = (s.next_ready(), s.next_receiver()) else { return false };
        let mut item = s.waiting.remove(at);
        item.deliveries += 1;
        item.attempts += 1;
        let (epoch, lagged) = (s.epoch, std::mem::take(&mut s.lagged));
        let (id, attempt, timeout) = (item.delivery_id(), item.attempts, s.spec.options.ack_timeout);
        s.round.retain(|id| *id != receiver);
        let member = s.member(receiver);
        member.untaken.push(item.message.cost());
        if lagged > 0 {
            self.tell(receiver, Told::Lagged(lagged));
        }
        self.tell(receiver, Told::Deliver { id, attempt, epoch });
        self.count("delivered", 1);
        self.count("redelivered", usize::from(id.delivery > 1));
        let due = self.after(timeout);
        let s = self.by_serial(serial).expect("is there");
        if s.member(receiver).max_in_flight > 0 {
            s.in_flight.push(Held { holder: receiver, item, due });
        } else {
            self.count("sent_unacked", 1);
        }
        true
    }

    pub(super) fn credit(&mut self, member: MemberId, messages: u32, bytes: u64) {
        let Some(s) = self.of_member(member) else { return };
        let taken: u64 = s.member(member).untaken.drain(..messages as usize).sum();
        assert_eq!(taken, bytes, "a connection takes what it was sent");
        let serial = s.serial;
        self.feed(serial);
    }
}
