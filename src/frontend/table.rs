use slab::Slab;

/// Things by a number that is never used again: finding one costs an index, and a number of something that is gone
/// finds nothing.
///
/// A number is a place in the table, which comes again, below a serial number, which does not.
pub struct Table<T> {
    entries: Slab<(u64, T)>,
    serial: u64,
}

/// Room for 16 million things at a time, and for 10^12 in all.
const PLACE_BITS: u32 = 24;

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table { entries: Slab::new(), serial: 0 }
    }
}

impl<T> Table<T> {
    pub fn insert(&mut self, value: T) -> u64 {
        self.add(|_| value).0
    }

    /// Adds what must know its number.
    pub fn insert_with(&mut self, make: impl FnOnce(u64) -> T) -> &T {
        &self.add(make).1
    }

    fn add(&mut self, make: impl FnOnce(u64) -> T) -> &(u64, T) {
        self.serial += 1;
        let vacant = self.entries.vacant_entry();
        debug_assert!(vacant.key() < 1 << PLACE_BITS, "streams and credits bound what is in it");
        let number = self.serial << PLACE_BITS | vacant.key() as u64;
        vacant.insert((number, make(number)))
    }

    pub fn get(&self, number: u64) -> Option<&T> {
        self.entries.get(place(number)).filter(|(own, _)| *own == number).map(|(_, value)| value)
    }

    pub fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        self.entries.get_mut(place(number)).filter(|(own, _)| *own == number).map(|(_, value)| value)
    }

    pub fn remove(&mut self, number: u64) -> Option<T> {
        self.get(number)?;
        Some(self.entries.remove(place(number)).1)
    }

    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().map(|(_, (_, value))| value)
    }
}

fn place(number: u64) -> usize {
    (number & ((1 << PLACE_BITS) - 1)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_finds_its_own_or_nothing() {
        let mut table = Table::default();
        let (first, second) = (table.insert('a'), table.insert('b'));
        assert_eq!((table.get(first), table.get(second)), (Some(&'a'), Some(&'b')));
        assert_eq!(table.remove(first), Some('a'));
        let third = table.insert('c');
        assert_eq!(place(third), place(first), "in its place");
        assert_eq!(table.get(first), None);
        assert_eq!(table.get_mut(first), None);
        assert_eq!(table.remove(first), None);
        assert_eq!(table.values().copied().collect::<String>(), "cb");
    }
}
