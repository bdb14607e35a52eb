use slab::Slab;

use super::backlog::Backlog;
use super::effect::PublishRefusal;
use super::inflight::InFlight;
use super::member::Member;
use super::roster::Roster;
use super::spec::{OpenSpec, Overflow, SharedOptions};
use super::{Books, CoreConfig};
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
    /// Whether the deliveries of its last stream are acked; always in a group.
    pub asks_acks: bool,
    /// Room kept for publishes between their two passes.
    pub reserved_messages: u64,
    pub reserved_bytes: u64,
    /// Messages dropped by the overflow policy that nobody was told of yet.
    pub lagged: u64,
    /// When it ends, while it has no member.
    pub lingers_until: Option<Time>,
    /// The deadline that its core knows of.
    pub noted_deadline: Option<Time>,
    counts_as_near_full: bool,
    /// It has something to hand out and was left for a later tick.
    pub is_unserved: bool,
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
            backlog: Backlog::new(spec.mode),
            in_flight: InFlight::default(),
            members: Slab::new(),
            roster: Roster::new(spec.mode),
            asks_acks: spec.mode.is_group(),
            reserved_messages: 0,
            reserved_bytes: 0,
            lagged: 0,
            lingers_until: None,
            noted_deadline: None,
            counts_as_near_full: false,
            is_unserved: false,
        }
    }

    /// Who has its id, for error texts.
    pub fn owner(&self) -> &'static str {
        if self.mode.is_group() { "consumer group" } else { "MULTI stream" }
    }

    /// Messages and bytes that count against its limits: what waits, and in a REJECT subscription
    /// the room that is kept. The other policies refuse nothing, so that nothing is kept from them.
    fn pending(&self) -> (u64, u64) {
        let (messages, bytes) = (self.backlog.len(), self.backlog.bytes());
        match self.options.overflow {
            Overflow::Reject => (messages + self.reserved_messages, bytes + self.reserved_bytes),
            _ => (messages, bytes),
        }
    }

    /// Whether one more message of this cost has no room, whatever the policy makes of it.
    pub fn is_full_for(&self, message: &Message, books: &Books) -> bool {
        let (messages, bytes) = self.pending();
        messages >= self.options.max_pending || bytes + message.cost() > books.config.max_pending_bytes
    }

    /// Whether what is pending takes half of what may, or more.
    pub fn is_half_full(&self, books: &Books) -> bool {
        let (messages, bytes) = self.pending();
        messages * 2 >= self.options.max_pending || bytes * 2 >= books.config.max_pending_bytes
    }

    /// Why a REJECT subscription takes no message of this cost now.
    pub fn refusal(&self, message: &Message, books: &Books) -> Option<PublishRefusal> {
        if self.options.overflow != Overflow::Reject || !self.is_full_for(message, books) {
            return None;
        }
        let subscription = self.id.clone();
        let (messages, bytes) = self.pending();
        Some(if messages >= self.options.max_pending {
            PublishRefusal::Messages { subscription, waiting: messages, limit: self.options.max_pending }
        } else {
            PublishRefusal::Bytes { subscription, waiting: bytes, limit: books.config.max_pending_bytes }
        })
    }

    /// Whether a publish may soon find it full. What is in flight counts too: it may return at any
    /// time, all at once.
    pub fn is_near_full(&self, config: &CoreConfig) -> bool {
        let (messages, bytes) = self.pending();
        let messages = messages + self.in_flight.len() as u64;
        let bytes = bytes + self.in_flight.bytes();
        self.options.overflow == Overflow::Reject
            && (self.options.max_pending.saturating_sub(messages) < config.near_full_messages
                || config.max_pending_bytes.saturating_sub(bytes) < config.near_full_bytes)
    }

    /// Keeps the count of near full subscriptions true; to be called when what it holds has changed.
    pub fn note_room(&mut self, books: &mut Books) {
        let near_full = self.is_near_full(&books.config);
        if near_full != self.counts_as_near_full {
            self.counts_as_near_full = near_full;
            if near_full {
                books.near_full += 1;
            } else {
                books.near_full -= 1;
            }
        }
    }

    /// The end of its part in the count of near full subscriptions.
    pub fn forget_room(&mut self, books: &mut Books) {
        books.near_full -= usize::from(std::mem::take(&mut self.counts_as_near_full));
    }
}
