//! Topics that came lately, with the patterns that matched them.

use hashbrown::HashTable;

use super::ids::Id;
use super::journal::Journal;
use crate::limits::{CACHE_BYTES, CACHED_IDS, CACHED_TOPICS};

/// The answers for at most [`CACHED_TOPICS`] topics, in at most [`CACHE_BYTES`].
///
/// A topic is remembered when it comes a second time, so that a stream of topics which never come again displaces
/// nothing. Of those remembered one goes that was not asked for since the hand came by (the clock algorithm).
pub(super) struct Cache {
    places: HashTable<u32>,
    entries: Vec<Entry>,
    hand: usize,
    /// Of all buffers.
    bytes: usize,
    /// Parts of the hashes of topics that came once, by other parts; of each row the latest last. Made with the
    /// first.
    once: Vec<[u16; 4]>,
}

struct Entry {
    hash: u64,
    /// How many changes the answer takes into account.
    changes: u64,
    /// The topic, then the ids.
    buffer: Vec<u8>,
    topic_bytes: u16,
    asked_for: bool,
}

const ID_BYTES: usize = size_of::<Id>();

/// So many entries the hand passes over before it takes one that was asked for.
const MOST_PASSED: usize = 32;

impl Cache {
    pub fn new() -> Self {
        Self { places: HashTable::new(), entries: Vec::new(), hand: 0, bytes: 0, once: Vec::new() }
    }

    /// Where the answer for a topic is, brought up to date; none where it has to be found.
    pub fn find(
        &mut self,
        hash: u64,
        topic: &str,
        journal: &Journal,
        is_held: impl Fn(Id) -> bool,
    ) -> Option<usize> {
        let at = self.place(hash, topic)?;
        let entry = &mut self.entries[at];
        entry.asked_for = true;
        if entry.changes != journal.changes() {
            self.bytes -= entry.buffer.capacity();
            let is_current = entry.update(topic, journal, is_held);
            self.bytes += entry.buffer.capacity();
            // Where it has grown too large it is found and put anew, which makes room.
            is_current.filter(|()| self.bytes <= CACHE_BYTES)?;
        }
        Some(at)
    }

    /// The ids of an answer.
    pub fn ids(&self, at: usize) -> impl Iterator<Item = Id> {
        self.entries[at].ids()
    }

    /// Takes note of an answer that was found.
    pub fn put(&mut self, hash: u64, topic: &str, changes: u64, ids: &[Id]) {
        if let Some(at) = self.place(hash, topic) {
            self.evict(at);
        } else if !self.comes_again(hash) {
            return;
        }
        let bytes = topic.len() + ids.len() * ID_BYTES;
        let Ok(topic_bytes) = u16::try_from(topic.len()) else { return };
        if ids.len() > CACHED_IDS || bytes > CACHE_BYTES {
            return;
        }
        while self.entries.len() == CACHED_TOPICS || self.bytes + bytes > CACHE_BYTES {
            let victim = self.victim();
            self.evict(victim);
        }
        let mut buffer = Vec::with_capacity(bytes);
        buffer.extend_from_slice(topic.as_bytes());
        buffer.extend(ids.iter().flat_map(|id| id.to_ne_bytes()));
        self.bytes += buffer.capacity();
        let entries = &mut self.entries;
        self.places.insert_unique(hash, entries.len() as u32, |at| entries[*at as usize].hash);
        self.entries.push(Entry { hash, changes, buffer, topic_bytes, asked_for: false });
    }

    fn place(&self, hash: u64, topic: &str) -> Option<usize> {
        let is_it = |at: &u32| {
            let entry = &self.entries[*at as usize];
            entry.hash == hash && entry.topic() == topic.as_bytes()
        };
        self.places.find(hash, is_it).map(|at| *at as usize)
    }

    /// Whether the topic came before, as far as is remembered. From now on it did.
    fn comes_again(&mut self, hash: u64) -> bool {
        if self.once.is_empty() {
            self.once = vec![[0; 4]; CACHED_TOPICS / 2];
            // Reserved is not yet used: neither is moved when it grows.
            self.entries.reserve_exact(CACHED_TOPICS);
            self.places.reserve(CACHED_TOPICS, |_| 0);
        }
        let row = &mut self.once[(hash >> 32) as usize % (CACHED_TOPICS / 2)];
        let part = (hash >> 16) as u16 | 1;
        let came = row.contains(&part);
        row.rotate_left(1);
        row[3] = part;
        came
    }

    fn victim(&mut self) -> usize {
        for _ in 0..MOST_PASSED {
            self.hand = (self.hand + 1) % self.entries.len();
            if !std::mem::take(&mut self.entries[self.hand].asked_for) {
                break;
            }
        }
        self.hand
    }

    fn evict(&mut self, at: usize) {
        let evicted = self.entries.swap_remove(at);
        self.bytes -= evicted.buffer.capacity();
        if let Ok(place) = self.places.find_entry(evicted.hash, |place| *place as usize == at) {
            place.remove();
        }
        if let Some(moved) = self.entries.get(at) {
            let before = self.entries.len();
            if let Some(place) = self.places.find_mut(moved.hash, |place| *place as usize == before) {
                *place = at as u32;
            }
        }
    }
}

impl Entry {
    fn topic(&self) -> &[u8] {
        &self.buffer[..usize::from(self.topic_bytes)]
    }

