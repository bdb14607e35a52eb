use std::collections::{BTreeMap, BTreeSet};

use super::entry::Entry;
use crate::model::Time;

/// Messages that wait for a time: nobody gets them before, and they take nobody's credit.
///
/// Every operation takes logarithmic time, so that a million of them cost what a few do.
#[derive(Debug, Default)]
pub struct Parked {
    by_position: BTreeMap<u64, (Time, Entry)>,
    by_due: BTreeSet<(Time, u64)>,
}

impl Parked {
    pub fn insert(&mut self, due: Time, entry: Entry) {
        self.by_due.insert((due, entry.position));
        let twin = self.by_position.insert(entry.position, (due, entry));
        debug_assert!(twin.is_none(), "I1: a message is parked once");
    }

    /// One whose time has come by `now`, the longest due first.
    pub fn pop_due(&mut self, now: Time) -> Option<Entry> {
        let &(due, position) = self.by_due.first()?;
        if due > now {
            return None;
        }
        self.by_due.pop_first();
        self.by_position.remove(&position).map(|(_, entry)| entry)
    }

    /// The one that was published first.
    pub fn pop_oldest(&mut self) -> Option<Entry> {
        let (position, (due, entry)) = self.by_position.pop_first()?;
        self.by_due.remove(&(due, position));
        Some(entry)
    }

    /// Position of the one that was published first.
    pub fn oldest(&self) -> Option<u64> {
        self.by_position.keys().next().copied()
    }

    /// When the next one is due.
    pub fn next_due(&self) -> Option<Time> {
        self.by_due.first().map(|&(due, _)| due)
    }

    pub fn len(&self) -> usize {
        self.by_position.len()
    }

    /// In publish order.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.by_position.values().map(|(_, entry)| entry)
    }

    /// When each is due, by looking; for the check of [`Parked::next_due`].
    pub fn dues(&self) -> impl Iterator<Item = Time> {
        self.by_position.values().map(|&(due, _)| due)
    }
}
