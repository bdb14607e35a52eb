//! Topics that came lately, with the patterns that matched them.

use super::ids::Id;
use super::journal::Journal;
use crate::limits::{CACHE_BYTES, CACHED_IDS, CACHED_TOPICS};

/// The answers for at most [`CACHED_TOPICS`] topics, in at most [`CACHE_BYTES`].
///
/// A topic has its place in one row. It is remembered when it comes a second time, so that a stream of topics which
/// never come again displaces nothing; of a full row one goes that was not asked for.
pub(super) struct Cache {
    /// Made with the first topic.
    rows: Vec<Row>,
    /// The row to take from next when there are too many bytes: the clock algorithm.
    hand: usize,
    /// Of all buffers.
    bytes: usize,
}

/// As long as a cache line: that a topic is not remembered is seen by one look at memory.
#[derive(Clone, Default)]
#[repr(align(64))]
struct Row {
    entries: Vec<Entry>,
    /// Parts of the hashes of the entries.
    parts: [u16; WAYS],
    /// Those of topics that came once, the latest last.
    once: [u16; WAYS],
}

#[derive(Clone)]
struct Entry {
    /// How many changes the answer takes into account.
    changes: u64,
    /// The topic, then the ids.
    buffer: Vec<u8>,
    topic_bytes: u16,
    asked_for: bool,
}

/// Where an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    row: usize,
    way: usize,
}

const WAYS: usize = 8;
const ROWS: usize = CACHED_TOPICS / WAYS;
const ID_BYTES: usize = size_of::<Id>();

const _: () = assert!(size_of::<Row>() == 64 && ROWS.is_power_of_two());

impl Cache {
    pub fn new() -> Self {
        Self { rows: Vec::new(), hand: 0, bytes: 0 }
    }

    /// Where the answer for a topic is, brought up to date; none where it has to be found.
    pub fn find(
        &mut self,
        hash: u64,
        topic: &str,
        journal: &Journal,
        is_held: impl Fn(Id) -> bool,
    ) -> Option<Place> {
        let place = self.place(hash, topic)?;
        let entry = &mut self.rows[place.row].entries[place.way];
        entry.asked_for = true;
        if entry.changes != journal.changes() {
            self.bytes -= entry.buffer.capacity();
            let is_current = entry.update(topic, journal, is_held);
            self.bytes += entry.buffer.capacity();
            // Where it has grown too large it is found and put anew, which makes room.
            is_current.filter(|()| self.bytes <= CACHE_BYTES)?;
        }
        Some(place)
    }

    /// The ids of an answer.
    pub fn ids(&self, place: Place) -> impl Iterator<Item = Id> {
        self.rows[place.row].entries[place.way].ids()
    }

    /// Takes note of an answer that was found.
    pub fn put(&mut self, hash: u64, topic: &str, changes: u64, ids: &[Id]) {
        if self.rows.is_empty() {
            self.rows = vec![Row::default(); ROWS];
        }
        let row = row_of(hash);
        match self.place(hash, topic) {
            Some(place) => self.bytes -= self.rows[row].evict(place.way),
            None if self.rows[row].comes_again(part_of(hash)) => {}
            None => return,
        }
        let bytes = topic.len() + ids.len() * ID_BYTES;
        let Ok(topic_bytes) = u16::try_from(topic.len()) else { return };
        if ids.len() > CACHED_IDS || bytes > CACHE_BYTES {
            return;
        }
        if self.rows[row].entries.len() == WAYS {
            self.bytes -= self.rows[row].evict_idle().unwrap_or_else(|| self.rows[row].evict(0));
        }
        while self.bytes + bytes > CACHE_BYTES {
            self.bytes -= self.rows[self.hand].evict_idle().unwrap_or(0);
            self.hand = (self.hand + 1) % ROWS;
        }
        let mut buffer = Vec::with_capacity(bytes);
        buffer.extend_from_slice(topic.as_bytes());
        buffer.extend(ids.iter().flat_map(|id| id.to_ne_bytes()));
        self.bytes += buffer.capacity();
        let row = &mut self.rows[row];
        row.parts[row.entries.len()] = part_of(hash);
        row.entries.push(Entry { changes, buffer, topic_bytes, asked_for: false });
    }

    fn place(&self, hash: u64, topic: &str) -> Option<Place> {
        let row = self.rows.get(row_of(hash))?;
        let part = part_of(hash);
        let is_it = |(at, entry): (usize, &Entry)| row.parts[at] == part && entry.topic() == topic.as_bytes();
        let way = row.entries.iter().enumerate().position(is_it)?;
        Some(Place { row: row_of(hash), way })
    }
}

fn row_of(hash: u64) -> usize {
    (hash >> 32) as usize % ROWS
}

fn part_of(hash: u64) -> u16 {
    hash as u16
}

impl Row {
    /// Whether a topic came before, as far as is remembered. From now on it did.
    fn comes_again(&mut self, part: u16) -> bool {
        let came = self.once.contains(&part);
        self.once.rotate_left(1);
        self.once[WAYS - 1] = part;
        came
    }

    /// Drops an entry that was not asked for since the last time, if there is one; the bytes of its buffer.
    fn evict_idle(&mut self) -> Option<usize> {
        let idle = self.entries.iter().position(|entry| !entry.asked_for);
        if idle.is_none() {
            self.entries.iter_mut().for_each(|entry| entry.asked_for = false);
        }
        idle.map(|way| self.evict(way))
    }

    fn evict(&mut self, way: usize) -> usize {
        let evicted = self.entries.swap_remove(way);
        self.parts[way] = self.parts[self.entries.len()];
        evicted.buffer.capacity()
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
        let mut bytes = 0;
        for (at, row) in cache.rows.iter().enumerate() {
            for (way, entry) in row.entries.iter().enumerate() {
                let topic = std::str::from_utf8(entry.topic()).unwrap();
                assert_eq!(cache.place(hash(topic), topic), Some(Place { row: at, way }));
                bytes += entry.buffer.capacity();
            }
        }
        assert!(cache.bytes == bytes && bytes <= CACHE_BYTES);
    }

    fn topics(cache: &Cache) -> usize {
        cache.rows.iter().map(|row| row.entries.len()).sum()
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
        assert!(topics(&cache) < 100);
        check(&cache);
    }

    #[test]
    fn topics_and_bytes_are_bounded_and_what_is_asked_for_stays() {
        for (padding, ids) in [(0, 0), (900, 100)] {
            let mut cache = Cache::new();
            let topic = |n: usize| format!("{n}.{}", "x".repeat(padding));
            let answer = vec![1; ids];
            for n in 0..3 * CACHED_TOPICS {
                (0..2).for_each(|_| put(&mut cache, &topic(n), &answer));
                get(&mut cache, &topic(0));
            }
            check(&cache);
            assert!(get(&mut cache, &topic(0)).is_some());
            let is_full = [topics(&cache) > CACHED_TOPICS - 10, cache.bytes > CACHE_BYTES - 2_048];
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