    fn ids(&self) -> impl Iterator<Item = Id> {
        let (ids, _) = self.buffer[usize::from(self.topic_bytes)..].as_chunks::<ID_BYTES>();
        ids.iter().map(|id| Id::from_ne_bytes(*id))
    }

    /// Adds the patterns that came since and match; none where they are too many. Those that went are taken out:
    /// an id rests only as long as an answer can be out of date, so a current answer must not name it.
    fn update(&mut self, topic: &str, journal: &Journal, is_held: impl Fn(Id) -> bool) -> Option<()> {
        let came = journal.since(self.changes)?;
        let mut kept = usize::from(self.topic_bytes);
        for at in (kept..self.buffer.len()).step_by(ID_BYTES) {
            let (id, _) = self.buffer[at..].split_first_chunk::<ID_BYTES>()?;
            if is_held(Id::from_ne_bytes(*id)) {
                self.buffer.copy_within(at..at + ID_BYTES, kept);
                kept += ID_BYTES;
            }
        }
        self.buffer.truncate(kept);
        for (id, program) in came {
            if is_held(id) && program.matches(topic) {
                self.buffer.extend(id.to_ne_bytes());
            }
        }
        let ids = (self.buffer.len() - usize::from(self.topic_bytes)) / ID_BYTES;
        self.changes = journal.changes();
        (ids <= CACHED_IDS).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(topic: &str) -> u64 {
        ahash::RandomState::with_seed(7).hash_one(topic)
    }

    fn put(cache: &mut Cache, topic: &str, ids: &[Id]) {
        cache.put(hash(topic), topic, 0, ids);
    }

    fn get(cache: &mut Cache, topic: &str) -> Option<Vec<Id>> {
        let at = cache.find(hash(topic), topic, &Journal::default(), |_| true)?;
        Some(cache.ids(at).collect())
    }

    fn check(cache: &Cache) {
        assert_eq!(cache.bytes, cache.entries.iter().map(|entry| entry.buffer.capacity()).sum::<usize>());
        assert!(cache.bytes <= CACHE_BYTES && cache.entries.len() <= CACHED_TOPICS);
        assert_eq!(cache.places.len(), cache.entries.len());
        for (at, entry) in cache.entries.iter().enumerate() {
            let topic = std::str::from_utf8(entry.topic()).unwrap();
            assert_eq!(cache.place(hash(topic), topic), Some(at));
        }
    }

    #[test]
    fn an_answer_is_kept_when_its_topic_comes_again_also_an_empty_one() {
        let mut cache = Cache::new();
        for (topic, ids) in [("a", &[][..]), ("☕", &[7, 1 << 24])] {
            put(&mut cache, topic, ids);
            assert_eq!(get(&mut cache, topic), None);
            put(&mut cache, topic, ids);
            assert_eq!(get(&mut cache, topic).as_deref(), Some(ids));
        }
        put(&mut cache, "a", &[3]);
        assert_eq!(get(&mut cache, "a"), Some(vec![3]));
        check(&cache);
    }

    #[test]
    fn what_comes_once_displaces_nothing() {
        let mut cache = Cache::new();
        (0..2).for_each(|_| put(&mut cache, "kept", &[1]));
        (0..4 * CACHED_TOPICS).for_each(|n| put(&mut cache, &format!("once.{n}"), &[]));
        assert_eq!(get(&mut cache, "kept"), Some(vec![1]));
        // Two topics with the same part of their hash are rare.
        assert!(cache.entries.len() < 100);
        check(&cache);
    }

    #[test]
    fn topics_and_bytes_are_bounded_and_what_is_asked_for_stays() {
        for (padding, ids) in [(0, 0), (900, 100)] {
            let mut cache = Cache::new();
            let topic = |n: usize| format!("{n}.{}", "x".repeat(padding));
            let answer = vec![1; ids];
            for n in 0..CACHED_TOPICS + 5_000 {
                (0..2).for_each(|_| put(&mut cache, &topic(n), &answer));
                get(&mut cache, &topic(0));
            }
            check(&cache);
            assert!(get(&mut cache, &topic(0)).is_some());
            assert!(get(&mut cache, &topic(1)).is_none());
            let is_full = [cache.entries.len() == CACHED_TOPICS, cache.bytes > CACHE_BYTES - 2_048];
            assert_eq!(is_full, [padding == 0, padding > 0]);
        }
    }

    #[test]
    fn an_answer_that_is_too_large_is_found_each_time() {
        let mut cache = Cache::new();
        (0..2).for_each(|_| put(&mut cache, "a", &[1; CACHED_IDS]));
        assert!(get(&mut cache, "a").is_some());
        put(&mut cache, "a", &[1; CACHED_IDS + 1]);
        assert_eq!(get(&mut cache, "a"), None);
        check(&cache);
    }

    #[test]
    fn an_answer_grows_within_the_bounds() {
        use std::sync::Arc;

        use super::super::verify::Program;
        use crate::pattern::Pattern;

        let mut cache = Cache::new();
        let mut journal = Journal::default();
        (0..2).for_each(|_| put(&mut cache, "a", &[1; CACHED_IDS - 1]));
        let program = Arc::new(Program::new(Pattern::parse("a*").unwrap().atoms()));
        for id in [500, 501] {
            journal.write(id, Arc::clone(&program));
            let found = cache.find(hash("a"), "a", &journal, |_| true);
            assert_eq!(found.map(|at| cache.ids(at).count()), (id == 500).then_some(CACHED_IDS));
        }
        check(&cache);
    }
}
