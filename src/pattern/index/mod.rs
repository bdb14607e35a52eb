//! Which subscriptions want a topic.
//!
//! A pattern is expanded into atoms. One without wildcards is found by the topic it names ([`exact`]), any other by
//! a literal text that it hangs on ([`anchor`]): the new ones in tables that can be changed ([`overlay`]), the others
//! packed ([`base`]). Now and then a [`merge`] packs the new ones too, on another thread. What is found is tried where
//! the literal does not say all ([`verify`]; many on a long topic by its [`occurrences`]), and counts if its pattern
//! is still held ([`registry`]). Topics that come often are answered by the [`cache`].
//!
//! All of it knows patterns by their ids. Whether an id is still held is asked once, at the end, and it is not given to
//! another pattern while anything may name it: so what goes need be taken out of neither base nor cache, and a
//! merge has nothing to carry over but the ids that went meanwhile.
//!
//! Matching takes time by the length of the topic and the number of patterns that match, not by how many do not.

mod anchor;
mod base;
mod bounds;
mod cache;
mod exact;
mod few;
mod grams;
mod hashes;
mod ids;
mod journal;
mod merge;
mod occurrences;
mod overlay;
mod place;
mod registry;
mod table;
#[cfg(test)]
mod tests;
mod verify;

use std::mem;
use std::sync::Arc;

use smallvec::SmallVec;

pub use bounds::IndexError;
pub use merge::{MergeJob, Merged, Retired};

use self::anchor::{Choices, choices};
use self::base::{Base, Ranks};
use self::bounds::Bounds;
use self::cache::Cache;
use self::exact::Exact;
use self::hashes::{End, Hashes, Probe};
use self::ids::{Id, IdQueue, Posting};
use self::journal::Journal;
use self::occurrences::Occurrences;
use self::overlay::Overlay;
use self::place::Place;
use self::registry::Registry;
use self::verify::Program;
use super::syntax::Pattern;
use crate::limits::{
    DISTINCT_PATTERNS, IDLE_MERGE_CHANGES, MERGE_CHANGES, TOPIC_BYTES, UNSELECTIVE_PATTERNS,
};

/// The patterns of one shard and the keys (one a subscription) that hold them.
///
/// Each distinct text is matched once, however many keys hold it.
pub struct Index<K> {
    registry: Registry<K>,
    bounds: Bounds,
    exact: Exact,
    base: Arc<Base>,
    /// What a merge under way adds to the base.
    frozen: Option<Arc<Overlay>>,
    overlay: Overlay,
    /// Ids without a pattern that the base or the frozen overlay still names.
    gone: IdQueue,
    journal: Journal,
    cache: Cache,
    hashes: Hashes,
    merges: u64,
    scratch: Scratch,
}

/// What one search uses, kept for the next.
#[derive(Default)]
struct Scratch {
    start: End,
    back: End,
    ranks: Ranks,
    found: Vec<Posting>,
    matched: Vec<Id>,
    /// Made when it is first needed.
    occurrences: Option<Occurrences>,
}

impl<K: Copy + Ord> Index<K> {
    /// An empty index with the default bounds.
    pub fn new() -> Self {
        Self::with_bounds(DISTINCT_PATTERNS, UNSELECTIVE_PATTERNS)
    }

    /// An empty index that holds at most so many distinct patterns, and so many unselective ones among them.
    pub fn with_bounds(distinct_limit: usize, unselective_limit: usize) -> Self {
        let hashes = Hashes::new();
        Self {
            registry: Registry::new(),
            bounds: Bounds::new(distinct_limit, unselective_limit),
            exact: Exact::new(),
            base: Arc::new(Base::new()),
            frozen: None,
            overlay: Overlay::new(hashes),
            gone: IdQueue::default(),
            journal: Journal::default(),
            cache: Cache::new(),
            hashes,
            merges: 0,
            scratch: Scratch::default(),
        }
    }

    /// How many distinct patterns are held.
    pub fn patterns(&self) -> usize {
        self.registry.len()
    }

    /// How many merges have come to their end.
    pub fn merges(&self) -> u64 {
        self.merges
    }

    /// Whether no pattern is held.
    pub fn is_empty(&self) -> bool {
        self.patterns() == 0
    }

