//! Storage that grows in small steps: what holds a million entries must never be copied in one go.

use hashbrown::HashTable;

/// A hash table cut into pieces, each of which grows by itself.
///
/// Callers bring the hash and tell equal entries apart; a table knows neither keys nor hashers.
pub(super) struct Table<T> {
    pieces: Box<[HashTable<Entry<T>>]>,
    len: usize,
}

/// A value with what its piece needs to move it: 32 bits of its hash.
struct Entry<T> {
    tag: u32,
    value: T,
}

impl<T> Table<T> {
    /// An empty table; as many pieces as keep each at some 1,500 entries when it is full.
    pub fn new(pieces: usize) -> Self {
        Self { pieces: std::iter::repeat_with(HashTable::new).take(pieces).collect(), len: 0 }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn find(&self, hash: u64, is_it: impl Fn(&T) -> bool) -> Option<&T> {
        let tag = tag(hash);
        let piece = &self.pieces[place(hash, self.pieces.len())];
        let found = piece.find(spread(tag), |entry| entry.tag == tag && is_it(&entry.value))?;
        Some(&found.value)
    }

    pub fn find_mut(&mut self, hash: u64, is_it: impl Fn(&T) -> bool) -> Option<&mut T> {
        let tag = tag(hash);
        let piece = &mut self.pieces[place(hash, self.pieces.len())];
        let found = piece.find_mut(spread(tag), |entry| entry.tag == tag && is_it(&entry.value))?;
        Some(&mut found.value)
    }

    /// Adds a value, whether or not there is an equal one.
    pub fn insert(&mut self, hash: u64, value: T) {
        let entry = Entry { tag: tag(hash), value };
        let piece = &mut self.pieces[place(hash, self.pieces.len())];
        piece.insert_unique(spread(entry.tag), entry, |entry| spread(entry.tag));
        self.len += 1;
    }

    pub fn remove(&mut self, hash: u64, is_it: impl Fn(&T) -> bool) -> Option<T> {
        let tag = tag(hash);
        let piece = &mut self.pieces[place(hash, self.pieces.len())];
        let found = piece.find_entry(spread(tag), |entry| entry.tag == tag && is_it(&entry.value)).ok()?;
        self.len -= 1;
        let removed = found.remove().0.value;
        if piece.capacity() > SMALL_PIECE && piece.len() < piece.capacity() / 8 {
            piece.shrink_to(2 * piece.len(), |entry| spread(entry.tag));
        }
        Some(removed)
    }

    /// All values, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.pieces.iter().flatten().map(|entry| &entry.value)
    }
}

/// So many entries a piece keeps room for.
const SMALL_PIECE: usize = 32;

/// The high half of a hash chooses the piece, the low half the place in it.
fn place(hash: u64, pieces: usize) -> usize {
    ((hash >> 32) as usize * pieces) >> 32
}

fn tag(hash: u64) -> u32 {
    hash as u32
}

/// A piece looks at the highest bits too, so the tag is spread over all.
fn spread(tag: u32) -> u64 {
    u64::from(tag).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// A list that is never moved as a whole when it grows.
pub(super) struct Chunks<T> {
    chunks: Vec<Vec<T>>,
}

const CHUNK: usize = 512;

impl<T> Chunks<T> {
    pub fn new() -> Self {
        Self { chunks: Vec::new() }
    }

    pub fn len(&self) -> usize {
        self.chunks.last().map_or(0, |last| (self.chunks.len() - 1) * CHUNK + last.len())
    }

    pub fn push(&mut self, value: T) {
        match self.chunks.last_mut() {
            Some(last) if last.len() < CHUNK => last.push(value),
            _ => {
                let mut chunk = Vec::with_capacity(CHUNK);
                chunk.push(value);
                self.chunks.push(chunk);
            }
        }
    }
}

impl<T> std::ops::Index<u32> for Chunks<T> {
    type Output = T;

    fn index(&self, at: u32) -> &T {
        &self.chunks[at as usize / CHUNK][at as usize % CHUNK]
    }
}

impl<T> std::ops::IndexMut<u32> for Chunks<T> {
    fn index_mut(&mut self, at: u32) -> &mut T {
        &mut self.chunks[at as usize / CHUNK][at as usize % CHUNK]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_hashes_are_told_apart_and_every_piece_is_used() {
        let mut table = Table::new(7);
        let hash = |n: u32| u64::from(n / 2).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        (0..10_000).for_each(|n| table.insert(hash(n), n));
        assert_eq!(table.len(), 10_000);
        assert!(table.pieces.iter().all(|piece| piece.len() > 1_000));
        for n in (0..10_000).step_by(3) {
            assert_eq!(table.remove(hash(n), |found| *found == n), Some(n));
            assert_eq!(table.remove(hash(n), |found| *found == n), None);
        }
        for n in 0..10_000 {
            let wanted = (n % 3 != 0).then_some(n);
            assert_eq!(table.find(hash(n), |found| *found == n).copied(), wanted);
            assert_eq!(table.find_mut(hash(n), |found| *found == n).copied(), wanted);
        }
        assert_eq!(table.iter().count(), table.len());
        (0..10_000).for_each(|n| _ = table.remove(hash(n), |found| *found == n));
        assert!(table.len() == 0 && table.pieces.iter().all(|piece| piece.capacity() <= SMALL_PIECE));
    }

    #[test]
    fn chunks_are_one_list() {
        let mut list = Chunks::new();
        for n in 0..3 * CHUNK as u32 {
            assert_eq!(list.len(), n as usize);
            list.push(n);
        }
        list[CHUNK as u32] += 1;
        assert_eq!([list[0], list[CHUNK as u32], list[CHUNK as u32 + 1]], [0, 513, 513]);
    }
}
