use slab::Slab;

use super::backlog::Backlog;
use super::effect::PublishRefusal;
use super::inflight::InFlight;
use super::member::Member;
use super::roster::Roster;
use super::spec::{OpenSpec, Overflow, SharedOptions};
use super::{Books, MemberKey};
use crate::model::{GroupName, Message, Mode, SubscriptionId, Time};
use crate::pattern::Pattern;

/// A queue fed by patterns, and the members that are served from it.
#[derive(Debug)]
pub struct Subscription {
    /// Tells this subscription from a later one under the same key.
    pub serial: u64,
    pub id: SubscriptionId,
    pub mode: Mode,
    pub group: Option<GroupName>,
    pub patterns: Vec<Pattern>,
    pub options: SharedOptions,
    pub backlog: Backlog,
    pub in_flight: InFlight,
    pub members: Slab<Member>,
    pub roster: Roster,
    /// Room kept for publishes between their two passes.
    pub reserved_messages: u64,
    pub reserved_bytes: u64,
    /// Messages dropped by the overflow policy that nobody was told of yet.
    pub lagged: u64,
    /// When it ends, while it has no member.
    pub lingers_until: Option<Time>,
    near_full: bool,
}

impl Subscription {
    /// As its first member fixes it.
    pub fn new(serial: u64, spec: OpenSpec) -> Self {
        Subscription {
            serial,
            id: spec.id_if_new,
            mode: spec.mode,
            group: spec.group,
            patterns: spec.patterns,
            options: spec.options,
            backlog: Backlog::default(),
            in_flight: InFlight::default(),
            members: Slab::new(),
            roster: Roster::new(spec.mode),
            reserved_messages: 0,
            reserved_bytes: 0,
            lagged: 0,
            lingers_until: None,
            near_full: false,
        }
    }

    /// Whether one more message of this cost has no room, whatever the policy makes of it.
    pub fn is_full_for(&self, message: &Message, books: &Books) -> bool {
        self.backlog.len() + self.reserved_messages >= self.options.max_pending
            || self.backlog.bytes() + self.reserved_bytes + message.cost() > books.config.max_pending_bytes
    }

    /// Why a REJECT subscription takes no message of this cost now.
    pub fn refusal(&self, message: &Message, books: &Books) -> Option<PublishRefusal> {
        if self.options.overflow != Overflow::Reject || !self.is_full_for(message, books) {
            return None;
        }
        let subscription = self.id.clone();
        let (waiting, limit) = (self.backlog.len() + self.reserved_messages, self.options.max_pending);
        Some(if waiting >= limit {
            PublishRefusal::Messages { subscription, waiting, limit }
        } else {
            let waiting = self.backlog.bytes() + self.reserved_bytes;
            PublishRefusal::Bytes { subscription, waiting, limit: books.config.max_pending_bytes }
        })
    }

    /// Keeps the count of near full subscriptions true; to be called when what it holds has changed.
    ///
    /// What is in flight counts too: it may return at any time, all at once.
    pub fn note_room(&mut self, books: &mut Books) {
        let messages = self.backlog.len() + self.reserved_messages + self.in_flight.len() as u64;
        let bytes = self.backlog.bytes() + self.reserved_bytes + self.in_flight.bytes();
        let room = self.options.max_pending.saturating_sub(messages);
        let room_bytes = books.config.max_pending_bytes.saturating_sub(bytes);
        let near_full = self.options.overflow == Overflow::Reject
            && (room < books.config.near_full_messages || room_bytes < books.config.near_full_bytes);
        if near_full != self.near_full {
            self.near_full = near_full;
            if near_full {
                books.near_full += 1;
            } else {
                books.near_full -= 1;
            }
        }
    }

    /// The end of its part in the count of near full subscriptions.
    pub fn forget_room(&mut self, books: &mut Books) {
        books.near_full -= usize::from(std::mem::take(&mut self.near_full));
    }

    pub fn is_near_full(&self) -> bool {
        self.near_full
    }

    /// Whether its messages are acked at all.
    pub fn asks_acks(&self) -> bool {
        self.mode.is_group() || self.members.iter().any(|(_, member)| member.asks_acks())
    }

    /// Puts all that a member holds back to its old places.
    pub fn take_back(&mut self, key: MemberKey, books: &mut Books) {
        let member = &mut self.members[key];
        while let Some(slot) = self.in_flight.oldest(&member.held) {
            let entry = self.in_flight.release(slot, &mut member.held);
            self.backlog.put_back(entry);
            member.in_flight -= 1;
            books.in_flight -= 1;
        }
        debug_assert_eq!(member.in_flight, 0, "I5: nothing is in flight at a member that left");
    }
}