    /// Adds all of the patterns of one subscription, or none of them. Repeats, and patterns that the key
    /// holds already, change nothing.
    ///
    /// # Errors
    ///
    /// A bound would be passed. Patterns that are held already, by whichever key, count for nothing.
    pub fn insert(&mut self, key: K, patterns: &[Pattern]) -> Result<(), IndexError> {
        let mut taken: SmallVec<[&Pattern; 8]> = SmallVec::new();
        for pattern in patterns {
            let id = match self.registry.find(pattern.text()) {
                Some(id) => Ok(id),
                None => self.add(pattern),
            };
            match id {
                Ok(id) if self.registry.hold(id, key) => taken.push(pattern),
                Ok(_) => {}
                Err(error) => {
                    taken.into_iter().for_each(|pattern| self.release(key, pattern));
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Takes patterns from a key. Those it does not hold are passed over.
    pub fn remove(&mut self, key: K, patterns: &[Pattern]) {
        patterns.iter().for_each(|pattern| self.release(key, pattern));
    }

    /// Appends to `keys` each key that holds at least one matching pattern, once, ascending. What `keys` held
    /// before stays as it was.
    pub fn matching(&mut self, topic: &str, keys: &mut Vec<K>) {
        let start = keys.len();
        let hash = self.registry.hash(topic);
        match self.cache.find(hash, topic, &self.journal, |id| self.registry.is_held(id)) {
            Some(at) => keys.extend(self.cache.ids(at).flat_map(|id| self.registry.holders(id))),
            None => {
                self.search(hash, topic);
                let matched = &self.scratch.matched;
                self.cache.put(hash, topic, self.journal.changes(), matched);
                keys.extend(matched.iter().flat_map(|id| self.registry.holders(*id)));
            }
        }
        if keys.len() > start + 1 {
            sort_from(start, keys);
        }
    }

    /// Whether a merge is worth its work by now; with less where the shard is `idle`.
    pub fn is_merge_due(&self, idle: bool) -> bool {
        let bound = if idle { IDLE_MERGE_CHANGES } else { MERGE_CHANGES.max(self.base.len() / 8) };
        self.frozen.is_none() && self.overlay.len() + self.gone.len() > bound
    }

    /// Begins a merge: whoever drives the index runs the job on another thread and gives the result to
    /// [`finish_merge`](Self::finish_merge). In between the index is used as always. None where there is nothing to
    /// merge, or a merge is under way.
    pub fn begin_merge(&mut self) -> Option<MergeJob> {
        if self.frozen.is_some() || self.overlay.len() + self.gone.len() == 0 {
            return None;
        }
        let overlay = Arc::new(mem::replace(&mut self.overlay, Overlay::new(self.hashes)));
        self.frozen = Some(Arc::clone(&overlay));
        Some(MergeJob { base: Arc::clone(&self.base), overlay, gone: mem::take(&mut self.gone) })
    }

    /// Takes the result of the job that [`begin_merge`](Self::begin_merge) gave, and gives back what it replaces.
    pub fn finish_merge(&mut self, merged: Merged) -> Retired {
        // What went since the merge began is in `gone`, and the new base names it still.
        self.registry.rest_all(merged.gone, self.journal.changes());
        let base = mem::replace(&mut self.base, merged.base);
        self.merges += 1;
        Retired { _base: base, _overlay: self.frozen.take() }
    }

    /// Makes room for a pattern that nobody holds, and makes it findable.
    fn add(&mut self, pattern: &Pattern) -> Result<Id, IndexError> {
        let atoms = pattern.atoms();
        self.bounds.check(&atoms)?;
        let places = self.places(&atoms)?;
        let id = self.registry.add(pattern.clone(), self.journal.changes());
        let id = id.ok_or_else(|| self.bounds.too_many())?;
        self.bounds.count(&atoms);
        let mut is_verified = false;
        for (at, place) in places.into_iter().enumerate() {
            is_verified |= match place {
                Place::Topic(topic) => {
                    let posting = Exact::posting(id, at, pattern.text(), topic);
                    self.exact.insert(&self.registry, topic, posting);
                    posting.verify()
                }
                Place::Anchor { anchor, verify, crowded } => {
                    let posting = Posting::new(id, at, verify);
                    self.overlay.insert(anchor, posting);
                    if crowded {
                        self.bounds.enter_crowd(posting);
                    }
                    verify
                }
            };
        }
        let program = Arc::new(Program::new(atoms));
        if is_verified {
            self.registry.keep_program(id, Arc::clone(&program));
        }
        self.journal.write(id, program);
        Ok(id)
    }

    /// Takes a pattern from a key, and with its last holder makes it unfindable.
    fn release(&mut self, key: K, pattern: &Pattern) {
        let Some(id) = self.registry.find(pattern.text()) else { return };
        if !self.registry.release(id, key) {
            return;
        }
        let atoms = pattern.atoms();
        let mut is_named = false;
        for (at, atom) in atoms.iter().enumerate() {
            if let Some(topic) = atom.literal() {
                self.exact.remove(&self.registry, topic, Exact::posting(id, at, pattern.text(), topic));
                continue;
            }
            let Choices { anchors, verify } = choices(atom);
            let posting = Posting::new(id, at, verify);
            self.bounds.leave_crowd(posting);
            let mut anchors = anchors.into_iter();
            is_named |= !anchors.any(|anchor| self.overlay.remove(anchor, posting));
        }
        self.bounds.discount(&atoms);
        self.registry.remove(id);
        if is_named {
            self.gone.push(id, 0);
        } else {
            self.registry.rest(id, self.journal.changes());
        }
    }

    /// Finds the patterns that match, each once.
    fn search(&mut self, hash: u64, topic: &str) {
        let Scratch { start, back, ranks, found, matched, occurrences } = &mut self.scratch;
        found.clear();
        matched.clear();
        start.read(topic.as_bytes());
        back.read_backwards(topic.as_bytes());
        let probe = Probe { topic: topic.as_bytes(), start, back };
        let begun = self.base.begin(&probe);
        self.exact.find(&self.registry, hash, topic, found);
        self.base.find(&probe, begun, ranks, found);
        let overlays = [Some(&self.overlay), self.frozen.as_deref()];
        let mut overlays = overlays.into_iter().flatten().filter(|overlay| overlay.len() > 0).peekable();
        if overlays.peek().is_some() {
            self.hashes.prepare(start);
            self.hashes.prepare(back);
        }
        let probe = Probe { topic: topic.as_bytes(), start, back };
        overlays.for_each(|overlay| overlay.find(&probe, found));
        // One pattern may be found by several of its atoms, and one atom at several places.
        found.sort_unstable();
        found.dedup();
        let tries = found.iter().filter(|posting| posting.verify()).count();
        let mut known = is_worth_reading(topic, tries).then(|| {
            let known = occurrences.get_or_insert_default();
            known.read(topic);
            known
        });
        for posting in found {
            let id = posting.id();
            if matched.last() == Some(&id) || !self.registry.is_held(id) {
                continue;
            }
            let mut matches = |program: &Program| match known.as_deref_mut() {
                Some(known) => program.atom_matches_by(known, posting.atom(), topic),
                None => program.atom_matches(posting.atom(), topic),
            };
            if !posting.verify() || self.registry.program(id).is_some_and(&mut matches) {
                matched.push(id);
            }
        }
    }
}

impl<K: Copy + Ord> Default for Index<K> {
    fn default() -> Self {
        Self::new()
    }
}

/// Whether so many expansions have to be tried on a topic that it pays to know where its characters lie.
fn is_worth_reading(topic: &str, tries: usize) -> bool {
    tries * topic.len() >= SEARCHED_BYTES && topic.len() <= TOPIC_BYTES
}

/// What can be searched in the time that it takes to read the longest topic.
const SEARCHED_BYTES: usize = 4 * TOPIC_BYTES;

/// Sorts what lies behind `start` and drops repeats there.
fn sort_from<K: Ord>(start: usize, keys: &mut Vec<K>) {
    keys[start..].sort_unstable();
    // `dedup_by` asks about each element but the first, in order: this keeps it off what was there before.
    let mut position = 0;
    keys.dedup_by(|key, before| {
        position += 1;
        position > start && key == before
    });
}
