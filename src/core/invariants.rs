//! What always holds, by number. Debug builds, property tests and simulations call the same check.
//!
//! - **I1** a message of a subscription is in exactly one of ready, parked, in flight, settled.
//! - **I2** a member's in-flight count is within its max_in_flight.
//! - **I3** one live delivery a message; a delivery is settled at most once.
//! - **I4** a SINGLETON group with members has exactly one active member; at most one while the broker drains.
//! - **I5** nothing is in flight at a member that left.
//! - **I6** accepted = ready + parked + in flight + acked + sent un-acked + dead-lettered + dropped by reason.
//! - **I7** byte counts equal the bytes held.
//! - **I8** the next deadline is the true minimum.
//! - **I11** the counts of near full subscriptions and of what is in flight are those found by looking.
//! - **I12** while a message is ready and nothing drains, no member that could take it has room, unless the subscription
//!   was left for the next tick; in a SINGLETON group none is ready behind a parked one.
//! - **I13** what waits has attempts left.
//!
//! I9 belongs to the ring and I10 to the pattern index.

use std::collections::HashSet;

use super::Core;
use super::roster::Roster;
use super::subscription::Subscription;
use crate::model::Time;

impl Core {
    /// Panics with the number of the invariant that is broken.
    pub fn check(&self) {
        let (mut held, mut members, mut near_full, mut in_flight) = (0, 0, 0, 0);
        for (key, subscription) in &self.subscriptions {
            subscription.check(self.books.draining);
            held += subscription.backlog.len() + subscription.in_flight.len() as u64;
            in_flight += subscription.in_flight.len() as u64;
            members += subscription.members.len();
            near_full += usize::from(subscription.is_near_full(&self.books.config));
            assert_eq!(self.by_id.get(&subscription.id), Some(&key), "each subscription is found by its id");
            let lingers = subscription.lingers_until.is_some();
            assert_eq!(subscription.members.is_empty(), lingers, "I8: without members it lingers");
            let noted = subscription.noted_deadline.map(|at| self.deadlines.contains(&(at, key)));
            assert_ne!(noted, Some(false), "I8: a deadline is noted");
            let left =
                self.unserved.iter().any(|&(other, serial)| (other, serial) == (key, subscription.serial));
            assert_eq!(subscription.is_unserved, left, "I12: what is left for later is in line");
            if !self.books.draining && !left {
                let idle = subscription.roster.next(&subscription.members);
                assert!(
                    !subscription.backlog.has_ready() || idle.is_none(),
                    "I12: a message is ready beside room"
                );
            }
        }
        assert_eq!(self.members.len(), members, "I5: members are those of the subscriptions");
        let at_once = self.unserved.front().map(|_| Time::default());
        let dues = self.subscriptions.iter().flat_map(|(_, subscription)| subscription.dues());
        let least = dues.chain(at_once).min();
        assert_eq!(self.next_deadline(), least, "I8: the next deadline is the true minimum");
        assert_eq!(self.books.near_full, near_full, "I11: near full");
        assert_eq!(self.books.in_flight, in_flight, "I11: in flight");
        assert_eq!(self.held(), held, "I6: accepted = held + gone");
    }
}

impl Subscription {
    /// Every moment at which something is due here.
    fn dues(&self) -> impl Iterator<Item = Time> {
        let parked = self.backlog.parked_entries().dues();
        self.lingers_until.into_iter().chain(self.in_flight.dues()).chain(parked)
    }

    fn check(&self, draining: bool) {
        let mut positions = HashSet::new();
        let mut bytes = 0;
        let mut last = None;
        for entry in self.backlog.ready() {
            assert!(positions.insert(entry.position), "I1: waits twice");
            assert!(last.replace(entry.position) < Some(entry.position), "a queue is in publish order");
            assert!(!self.is_spent(entry), "I13: ready after all its attempts");
            bytes += entry.message.cost();
        }
        for entry in self.backlog.parked_entries().iter() {
            assert!(positions.insert(entry.position), "I1: parked and ready");
            assert!(!self.is_spent(entry), "I13: parked after all its attempts");
            bytes += entry.message.cost();
        }
        assert_eq!(bytes, self.backlog.bytes(), "I7: bytes waiting");
        let (mut in_flight, mut bytes, mut numbers) = (0, 0, HashSet::new());
        for (_, member, entry) in self.in_flight.iter() {
            assert!(positions.insert(entry.position), "I1: waits and is in flight");
            assert!(numbers.insert(entry.message.number()), "I3: two live deliveries of a message");
            assert!(self.members.contains(member), "I5: in flight at a member that left");
            bytes += entry.message.cost();
            in_flight += 1;
        }
        assert_eq!(bytes, self.in_flight.bytes(), "I7: bytes in flight");
        let by_member: u32 = self.members.iter().map(|(_, member)| member.in_flight).sum();
        assert_eq!(by_member, in_flight, "I1: members hold what is in flight");
        for (key, member) in &self.members {
            assert!(member.in_flight <= member.max_in_flight, "I2: more in flight than asked for");
            if let Roster::Balanced(balanced) = &self.roster {
                assert_eq!(member.is_in_round, member.has_room(), "I12: in the round exactly with room");
                assert_eq!(member.is_in_round, balanced.is_in_round(key), "I12: has its turn");
            }
        }
        if let Roster::Singleton(singleton) = &self.roster {
            let active = usize::from(singleton.active().is_some());
            let due = usize::from(!self.members.is_empty());
            assert!(active == due || (draining && active == 0), "I4: one active member");
            assert_eq!(active + singleton.standbys(), self.members.len(), "I4: the others stand by");
        }
    }
}
