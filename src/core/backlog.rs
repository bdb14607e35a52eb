use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::model::Message;

/// Above this many unused places an emptied queue or table gives its memory back.
pub const KEEP_PLACES: usize = 1024;

/// A message in one subscription, waiting or in flight.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Place in the publish order of the subscription, from 0.
    pub position: u64,
    pub message: Arc<Message>,
    /// Deliveries so far.
    pub deliveries: u32,
    /// Attempts so far.
    pub attempts: u32,
}

/// What waits in one subscription, always in publish order.
///
/// What never left is in `fresh`; what came back is in `returned`. Messages leave from the front,
/// so all that ever left is older than all of `fresh`.
#[derive(Debug, Default)]
pub struct Backlog {
    fresh: VecDeque<Entry>,
    returned: BTreeMap<u64, Entry>,
    bytes: u64,
    next_position: u64,
}

impl Backlog {
    pub fn push(&mut self, message: Arc<Message>) {
        self.bytes += message.cost();
        let position = self.next_position;
        self.next_position += 1;
        self.fresh.push_back(Entry { position, message, deliveries: 0, attempts: 0 });
    }

    /// Back to its old place.
    pub fn put_back(&mut self, entry: Entry) {
        debug_assert!(self.fresh.front().is_none_or(|next| entry.position < next.position));
        self.bytes += entry.message.cost();
        let twin = self.returned.insert(entry.position, entry);
        debug_assert!(twin.is_none(), "a message waits once");
    }

    /// The next in publish order.
    pub fn pop(&mut self) -> Option<Entry> {
        let entry = match self.returned.pop_first() {
            Some((_, entry)) => entry,
            None => self.fresh.pop_front()?,
        };
        self.bytes -= entry.message.cost();
        if self.fresh.is_empty() && self.fresh.capacity() > KEEP_PLACES {
            self.fresh.shrink_to(KEEP_PLACES);
        }
        Some(entry)
    }

    pub fn len(&self) -> u64 {
        (self.fresh.len() + self.returned.len()) as u64
    }

    pub fn is_empty(&self) -> bool {
        self.fresh.is_empty() && self.returned.is_empty()
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// In publish order.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.returned.values().chain(&self.fresh)
    }
}
