//! The distinct patterns of an index: number, text, holders.

use std::sync::Arc;

use ahash::RandomState;

use super::few::Few;
use super::ids::{IDS, Id, IdQueue};
use super::journal::MOST_CHANGES;
use super::table::{Chunks, Table};
use super::verify::Program;
use crate::pattern::Pattern;

/// Each distinct text once, whoever holds it.
///
/// All else in an index knows patterns by their ids. Whether a pattern is still held is asked here, at the end of a
/// search, so what has gone need not be taken out of anything.
pub(super) struct Registry<K> {
    /// By id; without a pattern, the id is not in use.
    slots: Chunks<Slot>,
    /// By id. Apart from the rest, since each match looks at these and at nothing else.
    holders: Chunks<Few<K>>,
    by_text: Table<Id>,
    hasher: RandomState,
    /// Ids that may be used again once the cache has forgotten them.
    resting: IdQueue,
}

#[derive(Default)]
struct Slot {
    pattern: Option<Pattern>,
    /// Where some posting of the pattern has to be verified.
    program: Option<Arc<Program>>,
}

/// As many keep the steps small in which a million texts grow.
pub(super) const PIECES: usize = 640;

impl<K: Copy + Ord> Registry<K> {
    pub fn new() -> Self {
        Self {
            slots: Chunks::new(),
            holders: Chunks::new(),
            by_text: Table::new(PIECES),
            hasher: RandomState::new(),
            resting: IdQueue::default(),
        }
    }

    /// How many distinct patterns are held.
    pub fn len(&self) -> usize {
        self.by_text.len()
    }

    /// How many ids there are, in use or not.
    #[cfg(test)]
    pub fn ids(&self) -> usize {
        self.slots.len()
    }

    /// The hash of a text or a topic.
    pub fn hash(&self, text: &str) -> u64 {
        self.hasher.hash_one(text)
    }

    pub fn find(&self, text: &str) -> Option<Id> {
        self.by_text.find(self.hash(text), |id| self.text(*id) == Some(text)).copied()
    }

    /// Adds a pattern that nobody holds yet; none where the ids are used up. `change` counts the changes so far.
    pub fn add(&mut self, pattern: Pattern, change: u64) -> Option<Id> {
        let id = match self.resting.pop_rested(change, MOST_CHANGES) {
            Some(id) => id,
            None if self.slots.len() < IDS as usize => {
                self.slots.push(Slot::default());
                self.holders.push(Few::None);
                self.slots.len() as Id - 1
            }
            None => return None,
        };
        self.by_text.insert(self.hash(pattern.text()), id);
        self.slots[id].pattern = Some(pattern);
        Some(id)
    }

    /// Forgets a pattern that nobody holds any more. Its id is not free before it [rests](Self::rest).
    pub fn remove(&mut self, id: Id) {
        debug_assert!(!self.is_held(id));
        let slot = &mut self.slots[id];
        slot.program = None;
        if let Some(pattern) = slot.pattern.take() {
            self.by_text.remove(self.hash(pattern.text()), |found| *found == id);
        }
    }

    /// An id that only the cache may still name.
    pub fn rest(&mut self, id: Id, change: u64) {
        self.resting.push(id, change);
    }

    /// The same for many.
    pub fn rest_all(&mut self, ids: IdQueue, change: u64) {
        self.resting.append(ids, change);
    }

    /// Whether the key did not hold it yet.
    pub fn hold(&mut self, id: Id, key: K) -> bool {
        self.holders[id].insert(key)
    }

    /// Whether the key was the last to hold it.
    pub fn release(&mut self, id: Id, key: K) -> bool {
        let holders = &mut self.holders[id];
        holders.remove(key) && holders.is_empty()
    }

    pub fn holders(&self, id: Id) -> impl Iterator<Item = K> {
        self.holders[id].iter()
    }

    pub fn is_held(&self, id: Id) -> bool {
        !self.holders[id].is_empty()
    }

    pub fn text(&self, id: Id) -> Option<&str> {
        self.slots[id].pattern.as_ref().map(Pattern::text)
    }

    pub fn keep_program(&mut self, id: Id, program: Arc<Program>) {
        self.slots[id].program = Some(program);
    }

    pub fn program(&self, id: Id) -> Option<&Program> {
        self.slots[id].program.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Pattern {
        Pattern::parse(text).unwrap()
    }

    #[test]
    fn holders_come_and_go_without_a_change_of_the_id() {
        let mut registry = Registry::new();
        let id = registry.add(pattern("a*"), 0).unwrap();
        assert!(!registry.is_held(id) && registry.hold(id, 7));
        assert!(registry.hold(id, 3) && !registry.hold(id, 3));
        assert_eq!((registry.find("a*"), registry.find("a"), registry.len()), (Some(id), None, 1));
        assert_eq!(registry.holders(id).collect::<Vec<_>>(), [3, 7]);
        assert!(!registry.release(id, 9) && !registry.release(id, 7) && !registry.release(id, 7));
        assert!(registry.release(id, 3));
        registry.remove(id);
        assert_eq!((registry.find("a*"), registry.text(id), registry.len()), (None, None, 0));
    }

    #[test]
    fn an_id_is_not_used_again_while_something_may_name_it() {
        let mut registry = Registry::<u32>::new();
        let first = registry.add(pattern("a"), 0).unwrap();
        registry.remove(first);
        // It does not rest yet: a base may name it.
        let second = registry.add(pattern("b"), 1_000).unwrap();
        assert_ne!(second, first);
        registry.rest(first, 1_000);
        let third = registry.add(pattern("c"), 1_000 + MOST_CHANGES).unwrap();
        assert_ne!(third, first);
        assert_eq!(registry.add(pattern("d"), 1_001 + MOST_CHANGES), Some(first));
        assert_eq!((registry.find("d"), registry.find("a")), (Some(first), None));
    }

    #[test]
    fn a_slot_is_small() {
        assert!(size_of::<Slot>() <= 24 && size_of::<Few<usize>>() <= 16);
    }
}
