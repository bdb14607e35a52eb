//! A set that nearly always has one element.

use std::collections::BTreeSet;

/// A sorted set without an allocation for its first element. A large one grows and shrinks in small steps.
#[derive(Debug, Default)]
pub(super) enum Few<T> {
    #[default]
    None,
    One(T),
    Many(Box<Many<T>>),
}

/// In a box, since it is rare and longer than one element.
#[derive(Debug)]
pub(super) struct Many<T>(BTreeSet<T>);

impl<T: Copy + Ord> Few<T> {
    pub fn is_empty(&self) -> bool {
        matches!(self, Few::None)
    }

    /// Whether it was not there yet.
    pub fn insert(&mut self, element: T) -> bool {
        match self {
            Few::None => *self = Few::One(element),
            Few::One(one) if *one == element => return false,
            Few::One(one) => *self = Few::Many(Box::new(Many([*one, element].into()))),
            Few::Many(many) => return many.0.insert(element),
        }
        true
    }

    /// Whether it was there.
    pub fn remove(&mut self, element: T) -> bool {
        match self {
            Few::One(one) if *one == element => *self = Few::None,
            Few::Many(many) => {
                let removed = many.0.remove(&element);
                if let (1, Some(one)) = (many.0.len(), many.0.first()) {
                    *self = Few::One(*one);
                }
                return removed;
            }
            _ => return false,
        }
        true
    }

    pub fn contains(&self, element: T) -> bool {
        match self {
            Few::None => false,
            Few::One(one) => *one == element,
            Few::Many(many) => many.0.contains(&element),
        }
    }

    /// The elements, ascending.
    pub fn iter(&self) -> impl Iterator<Item = T> {
        let (one, many) = match self {
            Few::None => (None, None),
            Few::One(one) => (Some(*one), None),
            Few::Many(many) => (None, Some(many.0.iter().copied())),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_set_whatever_its_size() {
        let mut few = Few::default();
        let mut twin = BTreeSet::new();
        // Up to four elements and down again, in different orders.
        for step in 0..200u32 {
            let element = step * 7 % 4;
            if step % 16 < 9 {
                assert_eq!(few.insert(element), twin.insert(element));
            } else {
                assert_eq!(few.remove(element), twin.remove(&element));
            }
            assert!(few.iter().eq(twin.iter().copied()));
            assert!((0..5).all(|element| few.contains(element) == twin.contains(&element)));
            assert_eq!(few.is_empty(), twin.is_empty());
            assert_eq!(matches!(few, Few::Many(_)), twin.len() > 1);
        }
    }
}
