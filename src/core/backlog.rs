use std::collections::{BTreeMap, VecDeque};

use super::entry::Entry;
use super::parked::Parked;
use crate::model::{Message, Mode, Time};

/// Above this many unused places an emptied queue or table gives its memory back.
pub const KEEP_PLACES: usize = 1024;

/// What waits in one subscription, always in publish order.
///
/// What never left is in `fresh`; what came back is in `returned`, or `parked` until its time comes. Messages
/// leave from the front, so all that ever left is older than all of `fresh`.
///
/// ```text
///   push ──▶ fresh ────────────pop──▶ in flight
///            returned ─────────pop──▶    │ │
///               ▲  ▲─────────put back────┘ │
///               └──due── parked ◀──park────┘
/// ```
#[derive(Debug)]
pub struct Backlog {
    fresh: VecDeque<Entry>,
    returned: BTreeMap<u64, Entry>,
    parked: Parked,
    /// A parked message holds back those behind it.
    keeps_order: bool,
    bytes: u64,
    next_position: u64,
}

impl Backlog {
    pub fn new(mode: Mode) -> Self {
        Backlog {
            fresh: VecDeque::new(),
            returned: BTreeMap::new(),
            parked: Parked::default(),
            keeps_order: mode == Mode::Singleton,
            bytes: 0,
            next_position: 0,
        }
    }

    /// A message takes its place in the publish order; it does not wait here yet.
    pub fn arrive(&mut self, message: Message) -> Entry {
        let position = self.next_position;
        self.next_position += 1;
        Entry { position, message, deliveries: 0, attempts: 0 }
    }

    /// The one that arrived last waits.
    pub fn push(&mut self, entry: Entry) {
        self.bytes += entry.message.cost();
        debug_assert!(entry.position + 1 == self.next_position && entry.deliveries == 0);
        self.fresh.push_back(entry);
    }

    /// Back to its old place.
    pub fn put_back(&mut self, entry: Entry) {
        self.bytes += entry.message.cost();
        self.make_ready(entry);
    }

    /// Back to its old place, where nobody gets it before `due`.
    pub fn park(&mut self, due: Time, entry: Entry) {
        self.bytes += entry.message.cost();
        self.parked.insert(due, entry);
    }

    /// Readies one parked message whose time has come by `now`; false where there is none.
    pub fn unpark(&mut self, now: Time) -> bool {
        let due = self.parked.pop_due(now);
        due.map(|entry| self.make_ready(entry)).is_some()
    }

    fn make_ready(&mut self, entry: Entry) {
        debug_assert!(self.fresh.front().is_none_or(|next| entry.position < next.position));
        let twin = self.returned.insert(entry.position, entry);
        debug_assert!(twin.is_none(), "a message waits once");
    }

    /// Whether a message may be delivered now.
    pub fn has_ready(&self) -> bool {
        let Some(next) = self.next_ready() else { return false };
        !self.keeps_order || self.parked.oldest().is_none_or(|parked| next < parked)
    }

    /// The next in publish order, parked ones left out.
    pub fn pop(&mut self) -> Option<Entry> {
        let entry = match self.returned.pop_first() {
            Some((_, entry)) => entry,
            None => self.fresh.pop_front()?,
        };
        Some(self.release(entry))
    }

    /// The one that was published first of all that wait.
    pub fn pop_oldest(&mut self) -> Option<Entry> {
        match (self.next_ready(), self.parked.oldest()) {
            (Some(ready), Some(parked)) if parked < ready => self.pop_parked(),
            (None, Some(_)) => self.pop_parked(),
            _ => self.pop(),
        }
    }

    fn pop_parked(&mut self) -> Option<Entry> {
        let entry = self.parked.pop_oldest()?;
        Some(self.release(entry))
    }

    fn release(&mut self, entry: Entry) -> Entry {
        self.bytes -= entry.message.cost();
        if self.fresh.is_empty() && self.fresh.capacity() > KEEP_PLACES {
            self.fresh.shrink_to(KEEP_PLACES);
        }
        entry
    }

    fn next_ready(&self) -> Option<u64> {
        let returned = self.returned.keys().next().copied();
        returned.or_else(|| self.fresh.front().map(|entry| entry.position))
    }

    /// When the next parked message is due.
    pub fn next_due(&self) -> Option<Time> {
        self.parked.next_due()
    }

    /// What waits, parked messages too.
    pub fn len(&self) -> u64 {
        (self.fresh.len() + self.returned.len() + self.parked.len()) as u64
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn parked(&self) -> u64 {
        self.parked.len() as u64
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What is not parked, in publish order.
    pub fn ready(&self) -> impl Iterator<Item = &Entry> {
        self.returned.values().chain(&self.fresh)
    }

    /// What is parked, for the invariants.
    pub fn parked_entries(&self) -> &Parked {
        &self.parked
    }
}
