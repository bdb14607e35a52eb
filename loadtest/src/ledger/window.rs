//! Numbers that are gone through nearly in order, of which only the open ones cost memory.

use std::collections::VecDeque;

/// Up to here closed numbers may lie between open ones without being cleared away.
const FEW: usize = 64;

/// The numbers from 0, each untouched, open with a value, or closed for good.
///
/// ```text
/// 0 … closed … open … closed … open … end … untouched …
/// ```
///
/// All below `end` that is not in `open` is closed. A closed number leaves `open` at once where it is the
/// first, else when closed ones make up half: the memory is that of the open ones, whatever holds up the first.
#[derive(Debug, Default)]
pub struct Window<T> {
    end: u64,
    /// Ascending; without a value where closed meanwhile.
    open: VecDeque<(u64, Option<T>)>,
    /// How many in `open` have no value.
    closed: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place<T> {
    Untouched,
    Open(T),
    Closed,
}

impl<T: Copy + Default> Window<T> {
    /// Above all numbers that were ever touched.
    pub fn end(&self) -> u64 {
        self.end
    }

    pub fn look(&self, number: u64) -> Place<T> {
        if number >= self.end {
            return Place::Untouched;
        }
        match self.find(number).and_then(|at| self.open[at].1) {
            Some(value) => Place::Open(value),
            None => Place::Closed,
        }
    }

    /// Gives a number a value that is not closed. What was skipped is open with the default value.
    pub fn set(&mut self, number: u64, value: T) {
        if number >= self.end {
            self.skip_to(number);
            self.open.push_back((number, Some(value)));
            self.end = number + 1;
        } else if let Some(at) = self.find(number)
            && let Some(open) = &mut self.open[at].1
        {
            *open = value;
        }
    }

    /// For good. What was skipped is open with the default value.
    pub fn close(&mut self, number: u64) {
        if number >= self.end {
            self.skip_to(number);
            self.end = number + 1;
        } else if let Some(at) = self.find(number)
            && self.open[at].1.take().is_some()
        {
            self.closed += 1;
            self.clear_away();
        }
    }

    /// The open numbers, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (u64, T)> {
        self.open.iter().filter_map(|&(number, value)| Some((number, value?)))
    }

    fn skip_to(&mut self, number: u64) {
        self.open.extend((self.end..number).map(|skipped| (skipped, Some(T::default()))));
    }

    fn find(&self, number: u64) -> Option<usize> {
        let first = self.open.front()?.0;
        // Where no number is missing this is the place; where some are, it lies before.
        let at_most = usize::try_from(number.checked_sub(first)?).ok()?;
        match self.open.get(at_most) {
            Some(&(found, _)) if found == number => Some(at_most),
            _ => self.open.binary_search_by_key(&number, |&(found, _)| found).ok(),
        }
    }

    fn clear_away(&mut self) {
        while self.open.front().is_some_and(|(_, value)| value.is_none()) {
            self.open.pop_front();
            self.closed -= 1;
        }
        if self.closed > FEW && self.closed * 2 > self.open.len() {
            self.open.retain(|(_, value)| value.is_some());
            self.closed = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_skipped_is_open_and_what_was_closed_stays_closed() {
        let mut window = Window::default();
        assert_eq!(window.look(0), Place::Untouched);
        window.set(2, 'b');
        assert_eq!(
            [0, 1, 2, 3].map(|number| window.look(number)),
            [Place::Open('\0'), Place::Open('\0'), Place::Open('b'), Place::Untouched]
        );
        window.close(1);
        window.close(1);
        window.close(4);
        window.set(3, 'c');
        assert_eq!(window.iter().collect::<Vec<_>>(), [(0, '\0'), (2, 'b'), (3, 'c')]);
        assert_eq!(
            [1, 4, 5].map(|number| window.look(number)),
            [Place::Closed, Place::Closed, Place::Untouched]
        );
        assert_eq!(window.end(), 5);
    }

    #[test]
    fn one_that_stays_open_does_not_hold_the_memory_of_those_behind() {
        let mut window = Window::default();
        for number in 0..100_000_u64 {
            window.set(number, number);
            if number % 1000 != 0 {
                window.close(number);
            }
        }
        assert!(window.open.len() <= 2 * 100 + FEW, "{} are kept for 100 open ones", window.open.len());
        for number in 0..100_000 {
            let expected = if number % 1000 == 0 { Place::Open(number) } else { Place::Closed };
            assert_eq!(window.look(number), expected);
        }
        window.close(0);
        assert_eq!(window.open.front().map(|(number, _)| *number), Some(1000));
        assert_eq!(window.closed, window.open.len() - window.iter().count());
    }

    #[test]
    fn in_order_nothing_is_allocated() {
        let mut window = Window::<u64>::default();
        (0..1000).for_each(|number| window.close(number));
        assert_eq!(window.open.capacity(), 0);
    }
}
